"""Finds initial weights that are equal or badly scaled, and inputs of the first layer that are not normalised.

The evidence is the statistics of weights, inputs and outputs at the first recorded steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.branches import imbalanced_branches
from torchgraph_explorer.findings.rules.classes import RECURRENT, RECURRENT_CELLS
from torchgraph_explorer.findings.rules.first_loss import begins_far_off
from torchgraph_explorer.findings.rules.own_layers import own_gains
from torchgraph_explorer.findings.rules.rule import Rows, finding, named
from torchgraph_explorer.findings.rules.ties import large_tie, large_ties
from torchgraph_explorer.schema import Role, Series

LAYERS = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d", "NonDynamicallyQuantizableLinear"})
"""Classes of layers whose weights are `[outputs, inputs, ...]`. The last one is inside of `MultiheadAttention`."""

TAKING = LAYERS | {"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"} | RECURRENT | RECURRENT_CELLS
"""Classes of layers that multiply their input by weights."""

LARGE_GAIN, SMALL_GAIN = 4.0, 0.05
"""Above and below which the gain of a layer is large and small, in the geometric mean over the layers. The gain is the
factor by which the weights scale the standard deviation. That of Xavier is 1, of He 1.4, of torch's default 0.6."""

LARGE_WITHOUT_BOUND = 3.0
"""Largest gain of a recurrence whose activation has no bound, as a ReLU. As a ReLU lets about half of the state pass,
its scale changes by about 2 a step at this gain."""

ONE_LARGE_GAIN = 10.0
"""Largest gain of a single layer."""

LARGE_DESPITE_NORMALISATION = 10.0
"""As `LARGE_GAIN`, where normalisation layers undo the gain: updates are still too small relative to the weights."""

GROWN = 10.0
"""Large gains count only if the outputs have more than this many times the root mean square of the inputs."""

ONE_SIGN = 0.5
"""Least mean magnitude over root mean square of weights that mostly have one sign, as those drawn from 0 to 1."""

LARGE_INPUT, SMALL_INPUT = 10.0, 0.01
"""Largest and smallest root mean square of what goes into the first layer, if it is normalised."""

OFF_CENTRE = 10.0
"""Most standard deviations that the mean of a normalised input lies from 0."""

_INITIALISE = "Use the default initialisation, or `torch.nn.init.kaiming_normal_` (ReLU) or `xavier_uniform_` (tanh)."


class _Layer(NamedTuple):
    """The weights of one layer; layers are sorted by their place in the order of execution.

    Attributes:
        order: The place of the layer's first call in the order of execution.
        column: The column of the weights.
        gain: The factor by which the initial weights scale the standard deviation of what passes through the layer.
    """

    order: int
    column: int
    gain: float


def zero_init(evidence: Evidence) -> Iterator[Finding]:
    """All weights of a layer begin equal, so that they get no gradient, or all units get the same."""
    for weight in sorted(evidence.of_kind("value", "param"), key=lambda column: _order(evidence, column)):
        series = evidence.series[weight]
        grad = evidence.find(series.module, series.call, series.role, series.path, "grad")
        if grad is None or not _has_units(evidence, series) or _is_switched_off(evidence, series.module):
            continue
        rows = np.flatnonzero(evidence.is_there[:, weight] & evidence.is_there[:, grad])
        low, high = (evidence.column(name, weight)[rows] for name in ("min", "max"))
        if len(rows) < 2 or low[0] != high[0]:
            continue
        is_stuck = bool((evidence.peaks[rows, grad] == 0).all()) and low[-1] == high[-1]
        is_alike = low[0] != 0 and evidence.places.class_of(series.module) in LAYERS
        if is_alike or (is_stuck and _has_effect(evidence, rows)):
            yield _begins_equal(evidence, series, rows, value=float(low[0]))


def _has_effect(evidence: Evidence, rows: Rows) -> bool:
    """Whether the updates between these rows changed any of the parameters that got gradient, or none got any.

    They change none while a warm-up begins at a rate of 0. Layers before a last one of zeros get no gradient until
    that one has changed.
    """
    first, last = int(rows[0]), int(rows[-1])
    pulled = [one for one in evidence.of_kind("grad", "param") if (evidence.peaks[first:last, one] > 0).any()]
    series = (evidence.series[one] for one in pulled)
    values = [evidence.find(one.module, one.call, one.role, one.path) for one in series]
    columns = [
        evidence.column(name, one) for one in values if one is not None for name in ("min", "max", "mean", "std")
    ]
    return not columns or any(one[first] != one[last] for one in columns)


