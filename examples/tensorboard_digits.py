"""A training that already logs scalars to TensorBoard. The line with an arrow adds our tab.

Run it with `python examples/tensorboard_digits.py`, and beside it `tensorboard --logdir runs`. It needs scikit-learn
for the handwritten digits.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter

from torchgraph_explorer import watch


def network() -> nn.Sequential:
    """Images `[batch, 1, 8, 8]` to logits `[batch, 10]`."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def main() -> None:
    """Train for ten epochs."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    writer = SummaryWriter()  # runs/<date>_<host>
    watch(model, log_freq=5, backend="tensorboard", writer=writer)  # <-- the same run, and the tab "torchgraph"
    step = 0
    for epoch in range(10):
        for batch in torch.randperm(len(labels)).split(64):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            writer.add_scalar("loss", loss.item(), step)
            step += 1
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    writer.close()


if __name__ == "__main__":
    main()
