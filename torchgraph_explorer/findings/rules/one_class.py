"""Finds batches whose samples all have the same label, as those of data that is sorted and not shuffled.

The evidence is the gradient of the last bias, which is the sum of the gradients at the logits of all samples: the sum
is as long as all of these together if they point the same way. In the first steps, it is the labels themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.cross_entropies import AS_EXPECTED, begins_as_binary
from torchgraph_explorer.findings.rules.facts import class_weights, facts_at, rows_with
from torchgraph_explorer.findings.rules.judge_labels import same_label_for_both
from torchgraph_explorer.findings.rules.loss import noise_of
from torchgraph_explorer.findings.rules.outputs import (
    EQUAL,
    giver,
    rounding,
    sample_size,
    samples_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.rule import Flags, Rows, finding
from torchgraph_explorer.schema import Series, TensorInfo

Floats = npt.NDArray[np.float64]

LEAST_CLASSES = 3
"""Fewest classes of an output `[samples, classes]` that is looked at. Outputs of one number are looked at apart."""

LEAST_SAMPLES = 6
"""Fewest samples of a batch: those of a smaller one may have the same label by chance."""

LEAST_SORTED = 16
"""As `LEAST_SAMPLES`, where only the labels of the first steps are looked at."""

LEAST_STEPS = 4
"""Fewest recorded steps that are looked at."""

ONE_WAY = 0.9
"""Least length of the sum of all samples' gradients, over the sum of their lengths, of a batch with one label. That of
labels at random is `1 / sqrt(samples)`, and that of one label is nearly 1."""

OFTEN = 0.5
"""Least share of the recorded steps with one label. Other batches may have the end of one class and the beginning of
the next."""

MOSTLY = 0.8
"""As `OFTEN`, where there are two labels, of which a batch may well have one by chance; and the least share of the
steps at which the gradients of the bias sum to zero."""

STAYS = 4
"""Fewest consecutive batches with the same label, in the mean, of two labels that are sorted."""

HALF = 0.2
"""How far the mean gradient of a sample may be from one half at the first step, as a binary cross entropy's is for a
logit near 0."""

ALL_ONE_WAY, SELDOM_ONE_WAY = 0.98, 0.75
"""Least lengths as in `ONE_WAY` where all samples of the run have one label: in the median of the steps, and at any."""

LEAST_OF_ONE, SAMPLES_OF_ONE = 8, 500
"""Fewest steps, and samples of all of them together, that show that there is only one label: a rare label may be
missing among fewer by chance."""

CANCELS = 0.02
"""Largest magnitude of the mean of the bias' gradients over their root mean square that counts as a sum of zero, as the
gradients of a cross entropy have over the classes. Rounding in bfloat16 is below that. A squared error with the same
targets for all samples has nearly 1."""

LEARNED = 0.2
"""Least mean length of the samples' gradients, over that at first, of a batch that is looked at. Where they are
shorter, a single sample may make nearly all of their sum."""

UNLEARNED, SURELY = 1.03, 1.25
"""Mean lengths of the samples' gradients, over that at first, from which on a batch has another label than the batches
before: from the first if chance does not explain it, and from the second in any case. Where nearly all samples of the
data have the same label, the length does not rise so far."""

ERRORS, MORE_THAN_CHANCE = 6.0, 1.75
"""How many standard errors that length has to be above 1 if chance does not explain it; or how many times the noise of
the length from step to step has to be its standard error."""


def one_class_batches(evidence: Evidence) -> Iterator[Finding]:
    """All samples of nearly each batch have the same label: their gradients at the logits point the same way."""
    yield from same_label_for_both(evidence)
    by_labels = [*_of_sorted_labels(evidence)]
    if by_labels:
        yield from by_labels
        return
    yield from _of_two_classes(evidence)
    yield from _of_one_label(evidence)
    for series, info, column, norms in trained_outputs(evidence):
        if len(info.shape) != 2 or (info.shape[1] or 0) < LEAST_CLASSES:
            continue
        bias = _bias_gradient(evidence, column, classes=info.shape[1] or 0)
        if bias is None or not _sums_to_zero(evidence, bias, classes=info.shape[1] or 0):
            continue
        if not _is_cross_entropy(evidence, column, norms, info=info):
            continue
        size = samples_of(evidence, info, column)
        lengths = evidence.column("mean", norms) * size
        with np.errstate(all="ignore"):
            shares = evidence.column("l2_norm", bias).astype(np.float64) / lengths
        rows = np.flatnonzero(np.isfinite(shares) & (size >= LEAST_SAMPLES) & _are_of_one_pass(evidence))
        if _have_one_label(shares[rows], lengths[rows], size[rows]):
            yield _always_the_same(evidence, series, rows, samples=float(size[rows].sum()))
            continue
        rows = rows[lengths[rows] > LEARNED * lengths[rows[:1]]]
        alike = rows[shares[rows] > ONE_WAY]
        is_sum = len(rows) > 0 and shares[rows].max() <= 1 + EQUAL + rounding(info)  # no longer than all together
        if len(rows) < LEAST_STEPS or len(alike) <= OFTEN * len(rows) or not is_sum:
            continue
        with np.errstate(all="ignore"):
            errors = evidence.column("std", norms) / evidence.column("mean", norms) / np.sqrt(size)
        if _finds_another(lengths[alike] / lengths[rows[0]], error=float(np.median(errors[alike]))):
            yield _not_shuffled(evidence, series, alike, steps=len(rows), share=float(np.median(shares[rows])))


def _of_sorted_labels(evidence: Evidence) -> Iterator[Finding]:
    """Report first batches of which nearly each has mostly one label, by the labels that the live training inferred.

    Most batches have one label only, and not all batches have the same one. Samples without a gradient have none.
    """
    seen = class_weights(evidence)
    sizes = [(facts_at(evidence, row).batch_size or 0) * (1 - weights.without_gradient) for row, weights in seen]
    shares = [weights.share for _, weights in seen]
    if len(seen) < LEAST_STEPS or min(sizes) < LEAST_SORTED or evidence.places.classes < LEAST_CLASSES:
        return
    labels = {weights.most_common for _, weights in seen}
    if np.median(shares) < ALL_ONE_WAY or min(shares) < OFTEN or len(labels) < 2:
        return
    yield _one_class(
        evidence,
        "",
        [row for row, _ in seen],
        numbers={"steps": len(seen), "of": len(seen), "share": float(np.mean(shares))},
        text=f"In each of the {len(seen)} batches whose labels were looked at, most samples have the same label, "
        f"{np.mean(shares):.0%} in the mean, and not always the same one: the samples are in the order of their "
        "labels. Each update teaches one class and unlearns the others.",
    )


def _of_two_classes(evidence: Evidence) -> Iterator[Finding]:
    """Report batches of one of two labels, where the model gives one number: all gradients of a batch have one sign.

    Logged loss and gradients have to begin as those of a binary cross entropy. Both labels have to fill some batches: a
    rare one does not. They have to stay the same for several batches: a discriminator gets both labels in turn.
    """
    last = _last_linear(evidence)
    if last is None:
        return
    column, norms, bias = last
    size = evidence.column("count", column).astype(np.float64)
    lengths = evidence.column("mean", norms) * size
    with np.errstate(all="ignore"):
        sums = evidence.column("mean", bias).astype(np.float64) / lengths
    rows = np.flatnonzero(np.isfinite(sums) & (size >= LEAST_SAMPLES) & _are_of_one_pass(evidence))
    largest = (evidence.column("max", norms) * size)[rows]
    if len(rows) < LEAST_STEPS or abs(lengths[rows[0]] - 0.5) > HALF or largest.max() > 1 + EQUAL:
        return
    if not begins_as_binary(evidence, rows, lengths[rows]):
        return
    alike = rows[np.abs(sums[rows]) > ONE_WAY]
    changes = np.count_nonzero(np.diff(np.sign(sums[alike])))
    counts = [np.count_nonzero(np.sign(sums[alike]) == sign) for sign in (-1, 1)]
    if len(alike) > MOSTLY * len(rows) and min(counts) >= LEAST_STEPS and changes * STAYS <= len(alike):
        share = float(np.median(np.abs(sums[rows])))
        yield _not_shuffled(evidence, evidence.series[column], alike, steps=len(rows), share=share)


def _of_one_label(evidence: Evidence) -> Iterator[Finding]:
    """Report outputs of one number whose binary cross entropy has the same label for all samples of the run.

    That it is a cross entropy is known of the first steps; of all, whether gradients pull outputs up or down.
    """
    seen, output = class_weights(evidence), next(trained_outputs(evidence), None)
    rows = rows_with(evidence, lambda facts: facts.numbers is not None)
    if output is None or sample_size(output.info) != 1 or len(seen) < LEAST_STEPS or len(rows) < LEAST_OF_ONE:
        return
    numbers = [one for row in rows if (one := facts_at(evidence, row).numbers) is not None]
    samples, rising = sum(one.samples for one in numbers), {one.rising for one in numbers}
    is_one = all(weights.classes == 1 and not weights.without_gradient for _, weights in seen)
    if is_one and samples >= SAMPLES_OF_ONE and rising in ({0.0}, {1.0}) and _are_of_one_pass(evidence)[rows].all():
        yield _always_the_same(evidence, output.series, np.array(rows, np.intp), samples=float(samples))


def _last_linear(evidence: Evidence) -> tuple[int, int, int] | None:
    """The columns of a last linear layer that gives one number for each sample; None without such a layer.

    They are those of its output, of the norms of the output's gradient, and of the gradient of its bias. A sigmoid may
    follow it.
    """
    places = evidence.places
    calls = [call for number, call in enumerate(places.calls) if places.is_leaf(number)]
    if calls and places.class_of(calls[-1].module) == "Sigmoid":
        calls.pop()
    if not calls or places.class_of(calls[-1].module) != "Linear" or calls[-1].outputs[0].shape[1:] != (1,):
        return None
    module, call = calls[-1].module, calls[-1].call
    found = (
        evidence.find(module, call, "output", "output"),
        evidence.find(module, call, "output", "output", "grad_norm"),
        evidence.find(module, None, "param", "bias", "grad"),
    )
    column, norms, bias = found
    return None if call or column is None or norms is None or bias is None else (column, norms, bias)


def _are_of_one_pass(evidence: Evidence) -> Flags:
    """Which steps have a single pass. The bias' gradient sums those of several, and that at the logits is of one."""
    return np.array([facts is not None and facts.passes == 1 for facts in evidence.facts], np.bool_)


