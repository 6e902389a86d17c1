"""Optimizers that climb before they move, as SAM does."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import Optimizer


class SharpnessAware(Optimizer):
    """Climbs, takes the gradient there, and lets another optimizer move from where it was."""

    def __init__(self, base: Optimizer) -> None:
        super().__init__(base.param_groups, {})
        self.base = base

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        parameters = [each for group in self.param_groups for each in group["params"]]
        before = [each.detach().clone() for each in parameters]
        with torch.no_grad():
            for each in parameters:
                each.add_(each.grad, alpha=0.1)
        with torch.enable_grad():
            closure()
        with torch.no_grad():
            for each, old in zip(parameters, before, strict=True):
                each.copy_(old)
        self.base.step()


class TwoStepSharpnessAware(Optimizer):
    """As above, but the training loop calls each half itself, and takes the gradient between them."""

    def __init__(self, base: Optimizer) -> None:
        super().__init__(base.param_groups, {})
        self.base = base
        self.before: list[Any] = []

    @torch.no_grad()
    def first_step(self) -> None:
        self.before = [(each, each.detach().clone()) for group in self.param_groups for each in group["params"]]
        for each, _ in self.before:
            each.add_(each.grad, alpha=0.1)
        self.zero_grad()

    @torch.no_grad()
    def second_step(self) -> None:
        for each, old in self.before:
            each.data = old
        self.base.step()
        self.zero_grad()
