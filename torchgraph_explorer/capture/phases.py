"""Which forward passes of a model belong together, and how their steps are counted."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn


class Phase(Protocol):
    """A kind of forward passes."""

    @property
    def step(self) -> int:
        """How many steps were counted."""

    def takes(self, model: nn.Module) -> bool:
        """Whether a pass that begins now is one of them."""

    def next_step(self) -> int:
        """The step of a pass that begins now."""


class Training:
    """Passes in training mode with gradients enabled. Each is a step.

    Attributes:
        step: Passes so far.
    """

    def __init__(self) -> None:
        """Begin at step 0."""
        self.step = 0

    def takes(self, model: nn.Module) -> bool:
        """See `Phase`."""
        return model.training and torch.is_grad_enabled()

    def next_step(self) -> int:
        """See `Phase`."""
        self.step += 1
        return self.step - 1


class Evaluation:
    """All other passes, at the step that training has reached."""

    def __init__(self, training: Training) -> None:
        """Evaluate what `training` counts."""
        self._training = training

    @property
    def step(self) -> int:
        """See `Phase`."""
        return self._training.step

    def takes(self, model: nn.Module) -> bool:
        """See `Phase`."""
        return not self._training.takes(model)

    def next_step(self) -> int:
        """See `Phase`."""
        return self._training.step
