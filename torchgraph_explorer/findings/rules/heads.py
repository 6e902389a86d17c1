"""A softmax or sigmoid at the end of a network whose loss applies another one, or wants logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.dimensions import softmax_for_several
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Flags, Rows, finding, named
from torchgraph_explorer.schema import Series, TensorInfo

Floats = npt.NDArray[np.float64]

WITHIN = 1e-4
"""How exactly the rows of an output sum to one."""

ERRORS, MOST_ERROR = 4.0, 0.2
"""Standard errors by which the mean of sampled elements may be off, and what they may come to, of that mean: at two
steps at least."""

AS_EXPECTED = 0.2
"""By how much the gradient at a softmax may differ from that of a cross entropy of logits."""

MOST_OF_SIGMOID = 0.76
"""The largest gradient at a sigmoid of a loss that applies another one: the sigmoid of 1, and a margin."""

SIGMOID_OF_0, SIGMOID_OF_1 = 0.5, 1 / (1 + math.exp(-1))
"""The sigmoids of probabilities that are taken for logits lie between these."""

SLACK = 0.005
"""By how much gradients may be beyond what follows from that."""

LEAST_OF_SIGMOID = 0.3
"""The smallest loss of a probability that is taken for a logit is `log(1 + 1/e)`, 0.31."""

LOSS_AS_EXPECTED = 0.15
"""By how much the logged loss may differ from the one that the gradient at a sigmoid tells."""

EQUAL = 1e-3
"""By how much the gradients of the samples differ at most where each is one over their number."""

NEAR_BOUND = 0.95
"""An output of a sigmoid or tanh that is beyond this share of its range is near its bound."""

LEAST_COSINES = 5
"""Steps of the second half, at least, at which the largest output is near 1."""

LEAST_ZEROS = 0.02
"""Share of outputs that are zero, of one number for each sample, from which on they are those of a ReLU."""

HALF = 0.2
"""How far the largest gradient, for each sample, may be from a half at first."""

ZEROS = 1.25
"""Of so many zeros for each sample on, in the median of the steps, they are those of a ReLU."""

STILL_ALIKE = 0.75
"""Up to the first step whose gradient is below this share of that of equal logits, loss and gradient are compared."""

NEAR_LABEL = 0.01
"""By how much the mean gradient of samples with one label may differ from what follows from their mean output."""

OFTEN = 0.75
"""Share of the recorded steps at which it has to be so."""


def softmax_before_loss(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs are probabilities, and the gradient that comes back is that of a loss that takes logits.

    Or it is that of a loss with several right classes for a sample, which such probabilities cannot tell.
    """
    yield from softmax_for_several(evidence)
    for output in trained_outputs(evidence):
        one, info, column, norms = output
        softmax = softmax_of(evidence, column, info)
        if _is_relu_before_sigmoids(evidence, output):
            continue
        if not softmax and (not _is_sigmoid(evidence, column, norms) or _before_cross_entropy(evidence, output)):
            continue
        measured = evidence.column("mean", norms).astype(np.float64)
        rows = np.flatnonzero(np.isfinite(measured) & (measured > 0))
        size, width = samples_of(evidence, info, column), sample_size(info)
        classes, positions = softmax or (2, 1)
        if softmax and _wants_logarithms(evidence, norms, size=size * math.sqrt(positions), rows=rows):
            yield _taken_for_others(evidence, one, rows, words=_AS_LOGARITHMS)
            continue
        if softmax and positions == 1 and _is_of_sigmoids(evidence, norms, size=size, rows=rows, classes=classes):
            yield _taken_for_others(evidence, one, rows, words=_AS_LOGITS)
            continue
        if softmax:
            lengths = measured[rows] * math.sqrt(positions)
            every = [_of_cross_entropy(classes, lengths * k, size[rows], positions=positions) for k in parts(evidence)]
            matches = max(every, key=np.count_nonzero)
        else:
            matches = _of_sigmoid(evidence, norms, size * np.sqrt(width))[rows]
        if len(rows) < LEAST_ROWS or matches.mean() < OFTEN or not matches[0]:
            continue
        if softmax and not any(_may_be_cross_entropy(evidence, classes, times=k) for k in parts(evidence)):
            continue
        yield _twice(evidence, one, rows, is_softmax=softmax is not None, may_be_dice=positions > 1)


