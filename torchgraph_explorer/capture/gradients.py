"""Taps on the backward pass of one step: gradients of outputs, and shares that reach inputs through a call."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from torch import Tensor

from torchgraph_explorer.capture.aside import Aside, is_readable, plain
from torchgraph_explorer.capture.hooks import Hook
from torchgraph_explorer.capture.paths import Consumers, Edge, edge_of

SeriesKey: TypeAlias = "tuple[str, int | None, str, str, str]"
"""`Series.key`: module, call, role, path, kind."""


class Measure(Protocol):
    """Turns tensors into rows of numbers; each call returns the row's number within the step."""

    def values(self, tensor: Tensor) -> int:
        """Measure the elements."""

    def gradients(self, gradient: Tensor) -> int:
        """Measure the elements of a gradient as the backward pass left it."""

    def norms(self, gradient: Tensor) -> int:
        """Measure the l2 norms of the gradient, one for each sample."""


@dataclass(slots=True)
class _Tap:
    """One place where gradient passes, and the series that are read there.

    Attributes:
        shares: How many shares of it a backward pass delivers.
        arrived: How many came so far in this backward pass.
        total: Sum of those, where several are expected.
        hook: What reads it, where it is a tensor's.
    """

    keys: list[SeriesKey]
    shares: int = 1
    arrived: int = 0
    total: Tensor | None = None
    hook: weakref.ref[Hook] | None = None


@dataclass(slots=True)
class Taps:
    """The taps of one step. Each place is tapped once, however many calls look at it.

    Attributes:
        measure: What turns a gradient into a row.
        observe: Called with a series and its row.
        begin: Called by the first gradient of each backward pass, within it.
        fail: Called with what goes wrong in a hook.
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
    _outputs: dict[Edge, _Tap] = field(default_factory=dict)
    _paths: dict[frozenset[tuple[Any, int]], _Tap] = field(default_factory=dict)
    _pending: list[_Tap] = field(default_factory=list)

    def on_tensor(self, tensor: Tensor, key: SeriesKey | None) -> Hook:
        """Read all the gradient that arrives at `tensor`; without a key, only note that a backward pass is on.

        Returns:
            The hook, which autograd keeps alive as long as gradient can still come.
        """
        edge = edge_of(tensor)
        tap = self._outputs.get(edge)
        if tap is None:
            tap = self._outputs[edge] = _Tap([])
        tap.keys += [key] if key else []
        hook = tap.hook() if tap.hook else None
        if hook is None:
            hook = Hook(lambda gradient: self._arrive(tap, gradient), self._failing(key))
            self._handles.append(tensor.register_hook(hook))
            tap.hook = weakref.ref(hook)
        return hook

    def on_path(self, consumers: Consumers, key: SeriesKey) -> None:
        """Read the gradient that comes back through `consumers`, whose shares add up."""
        place = frozenset(consumers)
        tap = self._paths.get(place)
        if tap is not None:
            tap.keys.append(key)
            return
        tap = self._paths[place] = _Tap([key], shares=len(consumers))
        for node, slots in _by_node(consumers).items():
            self._handles.append(node.register_hook(self._share_hook(tap, slots, key)))

    def forget_graph(self) -> None:
        """The forward pass is over: let go of the autograd nodes, which would keep the user's memory."""
        self._outputs.clear()
        self._paths.clear()

    def end_backward(self) -> None:
        """A backward pass has ended: measure sums of which not every share came."""
        with Aside():
            for tap in self._pending:
                self._settle(tap)
        self._pending.clear()

    def remove(self) -> None:
        """Take every hook off."""
        self.closed = True
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()
        self.forget_graph()

    def _share_hook(self, tap: _Tap, slots: list[int], key: SeriesKey) -> Hook:
        def share(gradients: tuple[Tensor | None, ...], _incoming: object) -> None:
            for slot in slots:
                if (gradient := gradients[slot]) is not None:
                    self._arrive(tap, gradient)

        return Hook(share, self._failing(key))

    def _arrive(self, tap: _Tap, gradient: Tensor) -> None:
        with self.lock:
            if self.closed:
                return
            self.begin()
            if tap.keys:
                with Aside():
                    gradient = plain(gradient)
                    if is_readable(gradient):
                        self._take(tap, gradient)

    def _take(self, tap: _Tap, gradient: Tensor) -> None:
        if tap.shares == 1:
            self._read(tap, gradient)
            return
        if tap.total is None:
            self._pending.append(tap)
        tap.total = gradient.clone() if tap.total is None else tap.total + gradient
        tap.arrived += 1
        if tap.arrived == tap.shares:
            self._settle(tap)

    def _settle(self, tap: _Tap) -> None:
        """Read a sum."""
        total, tap.total, tap.arrived = tap.total, None, 0
        if total is not None:
            self._read(tap, total)

    def _read(self, tap: _Tap, gradient: Tensor) -> None:
        row = self.measure.norms(gradient)
        for key in tap.keys:
            self.observe(key, row)

    def _failing(self, key: SeriesKey | None) -> Callable[[Exception], None]:
        where = key[0] if key else ""
        return lambda fault: self.fail(where, fault)


def _by_node(consumers: Consumers) -> dict[Any, list[int]]:
    slots: dict[Any, list[int]] = {}
    for node, slot in consumers:
        slots.setdefault(node, []).append(slot)
    return slots
