"""Steps in front of compiled code that runs a watched model.

A hook on a model is compiled into it with the rest, where it may do nothing. So there is a entry in front of what was
compiled: of the module that `torch.compile` returned, and of a module that was compiled in place. Both are found when
the model is watched, and noticed when they are made later.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import compress
from typing import Any, TypeAlias

from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from torchgraph_explorer.capture.call_stack import is_running, users_frame
from torchgraph_explorer.capture.inline.probes import InlineWindow
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.capture.safe_hook import Hook, are_walked
from torchgraph_explorer.console import warn

IN_PLACE = "_compiled_call_impl"
"""Where `Module.compile` leaves what runs in place of the module. torch leaves it out of every copy and pickle."""

WRAPPED = "_orig_mod"
"""Where the module that `torch.compile` returns keeps the one that it was given."""


@dataclass(frozen=True, slots=True)
class EntryCall:
    """A call that goes through a entry.

    Attributes:
        compiled: The module that was compiled.
        args: What it is given,
        kwargs: by name.
        result: What it returned; None before it did, and if it raised.
    """

    compiled: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: object = None


EntryListener: TypeAlias = "Callable[[nn.Module, EntryCall], object]"
"""Called with the watched model and what goes through."""


class CompiledEntries:
    """Calls `before` and `after` around whatever was compiled and runs a model, until `close`."""

    def __init__(
        self, model: nn.Module, *, before: EntryListener, after: EntryListener, fail: Callable[[Exception], None]
    ) -> None:
        """Put entries in front of all that is compiled already, and of all that will be.

        Neither `model` nor anything compiled is kept alive. `fail` is told what `before` and `after` raise.
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
        """Take all entries away, once nobody is within one. May be called again."""
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
        """No hook was told of those that an interrupt has ended."""
        self._through = [one for one in self._through if is_running(*one)]

    def _on_registration(self, module: nn.Module, name: str, submodule: nn.Module) -> None:
        """Some module becomes a part of another, as it does where `torch.compile` wraps it."""
        if not self._closed and name == WRAPPED and _is_wrapper(module) and self._runs_model(submodule):
            self._hook(module)

    def _fail_at_registration(self, fault: Exception) -> None:
        """Torch is going through its hooks of this kind, of which none may be taken away meanwhile: `close` does."""
        self._is_walked = True
        try:
            self._fail(fault)
        finally:
            self._is_walked = False

    def _on_compile(self, module: nn.Module) -> None:
        """Some module was compiled in place."""
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
        """Hooks of the wrapper itself are called outside of what was compiled."""
        self._exits.callback(wrapper.register_forward_pre_hook(self._before, with_kwargs=True).remove)
        left = wrapper.register_forward_hook(self._after, with_kwargs=True, always_call=True)
        self._exits.callback(left.remove)

    def _put_in_place(self, module: nn.Module) -> None:
        compiled = vars(module)[IN_PLACE]

        @functools.wraps(compiled)  # with what dynamo looks for in it, should it be compiled into something larger
        def entry(*args: Any, **kwargs: Any) -> Any:
            gated, result = here(), None
            try:
                self._before(gated, args, kwargs)
                result = compiled(*args, **kwargs)
                return result
            finally:
                self._after(gated, args, kwargs, result)

        here = weakref.ref(module)
        vars(module)[IN_PLACE] = entry
        self._exits.callback(_take_away, weakref.ref(module), entry, compiled)


def _take_away(module: weakref.ref[nn.Module], entry: Callable[..., Any], compiled: Callable[..., Any]) -> None:
    """Put back what was compiled; not where there is another entry in front of this one, which now does nothing."""
    if (found := module()) is not None and vars(found).get(IN_PLACE) is entry:
        vars(found)[IN_PLACE] = compiled


def calls_hooks_of(compiled: nn.Module, model: nn.Module) -> bool:
    """Whether torch calls the hooks of `model` outside of what is compiled, should `compiled` stand for it alone.

    It does so for a module that is compiled in place, and for one that is wrapped, unless it is of torch's own classes.
    """
    if compiled is model:
        return IN_PLACE in vars(compiled)
    is_outermost = getattr(vars(compiled).get("forward"), "__name__", "") == "_wrapped_call_impl"
    return _is_wrapper(compiled) and getattr(compiled, WRAPPED) is model and is_outermost


def _is_wrapper(module: nn.Module) -> bool:
    """It is what `torch.compile` returns for a module."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")  # imported by whoever compiles; it takes seconds
    return dynamo is not None and issubclass(type(module), dynamo.OptimizedModule)


def _compiled_modules() -> Iterator[nn.Module]:
    """All modules in this process that were compiled."""
    if "torch._dynamo" not in sys.modules:
        return
    objects = gc.get_objects()  # of which there are hundreds of thousands: no code of Python's is run for each
    modules = {kind for kind in set(map(type, objects)) if issubclass(kind, nn.Module)}
    for each in compress(objects, map(modules.__contains__, map(type, objects))):
        if IN_PLACE in vars(each) or _is_wrapper(each):
            yield each


def until_left(module: nn.Module, held: ExitStack, thread: int) -> None:
    """Close `held` when the call of `module` that is going on in `thread` is over.

    At the latest when the next one begins there.
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


class CompiledCall(threading.local):
    """The outermost call of something compiled that is going on in this thread."""

    def __init__(self) -> None:
        """There is none."""
        self._entry: int | None = None
        self._logged: bool | None = None
        self._frame: Any = None
        self._window: InlineWindow | None = None
        self._holder = object()

    def is_within_another(self, entry: int) -> bool:
        """Another entry is open. That `entry` itself is can only be since its call was interrupted."""
        return self._entry not in (None, entry) and is_running(self._frame, threading.get_ident())

    def begin(self, entry: int, *, logged: bool, window: InlineWindow | None = None) -> None:
        """It goes through `entry`; if `logged`, it runs as it was written until `end`, or in `window`."""
        self.end()
        self._entry, self._logged, self._window = entry, logged, window
        self._frame = users_frame()
        if window is not None:
            window.begin()
        elif logged:
            process_state.eager.hold(self._holder)

    def take(self) -> bool | None:
        """Whether the model's call in it is logged; None for a further one, and where nothing is going on."""
        logged, self._logged = self._logged, None
        return logged

    def end_at(self, entry: int) -> None:
        """It is over, if `entry` is what it went through."""
        if entry == self._entry:
            self.end()

    def end(self) -> None:
        """It is over. May be called again."""
        self._entry = self._logged = self._frame = None
        if self._window is not None:
            self._window.end()
            self._window = None
        process_state.eager.release(self._holder)