def parts(evidence: Evidence) -> tuple[int, ...]:
    """What a loss may have been divided by: 1, or the number of passes whose gradients an update adds up."""
    passes = {one.passes for one in evidence.facts if one is not None}
    return (1, *passes) if len(passes) == 1 and passes != {1} else (1,)


def _may_be_cross_entropy(evidence: Evidence, classes: int, *, times: int) -> bool:
    """Whether the loss, if it was logged, begins as that of nearly equal logits, and is never below that of a sure one.

    It may have been divided before it was logged: `times` is by what.

    The gradient of a Dice coefficient of probabilities is as large as that of a cross entropy of them, but its loss is
    at most 1.
    """
    loss = judged(evidence)
    if loss is None or not len(loss.values):
        return True
    least, values = math.log(math.e + classes - 1) - 1, loss.values * times
    return float(values[0]) > (1 - LOSS_AS_EXPECTED) * math.log(classes) and float(values.min()) > 0.9 * least


def activation_before_loss(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs are bounded by an activation, and the loss takes them for the logits of several classes."""
    for output in trained_outputs(evidence):
        name = _before_cross_entropy(evidence, output)
        if name is not None:
            yield _bounded(evidence, output.series, name)
        elif _is_relu_before_sigmoids(evidence, output):
            yield _never_below_half(evidence, output.series)


def _is_relu_before_sigmoids(evidence: Evidence, output: TrainedOutput) -> bool:
    """Whether the outputs are those of a ReLU, and loss and gradients those of a binary cross entropy of logits.

    The gradient of a zero is a half, whatever its label is.
    """
    _, info, column, norms = output
    low, high, shares = evidence.column("min", column), evidence.column("max", column), evidence.zero_shares[:, column]
    known = np.flatnonzero(np.isfinite(low))
    if sample_size(info) != 1 or len(known) < LEAST_ROWS or (low[known] < 0).any() or not high[known].max() > 0:
        return False
    if np.median(shares[known]) < LEAST_ZEROS:
        return False
    least, most = (evidence.column(name, norms) * samples_of(evidence, info, column) for name in ("min", "max"))
    rows = np.flatnonzero(np.isfinite(most))
    if len(rows) < LEAST_ROWS or not (most[rows] < 1 + SLACK).all() or abs(most[rows[0]] - SIGMOID_OF_0) > HALF:
        return False
    has_zeros = shares[rows] > 0
    is_half_or_less = (least[rows] < SIGMOID_OF_0 + SLACK) & (most[rows] > SIGMOID_OF_0 - SLACK)
    lengths = evidence.column("mean", norms) * samples_of(evidence, info, column)
    return bool(is_half_or_less[has_zeros].all()) and begins_as_binary(evidence, rows, lengths[rows])


def begins_as_binary(evidence: Evidence, rows: Rows, lengths: Floats) -> bool:
    """Whether the logged loss of the first of these rows is that of a binary cross entropy with gradients so long.

    `lengths` are the means over the samples: of the probability of the wrong answer.
    """
    loss = judged(evidence)
    if loss is None:
        return False
    _, at, logged = np.intersect1d(evidence.steps[rows], loss.steps, return_indices=True)
    early = slice(max(LEAST_ROWS, len(at) // 10))
    expected = -np.log1p(-np.minimum(lengths[at[early]], 1 - EQUAL))
    is_as_expected = np.abs(loss.values[logged[early]] - expected) <= AS_EXPECTED * expected
    return len(at) >= LEAST_ROWS and bool(is_as_expected.all())


def _never_below_half(evidence: Evidence, one: Series) -> Finding:
    last = last_module(evidence)
    is_module = evidence.places.class_of(last) == "ReLU"
    return finding(
        evidence,
        "activation-before-loss",
        "warning",
        at=last if is_module else one,
        rows=range(len(evidence)),
        numbers={"steps": len(evidence)},
        text="The model's outputs are not negative, as those of a ReLU, and the loss takes them for logits, as "
        "`binary_cross_entropy_with_logits` does: no probability can be below one half, and there is no gradient "
        "where the ReLU gives zero.",
        advice="End the network with a linear layer, without ReLU: the loss applies a sigmoid.",
    )


def _before_cross_entropy(evidence: Evidence, output: TrainedOutput) -> str | None:
    """The activation that bounds an output which a cross entropy takes for logits of several classes; None without."""
    _, info, column, norms = output
    classes = (info.shape[1] or 0) if len(info.shape) == 2 else 0
    if classes < 3 or is_softmax(evidence, column, info):
        return None
    name = _activation(evidence, column, classes=classes)
    return name if name and _begins_as_cross_entropy(evidence, column, norms, classes=classes) else None


def _activation(evidence: Evidence, column: int, *, classes: int) -> str | None:
    """The activation that the model's output is of, by its range at all steps.

    Logits may lie within -1 and 1 by chance. So a sigmoid or tanh has to be the last module, or outputs come close to
    the bounds, and never beyond, in the last quarter of the steps. Logits may be told from their smallest one, which
    is then zero, but one of them alone.
    """
    low, high, zeros, sampled = (
        evidence.column(name, column).astype(np.float64) for name in ("min", "max", "zeros", "sampled")
    )
    known = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    if len(known) < LEAST_ROWS:
        return None
    low, high, share = low[known], high[known], zeros[known] / sampled[known]
    if (low == 0).all() and np.median(share) > ZEROS / classes and high.max() > 1:
        return "ReLU"
    late = slice(3 * len(known) // 4, None)
    for name, bottom in (("Sigmoid", 0.0), ("Tanh", -1.0)):
        if low.min() < bottom or high.max() > 1:
            continue
        is_close = (high[late] > NEAR_BOUND).all() and (low[late] < bottom + 1 - NEAR_BOUND).all()
        if is_close or ends_with(evidence, column, name):
            return name
    return "cosine" if _are_cosines(low, high) else None


def _are_cosines(low: Floats, high: Floats) -> bool:
    """Whether the largest output of each step comes near 1 over the second half of the steps, and none is beyond.

    A cosine of the right class does so, and seldom comes near -1: that of several others cannot.
    """
    late = high[len(high) // 2 :]
    is_within = low.min() > -1 - WITHIN and high.max() < 1 + WITHIN
    return bool(is_within and low.min() < 0 and len(late) >= LEAST_COSINES and (late > NEAR_BOUND).all())


def _begins_as_cross_entropy(evidence: Evidence, column: int, norms: int, *, classes: int) -> bool:
    """Whether loss and gradients of the first steps are those of a mean cross entropy of nearly equal logits.

    Such a loss is the logarithm of the number of classes. The gradient of a sample is its softmax minus the label: of
    a probability q of all wrong answers, its norm is between those of q on one of them and of q spread over all. Where
    the samples differ, their mean loss is larger than that of the mean q, by what the spread of their norms tells.
    """
    loss = judged(evidence)
    if loss is None:
        return False
    _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
    lengths, spreads, size = (
        evidence.column(name, at)[rows].astype(np.float64)
        for name, at in (("mean", norms), ("std", norms), ("count", column))
    )
    ks = parts(evidence)
    samples, found = size / classes, loss.values[values].astype(np.float64)
    every = [(samples * of_length, found * of_loss) for of_length in ks for of_loss in ks]
    return any(
        _is_cross_entropy(lengths * scale, spreads * scale, losses=losses, classes=classes) for scale, losses in every
    )


def _is_cross_entropy(scaled: Floats, spreads: Floats, *, losses: Floats, classes: int) -> bool:
    known = np.isfinite(scaled) & np.isfinite(losses)
    spread = math.sqrt(classes / (classes - 1))
    wrong = scaled[known] * spread
    alike = int(np.argmin(np.append(wrong > STILL_ALIKE, False)))
    if alike < LEAST_ROWS or abs(wrong[0] - 1) > AS_EXPECTED:
        return False
    found = losses[known][:alike]
    least, most = (-np.log1p(-np.minimum(scaled[known][:alike] / one, 0.999)) for one in (math.sqrt(2), spread))
    most += (np.nan_to_num(spreads[known][:alike]) / spread * np.exp(most)) ** 2 / 2
    is_as_expected = (found > (1 - AS_EXPECTED) * least) & (found < (1 + AS_EXPECTED) * most)
    return bool(is_as_expected.all()) and abs(float(found[0]) / math.log(classes) - 1) < AS_EXPECTED


def first_is_cross_entropy(evidence: Evidence, column: int, norms: int, *, info: TensorInfo, sign: int = 1) -> bool:
    """Whether loss and gradients of the first step are those of a mean cross entropy of nearly equal logits.

    With a `sign` of -1, of its negative. The classes may be those of many positions of a sample.
    """
    loss = judged(evidence)
    if loss is None:
        return False
    _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
    if not len(rows):
        return False
    length = float((evidence.column("mean", norms) * samples_of(evidence, info, column))[rows[0]])
    first = sign * float(loss.values[values[0]])
    return any(
        classes > 2
        and abs(length * math.sqrt(positions) / math.sqrt(1 - 1 / classes) - 1) < AS_EXPECTED
        and abs(first / math.log(classes) - 1) < AS_EXPECTED
        for classes, positions in classes_and_positions(info)
    )


def _bounded(evidence: Evidence, one: Series, name: str) -> Finding:
    range_, keeps = {
        "ReLU": ("not negative", "a class gets no gradient where its logit is zero"),
        "Sigmoid": ("between 0 and 1", "no class can get more than e times the probability of another one"),
        "Tanh": ("between -1 and 1", "no class can get more than e² times the probability of another one"),
        "cosine": ("between -1 and 1", "no class can get more than e² times the probability of another one"),
    }[name]
    last = last_module(evidence)
    return finding(
        evidence,
        "activation-before-loss",
        "warning",
        at=last if evidence.places.class_of(last) == name else one,
        rows=range(len(evidence)),
        numbers={"steps": len(evidence)},
        text=f"The model's outputs are {range_}, as those of a {name}, and the loss takes them for logits, as "
        f"`cross_entropy` does: {keeps}.",
        advice="Multiply the cosines by a scale of 10 or more, or divide them by a temperature, before the loss."
        if name == "cosine"
        else f"End the network with a linear layer, without {name}: the loss applies a softmax.",
    )


def _is_of_sigmoids(evidence: Evidence, norms: int, *, size: Floats, rows: Rows, classes: int) -> bool:
    """Whether the loss takes each probability of a softmax for the logit of a binary cross entropy.

    The gradient is then `sigmoid(p)`, and 1 less for the right class. At each sample its square is between that of a
    right answer, p = 1 for that class, and that of a wrong one, p = 1 for another.
    """
    low, high = (evidence.column(name, norms)[rows].astype(np.float64) for name in ("min", "max"))
    others = (classes - 1) * SIGMOID_OF_0**2
    least, most = math.sqrt(others + (1 - SIGMOID_OF_1) ** 2), math.sqrt(others + SIGMOID_OF_1**2)
    return len(rows) >= LEAST_ROWS and any(
        bool((low * scale > least * (1 - SLACK)).all() and (high * scale < most * (1 + SLACK)).all())
        for scale in (size[rows] * classes, np.ones(len(rows)))
    )


def _wants_logarithms(evidence: Evidence, norms: int, *, size: Floats, rows: Rows) -> bool:
    """Whether the loss is linear in the probabilities: it is meant for their logarithms.

    The gradient of `-log(p)` at a sample has at least the norm 1. Without the logarithm it is the target, however good
    the answer is: exactly 1 for a label, and less for a distribution. A squared error can be so small, too, but the
    loss is then not negative.
    """
    scaled = [evidence.column(name, norms)[rows] * size[rows] for name in ("min", "max")]
    if not len(rows) or not all((one < 1 + EQUAL).all() for one in scaled):
        return False
    is_label = all((np.abs(one - 1) < EQUAL).all() for one in scaled)
    loss = judged(evidence)
    return is_label or (loss is not None and len(loss.values) >= LEAST_ROWS and bool((loss.values < 0).all()))


def _taken_for_others(evidence: Evidence, one: Series, rows: Rows, *, words: tuple[str, str]) -> Finding:
    text, advice = words
    return finding(
        evidence,
        "softmax-before-loss",
        "warning",
        at=_last_softmax(evidence) or one,
        rows=rows,
        numbers={"steps": len(rows)},
        text=f"The model's outputs are {text}",
        advice=advice,
    )


_AS_LOGITS = (
    "the probabilities of a softmax, and the loss takes each for a logit, as `binary_cross_entropy_with_logits` does: "
    "no answer can come near 0 or 1, so the loss cannot get small.",
    "Remove the softmax at the end of the network, and use `cross_entropy` where one class is right, or keep the loss "
    "where several may be.",
)
_AS_LOGARITHMS = (
    "probabilities, and the gradient that comes back does not depend on them: the loss takes them for their "
    "logarithms, as `nll_loss` and `kl_div` do.",
    "End the network with `log_softmax` instead of `softmax`, or hand logits to `cross_entropy`.",
)
"""What the output is taken for, and what to do."""


def _last_softmax(evidence: Evidence) -> str | None:
    last = last_module(evidence)
    return last if evidence.places.class_of(last) in {"Softmax", "Softmax2d"} else None


def last_module(evidence: Evidence) -> str:
    """The module of the last call without calls inside; empty without any."""
    places = evidence.places
    return next((one.module for at, one in reversed([*enumerate(places.calls)]) if places.is_leaf(at)), "")


def is_softmax(evidence: Evidence, column: int, info: TensorInfo) -> bool:
    """Whether the elements lie between 0 and 1 and their mean is that of rows that sum to one."""
    return softmax_of(evidence, column, info) is not None


def softmax_of(evidence: Evidence, column: int, info: TensorInfo) -> tuple[int, int] | None:
    """Of an output of probabilities, how many classes and how many positions of a sample it has; None of others."""
    if not lie_within(evidence, column):
        return None
    means, spreads, count, sampled = (
        evidence.column(name, column).astype(np.float64) for name in ("mean", "std", "count", "sampled")
    )
    errors = np.where(count == sampled, 0.0, ERRORS * spreads / np.sqrt(sampled))
    for classes, positions in classes_and_positions(info):
        off, allowed = np.abs(means * classes - 1), WITHIN + rounding(info) + errors * classes
        is_known = np.isfinite(means) & (errors * classes < MOST_ERROR)
        if classes > 1 and is_known.sum() >= LEAST_ROWS and not (off > allowed).any():
            return classes, positions
    return None


def rounding(info: TensorInfo) -> float:
    """The largest relative error of an element by its dtype, if that has few digits."""
    return _ROUNDING.get(info.dtype, 0.0)


_ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def classes_and_positions(info: TensorInfo) -> Iterator[tuple[int, int]]:
    """How many classes an output may have, and how many positions each sample, of which each has an answer.

    The classes are the second dimension, as torch has it of `[samples, classes, ...]`; or the last one of sequences.
    """
    sizes = info.shape[1:]
    for classes in dict.fromkeys((*sizes[:1], *(sizes[-1:] if len(sizes) == 2 else ()))):
        if classes and all(sizes):
            yield classes, math.prod(size or 1 for size in sizes) // classes


class TrainedOutput(NamedTuple):
    """An output of the model that gradients come back to.

    Attributes:
        series: Its series.
        info: What it is; not a scalar.
        column: The column of its values.
        norms: That of the norms of its gradients.
    """

    series: Series
    info: TensorInfo
    column: int
    norms: int


def trained_outputs(evidence: Evidence) -> Iterator[TrainedOutput]:
    """The outputs of the model that gradients come back to."""
    for column in evidence.of_kind("value", "output"):
        one = evidence.series[column]
        info = evidence.places.tensor(one)
        norms = evidence.find(one.module, one.call, "output", one.path, "grad_norm")
        if not one.module and not one.call and info is not None and info.shape and norms is not None:
            yield TrainedOutput(one, info, column, norms)


def _is_sigmoid(evidence: Evidence, column: int, norms: int) -> bool:
    """Whether the model's output may be that of a sigmoid, before a loss that applies another one.

    A squared error has gradients of the same size, but a smaller loss. So the loss decides, if it was logged: where the
    sigmoid is a function, it has to be the one that the gradients tell; where it is a module, it must not be smaller.
    """
    if not lie_within(evidence, column):
        return False
    losses = _losses_and_expected(evidence, column, norms)
    if not len(losses) and _has_one_label(evidence, column, norms):
        return True
    if not ends_with(evidence, column, "Sigmoid"):
        return len(losses) >= LEAST_ROWS and _share_as_expected(losses) >= OFTEN
    return not len(losses) or bool(np.median(losses[:, 0]) > LEAST_OF_SIGMOID)


def _has_one_label(evidence: Evidence, column: int, norms: int) -> bool:
    """Whether the gradients are those of a cross entropy of sigmoids with one label for the whole batch.

    So it is where a critic is given what is real, and then what was made. The mean gradient is then the sigmoid of the
    mean output, or one less it: that of a squared error is the output itself, which is the same at one number only.
    """
    info = evidence.places.tensor(evidence.series[column])
    ends_so = evidence.places.class_of(last_module(evidence)) == "Sigmoid"  # which may be called for each of both
    if info is None or sample_size(info) != 1 or not ends_so:
        return False
    size = samples_of(evidence, info, column)
    outputs, found = evidence.column("mean", column).astype(np.float64), evidence.column("mean", norms) * size
    known = np.isfinite(outputs) & np.isfinite(found)
    wrong = 1 / (1 + np.exp(-outputs[known]))
    near = np.minimum(np.abs(found[known] - wrong), np.abs(found[known] - 1 + wrong)) < NEAR_LABEL
    is_squared = np.abs(outputs[known] - wrong) < 3 * NEAR_LABEL
    return bool(len(near) >= LEAST_ROWS and near.mean() >= OFTEN and not is_squared.mean() >= 1 - OFTEN)


def _losses_and_expected(evidence: Evidence, column: int, norms: int) -> Floats:
    """At each step with both, the logged loss, and the one that gradients of a sigmoid's cross entropy tell: `[n, 2]`.

    Its gradient at an element is the probability of the wrong answer, over the number of elements, and its loss the
    negative logarithm of that of the right one.
    """
    loss = judged(evidence)
    if loss is None:
        return np.empty((0, 2))
    elements, lengths = (
        evidence.column(name, of).astype(np.float64) for name, of in (("count", column), ("l2_norm", norms))
    )
    wrong = lengths * np.sqrt(elements)
    _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
    known = np.isfinite(wrong[rows]) & (wrong[rows] < 1)
    return np.stack([loss.values[values[known]], -np.log1p(-wrong[rows[known]])], axis=1)


def _share_as_expected(losses: Floats) -> float:
    return float((np.abs(losses[:, 0] - losses[:, 1]) < LOSS_AS_EXPECTED * losses[:, 1]).mean())


def ends_with(evidence: Evidence, column: int, name: str) -> bool:
    """Whether a module of that class is the last one and its output, of one of its calls, the model's."""
    places, last = evidence.places, last_module(evidence)
    if not last or places.class_of(last) != name:
        return False
    outputs = (evidence.find(last, one.call, "output", "output") for one in places.calls if one.module == last)
    wanted = evidence.column("mean", column)
    return any(
        one is not None and np.array_equal(evidence.column("mean", one), wanted, equal_nan=True) for one in outputs
    )


def lie_within(evidence: Evidence, column: int) -> bool:
    """Whether all elements lie between 0 and 1 at all steps."""
    low, high = (evidence.column(name, column) for name in ("min", "max"))
    return bool(np.nanmin(low, initial=0) >= 0 and np.nanmax(high, initial=1) <= 1 + WITHIN)


def samples_of(evidence: Evidence, info: TensorInfo, column: int) -> Floats:
    """Rows of the first dimension at each step."""
    found: Floats = evidence.column("count", column).astype(np.float64) / sample_size(info)
    return found


def of_norm_one(evidence: Evidence, norms: int, scale: Floats, *, of: Sequence[str] = ("min", "max")) -> Rows:
    """The rows with gradients, if each sample's, times `scale`, is 1 at all of them; else none.

    Or, where `of` is other statistics of the samples' norms, these are.
    """
    found = np.stack([evidence.column(name, norms) * scale for name in of])
    rows = np.flatnonzero(np.isfinite(found).all(axis=0))
    return rows if (np.abs(found[:, rows] - 1) < EQUAL).all() else rows[:0]


def sample_size(info: TensorInfo) -> int:
    """Elements of one sample: of all dimensions but the first."""
    return math.prod(size or 1 for size in info.shape[1:])


def _of_cross_entropy(classes: int, measured: Floats, size: Floats, *, positions: int) -> Flags:
    """Where the gradient of a sample has the norm of a softmax of probabilities minus the label, summed or averaged.

    That is at first about the root of 1 - 1 / classes, as the softmax of probabilities is nearly uniform, and it does
    not get small even where the answer is right. A negative logarithm has at least 1, and a mean squared error
    `2 / classes` of it, which for 2 classes is the same. `measured` is for all `positions` of a sample the norm of the
    average, times their root: that of one position, in the root mean square.
    """
    if classes < 3 or not len(measured):
        return np.zeros(len(measured), dtype=bool)
    expected = np.sqrt(1 - 1 / classes)
    for scaled in (measured * size, measured / positions):
        if abs(scaled[0] / expected - 1) < AS_EXPECTED:
            right = (1 - math.e / (math.e + classes - 1)) * math.sqrt(classes / (classes - 1))
            found: Flags = (scaled > right * (1 - AS_EXPECTED)) & (scaled < math.sqrt(2))
            return found
    return np.zeros(len(measured), dtype=bool)


def _of_sigmoid(evidence: Evidence, norms: int, scale: Floats) -> Flags:
    """Where the largest and the mean gradient have the size of a sigmoid of a probability minus the label.

    For each element it lies between 0.27 and 0.73. A binary cross entropy has at least 1.
    """
    most, least = (evidence.column(name, norms) * scale for name in ("max", "min"))
    found: Flags = (most < MOST_OF_SIGMOID) & (least > 1 - MOST_OF_SIGMOID)
    return found


def _twice(evidence: Evidence, one: Series, rows: Rows, *, is_softmax: bool, may_be_dice: bool) -> Finding:
    last = last_module(evidence)
    name = "softmax" if is_softmax else "sigmoid"
    is_module = evidence.places.class_of(last) in {"Softmax", "Softmax2d", "Sigmoid"}
    loss = "`cross_entropy`" if is_softmax else "`binary_cross_entropy_with_logits`"
    return finding(
        evidence,
        "softmax-before-loss",
        "info" if may_be_dice and judged(evidence) is None else "warning",
        at=last if is_module else one,
        rows=rows,
        numbers={"steps": len(rows)},
        text=f"The output of {named(last if is_module else one.module)} is that of a {name}, and the gradient that "
        f"comes back is that of a loss that applies another one, such as {loss}. Such a loss cannot get small.",
        advice=f"Remove the {name} at the end of the network: the loss applies it. Apply it yourself only to show or "
        "use probabilities.",
    )