def _is_switched_off(evidence: Evidence, module: str) -> bool:
    """Whether a frozen parameter of the module is all zeros, like a mask that lets nothing through at first."""
    for info in evidence.places.modules[module].params if module in evidence.places.modules else ():
        column = None if info.requires_grad else evidence.find(module, None, "param", info.path)
        if column is not None and not np.nanmax(evidence.peaks[:, column], initial=0) > 0:
            return True
    return False


def _begins_equal(evidence: Evidence, weights: Series, rows: Rows, *, value: float) -> Finding:
    consequence = "and get no gradient" if not value else "so all its units compute the same and stay alike"
    advice = _INITIALISE
    if not value and (other := _matrix_beside(evidence, weights, int(rows[0]))) is not None:
        consequence += (
            f", although `{other}` beside it is not zero: something after them multiplies their product by zero"
        )
        advice = (
            "One of two matrices may well begin at zero, as in LoRA. Look at what their product is multiplied by: a "
            "scale of whole numbers, such as `alpha // r`, is 0."
        )
    return finding(
        evidence,
        "zero-init",
        "error",
        at=weights,
        rows=rows,
        numbers={"value": value},
        text=f"All elements of `{weights.path}` of {named(weights.module)} begin as {value:g}, {consequence}.",
        advice=advice,
    )


def _matrix_beside(evidence: Evidence, weights: Series, row: int) -> str | None:
    """The path of another trained matrix of the same module that shares a size with `weights` and is not zero at a row.

    The product of both would have a gradient for `weights`. None without one.
    """
    info = evidence.places.tensor(weights)
    for column in evidence.of_kind("value", "param"):
        series = evidence.series[column]
        other = evidence.places.tensor(series)
        if series.module != weights.module or series.path == weights.path or info is None or other is None:
            continue
        is_pair = len(info.shape) == len(other.shape) == 2 and bool(set(info.shape) & set(other.shape))
        if is_pair and other.requires_grad and evidence.peaks[row, column] > 0:
            return series.path
    return None


def _has_units(evidence: Evidence, weights: Series) -> bool:
    """Whether a parameter has two or more dimensions of more than one element, as weights of several units have."""
    info = evidence.places.tensor(weights)
    return info is not None and sum(size is None or size > 1 for size in info.shape) >= 2


def _order(evidence: Evidence, column: int) -> int:
    """The place of the module of a series in the order of execution."""
    return evidence.places.order(evidence.series[column].module)


def bad_init_scale(evidence: Evidence) -> Iterator[Finding]:
    """The initial weights of layers, a recurrence or a tied embedding scale what passes through them by far."""
    found = [*large_tie(evidence), *_recurrent(evidence), *_scaled_by_layers(evidence)]
    yield from found
    far_off = [] if found else [*begins_far_off(evidence)]
    if far_off and not any(input_not_normalised(evidence)) and not any(imbalanced_branches(evidence)):
        yield from far_off


def _recurrent(evidence: Evidence) -> Iterator[Finding]:
    """Report the first recurrence whose weights scale its own state up so far that it saturates or grows.

    The gain of weights with mean 0 is their root mean square times the root of the number of inputs. Where most weights
    have one sign, they add up, and the gain is their mean times the number of inputs.
    """
    if int(evidence.steps[0]) != 0:
        return
    for column in evidence.of_kind("value", "param"):
        series, info = evidence.series[column], evidence.places.tensor(evidence.series[column])
        is_recurrent = evidence.places.torch_class_of(series.module) in RECURRENT | RECURRENT_CELLS
        if not is_recurrent or not series.path.startswith("weight_hh") or info is None or not info.requires_grad:
            continue
        inputs = float(info.shape[-1] or 1)
        mean, rms = abs(float(evidence.column("mean", column)[0])), float(evidence.rms[0, column])
        gain = max(mean * inputs, rms * math.sqrt(inputs))
        limit = LARGE_WITHOUT_BOUND if _has_no_bound(evidence, series.module) else ONE_LARGE_GAIN
        if gain > limit and series.module in evidence.places.called:
            yield finding(
                evidence,
                "bad-init-scale",
                "warning",
                at=series,
                rows=[0],
                numbers={"gain": gain},
                text=f"The initial `{series.path}` of {named(series.module)} scales its state by {gain:.2g} at each "
                "place of the sequence (about 1 is usual): the state saturates, or grows without bound.",
                advice="Use the default initialisation, or `torch.nn.init.orthogonal_` for the weights of the state.",
            )
            return


