"""How far optimizers move the weights, relative to them, from samples: without a copy of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from torchgraph_explorer.capture.gradient_hooks import QuickMeasure, series_key
from torchgraph_explorer.capture.no_dispatch import FLOATS, NoDispatch, has_memory, is_readable, plain
from torchgraph_explorer.capture.step_rows import StepRows

RUNS, RUN_LENGTH = 64, 16
"""A sample: so many runs, of so many neighbouring elements each. A run of floats is as long as a line of the cache."""

Named: TypeAlias = "Sequence[tuple[tuple[str, str], Tensor]]"
"""Parameters, each with its module and its name."""

NamesOf: TypeAlias = "Callable[[Iterable[Tensor]], Iterable[tuple[tuple[str, str], Tensor]]]"
"""Finds the model's own among parameters, and the module and the name of each."""


class _Samples(Protocol):
    """Samples of parameters, which are compared with what they were before they were moved.

    Attributes:
        names: Module and name of each parameter.
        parameters: The parameters.
    """

    names: list[tuple[str, str]]
    parameters: list[Tensor]

    def ratios(self) -> Tensor:
        """The l2 norm of the update of each, as a share of that of the parameter, `[samples]`; 0 if that is zero."""

    def visible(self) -> Iterator[int]:
        """Which of the samples were updated in place: an optimizer may give a parameter other memory."""


@dataclass(slots=True)
class _SamplesInC:
    """Samples of floats in host memory.

    Attributes:
        names: Module and name of each parameter.
        parameters: The parameters.
        native: What has copied the samples, and compares them.
        sizes: How many elements of each are sampled.
        before: Those of all, before they are moved, one parameter after the other.
        places: Where each parameter was in memory.
    """

    names: list[tuple[str, str]]
    parameters: list[Tensor]
    native: QuickMeasure
    sizes: list[int]
    before: Tensor
    places: list[int]
    _moved_to: list[int] = field(default_factory=list)

    def ratios(self) -> Tensor:
        """The l2 norm of the update of each, as a share of that of the parameter, `[samples]`; 0 if that is zero."""
        found = torch.zeros(len(self.sizes), dtype=torch.float32, device="cpu")
        self._moved_to = self.native.updates(self.parameters, self.sizes, self.before, found)
        return found

    def visible(self) -> Iterator[int]:
        """Which of the samples were updated in place: an optimizer may give a parameter other memory."""
        places = zip(self.places, self._moved_to, strict=True)
        return (at for at, (before, now) in enumerate(places) if before == now != 0)


@dataclass(slots=True)
class _SamplesInTorch:
    """Samples of parameters of one type, on one device, with equally many dimensions.

    Attributes:
        names: Module and name of each parameter.
        parameters: The parameters.
        views: The elements of each that are sampled, `[n]` or `[RUNS, RUN_LENGTH]`, where they are.
        before: Those of all, before they are moved, filled up with zeros.
    """

    names: list[tuple[str, str]] = field(default_factory=list)
    parameters: list[Tensor] = field(default_factory=list)
    views: list[Tensor] = field(default_factory=list)
    before: Tensor = field(default_factory=lambda: torch.empty(0))

    def ratios(self) -> Tensor:
        """The l2 norm of the update of each, as a share of that of the parameter, `[samples]`; 0 if that is zero."""
        return _ratios(self.before, pad_sequence(self.views, batch_first=True))

    def visible(self) -> Iterator[int]:
        """Which of the samples were updated in place: an optimizer may give a parameter other memory."""
        for at, (parameter, view) in enumerate(zip(self.parameters, self.views, strict=True)):
            values = plain(parameter)
            if has_memory(values) and values.data_ptr() == view.data_ptr():
                yield at


def _ratios(before: Tensor, after: Tensor) -> Tensor:
    wide = torch.float32 if before.device.type == "mps" else torch.float64
    before = before.flatten(1).to(wide)
    update = after.flatten(1).to(wide).sub_(before)
    moved, size = (torch.linalg.vector_norm(each, dim=1) for each in (update, before))
    return torch.where(size == 0, 0.0, moved / size).float()