def _bias_gradient(evidence: Evidence, column: int, *, classes: int) -> int | None:
    """The column of the gradient of the last linear layer's bias; None if the model's output is not from that layer."""
    last = giver(evidence, column, "Linear")
    bias = None if last is None else evidence.find(last, None, "param", "bias", "grad")
    info = None if bias is None else evidence.places.tensor(evidence.series[bias])
    return bias if info is not None and info.shape == (classes,) else None


def _sums_to_zero(evidence: Evidence, bias: int, *, classes: int) -> bool:
    """Whether the gradients of the bias sum to zero at nearly all steps, as those of a softmax do."""
    mean, norm = (evidence.column(name, bias).astype(np.float64) for name in ("mean", "l2_norm"))
    known = np.isfinite(norm) & (norm > 0)
    return bool(known.any()) and (
        np.count_nonzero(np.abs(mean[known]) * math.sqrt(classes) < CANCELS * norm[known]) > MOSTLY * known.sum()
    )


def _is_cross_entropy(evidence: Evidence, column: int, norms: int, *, info: TensorInfo) -> bool:
    """Whether the first gradient of each sample is that of a mean cross entropy of nearly equal logits."""
    classes = info.shape[1] or 0
    scaled = [evidence.column(name, norms) * samples_of(evidence, info, column) for name in ("min", "max")]
    rows = np.flatnonzero(np.isfinite(scaled[0]))
    expected = math.sqrt(1 - 1 / classes)
    return len(rows) > 0 and all(abs(float(lengths[rows[0]]) / expected - 1) < 2 * AS_EXPECTED for lengths in scaled)