def _has_no_bound(evidence: Evidence, module: str) -> bool:
    """Whether a recurrence has no `tanh` at its end: a plain RNN whose outputs exceed 1 at the first recorded step."""
    outputs = [column for column in evidence.of_kind("value", "output") if evidence.series[column].module == module]
    is_plain = evidence.places.class_of(module) in {"RNN", "RNNCell"}
    return is_plain and any(float(evidence.peaks[0, column]) > 1 for column in outputs)


def _scaled_by_layers(evidence: Evidence) -> Iterator[Finding]:
    """Report layers that scale what passes through them by far: all of them in the mean, or one of them."""
    tied = large_ties(evidence)  # told as such
    layers = sorted(layer for layer in _layers(evidence) if layer.column not in tied)
    if int(evidence.steps[0]) != 0 or len(layers) < 2:
        return
    gains = np.array([layer.gain for layer in layers])
    mean, largest = float(np.exp(np.log(gains).mean())), layers[int(gains.argmax())]
    # If weights are large in all layers, the last outputs may be zeros of dead units: then any output may have grown.
    grown = _grown(evidence, layers[0], layers if mean > LARGE_GAIN else layers[-1:])
    is_normalised = _normalisations(evidence) >= len(layers) / 2
    is_large = (mean > LARGE_GAIN or largest.gain > ONE_LARGE_GAIN) and grown > GROWN and not is_normalised
    is_large |= mean > LARGE_DESPITE_NORMALISATION
    if not is_large and (mean >= SMALL_GAIN or is_normalised):
        return
    # Biases may be larger than all that small weights let through.
    seen = (
        f" From the first layer's input to a later layer's output, the scale changes by {grown:.2g}."
        if (grown > 1) is is_large
        else ""
    )
    layer = largest if is_large and mean <= LARGE_GAIN else layers[0]
    rms_at_gain_1 = float(evidence.rms[0, layer.column]) / layer.gain
    highest_gain = LARGE_GAIN if mean > LARGE_GAIN else ONE_LARGE_GAIN
    yield finding(
        evidence,
        "bad-init-scale",
        "warning",
        at=evidence.series[layer.column],
        rows=[0],
        numbers={"mean_gain": mean, "largest_gain": largest.gain, "grown": grown, "layers": len(layers)},
        text=f"The initial weights of a layer scale what passes through it by {mean:.2g} in the mean and by "
        f"{largest.gain:.2g} at most (0.5 to 1.5 is usual).{seen}",
        advice=_INITIALISE,
        band=Band("rms", low=SMALL_GAIN * rms_at_gain_1, high=highest_gain * rms_at_gain_1),
    )


def _layers(evidence: Evidence) -> Iterator[_Layer]:
    """The trained layers that are called and have weights other than zero, with their gains at the first step."""
    for weight in evidence.of_kind("value", "param"):
        series = evidence.series[weight]
        info = evidence.places.tensor(series)
        if series.path != "weight" or info is None or evidence.places.class_of(series.module) not in LAYERS:
            continue
        scale = float(evidence.rms[0, weight])
        inputs = math.prod(size or 1 for size in info.shape[1:])
        mean = abs(float(evidence.column("mean", weight)[0]))
        if scale > 0 and info.requires_grad and series.module in evidence.places.called:
            gain_of_one_sign = mean * inputs if mean > ONE_SIGN * scale else 0.0  # such weights add up over the inputs
            yield _Layer(_order(evidence, weight), weight, max(scale * math.sqrt(inputs), gain_of_one_sign))
    for own in own_gains(evidence):
        yield _Layer(_order(evidence, own.column), *own)


def _normalisations(evidence: Evidence) -> int:
    """How many calls of normalisation layers there are."""
    return sum("Norm" in evidence.places.class_of(call.module) for call in evidence.places.calls)


def _grown(evidence: Evidence, first: _Layer, last: Sequence[_Layer]) -> float:
    """The largest root mean square of outputs of `last`, over that of the input of `first`, at the first step.

    1 where either is not known, or the input is zero.
    """
    before = _first_rms(evidence, "input").get(evidence.series[first.column].module, 0.0)
    outputs = _first_rms(evidence, "output")
    after = [rms for layer in last if (rms := outputs.get(evidence.series[layer.column].module, -1.0)) >= 0]
    return max(after) / before if after and before > 0 else 1.0


