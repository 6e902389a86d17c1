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
from torchgraph_explorer.capture.hooks import Guarded, are_walked


class Visitor(Protocol):
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


class Arms:
    """The hooks on the modules of one model. One visitor at a time is told.

    Attributes:
        visitor: Who is told; None between logged steps.
        is_walked: Nothing is taken off: torch is going through the hooks of a module.
    """

    def __init__(self) -> None:
        """Nothing is put on yet."""
        self.visitor: Visitor | None = None
        self.is_walked = self._is_left_on = False
        self._of: dict[int, _ModuleHooks] = {}

    def put_on(self, visitor: Visitor, modules: Mapping[nn.Module, str], *, model: nn.Module) -> None:
        """Tell `visitor` of all `modules`, each with its name.

        Args:
            visitor: Who is told from now on.
            modules: The watched model, named "", and those within it.
            model: What the training loop calls: the watched model, or what it is wrapped in. Whether it is called is
                known by a hook that is always there.
        """
        self.take_off()
        self.visitor, self._is_left_on = visitor, False
        known, self._of = self._of, {}
        for module, name in modules.items():
            hooked = model if name == "" else module
            hooks = known.get(id(hooked))
            if hooks is None or not hooks.are_of(hooked, name):
                hooks = _ModuleHooks(self, hooked, name)
            self._of[id(hooked)] = hooks
            hooks.put_on()

    def take_off(self) -> None:
        """Tell nobody, and take all off. If torch is going through them after an exception: when it next can be."""
        self.visitor = None
        self._is_left_on = self.is_walked
        if self.is_walked:
            return
        for hooks in self._of.values():
            hooks.take_off()

    def tidy(self) -> None:
        """Take off what had to be left on."""
        if self._is_left_on:
            self.take_off()


class _ModuleHooks:
    """The hooks of one module: what it is called with, unless it is the model, and what it returns."""

    __slots__ = ("_arms", "_module", "_name", "_parts")

    def __init__(self, arms: Arms, module: nn.Module, name: str) -> None:
        self._arms, self._name = arms, name
        self._module = weakref.ref(module)
        leave = _Part(_Leave(arms, name), ON_LEAVING)
        self._parts = (leave,) if name == "" else (_Part(_Enter(arms, name), ON_ENTERING), leave)

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

    def __init__(self, hook: Guarded, places: tuple[str, ...]) -> None:
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


class _Telling(Guarded):
    """A hook that tells the visitor there is, if the call is of the visitor's step."""

    __slots__ = ("_arms", "_name")

    def __init__(self, arms: Arms, name: str) -> None:
        self._arms, self._name = arms, name

    def fail(self, fault: Exception) -> None:
        """The visitor could not take it."""
        if (visitor := self._arms.visitor) is not None:
            visitor.lose(self._name, fault)


class _Enter(_Telling):
    __slots__ = ()

    def act(self, _module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The module is called."""
        visitor = self._arms.visitor
        if visitor is None:
            self._arms.tidy()
        elif visitor.is_ours(self._name):
            visitor.enter(self._name, args, kwargs)


class _Leave(_Telling):
    __slots__ = ()

    @interrupts.entry
    def __call__(self, *arguments: Any) -> None:
        """Guarded, and nothing is taken off meanwhile if it may not be."""
        try:
            self._arms.is_walked = are_walked()
            super().__call__(*arguments)
            self._arms.is_walked = False
        except BaseException:
            interrupts.put_right()
            raise

    def act(self, _module: nn.Module, _args: object, _kwargs: object, output: object) -> None:
        """The module has returned, or raised."""
        visitor = self._arms.visitor
        if visitor is not None and visitor.is_ours(self._name):
            visitor.leave(self._name, output)

    def fail(self, fault: Exception) -> None:
        """The visitor could not take it. Of the model itself, nothing that is compiled comes after it."""
        if self._name == "" and (visitor := self._arms.visitor) is not None:
            visitor.end_forward()
        super().fail(fault)