def _have_one_label(shares: Floats, lengths: Floats, size: Floats) -> bool:
    """Whether all samples of these batches have the same label.

    Gradients point the same way from the first step on. In the second half of the steps, those of a batch are together
    shorter than that of a single sample with a wrong answer, so no batch has a sample with a rare label.

    Args:
        shares: Length of the sum of the samples' gradients over the sum of their lengths, `[steps]`.
        lengths: Mean length of these gradients, `[steps]`.
        size: Number of samples, `[steps]`.
    """
    if len(shares) < LEAST_OF_ONE or size.sum() < SAMPLES_OF_ONE:
        return False
    late = slice(len(lengths) // 2, None)
    is_one_way = np.median(shares) > ALL_ONE_WAY and shares.min() > SELDOM_ONE_WAY
    return bool(is_one_way and shares[0] > ALL_ONE_WAY and (lengths[late] * size[late] < 0.5).all())


def _finds_another(lengths: Floats, *, error: float) -> bool:
    """Whether any batch has another label than the batches before, by the mean length of its samples' gradients.

    `lengths` are those over that at first, `[steps]`, and `error` is their standard error.
    """
    if lengths.max() <= UNLEARNED:
        return False
    is_noisy = noise_of(lengths) > MORE_THAN_CHANCE * error
    return bool(is_noisy or lengths.max() > min(SURELY, 1 + ERRORS * error))


def _always_the_same(evidence: Evidence, output: Series, rows: Rows, *, samples: float) -> Finding:
    """The finding that all samples of the run have one label."""
    return _one_class(
        evidence,
        output,
        rows,
        numbers={"steps": len(rows), "of": len(rows), "samples": samples},
        text=f"All {samples:.0f} samples of the {len(rows)} recorded batches have the same label: their gradients at "
        "the logits point the same way at each step. The network only learns to give one answer.",
        advice="Look at how the labels are read: a wrong column or folder, a conversion that makes all of them zero, "
        "or a split that leaves one class.",
    )


def _not_shuffled(evidence: Evidence, output: Series, rows: Rows, *, steps: int, share: float) -> Finding:
    """The finding that batches have one label each, and not all the same."""
    return _one_class(
        evidence,
        output,
        rows,
        numbers={"steps": len(rows), "of": steps, "share": share},
        text=f"In {len(rows)} of {steps} recorded batches, all or nearly all samples have the same label: their "
        f"gradients at the logits add up to {share:.0%} of their lengths in the median, while those of mixed labels "
        "would cancel. Each update teaches one class and unlearns the others.",
    )


SHUFFLE = "Shuffle the samples: `DataLoader(..., shuffle=True)`. If they are read in order, mix them beforehand."


def _one_class(
    evidence: Evidence,
    at: Series | str,
    rows: Iterable[int] | Rows,
    *,
    numbers: dict[str, float],
    text: str,
    advice: str = SHUFFLE,
) -> Finding:
    return finding(
        evidence, "one-class-batches", "warning", at=at, rows=rows, numbers=numbers, text=text, advice=advice
    )
