"""What the parts of a logged step share, and what the part that records its forward passes does."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from torch import nn

from torchgraph_explorer.capture.attach_targets import AttachedAs
from torchgraph_explorer.capture.forward_passes import ForwardPasses
from torchgraph_explorer.capture.module_hooks import ModuleHooks
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.recorded_calls import RecordedCalls
from torchgraph_explorer.capture.step_gradients import StepGradients
from torchgraph_explorer.capture.step_rows import StepRows
from torchgraph_explorer.capture.step_states import StepState
from torchgraph_explorer.capture.trace import Trace


@dataclass(frozen=True, slots=True)
class WatchedModules:
    """The modules of the watched model, for its steps.

    Attributes:
        called: What the training loop calls: the model, or what it is wrapped in. A reference that does not keep it.
        by_name: The modules that are recorded.
        hooks: The hooks on them.
        takes: Whether a call of the module with this name, while none is open, belongs to the step.
        entered: Called with the name of each module that is called so.
        note: Called with a sentence on what is not recorded.
        drop: Called with the name of a module that could not be recorded, and why.
        lock: Held while calls are recorded: without an open call the step could be handed over.
    """

    called: weakref.ref[nn.Module]
    by_name: ModulesByName
    hooks: ModuleHooks
    takes: Callable[[str], bool]
    entered: Callable[[str], None]
    note: Callable[[str], None]
    drop: Callable[[str, Exception], None]
    lock: threading.RLock


@dataclass(frozen=True, slots=True)
class ForwardParts:
    """What records the forward passes of a step is made with these.

    Attributes:
        modules: The model's modules.
        state: The state of the step.
        rows: What is measured.
        gradients: The gradients of the step.
        calls: The calls of modules.
        passes: The forward passes.
        trace: Follows the data, in a step whose graph is wanted; else None.
        until_update: The step ends with an update.
        ended: To be called after each forward pass that is recorded.
    """

    modules: WatchedModules
    state: StepState
    rows: StepRows
    gradients: StepGradients
    calls: RecordedCalls
    passes: ForwardPasses
    trace: Trace | None
    until_update: bool
    ended: Callable[[], None]


class Forward(Protocol):
    """What records the forward passes of a step: a `ForwardRecorder`, or an `inline.step.InlineForward`.

    Attributes:
        calls: The calls of modules.
        passes: How many forward passes there were, and which of them are recorded.
        trace: Follows the data, in a step whose graph is wanted; else None.
        thread: The thread that the step belongs to.
        until_update: The step ends with an update, not with a backward pass.
        takes_more: Further forward passes may belong to it.
    """

    calls: RecordedCalls
    passes: ForwardPasses
    trace: Trace | None
    thread: int
    until_update: bool
    takes_more: bool

    @property
    def is_open(self) -> bool:
        """The model is being executed: its call began, and has neither returned nor been interrupted."""

    @property
    def is_traced(self) -> bool:
        """The forward passes so far were traced to their end."""

    @property
    def trained(self) -> frozenset[str]:
        """The modules that were called in passes with gradients, and those that they are in."""

    @property
    def may_have_backward(self) -> bool:
        """A backward pass may still come through each forward pass."""

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The model is called."""

    def attach(self, tensor: object, module: nn.Module, name: AttachedAs) -> None:
        """Give the tensors in `tensor` a name within the open call of `module`."""

    def abandon(self) -> None:
        """An interrupt ends the forward pass, if one is being executed."""

    def leave_abandoned(self) -> None:
        """If an interrupt has ended the forward pass: switch off what was switched on for it. For any thread."""

    def conclude(self) -> None:
        """Nothing more will come: say what was seen that is not recorded."""

    def finish(self) -> None:
        """Remove the hooks, and switch off what was switched on."""

    def give_up(self) -> None:
        """Do the same after an interrupt, which may still be leaving the forward pass."""

    def remove_hooks(self) -> None:
        """Remove the hooks on modules."""

    def drop(self, name: str, fault: Exception) -> None:
        """Recording module `name` failed: record it no more."""
