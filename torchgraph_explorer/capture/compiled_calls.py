"""The calls of compiled code that runs a model: a logged step runs as it was written, or compiled with probes in it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

from torch import Tensor, nn

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.call_context import is_no_step
from torchgraph_explorer.capture.captured_step import CapturedStep
from torchgraph_explorer.capture.compiled_entry import (
    CompiledCall,
    CompiledEntries,
    EntryCall,
    SwitchedOn,
    switch_off_abandoned,
)
from torchgraph_explorer.capture.current_step import CurrentStep
from torchgraph_explorer.capture.inline.capture import InlineCapture, saw_nothing, window_for
from torchgraph_explorer.capture.inline.registry import ProbeSite
from torchgraph_explorer.capture.inline.step import InlineForward
from torchgraph_explorer.capture.module_selection import ModuleSelection
from torchgraph_explorer.capture.step_parts import Forward, ForwardParts
from torchgraph_explorer.schema import ModuleGraph

NOT_INLINE = (
    "compiled='inline' found no way into the compiled model: the model was called before watch(), or shares its "
    "compiled code with an equal model, or torch compiles nothing in it (as an nn.GRU with dynamic=True). Logged steps "
    "run uncompiled instead. Call watch() before the first call."
)


class CompiledCalls:
    """Sees the calls of compiled code around one model, in the training's thread."""

    def __init__(
        self,
        model: nn.Module,
        current: CurrentStep,
        *,
        admits: Callable[[nn.Module], bool],
        stop_waiting: Callable[[], None],
        note: Callable[[str], None],
        fail: Callable[[str, Exception], None],
        kinds: frozenset[str],
        selection: ModuleSelection,
        inline: bool,
        lock: threading.RLock,
    ) -> None:
        """Put entries in front of the compiled code.

        Args:
            model: The watched model. It is not kept alive.
            current: The step that it is in.
            admits: Called where compiled code is called from outside; returns whether that call is logged.
            stop_waiting: Called before compiled code runs in a step that is not logged: hooks would be compiled, too.
            note: Called with a sentence on what is not recorded.
            fail: Called with a module's name and a fault of ours.
            kinds: What is measured.
            selection: Which modules are recorded.
            inline: Compiled models stay compiled in logged steps, except in those that are traced.
            lock: Held while a call begins or ends.
        """
        self._current, self._admits, self._stop_waiting, self._note = current, admits, stop_waiting, note
        self._switched_on: dict[object, SwitchedOn] = {}
        self._call, self._lock = CompiledCall(self._switched_on), lock
        self._inline: InlineCapture | None = None
        self._exits = ExitStack()
        self._exits.callback(self._close_inline)
        if inline:
            self._inline = InlineCapture(model, self._show, kinds=kinds, selection=selection, fail=fail)
        try:
            entries = CompiledEntries(model, before=self._before, after=self._after, fail=lambda fault: fail("", fault))
        except BaseException:
            self._close_inline()
            raise
        self._exits.callback(entries.close)

    def forward(self) -> Callable[[ForwardParts], Forward] | None:
        """What records the next step of a compiled call, if that stays compiled."""
        return self._inline.forward() if self._inline is not None else None

    def learn(self, ended: CapturedStep, graph: ModuleGraph | None) -> None:
        """A step is over, which had this graph."""
        if self._inline is not None and not isinstance(ended.forward, InlineForward):
            self._inline.learn(graph, ended.rows)

    def take(self) -> bool | None:
        """Whether the call of the model that begins is logged; None if it does not come from compiled code."""
        return self._call.take()

    def end_call(self) -> None:
        """An interrupt has ended the call."""
        self._call.end()

    def leave_abandoned(self) -> None:
        """If an interrupt has ended a call outside of our code: switch off what was switched on for that.

        For any thread that holds the lock.
        """
        switch_off_abandoned(self._switched_on)

    def close(self) -> None:
        """Remove everything. May be called again."""
        with ExitStack() as parts:
            parts.callback(self._exits.close)
            parts.callback(self._call.end_if_left)

    def _show(self, site: ProbeSite, what: int, tensor: Tensor) -> None:
        """An operation that is compiled into the model shows a tensor."""
        if (one := self._current.one) is not None and isinstance(one.forward, InlineForward):
            one.forward.see(site, what, tensor)

    def _before(self, model: nn.Module, entry_call: EntryCall) -> None:
        """Something compiled that runs the model is called. On a step to be logged, it runs as it was written."""
        if is_no_step() or interrupts.is_held(self._lock):
            return
        with self._lock:
            if self._current.is_inside or self._call.is_within_another(id(entry_call.compiled)):
                return
            logged, window = self._admits(model), None
            if not logged:
                self._stop_waiting()
            one = self._current.one
            if logged and one is not None and isinstance(one.forward, InlineForward):
                window = window_for(one.forward, model, entry_call)
            self._call.begin(id(entry_call.compiled), logged=logged, window=window)

    def _after(self, model: nn.Module, entry_call: EntryCall) -> None:
        """The compiled code has returned, or raised."""
        if interrupts.is_held(self._lock):
            return
        with self._lock:
            was_inline = self._call.end_at(id(entry_call.compiled))
            if (one := self._current.one) is None:
                return
            if not one.forward.calls.done:
                self._current.drop()  # the compiled code did not call the model
            elif was_inline and isinstance(one.forward, InlineForward) and saw_nothing(one.forward, model, entry_call):
                self._current.drop()
                self._close_inline()
                self._note(NOT_INLINE)

    def _close_inline(self) -> None:
        inline, self._inline = self._inline, None
        if inline is not None:
            inline.close()
