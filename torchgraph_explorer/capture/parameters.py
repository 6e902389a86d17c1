"""Measures the model's parameters in a step: their values, their gradients, and how an optimizer moves them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

import torch
from torch import Tensor, nn

from torchgraph_explorer.capture import native_calls
from torchgraph_explorer.capture.gradient_hooks import SeriesKey, series_key
from torchgraph_explorer.capture.module_info import has_values
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.no_dispatch import ORDINARY, NoDispatch, gradient_of, has_memory, is_readable, plain
from torchgraph_explorer.capture.step_rows import StepRows
from torchgraph_explorer.unvisited import unvisited

ParameterKey: TypeAlias = "tuple[str, str]"
"""Name of a module, and name of its parameter."""


@lru_cache(maxsize=1 << 18)
def _only_key(module: str, path: str) -> tuple[ParameterKey]:
    """The names of a parameter that is not shared: as of `series_key`, the same object in each step."""
    return ((module, path),)


_USUAL = ORDINARY | {type(None)}


class Parameters:
    """The parameters of one model in one step. They are looked up each time: modules come and go.

    Attributes:
        unmeasured: The modules whose parameters were not measured so far, by name.
    """

    def __init__(self, modules: ModulesByName, rows: StepRows) -> None:
        """Measure and keep the own parameters of `modules`."""
        self._modules, self._rows, self._measure = modules, rows, rows.measure
        self.unmeasured = dict(modules)
        self._before: dict[Tensor, Tensor] = {}
        self._settled: set[int] = set()
        self._keys: dict[int, tuple[ParameterKey, ...]] = {}
        self._count = self._with_gradient = 0

    def measure_values(self, name: str) -> None:
        """Measure those of module `name` as they are now, the first time that this is called for it.

        To be called when the module is called: it is about to read its parameters, and then finds them in the cache.
        """
        module = self.unmeasured.pop(name, None)
        if module is not None:
            for path, parameter in _own(module):
                if is_readable(parameter) and has_memory(values := plain(parameter)):
                    key = series_key(name, None, "param", path, "value")
                    self._take("params", key, values, measure=self._measure.values)

    def measure_sharded(self) -> None:
        """Measure those of which a part is on this rank, since they are gathered before their module is called."""
        with NoDispatch():
            for name in [name for name, module in self.unmeasured.items() if _has_unusual(module)]:
                self.measure_values(name)

    def measure_remaining(self) -> None:
        """Measure those not measured yet: not every module that has parameters is called."""
        if not self.unmeasured:
            return
        with NoDispatch():
            for name in list(self.unmeasured):
                self.measure_values(name)

    def measure_gradients(self) -> None:
        """Measure the gradients as the backward pass left them, but for those that an update was made with."""
        before = len(self._rows.rows)
        if self._settled or not self._measure_gradients_in_c():
            for name, module in self._modules.items():
                self._measure_module(name, module)
        self._with_gradient += len(self._rows.rows) - before

    def _measure_gradients_in_c(self) -> bool:
        """Measure the gradients of all parameters in C; returns whether that was done."""
        makers, native = native_calls.makers(), self._measure.native
        if makers is None or native is None or "params_grad" not in self._rows.kinds:
            return False
        kept, others = native_calls.keeping(self._rows.keeper), (self._measure_unusual, self._measure_module)
        measure = makers.parameters((self._rows.rows, native.gradients, *kept, *others))
        return measure(self._modules)

    def _measure_unusual(self, name: str, path: str, parameter: nn.Parameter) -> None:
        """Measure the gradient of a parameter that `calls.c` does not."""
        if has_values(parameter):
            with NoDispatch():
                self._measure_gradient(name, path, parameter)

    def _measure_module(self, name: str, module: nn.Module) -> None:
        """Measure the gradients of all own parameters of a module."""
        with NoDispatch():
            for path, parameter in _own(module):
                if id(parameter) not in self._settled:
                    self._measure_gradient(name, path, parameter)

    @property
    def are_settled(self) -> bool:
        """Whether the gradients of some are those of an update, and are not measured after a backward pass."""
        return bool(self._settled)

    def settle(self, moved: Iterable[Tensor]) -> None:
        """An update within a forward pass has moved those in `moved`: their gradients are those it was made with.

        What is left in their `.grad` is no longer theirs alone once another backward pass has added to it.
        """
        self._settled.update(id(each) for each in moved if _gradient(each) is not None)

    def _measure_gradient(self, name: str, path: str, parameter: nn.Parameter) -> None:
        if (gradient := _gradient(parameter)) is not None:
            key = series_key(name, None, "param", path, "grad")
            self._take("params_grad", key, gradient, measure=self._measure.gradients)

    def measure_missing_gradients_of(self, moved: Iterable[Tensor]) -> None:
        """Measure the gradients of those in `moved` that had none when the backward pass ended.

        Something has set them since, such as the aggregation of several tasks' gradients in TorchJD.
        """
        self._known_keys()
        if "params_grad" not in self._rows.kinds or self._with_gradient >= self._count:
            return
        rows = self._rows.rows
        named = ((series_key(name, None, "param", path, "grad"), each) for (name, path), each in self.named(moved))
        self.measure_gradients_of([each for key, each in named if key not in rows], "grad")

    def measure_gradients_of(self, moved: Iterable[Tensor], kind: str) -> None:
        """Measure the gradients of the parameters in `moved`, as series `kind`, as the optimizer gets them.

        They are measured again although their version may be the same: torch does not count what a `GradScaler` does to
        them, nor what is done to their `.data`.
        """
        with NoDispatch():
            for (name, path), parameter in self.named(moved):
                if (gradient := _gradient(parameter)) is not None:
                    key = series_key(name, None, "param", path, kind)
                    self._take("params_grad", key, gradient, measure=self._measure.values_again)

    def before_update(self, moved: Iterable[Tensor]) -> None:
        """An optimizer is about to move the parameters in `moved`: copy them."""
        with NoDispatch():
            for _, parameter in self.named(moved):
                is_moved = parameter.requires_grad and parameter not in self._before
                if is_moved and has_memory(values := plain(parameter)):
                    self._before[parameter] = values.detach().clone()

    def after_update(self) -> None:
        """The optimizer has moved them: measure how far."""
        before, self._before = self._before, {}
        if not before:
            return
        with NoDispatch():
            sizes = dict(zip(before, _numbers([torch.linalg.vector_norm(old) for old in before.values()]), strict=True))
            for key, parameter in self.named([*before]):
                old = before.pop(parameter, None)
                if old is not None and has_memory(values := plain(parameter)):
                    self._measure_update(key, values.detach() - old, sizes[parameter])

    def forget(self) -> None:
        """Release what was kept."""
        self._before.clear()
        self._settled.clear()
        self._keys.clear()
        self.unmeasured.clear()

    def _take(self, kinds: str, key: SeriesKey, tensor: Tensor, *, measure: Callable[[Tensor], int]) -> None:
        """Measure `tensor`, of this series, if those of its kind are measured, and keep it."""
        if kinds in self._rows.kinds:
            self._rows.rows[key] = measure(tensor)
        if (keeper := self._rows.keeper) is not None:
            keeper.take(key, tensor)

    def _observe(self, key: SeriesKey, row: int) -> None:
        self._rows.rows[key] = row

    def _measure_update(self, key: ParameterKey, update: Tensor, size: float) -> None:
        name, path = key
        self._observe((name, None, "param", path, "update"), self._measure.values(update))
        if size > 0:  # a parameter that is zero has no ratio
            ratio = torch.linalg.vector_norm(update) / size
            self._observe((name, None, "param", path, "update_ratio"), self._measure.values(ratio))

    def named(self, moved: Iterable[Tensor]) -> Iterator[tuple[ParameterKey, Tensor]]:
        """Those that are in `moved`, with their names; a shared one once for each module.

        An optimizer of one parameter is as quick as one of all.
        """
        keys = self._known_keys()
        for each in moved:
            for key in keys.get(id(each), ()):
                yield key, each

    def _known_keys(self) -> dict[int, tuple[ParameterKey, ...]]:
        """The names of each parameter, by its id."""
        keys = self._keys
        if not keys:
            for name, module in self._modules.items():
                for path, parameter in _own(module):
                    known, only = keys.get(id(parameter)), _only_key(name, path)
                    keys[id(parameter)] = only if known is None else unvisited((*known, *only))
                    self._count += 1
        return keys


def _has_unusual(module: nn.Module) -> bool:
    """Whether it has own parameters of types that may be parts of sharded ones."""
    return not _USUAL.issuperset(map(type, module._parameters.values())) and any(
        type(parameter) not in ORDINARY for _, parameter in _own(module)
    )


def _gradient(parameter: Tensor) -> Tensor | None:
    """The gradient of `parameter`, if it has one that can be read."""
    gradient = gradient_of(parameter)
    is_there = gradient is not None and is_readable(gradient) and has_memory(found := plain(gradient))
    return found if is_there else None


def _own(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters of `module` itself that have values. `named_parameters` would take as long as measuring one."""
    found = module._parameters
    if not found:
        return []
    return [
        (path, one)
        for path, one in found.items()
        if one is not None and (type(one) in ORDINARY or has_values(one))  # asked first, since that takes no call
    ]


def _numbers(scalars: list[Tensor]) -> list[float]:
    """Their values. Waits for each device once."""
    by_device: dict[torch.device, list[int]] = {}
    for at, scalar in enumerate(scalars):
        by_device.setdefault(scalar.device, []).append(at)
    numbers = [0.0] * len(scalars)
    for places in by_device.values():
        found = torch.stack([scalars[at] for at in places]).tolist()
        for at, number in zip(places, found, strict=True):
            numbers[at] = number
    return numbers
