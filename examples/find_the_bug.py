"""A recurrent network with a fault that a look at its tensors finds: docs/find-the-bug.md tells how.

    python examples/find_the_bug.py
    torchgraph serve runs

The task is that of Comgra's tutorial. A sample is five sequences of numbers between -1 and 1, and the network says of
each whether its sum is positive. It trains on sequences of 5 to 10 numbers, and is evaluated on those of 15 and 20.
Two runs are recorded: `faulty`, and `mended`, which leaves out one activation function.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchgraph_explorer import Keep, PerLabel, Watcher, attach, watch

SEQUENCES = 5
MEMORY = 40
TRAINED = range(5, 11)
"""Lengths of the sequences that the network trains on."""

EVALUATED = (15, 20)
STEPS = 1000
BATCH = 64


class SubNetwork(nn.Module):
    """Two linear layers. With `ends_active`, the fault: an activation function after the last one, too."""

    def __init__(self, inputs: int, outputs: int, *, ends_active: bool) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(inputs, MEMORY), nn.Linear(MEMORY, outputs)
        self.activation = nn.LeakyReLU(0.01)
        self.ends_active = ends_active

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, inputs]` to `[batch, outputs]`."""
        x = self.last(self.activation(self.first(x)))
        return self.activation(x) if self.ends_active else x


class Adder(nn.Module):
    """Reads one number of each sequence at a time, and keeps a memory."""

    def __init__(self, *, ends_active: bool) -> None:
        super().__init__()
        self.reader = SubNetwork(SEQUENCES, MEMORY, ends_active=ends_active)
        self.updater = SubNetwork(2 * MEMORY, MEMORY, ends_active=ends_active)
        self.writer = SubNetwork(MEMORY, SEQUENCES, ends_active=ends_active)

    def forward(self, sequences: Tensor) -> Tensor:
        """Sequences `[batch, length, 5]` to the probabilities that their sums are positive, `[batch, 5]`."""
        memory = torch.zeros(len(sequences), MEMORY)
        for numbers in sequences.unbind(1):
            memory = memory + self.updater(torch.cat([self.reader(numbers), memory], 1))
            attach(memory, self, "memory")
        probabilities = self.writer(memory).sigmoid()
        attach(probabilities, self, "probabilities")
        return probabilities


def losses_of(probabilities: Tensor, target: Tensor) -> Tensor:
    """The loss of each sample."""
    return functional.binary_cross_entropy(probabilities, target, reduction="none").mean(1)


def helpers(sequences: Tensor) -> Tensor:
    """The target, `[batch, 5]`. It and what else helps to understand a loss are attached."""
    sums = sequences.cumsum(1)
    target = (sums[:, -1] > 0).float()
    attach(sums, name="partial sums")
    attach(sums[:, -1].abs().amin(1), name="closest sum")
    attach(target, name="target", kind="target")
    return target


def evaluate(model: Adder, watcher: Watcher) -> None:
    """Log the loss on longer sequences than those that the network trains on."""
    model.eval()
    for length in EVALUATED:
        sequences = batch_of(length)
        with torch.no_grad():
            losses = losses_of(model(sequences), (sequences.sum(1) > 0).float())
        watcher.log({f"loss/{length} numbers": losses.mean()})
    model.train()


def batch_of(length: int) -> Tensor:
    """Sequences, `[batch, length, 5]`."""
    return 2 * torch.rand(BATCH, length, SEQUENCES) - 1


def train(run: str, *, ends_active: bool, steps: int = STEPS, logdir: str = "runs") -> None:
    """Train one of the two networks, and record the run."""
    torch.manual_seed(0)
    model = Adder(ends_active=ends_active)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    keep = Keep("*", "*:input", "*:param", samples=8)
    every = PerLabel(every=50, backoff=1.2)
    with watch(
        model, log_freq=every, keep=keep, backend="record", logdir=logdir, run=run, optimizer=optimizer
    ) as watcher:
        watcher.note("the last layer is active, too" if ends_active else "the last layer is linear")
        for step in range(steps):
            length = TRAINED[step % len(TRAINED)]
            watcher.label(f"{length:02} numbers")
            optimizer.zero_grad()
            sequences = batch_of(length)
            losses = losses_of(model(sequences), helpers(sequences))
            attach(losses, name="loss per sample", kind="loss")
            losses.mean().backward()
            optimizer.step()
            watcher.log({f"loss/{length:02} numbers": losses.mean()})
            if step % 100 == 99:
                evaluate(model, watcher)
                print(f"{run}, step {step + 1}: loss {losses.mean().item():.3f}")


def main() -> None:
    """Train both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--logdir", default="runs")
    options = parser.parse_args()
    for run, ends_active in (("faulty", True), ("mended", False)):
        train(run, ends_active=ends_active, steps=options.steps, logdir=options.logdir)


if __name__ == "__main__":
    main()
