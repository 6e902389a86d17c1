"""What plain hooks see of a training: the oracle for what must have been recorded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from tests.compatibility.case import Training
from tests.compatibility.walk import tensors_in

Node = Any
GradientEdge = tuple[Node, int]


@dataclass
class Seen:
    """One call of a module.

    Attributes:
        module: Qualified name.
        parent: Position in the forward pass of the call it happened in; None for the model's own.
        inputs: Paths of the tensors among its arguments.
        outputs: Paths of the tensors in its result; None if it did not return.
        needed: For what it was given and, under `outputs`, for what it returned, groups of positions of calls: from one
            of each group gradient flows, so there must be an edge.
        reached: Outputs at which gradient arrived.
        first: Autograd nodes made in it are numbered from here,
        beyond: and up to here.
        silent: A call in it returned a tensor without gradient, which may get its gradient later, as under a reentrant
            checkpoint: autograd then tells of an edge that skips it.
    """

    module: str
    parent: int | None
    inputs: list[str]
    outputs: list[str] | None = None
    needed: list[set[int]] = field(default_factory=list)
    needed_by_outputs: dict[str, list[set[int]]] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    silent: bool = False
    first: int = 0
    beyond: int = 0
    labels: dict[GradientEdge, set[int]] = field(default_factory=dict, repr=False)


@dataclass
class Forward:
    """One training pass through the model, or through a module of it that is called from outside.

    Attributes:
        calls: In the order in which they began.
        parameters: Those that a gradient arrived at since it began.
        updates: How many updates there were before.
        is_frozen: It is a call under no_grad of a part that is not trained.
    """

    calls: list[Seen] = field(default_factory=list)
    parameters: set[tuple[str, str]] = field(default_factory=set)
    updates: int = 0
    is_frozen: bool = False


class Observer:
    """Hooks every module the plain way, before each step."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.forwards: list[Forward] = []
        self._stack: list[tuple[int, str]] = []
        self.unhookable: set[str] = set()
        self._handles: list[Any] = []
        self._thread = threading.get_ident()
        self._updates = self._open_updates = 0
        self._is_moved = True

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Hooks the modules anew in each call of the model, since they may be others than in the last."""
        self._hook_all()
        hooks = (
            self.model.register_forward_pre_hook(self._hook, with_kwargs=True, prepend=True),
            register_optimizer_step_pre_hook(self._update_begins),
            register_optimizer_step_post_hook(self._update_ends),
        )
        try:
            with patch.object(GradScaler, "step", self._observing(GradScaler.step)):
                yield
        finally:
            for each in hooks:
                each.remove()
            self._unhook()
            self._stack.clear()
            self._open_updates = 0

    def _update_begins(self, *_: object) -> None:
        self._open_updates += 1

    def _update_ends(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        self._open_updates -= 1
        own = {id(each) for each in self.model.parameters()}
        is_own = any(id(each) in own for group in optimizer.param_groups for each in group["params"])
        if is_own and not self._open_updates and not self._is_moved:
            self._updates, self._is_moved = self._updates + 1, True

    def _observing(self, step: Any) -> Any:
        """The `step` of gradient scalers, which counts an update that they leave out, too."""

        def observed(scaler: GradScaler, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
            result = step(scaler, optimizer, *args, **kwargs)
            if scaler.is_enabled() and any(found.item() for found in scaler._found_inf_per_device(optimizer).values()):
                self._open_updates += 1
                self._update_ends(optimizer)
            return result

        return observed

    def _hook(self, model: nn.Module, args: Any, kwargs: Any) -> None:
        if not self._is_to_be_recorded(model):
            return
        if self._stack:
            self._entered("", args, kwargs)
            return
        self._hook_all()
        self._entered("", args, kwargs)

    def _hook_all(self) -> None:
        self._unhook()
        for name, module in self.model.named_modules():
            if isinstance(module, torch.jit.ScriptModule):
                self.unhookable.add(name)
                continue
            if name:
                self._handles.append(module.register_forward_pre_hook(self._enter(name), with_kwargs=True))
            self._handles.append(module.register_forward_hook(self._leave, with_kwargs=True, always_call=True))
            for path, parameter in module.named_parameters(recurse=False):
                if parameter.requires_grad and parameter.is_leaf and not is_lazy(parameter):
                    self._handles.append(self._parameter_hook(parameter, (name, path)))

    def _unhook(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _parameter_hook(self, parameter: Tensor, key: tuple[str, str]) -> Any:
        def arrived(_parameter: Tensor) -> None:
            if self.forwards:
                self.forwards[-1].parameters.add(key)

        return parameter.register_post_accumulate_grad_hook(arrived)

    def _enter(self, name: str) -> Any:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            if self._is_to_be_recorded(module) or self._is_frozen(name):
                self._entered(name, args, kwargs)

        return enter

    def _is_frozen(self, name: str) -> bool:
        """Whether module `name` is called under no_grad although nothing in it was called in the steps before."""
        if self._stack or torch.is_grad_enabled() or not self.model.training or not self._updates:
            return False
        trained = [call.module for forward in self.forwards if not forward.is_frozen for call in forward.calls]
        return not any(f"{each}.".startswith(f"{name}.") for each in trained)

    def _entered(self, name: str, args: Any, kwargs: Any) -> None:
        if not self._stack:
            self._thread = threading.get_ident()
            self.forwards.append(Forward(updates=self._updates, is_frozen=not torch.is_grad_enabled()))
            self._is_moved = False
        calls = self.forwards[-1].calls
        inputs = inputs_of(args, kwargs)
        parent = self._stack[-1][0] if self._stack else None
        seen = Seen(name, parent, [path for path, tensor in inputs if has_data(tensor)], first=next_node())
        calls.append(seen)
        if parent is not None:
            inner = calls[parent].silent or any(in_transform(tensor) for _, tensor in inputs)
            known = {} if inner else calls[parent].labels
            seen.needed = [group for _, t in inputs for group in sources(t, known, children_of(parent, calls))]
        for _, tensor in inputs:
            if has_edge(tensor):
                seen.labels.setdefault(edge_of(tensor), set()).add(-1)
        self._stack.append((len(calls) - 1, name))

    def _leave(self, module: nn.Module, _args: Any, _kwargs: Any, output: Any) -> None:
        if not self._stack or threading.get_ident() != self._thread or _in_backward():
            return
        name = next(name for name, one in self.model.named_modules() if one is module)
        if name not in [each for _, each in self._stack]:
            return
        while self._stack[-1][1] != name:
            self._stack.pop()
        at, _ = self._stack.pop()
        self._left(self.forwards[-1].calls, at, [(f"output{path}", tensor) for path, tensor in tensors_in(output)])

    def _left(self, calls: list[Seen], at: int, outputs: list[tuple[str, Tensor]]) -> None:
        seen = calls[at]
        outer = calls[self._stack[-1][0]] if self._stack else None
        seen.outputs, seen.beyond = [path for path, tensor in outputs if has_data(tensor)], next_node()
        for path, tensor in outputs:
            silent = seen.silent or in_transform(tensor)
            seen.needed_by_outputs[path] = [] if silent else sources(tensor, seen.labels, children_of(at, calls))
            if in_transform(tensor):  # whose gradients are the transform's own
                seen.silent = True
            elif has_edge(tensor):
                _note_gradient(tensor, seen.reached, path)
                if outer is not None:
                    outer.labels.setdefault(edge_of(tensor), set()).add(at)
            elif outer is not None and tensor.is_floating_point():
                outer.silent = True
        seen.labels.clear()

    def _is_to_be_recorded(self, module: nn.Module) -> bool:
        """It is a call within the forward pass that is on, or begins one; in which thread is all the same."""
        if torch.compiler.is_compiling():  # first and alone, so as not to break the graph
            return False
        if _in_backward() or torch._C._get_tracing_state() is not None or _is_traced_by_a_mode():
            return False
        if self._stack:
            return threading.get_ident() == self._thread
        return self.model.training and torch.is_grad_enabled()


def has_data(tensor: Tensor) -> bool:
    """Whether there are elements that a series could be made of."""
    return not tensor.is_meta


def in_transform(tensor: Tensor) -> bool:
    """Whether it lives within one of `torch.func`'s transforms."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def inputs_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Tensor]]:
    """The tensors that a call is given, and where each sits."""
    found = [(f"input[{i}]{p}", t) for i, a in enumerate(args) for p, t in tensors_in(a)]
    return found + [(f"input[{k!r}]{p}", t) for k, a in kwargs.items() for p, t in tensors_in(a)]


