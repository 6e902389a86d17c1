"""How a run begins: its initial weights, and what goes into the first layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import RECURRENT, RECURRENT_CELLS
from torchgraph_explorer.findings.rules.own_layers import own_gains
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.findings.rules.ties import large_tie
from torchgraph_explorer.schema import Role, Series

LAYERS = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d", "NonDynamicallyQuantizableLinear"})
"""Classes whose weights are `[outputs, inputs, ...]`."""

TAKING = LAYERS | {"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"} | RECURRENT | RECURRENT_CELLS
"""Classes that multiply their input by weights."""

LARGE_GAIN, SMALL_GAIN = 4.0, 0.05
"""By how much layers scale the standard deviation, in the geometric mean. Xavier: 1, He: 1.4, torch's default: 0.6."""

LARGE_WITHOUT_BOUND = 3.0
"""By how much a recurrence without a bound, as of ReLUs, scales its state. With the half of it that passes: 2."""

ONE_LARGE_GAIN = 10.0
"""By how much a single layer scales it."""

LARGE_DESPITE_NORMALISATION = 10.0
"""The same as `LARGE_GAIN` where normalisation layers undo it: the relative size of updates still suffers."""

GROWN = 10.0
"""Large gains count if the activations at the end of the network have so many times the scale of its inputs."""

ONE_SIGN = 0.5
"""Mean of a layer's weights over their root mean square, from which on most have one sign, as numbers from 0 to 1."""

LARGE_INPUT, SMALL_INPUT = 10.0, 0.01
"""Root mean square of what goes into the first layer."""

OFF_CENTRE = 10.0
"""Standard deviations that the mean of the input lies from 0."""

_INITIALISE = "Use the default initialisation, or `torch.nn.init.kaiming_normal_` (ReLU) or `xavier_uniform_` (tanh)."


class _Layer(NamedTuple):
    """A layer's weights: its place in the order of execution, the column of the values, and its gain."""

    order: int
    column: int
    gain: float


def zero_init(evidence: Evidence) -> Iterator[Finding]:
    """All weights of a layer begin equal: zeros that get no gradient, or units that stay alike."""
    for weight in sorted(evidence.of_kind("value", "param"), key=lambda one: _order(evidence, one)):
        one = evidence.series[weight]
        grad = evidence.find(one.module, one.call, one.role, one.path, "grad")
        if grad is None or not _has_units(evidence, one) or _is_switched_off(evidence, one.module):
            continue
        rows = np.flatnonzero(evidence.is_there[:, weight] & evidence.is_there[:, grad])[:2]
        low, high = (evidence.column(name, weight)[rows] for name in ("min", "max"))
        if len(rows) < 2 or low[0] != high[0]:
            continue
        is_stuck = bool((evidence.peaks[rows, grad] == 0).all()) and low[1] == high[1]
        is_alike = low[0] != 0 and evidence.places.class_of(one.module) in LAYERS
        if is_stuck or is_alike:
            yield _begins_equal(evidence, one, rows, value=float(low[0]))


def _is_switched_off(evidence: Evidence, module: str) -> bool:
    """Whether a frozen parameter of the module is all zeros: a mask that lets nothing through, until it is changed."""
    for info in evidence.places.modules[module].params if module in evidence.places.modules else ():
        column = None if info.requires_grad else evidence.find(module, None, "param", info.path)
        if column is not None and not np.nanmax(evidence.peaks[:, column], initial=0) > 0:
            return True
    return False


def _begins_equal(
    evidence: Evidence, one: Series, rows: np.ndarray[tuple[int], np.dtype[np.intp]], *, value: float
) -> Finding:
    after = "and get no gradient" if not value else "so all its units compute the same and stay alike"
    return finding(
        evidence,
        "zero-init",
        "error",
        at=one,
        rows=rows,
        numbers={"value": value},
        text=f"All elements of `{one.path}` of {named(one.module)} begin as {value:g}, {after}.",
        advice=_INITIALISE,
    )


def _has_units(evidence: Evidence, one: Series) -> bool:
    info = evidence.places.tensor(one)
    return info is not None and sum(size is None or size > 1 for size in info.shape) >= 2


def _order(evidence: Evidence, column: int) -> int:
    return evidence.places.order(evidence.series[column].module)


def bad_init_scale(evidence: Evidence) -> Iterator[Finding]:
    """The initial weights scale what passes through the layers up or down, layer by layer; or those of a tied head."""
    yield from large_tie(evidence)
    yield from _recurrent(evidence)
    yield from _scaled_by_layers(evidence)


