"""Entries to compiled code that runs a watched model.

A hook on a model is compiled into it with everything else, and may do nothing there. So an entry is put in front of
compiled code: of the module that `torch.compile` returned, and of a module that was compiled in place. Those that exist
are found when the model is watched; later ones when they are made.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from torchgraph_explorer.capture.call_stack import is_running, users_frame
from torchgraph_explorer.capture.inline.probes import InlineWindow
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.capture.safe_hook import Hook, are_walked
from torchgraph_explorer.console import warn

IN_PLACE = "_compiled_call_impl"
"""The attribute in which `Module.compile` keeps the compiled call. torch leaves it out of every copy and pickle."""

WRAPPED = "_orig_mod"
"""The attribute in which the module that `torch.compile` returns keeps the one that it was given."""


@dataclass(frozen=True, slots=True)
class EntryCall:
    """A call of compiled code.

    Attributes:
        compiled: The module that was compiled.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        result: What it returned; None before that, and if it raised.
    """

    compiled: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: object = None


EntryListener: TypeAlias = "Callable[[nn.Module, EntryCall], object]"
"""Called with the watched model and the call."""


class CompiledEntries:
    """Calls `before` and `after` around all compiled code that runs a model, until `close`."""

    def __init__(
        self, model: nn.Module, *, before: EntryListener, after: EntryListener, fail: Callable[[Exception], None]
    ) -> None:
        """Put entries in front of everything that is or will be compiled.

        Neither `model` nor compiled modules are kept alive. `fail` is called with what `before` and `after` raise.
        """
        self._model = weakref.ref(model)
        self._closed = self._is_walked = False
        self._through: list[tuple[Any, int]] = []
        self._before = Hook(lambda *call: self._enter(before, EntryCall(*call)), fail)
        self._after = Hook(lambda *call: self._leave(after, EntryCall(*call)), fail)
        self._exits = ExitStack()
        self._fail = fail
        registered = Hook(self._on_registration, self._fail_at_registration)
        self._exits.callback(register_module_module_registration_hook(registered).remove)
        compiled_in_place = Hook(self._on_compile, fail)
        process_state.compile_listeners.add(compiled_in_place)
        self._exits.callback(process_state.compile_listeners.remove, compiled_in_place)
        for module in _compiled_modules():
            self._put_before(module)

    def close(self) -> None:
        """Remove all entries, as soon as no call is within one. May be called again."""
        self._closed = True
        self._forget_left()
        if not self._through and not self._is_walked:
            self._exits.close()

    def _enter(self, before: EntryListener, call: EntryCall) -> None:
        if self._closed:
            self.close()
        elif (model := self._model()) is not None:
            self._forget_left()
            self._through.append((users_frame(), threading.get_ident()))
            before(model, call)

    def _leave(self, after: EntryListener, call: EntryCall) -> None:
        if self._through and (model := self._model()) is not None:
            self._through.pop()
            after(model, call)
            if self._closed and not are_walked():
                self.close()

    def _forget_left(self) -> None:
        """Forget the calls that an interrupt has ended, for which no hook was called."""
        self._through = [one for one in self._through if is_running(*one)]

    def _on_registration(self, module: nn.Module, name: str, submodule: nn.Module) -> None:
        """A module becomes a part of another one, for example where `torch.compile` wraps it."""
        if not self._closed and name == WRAPPED and _is_wrapper(module) and self._runs_model(submodule):
            self._hook(module)

    def _fail_at_registration(self, fault: Exception) -> None:
        """`fail` calls `close`, but torch is iterating over its hooks of this kind: none may be removed meanwhile."""
        self._is_walked = True
        try:
            self._fail(fault)
        finally:
            self._is_walked = False

    def _on_compile(self, module: nn.Module) -> None:
        """A module was compiled in place."""
        if self._runs_model(module):
            self._put_in_place(module)

    def _put_before(self, module: nn.Module) -> None:
        if _is_wrapper(module) and self._runs_model(module):
            self._hook(module)
        if IN_PLACE in vars(module) and self._runs_model(module):
            self._put_in_place(module)

    def _runs_model(self, module: nn.Module) -> bool:
        model = self._model()
        return any(each is model for each in module.modules())

    def _hook(self, wrapper: nn.Module) -> None:
        """Hooks of the wrapper itself are called outside of the compiled code."""
        self._exits.callback(wrapper.register_forward_pre_hook(self._before, with_kwargs=True).remove)
        left = wrapper.register_forward_hook(self._after, with_kwargs=True, always_call=True)
        self._exits.callback(left.remove)

    def _put_in_place(self, module: nn.Module) -> None:
        compiled = vars(module)[IN_PLACE]

        @functools.wraps(compiled)  # with the attributes that dynamo reads if it is compiled into something larger
        def entry(*args: Any, **kwargs: Any) -> Any:
            own, result = self_reference(), None
            try:
                self._before(own, args, kwargs)
                result = compiled(*args, **kwargs)
                return result
            finally:
                self._after(own, args, kwargs, result)

        self_reference = weakref.ref(module)
        vars(module)[IN_PLACE] = entry
        self._exits.callback(_take_away, weakref.ref(module), entry, compiled)


def _take_away(module: weakref.ref[nn.Module], entry: Callable[..., Any], compiled: Callable[..., Any]) -> None:
    """Put back the compiled call, unless another entry is in front of this one, which does nothing from now on."""
    if (found := module()) is not None and vars(found).get(IN_PLACE) is entry:
        vars(found)[IN_PLACE] = compiled


def calls_hooks_of(compiled: nn.Module, model: nn.Module) -> bool:
    """Whether `compiled` is the compiled form of `model` alone, and torch calls its hooks outside of the compiled code.

    It does so for a module that is compiled in place, and for one that is wrapped, unless it is of torch's own classes.
    """
    if compiled is model:
        return IN_PLACE in vars(compiled)
    is_outermost = getattr(vars(compiled).get("forward"), "__name__", "") == "_wrapped_call_impl"
    return _is_wrapper(compiled) and getattr(compiled, WRAPPED) is model and is_outermost


def _is_wrapper(module: nn.Module) -> bool:
    """Whether it is what `torch.compile` returns for a module."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")  # imported by code that compiles; it takes seconds
    return dynamo is not None and issubclass(type(module), dynamo.OptimizedModule)


