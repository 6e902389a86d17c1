"""Samples around the centres of classes, a network that learns them, and what is told of its training."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from torchgraph_explorer.finding import Finding

CLASSES, FEATURES, BATCH = 5, 12, 32
CENTRES = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(3))


def samples(labels: Tensor) -> Tensor:
    return CENTRES[labels] + 0.7 * torch.randn(len(labels), FEATURES)


def batch(classes: int = CLASSES, size: int = BATCH) -> tuple[Tensor, Tensor]:
    labels = torch.randint(classes, (size,))
    return samples(labels), labels


def network(outputs: int = CLASSES, *last: nn.Module) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(FEATURES, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, outputs), *last
    )


def warned(findings: list[Finding]) -> list[tuple[str, str | None]]:
    """The root causes that are no mere information: kinds and modules."""
    return [(one.kind, one.module) for one in findings if one.severity != "info" and not one.causes]