def _recurrent(evidence: Evidence) -> Iterator[Finding]:
    """What a recurrence does to its own state scales it up so far that its gates or its `tanh` saturate.

    Weights that are mostly of one sign, as numbers from 0 to 1 are, add up over the inputs.
    """
    if int(evidence.steps[0]) != 0:
        return
    for column in evidence.of_kind("value", "param"):
        one, info = evidence.series[column], evidence.places.tensor(evidence.series[column])
        is_recurrent = evidence.places.class_of(one.module) in RECURRENT | RECURRENT_CELLS
        if not is_recurrent or not one.path.startswith("weight_hh") or info is None or not info.requires_grad:
            continue
        inputs = float(info.shape[-1] or 1)
        mean, rms = abs(float(evidence.column("mean", column)[0])), float(evidence.rms[0, column])
        gain = max(mean * inputs, rms * math.sqrt(inputs))
        limit = LARGE_WITHOUT_BOUND if _has_no_bound(evidence, one.module) else ONE_LARGE_GAIN
        if gain > limit and one.module in evidence.places.called:
            yield finding(
                evidence,
                "bad-init-scale",
                "warning",
                at=one,
                rows=[0],
                numbers={"gain": gain},
                text=f"The initial `{one.path}` of {named(one.module)} scales its state by {gain:.2g} at each place of "
                "the sequence (about 1 is usual): the state saturates, or grows without bound.",
                advice="Use the default initialisation, or `torch.nn.init.orthogonal_` for the weights of the state.",
            )
            return


def _has_no_bound(evidence: Evidence, module: str) -> bool:
    """Whether a recurrence may give any number: its `nonlinearity` is no `tanh`, which also tells what it gives."""
    outputs = [one for one in evidence.of_kind("value", "output") if evidence.series[one].module == module]
    is_plain = evidence.places.class_of(module) in {"RNN", "RNNCell"}
    return is_plain and any(float(evidence.peaks[0, one]) > 1 for one in outputs)


def _scaled_by_layers(evidence: Evidence) -> Iterator[Finding]:
    layers = sorted(_layers(evidence))
    if int(evidence.steps[0]) != 0 or len(layers) < 2:
        return
    gains = np.array([one.gain for one in layers])
    mean, largest = float(np.exp(np.log(gains).mean())), layers[int(gains.argmax())]
    # Weights that are large in all layers may silence every unit, and then nothing has grown at the end.
    grown = _grown(evidence, layers[0], layers if mean > LARGE_GAIN else layers[-1:])
    is_normalised = _normalisations(evidence) >= len(layers) / 2
    is_large = (mean > LARGE_GAIN or largest.gain > ONE_LARGE_GAIN) and grown > GROWN and not is_normalised
    is_large |= mean > LARGE_DESPITE_NORMALISATION
    if not is_large and (mean >= SMALL_GAIN or is_normalised):
        return
    layer = largest if is_large and mean <= LARGE_GAIN else layers[0]
    one, unit = evidence.series[layer.column], float(evidence.rms[0, layer.column]) / layer.gain
    high = LARGE_GAIN if mean > LARGE_GAIN else ONE_LARGE_GAIN
    yield finding(
        evidence,
        "bad-init-scale",
        "warning",
        at=one,
        rows=[0],
        numbers={"mean_gain": mean, "largest_gain": largest.gain, "grown": grown, "layers": len(layers)},
        text=f"The initial weights of a layer scale what passes through it by {mean:.2g} in the mean and by "
        f"{largest.gain:.2g} at most (0.5 to 1.5 is usual). From the first layer's input to a later layer's output, "
        f"the scale changes by {grown:.2g}.",
        advice=_INITIALISE,
        band=Band("rms", low=SMALL_GAIN * unit, high=high * unit),
    )


def _layers(evidence: Evidence) -> Iterator[_Layer]:
    for weight in evidence.of_kind("value", "param"):
        one = evidence.series[weight]
        info = evidence.places.tensor(one)
        if one.path != "weight" or info is None or evidence.places.class_of(one.module) not in LAYERS:
            continue
        scale = float(evidence.rms[0, weight])
        inputs = math.prod(size or 1 for size in info.shape[1:])
        mean = abs(float(evidence.column("mean", weight)[0]))
        if scale > 0 and info.requires_grad and one.module in evidence.places.called:
            of_one_sign = mean * inputs if mean > ONE_SIGN * scale else 0.0  # these add up over the inputs
            yield _Layer(_order(evidence, weight), weight, max(scale * math.sqrt(inputs), of_one_sign))
    for own in own_gains(evidence):
        yield _Layer(_order(evidence, own.column), *own)


def _normalisations(evidence: Evidence) -> int:
    return sum("Norm" in evidence.places.class_of(call.module) for call in evidence.places.calls)


