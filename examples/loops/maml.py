"""MAML on sine waves: gradients of gradients through an inner loop. The line marked with an arrow adds this package.

Run it with `python -m examples.loops.maml`, then `torchgraph serve runs`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from torchgraph_explorer import watch

UPDATES, TASKS, INNER_STEPS, INNER_RATE = 10, 3, 2, 0.05


def sine() -> tuple[Tensor, Tensor]:
    """Points of a random sine wave."""
    x = torch.rand(20, 1) * 10 - 5
    return x, (1 + 4 * torch.rand(1)) * torch.sin(x + math.pi * torch.rand(1))


def adapted_loss(model: nn.Module) -> Tensor:
    """The loss on one wave, after a few steps on other points of it."""
    x, y = sine()
    weights: dict[str, Tensor] = dict(model.named_parameters())
    for _ in range(INNER_STEPS):
        loss = functional.mse_loss(functional_call(model, weights, (x[:10],)), y[:10])
        gradients = torch.autograd.grad(loss, [*weights.values()], create_graph=True)
        pairs = zip(weights.items(), gradients, strict=True)
        weights = {name: weight - INNER_RATE * gradient for (name, weight), gradient in pairs}
    return functional.mse_loss(functional_call(model, weights, (x[10:],)), y[10:])


def main() -> tuple[nn.Module, int]:
    """Train; returns the model and the number of updates."""
    model = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    watch(model, log_freq=3, backend="record")  # <--
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(UPDATES):
        optimizer.zero_grad()
        for _ in range(TASKS):
            (adapted_loss(model) / TASKS).backward()
        optimizer.step()
    return model, UPDATES


if __name__ == "__main__":
    main()