def _first_rms(evidence: Evidence, role: Role) -> dict[str, float]:
    """The root mean square, at the first step, of each module's first input or output, by the module's name."""
    columns = reversed(evidence.of_kind("value", role))
    return {evidence.series[column].module: float(evidence.rms[0, column]) for column in columns}


def input_not_normalised(evidence: Evidence) -> Iterator[Finding]:
    """What goes into the network's first layer is far from mean 0 and standard deviation 1."""
    inputs = evidence.of_kind("value", "input")
    taken = [column for column in inputs if _takes_data(evidence, evidence.series[column])]
    data = {column: None for column in taken if _is_data(evidence, column)}
    found = [told for columns in _by_tensor(evidence, data) if (told := _not_normalised(evidence, *columns))]
    given = [column for column in inputs if not evidence.series[column].module and _is_data(evidence, column)]
    joined = (column for column in taken if column not in data and _has_data_within(evidence, column, given))
    first = () if found else islice(joined, 1)
    yield from found or [told for column in first if (told := _not_normalised(evidence, column, is_joined=True))]


def _by_tensor(evidence: Evidence, columns: Iterable[int]) -> Iterable[list[int]]:
    """Group the columns whose statistics are equal at all steps: one tensor that several layers take."""
    found: dict[bytes, list[int]] = {}
    for column in columns:
        numbers = [evidence.column(name, column) for name in ("count", "mean", "std", "min", "max")]
        found.setdefault(np.stack(numbers).tobytes(), []).append(column)
    return found.values()


def _not_normalised(evidence: Evidence, column: int, *others: int, is_joined: bool = False) -> Finding | None:
    """The finding that the tensor of a `column`, and of the `others` that are equal to it, is not normalised.

    None if it is. Of data that is joined with other tensors, only a large scale counts: mean and standard deviation are
    those of all of them together.
    """
    rows = np.flatnonzero(evidence.is_there[:, column])
    if not len(rows):
        return None
    scale, mean, std = (
        float(np.median(values[rows, column]))
        for values in (evidence.rms, evidence.matrix("mean"), evidence.matrix("std"))
    )
    is_off_centre = abs(mean) > OFF_CENTRE * std > 0 and not is_joined
    if not (scale > LARGE_INPUT or (0 < scale < SMALL_INPUT and not is_joined) or is_off_centre):
        return None
    series = evidence.series[column]
    which = "which takes the model's input beside other tensors" if is_joined else "the first layer"
    if others:
        which += f", and into {len(others)} other{'s' if len(others) > 1 else ''}"
    return finding(
        evidence,
        "input-not-normalised",
        "warning",
        at=series,
        rows=rows,
        numbers={"mean": mean, "std": std, "rms": scale},
        text=f"What goes into {named(series.module)}, {which}, has mean {mean:.3g} and standard deviation "
        f"{std:.3g}. Initialisation and learning rates assume about 0 and 1.",
        advice="Subtract the mean of the training data and divide by its standard deviation, each "
        "feature by its own; scale images from 0–255 to 0–1 first.",
        band=None if is_off_centre else Band("rms", low=SMALL_INPUT, high=LARGE_INPUT),
    )


def _is_data(evidence: Evidence, column: int) -> bool:
    """Whether an input is of floating point numbers that no layer with weights, trained or frozen, has computed."""
    places, series = evidence.places, evidence.series[column]
    info, number = places.tensor(series), places.numbered(series.module, series.call)
    if info is None or info.requires_grad or "float" not in info.dtype:
        return False
    return number is None or not places.is_computed_with_weights(number)


def _has_data_within(evidence: Evidence, column: int, given: list[int]) -> bool:
    """Whether a tensor was joined from one of the columns `given`, the model's inputs, and others.

    It is taken for that if both have the same largest magnitude at every step.
    """
    for model_input in given:
        peaks = evidence.peaks[:, [column, model_input]]
        rows = np.isfinite(peaks).all(axis=1)
        if rows.any() and (peaks[rows, 0] == peaks[rows, 1]).all():
            return True
    return False


def _takes_data(evidence: Evidence, taken: Series) -> bool:
    """Whether a series is the first input of the first call of a layer that multiplies it by weights."""
    places = evidence.places
    is_first = taken.call == 0 and taken.path == "input[0]" and places.numbered(taken.module, taken.call) is not None
    return is_first and places.class_of(taken.module) in TAKING
