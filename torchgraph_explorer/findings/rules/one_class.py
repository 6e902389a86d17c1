"""Batches whose samples all have the same label, as of data that is sorted and not shuffled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.cross_entropies import AS_EXPECTED, begins_as_binary
from torchgraph_explorer.findings.rules.facts import class_weights, facts_at
from torchgraph_explorer.findings.rules.loss import noise_of
from torchgraph_explorer.findings.rules.outputs import (
    EQUAL,
    ends_with,
    last_module,
    rounding,
    samples_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.rule import Flags, Rows, finding
from torchgraph_explorer.schema import Series, TensorInfo

Floats = npt.NDArray[np.float64]

LEAST_CLASSES = 3

LEAST_SAMPLES = 6
"""Of fewer samples, it may be chance that they have the same label."""

LEAST_SORTED = 16
"""The same of batches of which only the first ones are looked at."""

LEAST_STEPS = 4

ONE_WAY = 0.9
"""Length of the sum of all samples' gradients, over the sum of their lengths. Of labels at random it is the root of one
over their number; of one label it is nearly 1."""

OFTEN = 0.5
"""Share of the recorded steps. At others, a batch may have the end of one class and the beginning of the next."""

MOSTLY = 0.8
"""The same share where there are two labels, of which a batch may well have one by chance."""

STAYS = 4
"""So many such batches, in the mean, have the same label one after the other."""

HALF = 0.2
"""How far the gradient of a binary cross entropy, for each sample, may be from a half at first."""

ALL_ONE_WAY, SELDOM_ONE_WAY = 0.98, 0.75
"""The same share where all samples have one label, in the median of the steps and at least."""

LEAST_OF_ONE, SAMPLES_OF_ONE = 8, 500
"""Steps and samples, at least, that all have the same label: of fewer, a rare one may be missing by chance."""

CANCELS = 0.02
"""Gradients of a cross entropy sum to zero over the classes: the mean at the bias over their root mean square, at most.
In bfloat16, rounding is below that. Of a squared error with the same targets for all samples it is nearly 1."""

LEARNED = 0.2
"""Of shorter gradients, in the mean and over those at first, a single sample may be nearly all: that tells nothing."""

UNLEARNED, SURELY = 1.03, 1.25
"""Length of a sample's gradient, over that at first, of a step with one label that finds another one than before. Where
nearly all labels of a data set are the same, it does not rise; but small batches differ by chance, up to the second."""

ERRORS, MORE_THAN_CHANCE = 6.0, 1.75
"""Standard errors of such a mean length by which it rises without chance; and how many times as much as by chance it
differs between steps where labels do."""


def one_class_batches(evidence: Evidence) -> Iterator[Finding]:
    """The gradients of all samples of a batch point the same way: to one class, in nearly each batch.

    The gradient of a last layer's bias is the sum of those of the logits, of which each sample's length is known.
    """
    sorted_ones = [*_of_sorted_labels(evidence)]
    if sorted_ones:
        yield from sorted_ones
        return
    yield from _of_two_classes(evidence)
    for one, info, column, norms in trained_outputs(evidence):
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
            yield _always_the_same(evidence, one, rows, samples=float(size[rows].sum()))
            continue
        rows = rows[lengths[rows] > LEARNED * lengths[rows[:1]]]
        told = rows[shares[rows] > ONE_WAY]
        if len(rows) < LEAST_STEPS or len(told) <= OFTEN * len(rows) or shares[rows].max() > 1 + EQUAL + rounding(info):
            continue
        with np.errstate(all="ignore"):
            errors = evidence.column("std", norms) / evidence.column("mean", norms) / np.sqrt(size)
        if _finds_another(lengths[told] / lengths[rows[0]], error=float(np.median(errors[told]))):
            yield _shuffle(evidence, one, told, steps=len(rows), share=float(np.median(shares[rows])))


def _of_sorted_labels(evidence: Evidence) -> Iterator[Finding]:
    """Nearly each of the first batches is of one class, most of them wholly, and not all of the same one."""
    seen = class_weights(evidence)
    sizes = [(facts_at(evidence, row).batch_size or 0) for row, _ in seen]
    shares = [one.share for _, one in seen]
    if len(seen) < LEAST_STEPS or min(sizes) < LEAST_SORTED or evidence.places.classes < LEAST_CLASSES:
        return
    labels = {one.most_common for _, one in seen}
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
    """The same where the model gives one number: the gradients of a batch have the same sign.

    They are those of a binary cross entropy, by the logged loss and their size at first. Where one label is rare, only
    the other one fills batches; and an adversary sees both in turn, where sorted samples stay the same for long.
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
    told = rows[np.abs(sums[rows]) > ONE_WAY]
    changes = np.count_nonzero(np.diff(np.sign(sums[told])))
    counts = [np.count_nonzero(np.sign(sums[told]) == sign) for sign in (-1, 1)]
    if len(told) > MOSTLY * len(rows) and min(counts) >= LEAST_STEPS and changes * STAYS <= len(told):
        yield _shuffle(
            evidence, evidence.series[column], told, steps=len(rows), share=float(np.median(np.abs(sums[rows])))
        )


