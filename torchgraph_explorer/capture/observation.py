"""What capture hands on, and to whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from torchgraph_explorer.capture.facts.pending import PendingFacts
from torchgraph_explorer.capture.gradient_hooks import Measure, SeriesKey
from torchgraph_explorer.capture.step_rows import Keeper
from torchgraph_explorer.schema import ModuleGraph, NotFiniteOrigin, StepFacts, TensorGraph

OPTIMIZER = "(optimizer)"
"""Given to `StepListener.fail` in place of a module's name, if the optimizer cannot be followed."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one logged step yielded.

    Attributes:
        step: Its number: how many steps of training were before it.
        rows: The row of each series, as the step's `Measure` numbered them.
        graph: The module graph in force; None while it was not traced.
        facts: How the step ended, and which passes belonged to it; None if that is not known.
        tensors: The dependency graph of named tensors in force; None while it was not traced.
        training: Gives what only the live training knew of it; None if that is not known.
    """

    step: int
    rows: Mapping[SeriesKey, int]
    graph: ModuleGraph | None
    facts: StepFacts | None = None
    tensors: TensorGraph | None = None
    training: PendingFacts | None = None


class StepListener(Protocol):
    """Takes a model's steps. Called under the step's lock, in the training's threads and the idle timer's."""

    def between_steps(self) -> None:
        """A step is about to begin. May raise `interrupts.Deliberate`, which ends the training."""

    def wants(self, step: int) -> bool:
        """Whether this step is to be logged."""

    def wants_turn(self, step: int) -> bool:
        """Whether this step, which `wants` leaves out, may be logged as one of another optimizer's."""

    def measure(self, step: int) -> Measure:
        """What measures the tensors of this step, which begins."""

    def keeper(self, step: int) -> Keeper | None:
        """What keeps tensors of this step, which begins, whole; None to keep none."""

    def selects(self) -> Callable[[str, str, str], bool] | None:
        """Whether the tensor of a module, a role and a path is to be kept; None if none is kept in any step."""

    def keeper_ahead(self, step: int) -> Keeper | None:
        """What keeps tensors of this step, which begins next; None to keep none."""

    def take(self, observation: Observation) -> None:
        """A logged step is over."""

    def finite_reader(self) -> Callable[[Tensor, bool], bool | None] | None:
        """What tells whether a tensor is finite, as `FiniteChecks` needs it; None if torch is to tell."""

    def not_finite(self, step: int, what: str, origin: NotFiniteOrigin | None) -> None:
        """Something was not finite in a step that is not logged, and what else was not, if that was looked at."""

    def fail(self, module: str, fault: Exception) -> None:
        """Something went wrong while capturing `module`, which is not captured any more."""

    def note(self, sentence: str) -> None:
        """Something is not recorded."""
