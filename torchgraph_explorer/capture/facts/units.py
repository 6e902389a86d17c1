"""Measures units of activations that are zero or the same for all samples, and rows of weights that are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from torchgraph_explorer.capture.facts.names import Named
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.no_dispatch import ORDINARY, NoDispatch, has_memory, untransformed
from torchgraph_explorer.moments import COLUMN
from torchgraph_explorer.schema import EqualRows, Units

MOST_OUTPUTS = 128
"""Most outputs whose units are measured in a step."""

MOST_UNITS = 1 << 14
"""Most units of an output whose units are measured."""

MOST_ELEMENTS = 1 << 15
"""Most elements of an output that are read, unless that leaves less than `LEAST_POSITIONS` of each unit."""

LEAST_POSITIONS = 32
"""Fewest positions of each unit that are read, if there are so many."""

WINDOW = 8
"""Most steps over which the largest magnitude of a unit is remembered."""

MOST_WEIGHTS = 1 << 18
"""Most elements of a parameter whose rows are compared."""

TOGETHER = 1 << 15
"""Most elements of small matrices that are compared in one operation."""

STEPS_COMPARED = 4
"""How many of the first logged steps compare rows of weights, and look for other facts that few steps can tell."""

_COUNTS = "count", "sampled", "zeros"

ACTIVATIONS = frozenset(
    (
        *("ReLU", "ReLU6", "LeakyReLU", "PReLU", "RReLU", "Threshold"),
        *("ELU", "CELU", "SELU", "GELU", "SiLU", "Mish", "Softplus", "Hardswish"),
        *("Tanh", "Sigmoid", "Softsign", "Hardtanh", "Hardsigmoid", "Hardshrink", "Softshrink"),
    )
)
_CONVOLUTIONS = frozenset(["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"])
_LAYERS = _CONVOLUTIONS | {"Linear"}


class _Peaks(NamedTuple):
    """The largest magnitude of each unit, `[units]`, over so many steps."""

    values: Tensor
    steps: int


class UnitWindows:
    """What is remembered of units from step to step, for one model. After `WINDOW` steps, it begins again.

    Attributes:
        returns_numbers: The model returns nothing but numbers; None if no step was looked at.
        standardised: Modules, with `input` or `output`, whose features may be standardised over the samples, by the
            first step; None if that is not known.
    """

    def __init__(self) -> None:
        """No step was looked at."""
        self.returns_numbers: bool | None = None
        self.standardised: set[tuple[str, str]] | None = None
        self._peaks: dict[tuple[str, int], _Peaks] = {}

    def add(self, place: tuple[str, int], peaks: Tensor) -> _Peaks:
        """Add the largest magnitudes of a further step: those of all steps so far."""
        known = self._known(place, len(peaks), peaks.device)
        found = _Peaks(peaks, 1) if known is None else _Peaks(torch.maximum(known.values, peaks), known.steps + 1)
        return self.note(place, found)

    def next(self, place: tuple[str, int], units: int) -> _Peaks:
        """Room in host memory for the magnitudes of a further step, which has those of the earlier steps, if any."""
        known = self._known(place, units, torch.device("cpu"))
        return _Peaks(_room(units), 1) if known is None else _Peaks(known.values, known.steps + 1)

    def note(self, place: tuple[str, int], peaks: _Peaks) -> _Peaks:
        """Remember the magnitudes up to a further step, and return them."""
        self._peaks[place] = peaks
        return peaks

    def _known(self, place: tuple[str, int], units: int, device: torch.device) -> _Peaks | None:
        known = self._peaks.get(place)
        if known is None or known.steps == WINDOW:
            return None
        return known if known.values.shape[0] == units and known.values.device == device else None


def _room(units: int) -> Tensor:
    return torch.empty(units, dtype=torch.float32, device="cpu")


class _Measured(NamedTuple):
    """An output whose units were measured.

    Attributes:
        place: The module and call that it is of.
        steps: Over how many steps `peaks` are.
        peaks: The row of the step's statistics of the largest magnitude of each unit.
        ranges: The row of the statistics of largest minus smallest value of each unit.
    """

    place: tuple[str, int]
    steps: int
    peaks: int
    ranges: int


class UnitRows:
    """Measures the units of one step: of what activations return, and of what layers get from functions.

    Attributes:
        looked_at: The modules for which `begin` still does something, and those for which `end` does.
    """

    def __init__(self, measure: Measure, windows: UnitWindows, classes: dict[str, str]) -> None:
        """Nothing was called. `classes` are those of the modules, by name."""
        self._measure, self._windows, self._classes = measure, windows, classes
        self._measured: list[_Measured] = []
        self._has_channels = self._is_activated = False
        of_classes = ({name for name, kind in classes.items() if kind in kinds} for kinds in (_LAYERS, ACTIVATIONS))
        first, last = of_classes
        self.looked_at = first, last | {""}

    def begin(self, name: str, call: int, inputs: list[Tensor]) -> None:
        """Module `name` is called."""
        kind = self._classes.get(name, "")
        if kind in _LAYERS:
            if inputs and inputs[0].requires_grad and not self._is_activated:
                self._take((name, call), inputs[0], dim=1 if kind in _CONVOLUTIONS else -1)
            self._has_channels, self._is_activated = kind in _CONVOLUTIONS, False

    def end(self, name: str, call: int, outputs: list[Tensor]) -> None:
        """Module `name` has returned `outputs`."""
        if not outputs:
            return
        if self._classes.get(name, "") in ACTIVATIONS:
            self._is_activated = True
            self._take((name, call), outputs[0], dim=1 if self._has_channels else -1)
        elif name == "":
            self._take((name, call), outputs[0], dim=1 if outputs[0].dim() > 3 else -1)

    def _take(self, place: tuple[str, int], tensor: Tensor, *, dim: int) -> None:
        measured = self._in_c(place, tensor, dim) if self._measure.native is not None else None
        if measured is None and _is_suitable(tensor):
            measured = self._in_torch(place, tensor, dim)
        if measured is not None:
            self._measured.append(measured)
            if len(self._measured) == MOST_OUTPUTS:
                for names in self.looked_at:
                    names.clear()

    def _in_c(self, place: tuple[str, int], tensor: Tensor, dim: int) -> _Measured | None:
        """As `_in_torch`, in native code; None for a tensor that this cannot read."""
        if type(tensor) not in ORDINARY or not tensor.is_cpu or tensor.is_nested or tensor.dim() < 2:
            return None
        peaks = self._windows.next(place, tensor.shape[dim])
        rows = self._measure.units(tensor, peaks.values, is_second=dim == 1, is_new=peaks.steps == 1)
        if rows is None:
            return None
        self._windows.note(place, peaks)
        return _Measured(place, peaks.steps, *rows)

    def _in_torch(self, place: tuple[str, int], tensor: Tensor, dim: int) -> _Measured:
        with NoDispatch():
            values = _few_positions(tensor.detach().movedim(dim, -1))
            high, low = values.amax(0).float(), values.amin(0).float()
            peaks = self._windows.add(place, torch.maximum(high.abs(), low.abs()))
            rows = map(self._measure.values_again, (peaks.values, (high - low).abs()))
            return _Measured(place, peaks.steps, *rows)

    def units(self, statistics: npt.NDArray[np.float32]) -> tuple[Units, ...]:
        """What was measured of the units of each output, once the `statistics` of the step are known."""
        peaks = _counted(statistics, [one.peaks for one in self._measured])
        ranges = _counted(statistics, [one.ranges for one in self._measured])
        return tuple(map(_units, self._measured, peaks, ranges))


def _is_suitable(tensor: Tensor) -> bool:
    return (
        type(tensor) in ORDINARY
        and tensor.layout is torch.strided
        and not tensor.is_nested
        and tensor.is_floating_point()
        and tensor.dim() > 1
        and tensor.shape[0] > 1
        and tensor.numel() > 0
        and max(tensor.shape[1], tensor.shape[-1]) <= MOST_UNITS
        and not tensor.is_meta
        and has_memory(tensor)
    )


def _few_positions(values: Tensor) -> Tensor:
    """Some positions of all units, the last dimension, as `[positions, units]`.

    Positions within samples are left out before whole samples are.
    """
    units = values.shape[-1]
    most = max(LEAST_POSITIONS, MOST_ELEMENTS // units)
    for dim in (*range(values.dim() - 2, 0, -1), 0):  # samples last
        excess = -(-(values.numel() // units) // most)
        if excess > 1:
            stride = min(excess, values.shape[dim])
            values = values[(slice(None),) * dim + (slice(None, None, stride),)]
    return values.reshape(-1, units)


class _Counted(NamedTuple):
    """What was measured of some numbers.

    Attributes:
        mean: Their mean.
        number: How many there are.
        zeros: How many of them are zero; estimated if only a sample was read.
    """

    mean: float
    number: int
    zeros: int


def _counted(statistics: npt.NDArray[np.float32], rows: Sequence[int]) -> list[_Counted]:
    """What was measured in these rows. All are read at once: a step may have hundreds, and Python's lock is held."""
    found = statistics[list(rows)]
    means = found[:, COLUMN["mean"]].tolist()
    numbers = np.nan_to_num(found[:, [COLUMN[name] for name in _COUNTS]], posinf=0, neginf=0).astype(int)
    counts, sampled, zeros = numbers.T.tolist()
    return [
        _Counted(mean, count, round(zero / read * count) if read else 0)
        for mean, count, read, zero in zip(means, counts, sampled, zeros, strict=True)
    ]