def _note_gradient(tensor: Tensor, reached: set[str], path: str) -> None:
    def arrived(gradient: Tensor | None) -> None:
        if gradient is not None:  # as where an operation of several outputs is reached through another one
            reached.add(path)

    tensor.register_hook(arrived)


def _is_traced_by_a_mode() -> bool:
    """As by `make_fx` and AOTAutograd."""
    return any(
        type(mode).__name__ in {"ProxyTorchDispatchMode", "FunctionalTensorMode"}
        for mode in _get_current_dispatch_mode_stack()
    )


def _in_backward() -> bool:
    return bool(torch._C._current_graph_task_id() != -1)


def has_edge(tensor: Tensor) -> bool:
    """Whether gradient can come to it: not to a view that was made without gradient, whatever it says of itself."""
    if not tensor.requires_grad:
        return False
    try:
        edge_of(tensor)
    except (AssertionError, AttributeError, RuntimeError):  # torch finds no autograd node
        return False
    return True


def edge_of(tensor: Tensor) -> GradientEdge:
    """Where the gradient of `tensor` is delivered."""
    edge = torch.autograd.graph.get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def next_node() -> int:
    """The number of the next autograd node of this thread."""
    return int(torch._C._autograd._get_sequence_nr())


def children_of(parent: int, calls: list[Seen]) -> list[tuple[int, Seen]]:
    """The calls that ended within call number `parent`."""
    return [(i, seen) for i, seen in enumerate(calls) if seen.parent == parent and seen.beyond]


def sources(tensor: Tensor, labels: dict[GradientEdge, set[int]], children: list[tuple[int, Seen]]) -> list[set[int]]:
    """The labels which gradient of `tensor` arrives at first: for each place, the calls that it may stand for.

    A node that was made within a call stands for it too: its tensor got out otherwise than by being returned.
    """
    if not labels or not has_edge(tensor):
        return []
    todo, seen, found = [edge_of(tensor)], set(), []
    while todo:
        edge = todo.pop()
        if edge in seen:
            continue
        seen.add(edge)
        if edge in labels:
            found.append(set(labels[edge]))
        elif made_in := {i for i, child in children if child.first <= edge[0]._sequence_nr() < child.beyond}:
            found.append(made_in)
        else:
            todo += [(node, number) for node, number in edge[0].next_functions if node is not None]
    return found


def observing(training: Training) -> tuple[Observer, Any]:
    """An observer, and a context manager in which each step of `training` is observed."""
    observer = Observer(training.inner or training.model)

    @contextmanager
    def around() -> Iterator[None]:
        step = training.step

        def observed(number: int) -> object:
            with observer.hooked():
                return step(number)

        training.step = observed
        yield

    return observer, around()
