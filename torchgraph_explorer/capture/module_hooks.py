"""The hooks on a model's modules: put on for each logged step and removed after it.

The same hooks are used again and again. Making new ones takes several times as long as putting them back, and gives
Python's garbage collector more to do.
"""

from __future__ import annotations

import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from torch import nn
from torch.compiler import is_dynamo_compiling
from torch.utils.hooks import RemovableHandle

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.gradient_hooks import SeriesKey
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.safe_hook import SafeHook, flags
from torchgraph_explorer.schema import Call


class CallListener(Protocol):
    """Takes the calls of modules in a step."""

    def is_ours(self, name: str) -> bool:
        """Whether a call of module `name`, now and in this thread, belongs to the step."""

    def enter(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Module `name` is called."""

    def leave(self, name: str, output: object) -> None:
        """It has returned, or raised; then without an output."""

    def end_forward(self) -> None:
        """The model has returned, or raised, and `leave` failed."""

    def drop(self, name: str, fault: Exception) -> None:
        """`enter` or `leave` failed."""


class CallFunctions(NamedTuple):
    """What notes calls in one step, if they are ordinary; both return whether they did.

    Attributes:
        enter: A module is called: its name, and its arguments.
        leave: It has returned: its name, and what.
    """

    enter: Callable[[str, tuple[Any, ...], Mapping[str, Any]], bool]
    leave: Callable[[str, object], bool]


KnownCalls: TypeAlias = "dict[str, list[list[SeriesKey | Call | None]]]"
"""What `calls.c` knows of the calls of each module from earlier steps: most come again in each step."""


_HookDictionaries: TypeAlias = "tuple[dict[int, bool], dict[int, Any], dict[int, bool], dict[int, Any]]"
"""A module's `_forward_pre_hooks_with_kwargs`, `_forward_pre_hooks`, `_forward_hooks_always_called`, and last
`_forward_hooks`."""


class ModuleHooks:
    """The hooks on the modules of one model, which call one listener at a time.

    Attributes:
        listener: What the hooks call; None between logged steps.
        is_walked: Torch is iterating over the hooks of a module, so that none may be removed.
        quickly: What notes ordinary calls in place of the listener; None without `calls.c`.
        known: What it knows of calls from earlier steps.
    """

    def __init__(self) -> None:
        """No hook is on a module yet."""
        self.listener: CallListener | None = None
        self.is_walked = self._is_left_on = self._are_on = False
        self.quickly: CallFunctions | None = None
        self.known: KnownCalls = {}
        self._of: dict[str, _OneModulesHooks] = {}
        self._to_remove: list[RemovableHandle] = []

    def put_on(
        self,
        listener: CallListener,
        modules: ModulesByName,
        *,
        model: nn.Module,
        quickly: CallFunctions | None = None,
    ) -> None:
        """Call `listener` for the calls of `modules`.

        Args:
            listener: What is called from now on.
            modules: The watched model, named "", and the modules within it.
            model: What the training loop calls: the watched model, or what it is wrapped in. The `StepTracker` has its
                own permanent hook for the beginning of its calls.
            quickly: What notes ordinary calls in place of the listener.
        """
        self.take_off()
        self.quickly = quickly
        self.listener, self._is_left_on, self._are_on = listener, False, True
        known, self._of = self._of, {}
        for name, module in ({**modules, "": model} if "" in modules else modules).items():
            hooks = known.get(name)
            if hooks is None or hooks.module() is not module:
                hooks = _OneModulesHooks(self, module, name)
            self._of[name] = hooks
            hooks.put_on(module)

    def take_off(self) -> None:
        """Call no listener, and remove all hooks; if torch iterates over them, as soon as they can be removed."""
        self.listener = self.quickly = None
        self._is_left_on = self.is_walked
        if self.is_walked:
            return
        for hooks in self._of.values() if self._are_on else ():
            hooks.take_off()
        self._are_on = False
        while self._to_remove:
            self._to_remove.pop().remove()

    def remove(self, handle: RemovableHandle) -> None:
        """Remove another hook of the model; if torch iterates over its hooks, as soon as they can be removed."""
        self._to_remove.append(handle)
        self.take_off()

    def tidy(self) -> None:
        """Remove the hooks that could not be removed before."""
        if self._is_left_on:
            self.take_off()


class _OneModulesHooks:
    """The hooks of one module: one for its arguments, unless it is the model, and one for its results.

    They are not put on by `register_forward_hook`, which returns its handle when the hook is on already: an interrupt
    may come in between.
    """

    __slots__ = ("_enter", "_key", "_leave", "_on", "module")

    def __init__(self, module_hooks: ModuleHooks, module: nn.Module, name: str) -> None:
        self.module = weakref.ref(module)
        self._enter = None if name == "" else _Enter(module_hooks, name)
        self._leave = _Leave(module_hooks, name)
        self._key: int = RemovableHandle(OrderedDict()).id  # that no other hook has
        self._on: _HookDictionaries | None = None  # what the hooks are in; None if they are off

    def put_on(self, module: nn.Module) -> None:
        key = self._key
        with_kwargs, entering = module._forward_pre_hooks_with_kwargs, module._forward_pre_hooks
        leaving_always, leaving = module._forward_hooks_always_called, module._forward_hooks
        self._on = with_kwargs, entering, leaving_always, leaving
        if self._enter is not None:
            with_kwargs[key] = True
            entering[key] = self._enter
        leaving_always[key] = True
        leaving[key] = self._leave

    def take_off(self) -> None:
        if self._on is None:
            return
        (with_kwargs, entering, leaving_always, leaving), key = self._on, self._key
        if self._enter is not None:
            entering.pop(key, None)
            with_kwargs.pop(key, None)
        leaving.pop(key, None)
        leaving_always.pop(key, None)
        self._on = None  # only now: an interrupt may come in between


class _CallHook(SafeHook):
    """A hook that calls the present listener, if the call belongs to its step."""

    __slots__ = ("_module_hooks", "_name")

    def __init__(self, module_hooks: ModuleHooks, name: str) -> None:
        self._module_hooks, self._name = module_hooks, name

    def fail(self, fault: Exception) -> None:
        """The listener raised `fault`."""
        if (listener := self._module_hooks.listener) is not None:
            listener.drop(self._name, fault)


class _Enter(_CallHook):
    __slots__ = ()

    @interrupts.entry
    def __call__(self, *arguments: Any) -> None:
        """The module is called: itself, its arguments, and those with names."""
        if is_dynamo_compiling() or flags._is_compiling_flag:
            return
        hooks = self._module_hooks
        try:
            try:
                _, args, kwargs = arguments
                if hooks.quickly is None or not hooks.quickly.enter(self._name, args, kwargs):
                    self.act(args, kwargs)
            except Exception as fault:
                self._report(fault)
        except BaseException:
            interrupts.restore_all()
            raise

    def act(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Tell the listener."""
        listener = self._module_hooks.listener
        if listener is None:
            self._module_hooks.tidy()
        elif listener.is_ours(self._name):
            listener.enter(self._name, args, kwargs)


class _Leave(_CallHook):
    __slots__ = ()

    @interrupts.entry
    def __call__(self, *arguments: Any) -> None:
        """The module has returned, or raised: itself, its arguments and what it returned."""
        if is_dynamo_compiling() or flags._is_compiling_flag:
            return
        hooks = self._module_hooks
        try:
            # After an exception, torch is iterating over the module's hooks: none may be removed.
            hooks.is_walked = sys.exc_info()[1] is not None
            try:
                _, _, output = arguments
                if hooks.quickly is None or not hooks.quickly.leave(self._name, output):
                    self.act(output)
            except Exception as fault:
                self._report(fault)
            hooks.is_walked = False
        except BaseException:
            interrupts.restore_all()
            raise

    def act(self, output: object) -> None:
        """Tell the listener."""
        listener = self._module_hooks.listener
        if listener is None:
            self._module_hooks.tidy()
        elif listener.is_ours(self._name):
            listener.leave(self._name, output)

    def fail(self, fault: Exception) -> None:
        """The listener raised `fault`. If this is the model, its forward pass is over all the same."""
        if self._name == "" and (listener := self._module_hooks.listener) is not None:
            listener.end_forward()
        super().fail(fault)