def _grown(evidence: Evidence, first: _Layer, last: Sequence[_Layer]) -> float:
    """The largest scale of the outputs of `last` over that of the first layer's input, at the first step."""
    before = _first_rms(evidence, "input").get(evidence.series[first.column].module, 0.0)
    outputs = _first_rms(evidence, "output")
    after = [rms for one in last if (rms := outputs.get(evidence.series[one.column].module, -1.0)) >= 0]
    return max(after) / before if after and before > 0 else 1.0


def _first_rms(evidence: Evidence, role: Role) -> dict[str, float]:
    """The scale at the first step of each module's first tensor in a role."""
    columns = reversed(evidence.of_kind("value", role))
    return {evidence.series[column].module: float(evidence.rms[0, column]) for column in columns}


def input_not_normalised(evidence: Evidence) -> Iterator[Finding]:
    """What goes into the network's first layer is far from mean 0 and standard deviation 1."""
    inputs = evidence.of_kind("value", "input")
    taken = [column for column in inputs if _takes_data(evidence, evidence.series[column])]
    data = {column: None for column in taken if _is_data(evidence, column)}
    found = [one for columns in _by_tensor(evidence, data) if (one := _not_normalised(evidence, *columns))]
    given = [column for column in inputs if not evidence.series[column].module and _is_data(evidence, column)]
    joined = (column for column in taken if column not in data and _has_data_within(evidence, column, given))
    first = () if found else islice(joined, 1)
    yield from found or [one for column in first if (one := _not_normalised(evidence, column, is_joined=True))]


def _by_tensor(evidence: Evidence, columns: Iterable[int]) -> Iterable[list[int]]:
    """The columns, those together whose numbers are equal at all steps: one tensor that several layers take."""
    found: dict[bytes, list[int]] = {}
    for column in columns:
        numbers = [evidence.column(name, column) for name in ("count", "mean", "std", "min", "max")]
        found.setdefault(np.stack(numbers).tobytes(), []).append(column)
    return found.values()


def _not_normalised(evidence: Evidence, column: int, *others: int, is_joined: bool = False) -> Finding | None:
    """That what a layer takes, and `others`, is not normalised. Of data that is joined, only the scale is looked at."""
    one = evidence.series[column]
    rows = np.flatnonzero(evidence.is_there[:, column])
    if not len(rows):
        return None
    scale, mean, std = (
        float(np.median(of[rows, column])) for of in (evidence.rms, evidence.matrix("mean"), evidence.matrix("std"))
    )
    is_off_centre = abs(mean) > OFF_CENTRE * std > 0 and not is_joined
    if not (scale > LARGE_INPUT or (0 < scale < SMALL_INPUT and not is_joined) or is_off_centre):
        return None
    which = "which takes the model's input beside other tensors" if is_joined else "the first layer"
    if others:
        which += f", and into {len(others)} other{'s' if len(others) > 1 else ''}"
    return finding(
        evidence,
        "input-not-normalised",
        "warning",
        at=one,
        rows=rows,
        numbers={"mean": mean, "std": std, "rms": scale},
        text=f"What goes into {named(one.module)}, {which}, has mean {mean:.3g} and standard deviation "
        f"{std:.3g}. Initialisation and learning rates assume about 0 and 1.",
        advice="Subtract the mean of the training data and divide by its standard deviation, each "
        "feature by its own; scale images from 0–255 to 0–1 first.",
        band=None if is_off_centre else Band("rms", low=SMALL_INPUT, high=LARGE_INPUT),
    )


def _is_data(evidence: Evidence, column: int) -> bool:
    """Whether a tensor of numbers comes to the layer without passing any that has weights, trained or frozen."""
    places, one = evidence.places, evidence.series[column]
    info, number = places.tensor(one), places.numbered(one.module, one.call)
    if info is None or info.requires_grad or "float" not in info.dtype:
        return False
    return number is None or not places.is_computed_with_weights(number)


def _has_data_within(evidence: Evidence, column: int, given: list[int]) -> bool:
    """Whether a tensor's largest element is that of one of the model's inputs, `given`, at every step.

    It is where these are joined.
    """
    for one in given:
        peaks = evidence.peaks[:, [column, one]]
        rows = np.isfinite(peaks).all(axis=1)
        if rows.any() and (peaks[rows, 0] == peaks[rows, 1]).all():
            return True
    return False


def _takes_data(evidence: Evidence, one: Series) -> bool:
    """A layer with weights, called first, on the data itself."""
    places = evidence.places
    number = places.numbered(one.module, one.call)
    return one.call == 0 and one.path == "input[0]" and number is not None and places.class_of(one.module) in TAKING
