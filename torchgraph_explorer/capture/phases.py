"""Training and evaluation: which forward passes belong to each, and which step training has reached."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn


class Phase(Protocol):
    """A set of forward passes."""

    @property
    def step(self) -> int:
        """How many steps were counted."""

    def takes(self, model: nn.Module) -> bool:
        """Whether a pass that begins now belongs to it."""

    def next_step(self) -> int:
        """The number of a step that begins now."""


class Training:
    """Passes in training mode with gradients enabled.

    Attributes:
        step: Steps that have begun so far.
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
    """All other passes. Their step is the one that training has reached."""

    def __init__(self, training: Training) -> None:
        """Take the passes that `training` does not, and its count."""
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
