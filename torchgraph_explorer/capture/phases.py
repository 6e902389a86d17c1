"""Training and evaluation: which forward passes belong to each, and which step training has reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import nn


class Phase(Protocol):
    """A set of forward passes."""

    @property
    def step(self) -> int:
        """How many steps were counted."""

    @property
    def latest(self) -> int:
        """The number of the step that has begun, after the first one has."""

    @property
    def named_ahead(self) -> set[str]:
        """Names that the loop attaches before passes begin."""

    def takes(self, model: nn.Module) -> bool:
        """Whether a pass of `model` that begins now belongs to this phase."""

    def note_pass(self, *, is_own: bool) -> None:
        """A pass begins."""

    def is_within(self, model: nn.Module, *, next_pass: bool = False) -> bool:
        """Whether what the loop says now is about it: about its latest pass, or with `next_pass` about the next one."""

    def take_eval_mode(self) -> None:
        """The model is trained in eval mode: take its passes with gradients, until one is in training mode."""

    @property
    def joins(self) -> bool:
        """Whether it is known that the steps go on where earlier ones ended."""

    def next_step(self) -> int:
        """The number of a step that begins now."""

    def pass_over(self, steps: int) -> None:
        """Count `steps` more, which were taken for a part of the latest one."""

    def go_on_at(self, step: int) -> None:
        """Go on at `step` if fewer steps have begun: so many were made in earlier sessions."""


class Training:
    """Passes in training mode with gradients enabled, and in eval mode, if updates follow such ones.

    Attributes:
        step: Steps that have begun so far.
        is_set: The number was set, and stays what it is whatever is found out about earlier steps.
        joins: See `Phase`.
        named_ahead: See `Phase`.
        is_open: Tells whether a step has begun, and what ends it has not come.
    """

    def __init__(self) -> None:
        """Begin at step 0."""
        self.step = 0
        self.is_set = self.joins = self._takes_eval = self._was_left = False
        self.named_ahead: set[str] = set()
        self.is_open: Callable[[], bool] = lambda: False

    @property
    def latest(self) -> int:
        """See `Phase`."""
        return self.step - 1

    def set(self, step: int) -> None:
        """The user says that the next step is `step`."""
        self.step, self.is_set, self.joins = step, True, True

    def takes(self, model: nn.Module) -> bool:
        """See `Phase`."""
        if model.training:
            self._takes_eval = False
        return (model.training or self._takes_eval) and torch.is_grad_enabled()

    def note_pass(self, *, is_own: bool) -> None:
        """See `Phase`."""
        self._was_left = not is_own

    def is_within(self, model: nn.Module, *, next_pass: bool = False) -> bool:
        """See `Phase`. In eval mode, it is not, unless the model is trained so; else it is while a step is open."""
        if not (model.training or self._takes_eval):
            return False
        is_left = not torch.is_grad_enabled() if next_pass else self._was_left
        return not is_left or self.is_open()

    def take_eval_mode(self) -> None:
        """See `Phase`."""
        self._takes_eval = True

    def next_step(self) -> int:
        """See `Phase`."""
        self.step += 1
        return self.step - 1

    def pass_over(self, steps: int) -> None:
        """See `Phase`."""
        self.step += steps

    def go_on_at(self, step: int) -> None:
        """See `Phase`."""
        if step > self.step and not self.is_set:
            self.step, self.joins = step, True


class Evaluation:
    """All other passes. Their step is the one that training has reached."""

    def __init__(self, training: Training) -> None:
        """Take the passes that `training` does not, and its count."""
        self._training = training

    @property
    def step(self) -> int:
        """See `Phase`."""
        return self._training.step

    @property
    def latest(self) -> int:
        """See `Phase`."""
        return self._training.step

    @property
    def joins(self) -> bool:
        """See `Phase`."""
        return self._training.joins

    @property
    def named_ahead(self) -> set[str]:
        """See `Phase`. The same as in training: a loop calls its batches the same in both."""
        return self._training.named_ahead

    def takes(self, model: nn.Module) -> bool:
        """See `Phase`."""
        return not self._training.takes(model)

    def note_pass(self, *, is_own: bool) -> None:
        """See `Phase`."""
        self._training.note_pass(is_own=not is_own)

    def is_within(self, model: nn.Module, *, next_pass: bool = False) -> bool:
        """See `Phase`."""
        return not self._training.is_within(model, next_pass=next_pass)

    def take_eval_mode(self) -> None:
        """See `Phase`. It takes them anyway, unless `Training` does."""

    def next_step(self) -> int:
        """See `Phase`."""
        return self._training.step

    def pass_over(self, steps: int) -> None:
        """See `Phase`. Training counts them."""

    def go_on_at(self, step: int) -> None:
        """See `Phase`. Only an evaluation before training tells it."""
        if self._training.step == 0:
            self._training.go_on_at(step)
