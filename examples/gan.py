"""Two models in one run: a generator and a discriminator that learn points on a circle.

Run it with `python examples/gan.py`. In the viewer, choose between the two models at the top.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchgraph_explorer import watch

STEPS = 2000
BATCH_SIZE = 128


def circle(points: int) -> Tensor:
    """`points` random points on the unit circle, `[points, 2]`."""
    angle = torch.rand(points) * 2 * math.pi
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def network(inputs: int, outputs: int) -> nn.Sequential:
    """Three layers from `inputs` to `outputs` features."""
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs))


def judged(logits: Tensor, *, real: bool) -> Tensor:
    """How far the discriminator's `logits` are from calling everything real, or everything fake."""
    return functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, float(real)))


def main() -> None:
    """Train both models in turn."""
    generator, discriminator = network(8, 2), network(2, 1)
    # Models that are watched in one process share a run and a viewer.
    watch(generator, name="generator", log_freq=20)
    watch(discriminator, name="discriminator", log_freq=20)
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
    discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
    for step in range(STEPS):
        fake = generator(torch.randn(BATCH_SIZE, 8))
        discriminator_optimizer.zero_grad()
        loss = judged(discriminator(circle(BATCH_SIZE)), real=True) + judged(discriminator(fake.detach()), real=False)
        loss.backward()
        discriminator_optimizer.step()

        generator_optimizer.zero_grad()
        cheating = judged(discriminator(fake), real=True)
        cheating.backward()
        generator_optimizer.step()
        if step % 200 == 0:
            print(f"step {step}: discriminator {loss.item():.3f}, generator {cheating.item():.3f}")


if __name__ == "__main__":
    main()
