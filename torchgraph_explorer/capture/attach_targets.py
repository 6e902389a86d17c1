"""Which logged steps are being executed in this thread, so that `attach` inside a forward pass finds them."""

from __future__ import annotations

import threading
from typing import NamedTuple, Protocol

from torch import nn

from torchgraph_explorer.schema import TensorKind


class AttachedAs(NamedTuple):
    """What is said of a tensor when it is attached.

    Attributes:
        name: Its name.
        kind: What it is to the training; None if that is not said.
        node: The node that it shares with others in the dependency graph; empty without.
    """

    name: str
    kind: TensorKind | None = None
    node: str = ""


class Attachable(Protocol):
    """A logged step that is being executed."""

    def attach(self, tensor: object, module: nn.Module, name: AttachedAs) -> None:
        """Give the tensors in `tensor` a name within the open call of `module`."""


class AttachableLoop(Protocol):
    """The training of one model, whose loop may attach tensors."""

    def attach_in_loop(self, tensor: object, name: AttachedAs) -> None:
        """Give the tensors in `tensor` a name in the step that the training is in. Raises nothing."""


class AttachTargets:
    """The steps that record attached tensors, each with the thread that it is executed in.

    Two threads may each train a model. A step may be left in another thread than it was entered in.
    """

    def __init__(self) -> None:
        """Begin with no step and no loop that takes attached tensors."""
        self._threads: dict[Attachable, int] = {}
        self._loops: dict[AttachableLoop, None] = {}

    def enter(self, step: Attachable) -> None:
        """Let `step` record tensors that are attached in this thread, from now on."""
        self._threads[step] = threading.get_ident()

    def leave(self, step: Attachable) -> None:
        """Stop giving `step` what is attached. May be called for a step that never entered."""
        self._threads.pop(step, None)

    def open_steps(self) -> tuple[Attachable, ...]:
        """The steps that record what is attached in this thread."""
        if not self._threads:
            return ()
        here = threading.get_ident()
        return tuple(step for step, thread in self._threads.copy().items() if thread == here)

    def watch_loop(self, loop: AttachableLoop) -> None:
        """Give `loop` what is attached outside of `forward`, from now on."""
        self._loops[loop] = None

    def leave_loop(self, loop: AttachableLoop) -> None:
        """Stop giving `loop` the tensors that are attached outside of `forward`."""
        self._loops.pop(loop, None)

    @property
    def loops(self) -> tuple[AttachableLoop, ...]:
        """The loops that get the tensors that are attached outside of `forward`."""
        return tuple(self._loops)

    def clear(self) -> None:
        """Leave every step."""
        self._threads.clear()