def _last_linear(evidence: Evidence) -> tuple[int, int, int] | None:
    """Of a last linear layer that gives one number for each sample: its output, that one's gradients, its bias'.

    Behind it, there may be a sigmoid.
    """
    places = evidence.places
    calls = [one for at, one in enumerate(places.calls) if places.is_leaf(at)]
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
    """The steps of a single pass: else, the bias has the sum of several, and the gradients at the logits are of one."""
    return np.array([one is not None and one.passes == 1 for one in evidence.facts], np.bool_)


def _bias_gradient(evidence: Evidence, column: int, *, classes: int) -> int | None:
    """The column of the gradient of the bias of the last module, a linear layer, whose output is the model's."""
    if not ends_with(evidence, column, "Linear"):
        return None
    bias = evidence.find(last_module(evidence), None, "param", "bias", "grad")
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
    return len(rows) > 0 and all(abs(float(of[rows[0]]) / expected - 1) < 2 * AS_EXPECTED for of in scaled)


def _have_one_label(shares: Floats, lengths: Floats, size: Floats) -> bool:
    """Whether all samples of these batches have the same label.

    Gradients point the same way from the first step on, and soon no sample is answered wrongly: in the second half,
    those of a batch together are shorter than that of one such sample. So a rare label is not overlooked.
    """
    if len(shares) < LEAST_OF_ONE or size.sum() < SAMPLES_OF_ONE:
        return False
    late = slice(len(lengths) // 2, None)
    is_one_way = np.median(shares) > ALL_ONE_WAY and shares.min() > SELDOM_ONE_WAY
    return bool(is_one_way and shares[0] > ALL_ONE_WAY and (lengths[late] * size[late] < 0.5).all())


def _finds_another(lengths: Floats, *, error: float) -> bool:
    """Whether gradients, each over that at first, get longer than chance makes them: to another label than before."""
    if lengths.max() <= UNLEARNED:
        return False
    differ = noise_of(lengths) > MORE_THAN_CHANCE * error
    return bool(differ or lengths.max() > min(SURELY, 1 + ERRORS * error))


def _always_the_same(evidence: Evidence, one: Series, rows: Rows, *, samples: float) -> Finding:
    return _one_class(
        evidence,
        one,
        rows,
        numbers={"steps": len(rows), "of": len(rows), "samples": samples},
        text=f"All {samples:.0f} samples of the {len(rows)} recorded batches have the same label: their gradients at "
        "the logits point the same way at each step. The network only learns to give one answer.",
        advice="Look at how the labels are read: a wrong column or folder, a conversion that makes all of them zero, "
        "or a split that leaves one class.",
    )


def _shuffle(evidence: Evidence, one: Series, rows: Rows, *, steps: int, share: float) -> Finding:
    return _one_class(
        evidence,
        one,
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
