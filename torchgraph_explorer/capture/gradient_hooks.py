"""Reads gradients in one step: those of tensors, and those that reach an input through one call of a module."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.utils.hooks import RemovableHandle

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.no_dispatch import (
    NoDispatch,
    is_hidden,
    is_readable,
    of_last_pass,
    plain,
    transforms_on,
)
from torchgraph_explorer.capture.path_gradients import Consumers, Edge, edge_in_use
from torchgraph_explorer.capture.safe_hook import SafeHook, flags
from torchgraph_explorer.unvisited import unvisited

SeriesKey: TypeAlias = "tuple[str, int | None, str, str, str]"
"""`Series.key`: module, call, role, path, kind."""


@lru_cache(maxsize=1 << 18)
def series_key(  # noqa: PLR0917  # called for every tensor
    module: str, call: int | None, role: str, path: str, kind: str
) -> SeriesKey:
    """The key of a series: the same object in each step, so that Python's garbage collector has less to go through."""
    return module, call, role, path, kind


class QuickMeasure(Protocol):
    """Measures ordinary tensors in host memory: each returns the row, or None for any other tensor."""

    @property
    def values(self) -> Callable[[Tensor], int | None]:
        """See `Measure.values`."""

    @property
    def norms(self) -> Callable[[Tensor], int | None]:
        """See `Measure.norms`."""

    @property
    def gradients(self) -> Callable[[Tensor], int | None]:
        """See `Measure.gradients`."""

    @property
    def samples(self) -> Callable[[list[Tensor], Tensor], tuple[list[int], list[int]] | None]:
        """Copies samples of parameters, one after the other, into the last argument.

        Tells how many elements that is of each, and where each is in memory; None if one is not ordinary.
        """

    @property
    def updates(self) -> Callable[[list[Tensor], list[int], Tensor, Tensor], list[int]]:
        """Compares parameters with such samples, and puts how far each was moved into the last argument.

        Tells where each is in memory; 0 for one that is not as it was.
        """


class Measure(Protocol):
    """Turns tensors into rows of numbers; each call returns the row's number within the step."""

    @property
    def native(self) -> QuickMeasure | None:
        """What does the same for ordinary tensors in less time, where it was built."""

    def values(self, tensor: Tensor) -> int:
        """Measure the elements."""

    def values_again(self, tensor: Tensor) -> int:
        """Measure the elements, although torch may say that the tensor is unchanged since it was measured."""

    def gradients(self, gradient: Tensor) -> int:
        """Measure the elements of a gradient as the backward pass left it."""

    def norms(self, gradient: Tensor) -> int:
        """Measure the l2 norms of the gradient, one for each sample."""

    def numbers(self, numbers: Tensor) -> list[int]:
        """Measure each of `numbers`, `[n]` of float32, as a tensor of its own."""

    def units(self, output: Tensor, peaks: Tensor, *, is_second: bool, is_new: bool) -> tuple[int, int] | None:
        """Measure the units of `output`, the second or the last dimension, as `UnitRows` does; None if it has to."""

    def forget(self) -> None:
        """Hold no weak reference any more: torch swaps no tensor that has one."""


ARE_VISITED_AGAIN = sys.version_info < (3, 14)
"""Python's garbage collector visits a dictionary again, to which something is added that it visits."""

current_backward = torch._C._current_graph_task_id
"""The number of the backward pass that is on in this thread; -1 without one."""