def _units(one: _Measured, peaks: _Counted, ranges: _Counted) -> Units:
    return Units(
        module=one.place[0],
        call=one.place[1],
        units=peaks.number,
        zero=peaks.zeros,
        steps=one.steps,
        constant=ranges.zeros,
        spread=ranges.mean / peaks.mean if peaks.mean > 0 else 0.0,
    )


class WeightRows:
    """Which parameters have rows that are equal. Rows are taken to be equal if their products with `_factors` are."""

    def __init__(self, measure: Measure, parameters: Named) -> None:
        """Compare the rows of all matrices that require a gradient, those of one shape together."""
        matrices = [(name, one.detach().flatten(1)) for name, one in parameters.values() if _is_matrix(one)]
        of_shape: dict[tuple[torch.Size, torch.device], list[int]] = {}
        for at, (_, matrix) in enumerate(matrices):
            of_shape.setdefault((matrix.shape, matrix.device), []).append(at)
        found: dict[int, int] = {}
        for (shape, device), places in of_shape.items():
            factors, together = _factors(shape[1], device), max(1, TOGETHER // shape.numel())
            for first in range(0, len(places), together):
                some = places[first : first + together]
                weights = [matrices[at][1].float() for at in some]
                are_several = len(weights) > 1
                products = ((torch.stack(weights) if are_several else weights[0]) * factors).sum(-1)
                apart = products.sort(-1).values.diff(dim=-1)
                rows = map(measure.values_again, apart if are_several else [apart])
                found.update(zip(some, rows, strict=True))
        self._rows = [(name, matrix.shape[0], found[at]) for at, (name, matrix) in enumerate(matrices)]

    def equal(self, statistics: npt.NDArray[np.float32]) -> tuple[EqualRows, ...]:
        """The parameters with equal rows, once the `statistics` of the step are known."""
        found = _counted(statistics, [row for *_, row in self._rows])
        places = zip(self._rows, found, strict=True)
        return tuple(EqualRows(name, rows, one.zeros) for (name, rows, _), one in places if one.zeros)


def _factors(columns: int, device: torch.device) -> Tensor:
    """Numbers from 0.5 to 1.5 that are all different, `[columns]`."""
    return torch.arange(1, columns + 1, device=device).mul(0.6180339887).frac().add(0.5)


def _is_matrix(parameter: nn.Parameter) -> bool:
    return (
        type(parameter) in ORDINARY
        and parameter.layout is torch.strided
        and untransformed(parameter) is parameter  # not what `functional_call` put there under `vmap`
        and parameter.requires_grad
        and parameter.is_floating_point()
        and parameter.dim() > 1
        and parameter.shape[0] > 1
        and 0 < parameter.numel() <= MOST_WEIGHTS
        and not parameter.is_meta
        and has_memory(parameter)
    )
