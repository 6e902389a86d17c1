"""The hooks on a model's modules: put on for each logged step and taken off after it, the same ones again and again.

To make them anew costs several times what it costs to put them back, and fills Python's garbage collector.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Protocol

from torch import nn
from torch.utils.hooks import RemovableHandle

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.safe_hook import SafeHook, are_walked


class CallListener(Protocol):
    """Who is told of the calls of modules in a step."""

    def is_ours(self, name: str) -> bool:
        """Whether a call of module `name`, now and in this thread, belongs to the step."""

    def enter(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Module `name` is called."""

    def leave(self, name: str, output: object) -> None:
        """It has returned, or raised; then without an output."""

    def end_forward(self) -> None:
        """The model has returned, or raised, though it could not be told."""

    def lose(self, name: str, fault: Exception) -> None:
        """Telling failed."""


class ModuleHooks:
    """The hooks on the modules of one model. One listener at a time is told.

    Attributes:
        listener: Who is told; None between logged steps.
        is_walked: Nothing is taken off: torch is going through the hooks of a module.
    """

    def __init__(self) -> None:
        """Nothing is put on yet."""
        self.listener: CallListener | None = None
        self.is_walked = self._is_left_on = False
        self._of: dict[int, _OneModulesHooks] = {}

    def put_on(self, listener: CallListener, modules: Mapping[nn.Module, str], *, model: nn.Module) -> None:
        """Tell `listener` of all `modules`, each with its name.

        Args:
            listener: Who is told from now on.
            modules: The watched model, named "", and those within it.
            model: What the training loop calls: the watched model, or what it is wrapped in. Whether it is called is
                known by a hook that is always there.
        """
        self.take_off()
        self.listener, self._is_left_on = listener, False
        known, self._of = self._of, {}
        for module, name in modules.items():
            hooked = model if name == "" else module
            hooks = known.get(id(hooked))
            if hooks is None or not hooks.are_of(hooked, name):
                hooks = _OneModulesHooks(self, hooked, name)
            self._of[id(hooked)] = hooks
            hooks.put_on()

    def take_off(self) -> None:
        """Tell nobody, and take all off. If torch is going through them after an exception: when it next can be."""
        self.listener = None
        self._is_left_on = self.is_walked
        if self.is_walked:
            return
        for hooks in self._of.values():
            hooks.take_off()

    def tidy(self) -> None:
        """Take off what had to be left on."""
        if self._is_left_on:
            self.take_off()


class _OneModulesHooks:
    """The hooks of one module: what it is called with, unless it is the model, and what it returns."""

    __slots__ = ("_module", "_module_hooks", "_name", "_parts")

    def __init__(self, module_hooks: ModuleHooks, module: nn.Module, name: str) -> None:
        self._module_hooks, self._name = module_hooks, name
        self._module = weakref.ref(module)
        leave = _Part(_Leave(module_hooks, name), ON_LEAVING)
        self._parts = (leave,) if name == "" else (_Part(_Enter(module_hooks, name), ON_ENTERING), leave)

    def are_of(self, module: nn.Module, name: str) -> bool:
        return self._module() is module and self._name == name

    def put_on(self) -> None:
        module = self._module()
        if module is not None:
            for part in self._parts:
                part.put_on(module)

    def take_off(self) -> None:
        for part in self._parts:
            part.take_off()


ON_ENTERING = ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs")
ON_LEAVING = ("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called")
"""Where a module keeps its hooks, and for which of them an option is on: the two that it is called with, and always."""


class _Part:
    """One hook, and where it is put on a module.

    Not by `register_forward_hook`: what takes the hook off is to be at hand before it is on, should an interrupt come.
    """

    __slots__ = ("_handle", "_hook", "_places")

    def __init__(self, hook: SafeHook, places: tuple[str, ...]) -> None:
        self._hook, self._places = hook, places
        self._handle: RemovableHandle | None = None

    def put_on(self, module: nn.Module) -> None:
        hooks, *options = (getattr(module, place) for place in self._places)
        if self._handle is None or self._handle.hooks_dict_ref() is not hooks:
            self._handle = RemovableHandle(hooks, extra_dict=options)
        for flags in options:
            flags[self._handle.id] = True
        hooks[self._handle.id] = self._hook

    def take_off(self) -> None:
        if self._handle is not None:
            self._handle.remove()


class _Telling(SafeHook):
    """A hook that tells the listener there is, if the call is of the listener's step."""

    __slots__ = ("_module_hooks", "_name")

    def __init__(self, module_hooks: ModuleHooks, name: str) -> None:
        self._module_hooks, self._name = module_hooks, name

    def fail(self, fault: Exception) -> None:
        """The listener could not take it."""
        if (listener := self._module_hooks.listener) is not None:
            listener.lose(self._name, fault)


class _Enter(_Telling):
    __slots__ = ()

    def act(self, _module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The module is called."""
        listener = self._module_hooks.listener
        if listener is None:
            self._module_hooks.tidy()
        elif listener.is_ours(self._name):
            listener.enter(self._name, args, kwargs)


class _Leave(_Telling):
    __slots__ = ()

    @interrupts.entry
    def __call__(self, *arguments: Any) -> None:
        """Call the hook safely; hooks are not taken off meanwhile if torch is walking over them."""
        try:
            self._module_hooks.is_walked = are_walked()
            super().__call__(*arguments)
            self._module_hooks.is_walked = False
        except BaseException:
            interrupts.put_right()
            raise

    def act(self, _module: nn.Module, _args: object, _kwargs: object, output: object) -> None:
        """The module has returned, or raised."""
        listener = self._module_hooks.listener
        if listener is not None and listener.is_ours(self._name):
            listener.leave(self._name, output)

    def fail(self, fault: Exception) -> None:
        """The listener could not take it. Of the model itself, nothing that is compiled comes after it."""
        if self._name == "" and (listener := self._module_hooks.listener) is not None:
            listener.end_forward()
        super().fail(fault)