class GradientHook(SafeHook):
    """A hook on a tensor, or on the nodes that consume an input, with the series that are read by it.

    Attributes:
        hooks: Those of the step.
        keys: The series. Without any, the hook only notes that a backward pass is on.
        summands: How many parts, whose sum is the gradient, a backward pass delivers.
        level: How many transforms of `torch.func` were on in the forward pass.
        slot: On an autograd node, the position of the gradient among what the node computes; None on a tensor.
    """

    __slots__ = ("hooks", "keys", "level", "slot", "summands")

    def __init__(self, hooks: GradientHooks, level: int, slot: int | None = None, *, summands: int = 1) -> None:
        """Nothing is read yet."""
        self.hooks, self.level, self.slot, self.summands = hooks, level, slot, summands
        self.keys: tuple[SeriesKey, ...] = ()

    @interrupts.entry
    def __call__(self, gradient: Any, _incoming: object = None) -> None:
        """Gradient arrives at the tensor, or the node has computed the gradients of its inputs."""
        if is_dynamo_compiling() or flags._is_compiling_flag:
            return
        try:
            try:
                if self.slot is not None and (gradient := gradient[self.slot]) is None:
                    return
                read = self.hooks.quickly
                if read is None or not read(self, gradient):
                    self.act(gradient)
            except Exception as fault:
                self._report(fault)
        except BaseException:
            interrupts.restore_all()
            raise

    def act(self, gradient: Tensor | None) -> None:
        """Gradient arrives at the tensor; None if a function of the user's has none for it."""
        self.hooks.arrive(self, gradient)

    def fail(self, fault: Exception) -> None:
        """Note that the gradient could not be read, because of `fault`."""
        self.hooks.fail(self.keys[0][0] if self.keys else "", fault)


class PathHook(SafeHook):
    """The hook on one of several autograd nodes, each of which delivers a summand."""

    __slots__ = ("_hook", "_slot")

    def __init__(self, hook: GradientHook, slot: int) -> None:
        self._hook, self._slot = hook, slot

    def act(self, gradients: tuple[Tensor | None, ...], _incoming: object) -> None:
        """The node has computed the gradients of its inputs."""
        gradient = gradients[self._slot]
        if gradient is not None:
            self._hook.act(gradient)

    def fail(self, fault: Exception) -> None:
        """Note that the gradient could not be read, because of `fault`."""
        self._hook.fail(fault)


@dataclass(slots=True)
class _Sum:
    """The sum of what has come to a hook in one backward pass.

    Attributes:
        total: The sum so far.
        arrived: How many summands it has.
    """

    total: Tensor
    arrived: int = 1


