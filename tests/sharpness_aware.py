"""An optimizer that calls another one, as SAM does."""

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
