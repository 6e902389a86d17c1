"""Where a training loop enters a model: at the model itself, or at modules within it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from torch import nn

from torchgraph_explorer.capture.module_hooks import ModuleHooks
from torchgraph_explorer.capture.modules_by_name import modules_by_name

Enter: TypeAlias = "Callable[[str, tuple[Any, ...], Mapping[str, Any]], object]"
"""Called with the name of the module that is entered, and its arguments."""


MOST_SAME = 8


class Entrances:
    """Waits for the first call in a step, which may be one of any module (a `module_hooks.CallListener`).

    Not every loop calls the model itself: a LightningModule may have no `forward`, and a policy is entered through its
    `evaluate_actions`. Hooks are on all modules, and after the first steps only in the wait for a step that is to
    be logged. A loop may call one part of the model in some steps, and another in others. After `MOST_SAME` steps that
    were entered where others were, hooks are on those modules alone; if an update comes in such a wait, on all again.
    """

    def __init__(
        self, hooks: ModuleHooks, *, takes: Callable[[str], bool], enter: Enter, fail: Callable[[str, Exception], None]
    ) -> None:
        """Call `enter` where a module is called while `takes`, given its name, says that the call belongs to a step.

        `fail` is called with a module's name and what `enter` raised.
        """
        self._hooks, self._takes, self._enter, self._fail = hooks, takes, enter, fail
        self._seen: set[str] = set()
        self._same = 0
        self._refused: dict[str, None] = {}

    @property
    def are_waited_for(self) -> bool:
        """Whether the hooks are on, which wait for a call of a module within the model."""
        return self._hooks.listener is self

    @property
    def are_within(self) -> bool:
        """Whether the model was entered at a module within it."""
        return bool(self._seen)

    def wait(self, model: nn.Module) -> None:
        """Wait for a call of any module of `model`, or of those that it was entered at before."""
        is_any = self._same < MOST_SAME
        modules = modules_by_name(model).items()
        waited_for = {name: module for name, module in modules if name and (is_any or name in self._seen)}
        self._hooks.put_on(self, waited_for, model=model)

    def stop(self) -> None:
        """Remove the hooks, and wait for no call any more."""
        if self.are_waited_for:
            self._hooks.take_off()

    def note(self, name: str) -> None:
        """The model was entered at module `name`."""
        if name:
            self._same = self._same + 1 if name in self._seen else 0
            self._seen.add(name)

    def note_update(self) -> None:
        """Note an update of the model. If a call was waited for, none came, so the model is also entered elsewhere."""
        if self.are_waited_for:
            self._same = 0

    def refuse(self, name: str) -> None:
        """Module `name` was called, and that belongs to no step, so far as is known."""
        self._refused[name] = None

    def look_again(self, belongs: Callable[[str], bool]) -> None:
        """It is known by now which of the calls that were refused belong to a step: wait for those from now on."""
        refused, self._refused = self._refused, {}
        for name in filter(belongs, refused):
            if not any(name.startswith(f"{outer}.") for outer in refused):
                self._seen.add(name)

    def is_ours(self, name: str) -> bool:
        """See `module_hooks.CallListener`."""
        return self._takes(name)

    def enter(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A module is called, and with that a step may begin."""
        self._enter(name, args, kwargs)

    def leave(self, name: str, output: object) -> None:
        """It has returned, and no step has begun."""

    def end_forward(self) -> None:
        """Nothing is open."""

    def drop(self, name: str, fault: Exception) -> None:
        """`enter` failed."""
        self._fail(name, fault)
