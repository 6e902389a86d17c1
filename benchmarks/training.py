"""A training to be measured, step by step, watched or not.

Like `benchmarks.models` it needs torch and nothing else: peers are measured with it in environments of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from benchmarks.models import Subject

WARM = 3
"""Steps before the measurement, in which the graph is traced and torch chooses its algorithms."""


class Training:
    """A subject with an optimizer.

    Attributes:
        subject: What is trained.
        model: What is called: the subject's model, or that compiled.
        optimizer: SGD.
        before_update: Called with the loss between the backward pass and the update, where some ways to watch look.
    """

    def __init__(self, subject: Subject, *, compiler: str | None = None) -> None:
        """Train `subject`, compiled by the backend `compiler` of torch.compile unless that is None."""
        self.subject = subject
        self.model: nn.Module = subject.model
        if compiler is not None:
            self.model = cast("nn.Module", torch.compile(subject.model, backend=compiler))
        self.optimizer = torch.optim.SGD(subject.model.parameters(), lr=1e-3)
        self.before_update: Callable[[Tensor], object] = _nothing

    def step(self) -> None:
        """One step of SGD."""
        self.optimizer.zero_grad()
        self.before_update(self.subject.backward(self.model))
        self.optimizer.step()

    def steps(self, count: int) -> None:
        """Some steps."""
        for _ in range(count):
            self.step()


@dataclass
class Switch:
    """Steps are logged while it is on."""

    on: bool = True

    def __call__(self, _step: int) -> bool:
        """Whether to log a step; passed as `log_freq`."""
        return self.on


def _nothing(_loss: Tensor) -> None:
    """Watch nothing."""