@dataclass(slots=True)
class GradientHooks:
    """The gradient hooks of one step. A tensor, or set of nodes, has one hook, however many series are read there.

    Attributes:
        read: Called with series and their gradient.
        begin: Called by the first gradient of each backward pass, within it.
        fail: Called with a module's name and the exception raised in a hook.
        lock: Held while a gradient is read: it may come in an autograd thread.
        closed: Nothing is read any more.
        quickly: What reads ordinary gradients in place of `arrive`, and returns whether it did; None without `calls.c`.
        task: The backward pass that is known to be on, in the step's state, too; -1 if none is.
        put: Hooks that were put on by `calls.c`: a weak reference to the hooks of a tensor or node, and the key there.
    """

    read: Callable[[tuple[SeriesKey, ...], Tensor], None]
    begin: Callable[[], None]
    fail: Callable[[str, Exception], None]
    lock: threading.RLock
    closed: bool = False
    quickly: Callable[[GradientHook, Tensor | None], bool] | None = None
    task: int = -1
    put: list[Any] = field(default_factory=list)
    _handles: list[Any] = field(default_factory=list)
    _outputs: dict[Edge, GradientHook] = field(default_factory=dict)
    _paths: dict[object, GradientHook] = field(default_factory=dict)
    _pending: dict[tuple[int, GradientHook], _Sum] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Any, ...]:
        """What `calls.c` puts hooks on with."""
        return self, self._outputs, self._paths, self.put

    def on_tensor(self, tensor: Tensor, key: SeriesKey | None, *, edge: Edge | None = None) -> GradientHook:
        """Read the gradient of `tensor` as series `key`; without a key, only note that a backward pass is on.

        `edge` is that of a tensor that is not a stale view.

        Returns:
            The hook, which autograd keeps alive as long as gradient can still come.
        """
        if edge is None:
            edge = edge_in_use(tensor)
        hook = self._outputs.get(edge)
        if hook is None:
            hook = self._outputs[edge] = unvisited(GradientHook(self, transforms_on()))
            self._handles.append(_unvisited_with_hooks(tensor.register_hook(hook)))
        if key is not None:
            hook.keys += (key,)
        return hook

    def on_path(self, consumers: Consumers, key: SeriesKey) -> None:
        """Read the sum of the gradients that come back through `consumers` as series `key`."""
        edge_key = consumers[0] if len(consumers) == 1 else frozenset(consumers)
        hook = self._paths.get(edge_key)
        if hook is None and len(consumers) == 1:
            [(node, slot)] = consumers
            hook = self._paths[edge_key] = unvisited(GradientHook(self, transforms_on(), slot))
            self._handles.append(_unvisited_with_hooks(node.register_hook(hook)))
        elif hook is None:
            hook = self._paths[edge_key] = unvisited(GradientHook(self, transforms_on(), summands=len(consumers)))
            for node, slot in consumers:
                self._handles.append(unvisited(node.register_hook(unvisited(PathHook(hook, slot)))))
        hook.keys += (key,)

    def forget_graph(self) -> None:
        """The forward pass is over: release the autograd nodes, which keep the user's tensors alive."""
        self._outputs.clear()
        self._paths.clear()
        self.task = -1

    def end_backward(self, task: int) -> None:
        """A backward pass has ended: measure its sums that are incomplete."""
        self._read_sums([edge_key for edge_key in self._pending if edge_key[0] == task])

    def end_all(self) -> None:
        """No more gradients come: measure all sums."""
        self._read_sums([*self._pending])

    def remove(self) -> None:
        """Remove every hook."""
        self.closed = True
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()
        put, self.put, self.quickly = self.put, [], None
        for reference, key in zip(put[::2], put[1::2], strict=True):
            if (hooks := reference()) is not None:
                hooks.pop(key, None)
        self.forget_graph()
        # The hooks of a graph that the user keeps hold on to this object: let that be little.
        self.begin, self.fail = _do_nothing, _do_nothing

    def arrive(self, hook: GradientHook, gradient: Tensor | None) -> None:
        """A gradient, or a summand of it, has come to `hook`."""
        with self.lock:
            if self.closed:
                return
            self.begin()
            self.task = current_backward()
            if not hook.keys or gradient is None:
                return
            if is_hidden(gradient):
                self._take(hook, gradient)
            else:
                with NoDispatch():
                    self._take(hook, plain(of_last_pass(gradient, hook.level)))

    def _take(self, hook: GradientHook, gradient: Tensor) -> None:
        """Read a gradient, or add it to the sum of which it is a part."""
        if is_readable(gradient):
            if hook.summands == 1:
                self.read(hook.keys, gradient)
            else:
                self._add(hook, gradient)

    def _add(self, hook: GradientHook, summand: Tensor) -> None:
        """Add a summand to the sum of this backward pass, and read the sum when it is complete."""
        edge_key = current_backward(), hook
        known = self._pending.get(edge_key)
        if known is None:
            self._pending[edge_key] = _Sum(summand.clone())
            return
        known.total, known.arrived = known.total + summand, known.arrived + 1
        if known.arrived == hook.summands:
            self.read(hook.keys, self._pending.pop(edge_key).total)

    def _read_sums(self, waiting_hooks: list[tuple[int, GradientHook]]) -> None:
        """Read sums."""
        if not waiting_hooks:
            return
        with NoDispatch():
            for waiting in waiting_hooks:
                self.read(waiting[1].keys, self._pending.pop(waiting).total)


def _unvisited_with_hooks(handle: RemovableHandle) -> RemovableHandle:
    """`handle`, and the dictionary of hooks that it is of, if ours is alone in it: the collector does not visit them.

    When the user adds a hook, Python has the collector visit the dictionary again; from 3.14 on, it does not.
    """
    hooks = unvisited(handle.hooks_dict_ref)()
    if ARE_VISITED_AGAIN and hooks is not None and len(hooks) == 1:
        unvisited(hooks)
    return unvisited(handle)


def _do_nothing(*_: object) -> None:
    """In place of a function that is not to be called any more."""
