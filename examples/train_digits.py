"""A typical training script. The four lines marked with an arrow add this package.

Run it with `python examples/train_digits.py`; it needs scikit-learn for the handwritten digits.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from torchgraph_explorer import attach, watch  # <--


class Net(nn.Module):
    """Two convolutions, then a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU())
        self.classifier = nn.Linear(32, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Images `[batch, 1, 8, 8]` to logits `[batch, 10]`."""
        pooled = self.features(images).mean((2, 3))
        attach(pooled, self, "pooled")  # <-- records a tensor that no module returns
        return self.classifier(pooled)


def main() -> None:
    """Train for ten epochs."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    watcher = watch(model, log_freq=5)  # <-- the viewer is at http://localhost:8080
    for epoch in range(10):
        for batch in torch.randperm(len(labels)).split(64):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            watcher.log({"loss": loss})  # <-- a curve behind the time bar
        print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