def _compiled_modules() -> list[nn.Module]:
    """Every compiled module in this process."""
    if "torch._dynamo" not in sys.modules:
        return []
    objects = gc.get_objects()  # hundreds of thousands: run no Python code for each
    try:
        modules = {kind for kind in set(map(type, objects)) if issubclass(kind, nn.Module)}
        found = compress(objects, map(modules.__contains__, map(type, objects)))
        return [each for each in found if IN_PLACE in vars(each) or _is_wrapper(each)]
    finally:
        objects.clear()  # before Python 3.11 this very frame is among them, and they would be kept alive


def until_left(module: nn.Module, held: ExitStack, thread: int) -> None:
    """Close `held` when the call of `module` that is being executed in `thread` is over.

    At the latest when the next one begins in that thread.
    """
    left = ExitStack()
    left.enter_context(held)

    def leave(*_: object) -> None:
        if threading.get_ident() == thread:
            (held if are_walked() else left).close()

    def enter(*_: object) -> None:
        if threading.get_ident() == thread:
            left.close()

    def fail(fault: Exception) -> None:
        warn(f"Compiled code may go on running uncompiled: {fault!r}")

    left.callback(module.register_forward_hook(Hook(leave, fail), always_call=True).remove)
    left.callback(module.register_forward_pre_hook(Hook(enter, fail)).remove)


class SwitchedOn(NamedTuple):
    """What is on while a call of compiled code is executed.

    Attributes:
        frame: That of torch's call.
        thread: In which it is executed.
        window: Within which it runs; None without.
    """

    frame: Any
    thread: int
    window: InlineWindow | None


class CompiledCall(threading.local):
    """The outermost call of compiled code in this thread."""

    def __init__(self, switched_on: dict[object, SwitchedOn]) -> None:
        """No call is being executed. `switched_on` is for the calls of all threads, by who holds the eager stance."""
        self._entry: int | None = None
        self._logged: bool | None = None
        self._frame: Any = None
        self._window: InlineWindow | None = None
        self._holder = object()
        self._switched_on = switched_on

    def is_within_another(self, entry: int) -> bool:
        """Whether another entry is open. If `entry` itself is noted, an earlier call of it was interrupted."""
        return self._entry not in (None, entry) and is_running(self._frame, threading.get_ident())

    def begin(self, entry: int, *, logged: bool, window: InlineWindow | None = None) -> None:
        """A call through `entry` begins. If `logged`, it runs as it was written, or compiled within `window`."""
        self.end()
        self._entry, self._logged, self._window = entry, logged, window
        self._frame = users_frame()
        self._switched_on[self._holder] = SwitchedOn(self._frame, threading.get_ident(), window)
        if window is not None:
            window.begin()
        elif logged:
            process_state.eager.hold(self._holder)

    def take(self) -> bool | None:
        """Whether the model's call in the open entry is logged; None for a further call, and without an open entry."""
        logged, self._logged = self._logged, None
        return logged

    def end_at(self, entry: int) -> bool:
        """The call is over, if it went through `entry`; returns whether it ran within a window."""
        was_inline = entry == self._entry and self._window is not None
        if entry == self._entry:
            self.end()
        return was_inline

    def end_if_left(self) -> None:
        """End a call that an interrupt of the compiled code has ended, for which no hook was called."""
        if self._entry is not None and not is_running(self._frame, threading.get_ident()):
            self.end()

    def end(self) -> None:
        """The call is over. May be called again."""
        self._entry = self._logged = self._frame = None
        if self._window is not None:
            self._window.end()
            self._window = None
        process_state.eager.release(self._holder)
        self._switched_on.pop(self._holder, None)


def switch_off_abandoned(switched_on: dict[object, SwitchedOn]) -> None:
    """Switch off what is on for calls that an interrupt has ended without a hook being called. For any thread."""
    for holder, call in tuple(switched_on.items()):
        if not is_running(call.frame, call.thread):
            if call.window is not None:
                call.window.end()
            process_state.eager.release(holder)
            switched_on.pop(holder, None)
