"""GradientHooks on the backward pass of one step: gradients of outputs, and shares that reach inputs through a call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from torchgraph_explorer.capture.no_dispatch import NoDispatch, is_readable, plain
from torchgraph_explorer.capture.path_gradients import Consumers, Edge, edge_in_use
from torchgraph_explorer.capture.safe_hook import SafeHook

SeriesKey: TypeAlias = "tuple[str, int | None, str, str, str]"
"""`Series.key`: module, call, role, path, kind."""


@lru_cache(maxsize=1 << 15)
def series_key(  # noqa: PLR0917  # called for every tensor
    module: str, call: int | None, role: str, path: str, kind: str
) -> SeriesKey:
    """The key of a series: the same object in each step, so that Python's garbage collector has less to go through."""
    return module, call, role, path, kind


class Measure(Protocol):
    """Turns tensors into rows of numbers; each call returns the row's number within the step."""

    def values(self, tensor: Tensor) -> int:
        """Measure the elements."""

    def anew(self, tensor: Tensor) -> int:
        """Measure the elements, also of a tensor that torch says is as it was when it was measured before."""

    def gradients(self, gradient: Tensor) -> int:
        """Measure the elements of a gradient as the backward pass left it."""

    def norms(self, gradient: Tensor) -> int:
        """Measure the l2 norms of the gradient, one for each sample."""


current_backward = torch._C._current_graph_task_id
"""The number of the backward pass that is on in this thread, -1 without."""


class GradientHook(SafeHook):
    """One place where gradient passes, and the series that are read there. It is the hook at a tensor.

    Attributes:
        keys: The series. Without any, it is only noted that a backward pass is on.
        shares: How many shares of the gradient a backward pass delivers.
    """

    __slots__ = ("_hooks", "keys", "shares")

    def __init__(self, hooks: GradientHooks, *, shares: int = 1) -> None:
        """Nothing is read yet."""
        self._hooks = hooks
        self.keys: tuple[SeriesKey, ...] = ()
        self.shares = shares

    def act(self, gradient: Tensor) -> None:
        """Gradient arrives at the tensor."""
        self._hooks.arrive(self, gradient)

    def fail(self, fault: Exception) -> None:
        """It could not be read."""
        self._hooks.fail(self.keys[0][0] if self.keys else "", fault)


class _Share(SafeHook):
    """The hook at an autograd node that delivers a share to a hook."""

    __slots__ = ("_hook", "_slot")

    def __init__(self, hook: GradientHook, slot: int) -> None:
        self._hook, self._slot = hook, slot

    def act(self, gradients: tuple[Tensor | None, ...], _incoming: object) -> None:
        """The node has computed the gradients of its inputs."""
        gradient = gradients[self._slot]
        if gradient is not None:
            self._hook.act(gradient)

    def fail(self, fault: Exception) -> None:
        """It could not be read."""
        self._hook.fail(fault)


@dataclass(slots=True)
class _Sum:
    """The shares that have come to a hook in one backward pass.

    Attributes:
        total: Their sum.
        arrived: How many they are.
    """

    total: Tensor
    arrived: int = 1


@dataclass(slots=True)
class GradientHooks:
    """The hooks of one step. Each place is hooked once, however many calls look at it.

    Attributes:
        measure: What turns a gradient into a row.
        observe: Called with a series and its row.
        begin: Called by the first gradient of each backward pass, within it.
        fail: Called with a module's name and what went wrong in a hook.
        lock: Held while a gradient is read: it may come in an autograd thread.
        closed: Nothing is read any more.
    """

    measure: Measure
    observe: Callable[[SeriesKey, int], None]
    begin: Callable[[], None]
    fail: Callable[[str, Exception], None]
    lock: threading.RLock
    closed: bool = False
    _handles: list[Any] = field(default_factory=list)
    _outputs: dict[Edge, GradientHook] = field(default_factory=dict)
    _paths: dict[object, GradientHook] = field(default_factory=dict)
    _pending: dict[tuple[int, GradientHook], _Sum] = field(default_factory=dict)

    def on_tensor(self, tensor: Tensor, key: SeriesKey | None) -> GradientHook:
        """Read all the gradient that arrives at `tensor`; without a key, only note that a backward pass is on.

        Returns:
            The hook, which autograd keeps alive as long as gradient can still come.
        """
        edge = edge_in_use(tensor)
        hook = self._outputs.get(edge)
        if hook is None:
            hook = self._outputs[edge] = GradientHook(self)
            self._handles.append(tensor.register_hook(hook))
        if key is not None:
            hook.keys += (key,)
        return hook

    def on_path(self, consumers: Consumers, key: SeriesKey) -> None:
        """Read the gradient that comes back through `consumers`, whose shares add up."""
        edge_key = consumers[0] if len(consumers) == 1 else frozenset(consumers)
        hook = self._paths.get(edge_key)
        if hook is None:
            hook = self._paths[edge_key] = GradientHook(self, shares=len(consumers))
            for node, slot in consumers:
                self._handles.append(node.register_hook(_Share(hook, slot)))
        hook.keys += (key,)

    def forget_graph(self) -> None:
        """The forward pass is over: let go of the autograd nodes, which would keep the user's memory."""
        self._outputs.clear()
        self._paths.clear()

    def end_backward(self, task: int) -> None:
        """A backward pass has ended: measure its sums of which not every share came."""
        self._settle([edge_key for edge_key in self._pending if edge_key[0] == task])

    def end_all(self) -> None:
        """No more gradient comes: measure what did."""
        self._settle([*self._pending])

    def remove(self) -> None:
        """Take every hook off."""
        self.closed = True
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()
        self.forget_graph()
        self.begin, self.fail = _nothing, _nothing  # what the hooks of a graph that is kept hold on to is then little

    def arrive(self, hook: GradientHook, gradient: Tensor) -> None:
        """Gradient, or a share of it, is at the place of `hook`."""
        with self.lock:
            if self.closed:
                return
            self.begin()
            if hook.keys:
                with NoDispatch():
                    gradient = plain(gradient)
                    if is_readable(gradient):
                        (self._read if hook.shares == 1 else self._add)(hook, gradient)

    def _add(self, hook: GradientHook, share: Tensor) -> None:
        """Keep a share until all have come that this backward pass brings: there may be another one within it."""
        edge_key = current_backward(), hook
        known = self._pending.get(edge_key)
        if known is None:
            self._pending[edge_key] = _Sum(share.clone())
            return
        known.total, known.arrived = known.total + share, known.arrived + 1
        if known.arrived == hook.shares:
            self._read(hook, self._pending.pop(edge_key).total)

    def _settle(self, waiting_hooks: list[tuple[int, GradientHook]]) -> None:
        """Read sums."""
        with NoDispatch():
            for waiting in waiting_hooks:
                self._read(waiting[1], self._pending.pop(waiting).total)

    def _read(self, hook: GradientHook, gradient: Tensor) -> None:
        row = self.measure.norms(gradient)
        for key in hook.keys:
            self.observe(key, row)


def _nothing(*_: object) -> None:
    """Nobody is told any more."""
