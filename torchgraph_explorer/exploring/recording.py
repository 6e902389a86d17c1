"""One forward pass: every tensor that a module is given, returns or attaches, with its place in autograd's graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from torchgraph_explorer.capture.attach_targets import AttachedAs
from torchgraph_explorer.capture.modules_by_name import modules_by_name
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.capture.tensor_tree import input_tensors, tensors
from torchgraph_explorer.exploring.names import Place
from torchgraph_explorer.exploring.restoring import Copies


@dataclass(frozen=True, slots=True)
class RecordedTensor:
    """A tensor as it was at its place; what is changed in place later is another tensor.

    Attributes:
        place: Where it is.
        name: Its name.
        value: A copy, without a graph.
        edge: Where a gradient of it comes in; None if no gradient can.
        order: How many tensors were recorded before it.
    """

    place: Place
    name: str
    value: Tensor
    edge: GradientEdge | None
    order: int

    @property
    def key(self) -> object:
        """The same for all names of one tensor."""
        return (id(self.edge.node), self.edge.output_nr) if self.edge is not None else self.order


@dataclass(frozen=True, slots=True)
class Pass:
    """A forward pass whose graph is kept.

    Attributes:
        tensors: In the order of execution.
        output: What the model returned.
        copies: The buffers that it worked on.
    """

    tensors: tuple[RecordedTensor, ...]
    output: Any
    copies: Copies


Visit: TypeAlias = "Callable[[Place, Tensor], None]"
"""Called with each tensor of a forward pass, when it is at its place."""


def record(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    copies: Copies,
    visit: Visit | None = None,
) -> Pass:
    """Call `model`, and record its tensors, or only call `visit` with each. To be called in `restoring`."""
    recorder = _Recorder(visit)
    with ExitStack() as stack:
        for name, module in modules_by_name(model).items():
            recorder.follow(module, name, stack)
        process_state.attach_targets.enter(recorder)
        stack.callback(process_state.attach_targets.leave, recorder)
        output = model(*args, **kwargs)
    return Pass(recorder.recorded(), output, copies)


class _Recorder:
    """Takes the tensors of a forward pass (also an `attach_targets.Attachable`)."""

    def __init__(self, visit: Visit | None) -> None:
        self._visit = visit or self._add
        self._found: list[tuple[Place, Tensor, GradientEdge | None]] = []
        self._calls: Counter[str] = Counter()
        self._open: list[tuple[str, int]] = []
        self._copies: dict[int, tuple[Tensor, int, Tensor]] = {}
        self._attached: Counter[tuple[str, int, str]] = Counter()
        self._names: dict[int, str] = {}

    def follow(self, module: nn.Module, name: str, stack: ExitStack) -> None:
        """Record the calls of `module`, until `stack` is left."""
        self._names[id(module)] = name

        def enter(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            call = self._calls[name]
            self._calls[name] += 1
            self._open.append((name, call))
            for path, tensor in input_tensors(args, kwargs):
                self._visit(Place(name, call, "input", path), tensor)

        def leave(_module: nn.Module, _args: object, _kwargs: object, output: object) -> None:
            call = self._leave(name)
            for path, tensor in tensors(output, "output"):
                self._visit(Place(name, call, "output", path), tensor)

        stack.callback(module.register_forward_pre_hook(enter, with_kwargs=True).remove)
        stack.callback(module.register_forward_hook(leave, with_kwargs=True).remove)

    def attach(self, tensor: object, module: nn.Module, name: AttachedAs) -> None:
        """`attach` was called in the forward pass."""
        owner = self._names.get(id(module), "")
        call = next((call for one, call in reversed(self._open) if one == owner), 0)
        self._attached[owner, call, name.name] += 1
        count = self._attached[owner, call, name.name]
        for path, one in tensors(tensor, name.name if count == 1 else f"{name.name} #{count}"):
            self._visit(Place(owner, call, "attached", path), one)

    def recorded(self) -> tuple[RecordedTensor, ...]:
        return tuple(
            RecordedTensor(place, place.name(self._calls[place.module]), tensor, edge, order)
            for order, (place, tensor, edge) in enumerate(self._found)
        )

    def _leave(self, name: str) -> int:
        """Close the innermost call of module `name`, and those within it that raised; returns its number."""
        while self._open[-1][0] != name:
            self._open.pop()
        return self._open.pop()[1]

    def _add(self, place: Place, tensor: Tensor) -> None:
        edge = get_gradient_edge(tensor) if tensor.requires_grad else None
        self._found.append((place, self._copy(tensor), edge))

    def _copy(self, tensor: Tensor) -> Tensor:
        """A copy of the values; the same one as long as they are not changed."""
        version = -1 if tensor.is_inference() else tensor._version
        known = self._copies.get(id(tensor))
        if known is None or known[0] is not tensor or known[1] != version or version < 0:
            with torch.no_grad():
                known = tensor, version, tensor.detach().clone()
            self._copies[id(tensor)] = known
        return known[2]