class SampledUpdates:
    """The updates of one step, of the weights with two dimensions or more. No method raises.

    Attributes:
        fault: What went wrong, after which nothing is measured; None so far.
    """

    def __init__(self, rows: StepRows, names_of: NamesOf) -> None:
        """Begin while no optimizer is about to move a parameter."""
        self.fault: Exception | None = None
        self._rows, self._names_of = rows, names_of
        self._samples: list[_Samples] = []
        self._known: set[int] = set()  # the parameters in these, by `id`

    def before_update(self, moved: Iterable[Tensor]) -> None:
        """An optimizer is about to move the parameters in `moved`."""
        self._do(lambda: self._before_update(moved))

    def after_update(self) -> None:
        """The outermost optimizer has moved them: measure how far."""
        self._do(self._after_update)

    def _do(self, act: Callable[[], None]) -> None:
        if self.fault is None:
            try:
                with NoDispatch():
                    act()
            except Exception as fault:  # a fault of ours in the middle of the training
                self.fault = fault
                self._forget()

    def _forget(self) -> list[_Samples]:
        """Measure none of those that were about to be moved; returns them."""
        measured, self._samples, self._known = self._samples, [], set()
        return measured

    def _before_update(self, moved: Iterable[Tensor]) -> None:
        named = [
            (name, parameter)
            for name, parameter in self._names_of(moved)
            if id(parameter) not in self._known and parameter.requires_grad and parameter.dim() > 1
        ]
        found = self._in_c(named) or self._in_torch(named)
        self._samples.extend(found)
        self._known.update(id(parameter) for samples in found for parameter in samples.parameters)

    def _in_c(self, named: Named) -> Sequence[_Samples]:
        """Samples of the parameters; none if one of them is not ordinary."""
        native, parameters = self._rows.measure.native, [parameter for _, parameter in named]
        if native is None or not parameters:
            return []
        room = torch.empty(len(parameters) * RUNS * RUN_LENGTH, dtype=torch.float32, device="cpu")
        if (found := native.samples(parameters, room)) is None:
            return []
        sizes, places = found
        return [_SamplesInC([name for name, _ in named], parameters, native, sizes, room, places)]

    @staticmethod
    def _in_torch(named: Named) -> Sequence[_Samples]:
        found: dict[tuple[object, ...], _SamplesInTorch] = {}
        for name, parameter in named:
            if (view := _sample(parameter)) is not None:
                samples = found.setdefault((view.dtype, view.device, view.dim()), _SamplesInTorch())
                samples.names.append(name)
                samples.parameters.append(parameter)
                samples.views.append(view)
        for samples in found.values():
            samples.before = pad_sequence(samples.views, batch_first=True)
        return list(found.values())

    def _after_update(self) -> None:
        for samples in self._forget():
            rows = self._rows.measure.numbers(samples.ratios())
            for at in samples.visible():
                module, path = samples.names[at]
                self._rows.rows[series_key(module, None, "param", path, "update_ratio")] = rows[at]


def _sample(parameter: Tensor) -> Tensor | None:
    """A view of the elements of `parameter` that are sampled; None if it is not measured."""
    if not is_readable(parameter):
        return None
    values: object = plain(parameter).detach()
    if (
        not isinstance(values, Tensor)  # a point on a manifold of HypLL's gives another such point
        or values.dtype not in FLOATS
        or values.layout is not torch.strided
        or values.numel() == 0
        or not has_memory(values)
    ):
        return None
    if not values.is_contiguous():
        values = values.permute(sorted(range(values.dim()), key=values.stride, reverse=True))
        if not values.is_contiguous():
            return None  # its elements are not next to each other
    elements, count = values.view(-1), values.numel()
    if count <= RUNS * RUN_LENGTH:
        return elements
    step = (count - RUN_LENGTH) // (RUNS - 1)
    step -= step % 2 == 0  # an even one may be a multiple of a row's length
    return elements.as_strided((RUNS, RUN_LENGTH), (step, 1))
