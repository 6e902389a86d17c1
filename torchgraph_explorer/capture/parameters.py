"""What a step sees of the model's parameters: their values, their gradients and how an optimizer moves them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import torch
from torch import Tensor, nn

from torchgraph_explorer.capture.gradient_hooks import Measure, SeriesKey, series_key
from torchgraph_explorer.capture.module_info import has_values
from torchgraph_explorer.capture.no_dispatch import ORDINARY, NoDispatch, has_memory, is_readable, plain

ParameterKey: TypeAlias = "tuple[str, str]"
"""A module, and its parameter."""


class Parameters:
    """The parameters of one model in one step. Which there are is found out each time: modules come and go."""

    def __init__(
        self, modules: Mapping[nn.Module, str], measure: Measure, observe: Callable[[SeriesKey, int], None]
    ) -> None:
        """Look at the own parameters of `modules`, which have names; `observe` is told the row of each series."""
        self._modules, self._measure, self._observe = modules, measure, observe
        self._unseen = {name: module for module, name in modules.items()}
        self._before: dict[nn.Parameter, Tensor] = {}
        self._left: list[tuple[nn.Parameter, weakref.ref[Tensor]]] = []

    def see_values(self, name: str) -> None:
        """Measure those of module `name` as they are now, the first time that it is asked for.

        That is when it is called: it is about to read them itself, and finds them in the processor's cache then.
        """
        module = self._unseen.pop(name, None)
        if module is not None:
            for path, parameter in _own(module):
                if is_readable(parameter) and has_memory(values := plain(parameter)):
                    self._observe(series_key(name, None, "param", path, "value"), self._measure.values(values))

    def see_sharded(self) -> None:
        """Measure those of which a part lies here: they are gathered before their module is called."""
        with NoDispatch():
            for name, module in list(self._unseen.items()):
                if any(type(parameter) not in ORDINARY for _, parameter in _own(module)):
                    self.see_values(name)

    def see_rest(self) -> None:
        """Measure those not seen yet: not every module that has some is called."""
        with NoDispatch():
            for name in list(self._unseen):
                self.see_values(name)

    def see_gradients(self) -> None:
        """Measure the gradients as the backward pass left them."""
        self._left.clear()
        with NoDispatch():
            for (name, path), parameter, gradient in self._gradients():
                self._observe(series_key(name, None, "param", path, "grad"), self._measure.gradients(gradient))
                self._left.append((parameter, weakref.ref(gradient)))

    def are_added_to(self) -> bool:
        """The gradients that the backward pass left are still there, for those of others to be added to them."""
        with NoDispatch():
            return bool(self._left) and all(
                parameter.grad is not None and plain(parameter.grad) is left() for parameter, left in self._left
            )

    def before_update(self) -> None:
        """The optimizer is about to move them: see what became of the gradients, and keep what they are now.

        The gradients are measured anew: torch does not count what a `GradScaler` does to them, nor what is done to
        their `.data`.
        """
        with NoDispatch():
            for (name, path), parameter, gradient in self._gradients():
                self._observe((name, None, "param", path, "optimizer_grad"), self._measure.anew(gradient))
                if has_memory(values := plain(parameter)):
                    self._before[parameter] = values.detach().clone()

    def after_update(self) -> None:
        """The optimizer has moved them: see how far."""
        before, self._before = self._before, {}
        with NoDispatch():
            sizes = dict(zip(before, _numbers([torch.linalg.vector_norm(old) for old in before.values()]), strict=True))
            for key, parameter, _ in self._gradients():
                old = before.pop(parameter, None)
                if old is not None and has_memory(values := plain(parameter)):
                    self._see_update(key, values.detach() - old, sizes[parameter])

    def forget(self) -> None:
        """Let go of what was kept."""
        self._before.clear()
        self._left.clear()
        self._unseen.clear()

    def _see_update(self, key: ParameterKey, update: Tensor, size: float) -> None:
        name, path = key
        self._observe((name, None, "param", path, "update"), self._measure.values(update))
        if size > 0:  # what starts at zero has no ratio yet
            ratio = torch.linalg.vector_norm(update) / size
            self._observe((name, None, "param", path, "update_ratio"), self._measure.values(ratio))

    def _all(self) -> Iterator[tuple[ParameterKey, nn.Parameter]]:
        """Each that has values, a shared one once for each module."""
        for module, name in self._modules.items():
            for path, parameter in _own(module):
                yield (name, path), parameter

    def _gradients(self) -> Iterator[tuple[ParameterKey, nn.Parameter, Tensor]]:
        """Each that has a gradient, and the gradient."""
        for key, parameter in self._all():
            gradient = parameter.grad
            if gradient is not None and is_readable(gradient) and has_memory(found := plain(gradient)):
                yield key, parameter, found


def _own(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters of `module` itself that have values. `named_parameters` takes as long as to measure one."""
    found = module._parameters.items()
    return [(path, parameter) for path, parameter in found if parameter is not None and has_values(parameter)]


def _numbers(scalars: list[Tensor]) -> list[float]:
    """Their values, for which each device is waited for once."""
    by_device: dict[torch.device, list[int]] = {}
    for at, scalar in enumerate(scalars):
        by_device.setdefault(scalar.device, []).append(at)
    numbers = [0.0] * len(scalars)
    for places in by_device.values():
        found = torch.stack([scalars[at] for at in places]).tolist()
        for at, number in zip(places, found, strict=True):
            numbers[at] = number
    return numbers
