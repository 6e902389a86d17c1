"""What a program is, and how it is trained and watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from torchgraph_explorer import watch

STEPS = 151
BATCH = 32

Losses: TypeAlias = "Tensor | dict[str, Any]"
"""A loss, or scalars by name: what a training loop would log."""

Step: TypeAlias = Callable[[Tensor, Tensor], Losses]


@dataclass(frozen=True)
class Setup:
    """A training that is ready to begin.

    Attributes:
        model: What is watched.
        step: One training step on a batch of samples and targets. Returns what is logged.
        optimizer: Given to `watch`; None if there are several.
        data: Samples and targets.
        scaler: Given to `watch`.
        batch: Samples of a batch; 0 for all, in order.
    """

    model: nn.Module
    step: Step
    optimizer: Any
    data: tuple[Tensor, Tensor]
    scaler: Any = None
    batch: int = BATCH


@dataclass(frozen=True)
class Program:
    """A training and the truth about it.

    Attributes:
        name: What it is.
        build: Makes it; its argument says whether to break it.
        kinds: The findings of which one must be told of the broken one; none if the program is always healthy.
        modules: Where: one of these, None for the whole run; any place if empty.
        since: The first step at which it shows.
    """

    name: str
    build: Callable[[bool], Setup]
    kinds: tuple[str, ...] = ()
    modules: tuple[str | None, ...] = field(default=())
    since: int = 0


class Observer(Protocol):
    """What looks at a training beside us: a baseline."""

    def after_step(self, losses: Losses) -> None:
        """A step is over."""

    def before_step(self) -> None:
        """A step begins."""


def train(
    program: Program,
    logdir: Path,
    *,
    broken: bool,
    seed: int,
    steps: int = STEPS,
    log_freq: int = 1,
    observe: Callable[[Setup], Observer] | None = None,
) -> None:
    """Train `program`, recorded below `logdir` at every step or less often, with the losses of each step logged."""
    torch.manual_seed(seed)
    setup = program.build(broken)
    watcher = watch(
        setup.model,
        log_freq=log_freq,
        backend="record",
        logdir=logdir,
        optimizer=setup.optimizer,
        scaler=setup.scaler,
        verbose=False,
    )
    observer = observe(setup) if observe else None
    for batch in batches(setup, steps):
        if observer:
            observer.before_step()
        losses = setup.step(*batch)
        watcher.log(losses if isinstance(losses, dict) else {"loss": losses})
        if observer:
            observer.after_step(losses)
    watcher.close()


def batches(setup: Setup, steps: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of a training: drawn at random, or all samples again and again."""
    samples, targets = setup.data
    for _ in range(steps):
        at = torch.randint(len(samples), (setup.batch,)) if setup.batch else torch.arange(len(samples))
        yield samples[at], targets[at]


@lru_cache
def digits() -> tuple[Tensor, Tensor]:
    """Handwritten digits, each pixel from 0 to 16: `[1797, 64]`, and which digit each is."""
    from sklearn.datasets import load_digits

    samples, targets = load_digits(return_X_y=True)
    return torch.tensor(samples, dtype=torch.float32), torch.tensor(targets, dtype=torch.long)


def normalised() -> tuple[Tensor, Tensor]:
    """The digits with mean 0 and standard deviation 1."""
    samples, targets = digits()
    return (samples - samples.mean()) / samples.std(), targets


def images() -> tuple[Tensor, Tensor]:
    """The normalised digits as images: `[1797, 1, 8, 8]`."""
    samples, targets = normalised()
    return samples.reshape(-1, 1, 8, 8), targets


def regression(inputs: int = 16) -> tuple[Tensor, Tensor]:
    """Samples of a smooth function: `[512, inputs]` and `[512, 1]`."""
    rng = np.random.default_rng(0)
    samples = torch.tensor(rng.standard_normal((512, inputs)), dtype=torch.float32)
    return samples, torch.sin(samples.sum(1, keepdim=True) / 2)


def supervised(  # noqa: PLR0917  # in the order of a training loop
    model: nn.Module, optimizer: Any, data: tuple[Tensor, Tensor], loss: Any = None, **more: Any
) -> Setup:
    """The usual training loop."""
    measure = loss or nn.functional.cross_entropy

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = measure(model(samples), targets)
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, data, **more)


def mlp(*sizes: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers `fc1`, `fc2`, … with activations `act1`, … between them."""
    model = nn.Sequential()
    for number, (before, after) in enumerate(pairwise(sizes), start=1):
        model.add_module(f"fc{number}", nn.Linear(before, after))
        if number < len(sizes) - 1:
            model.add_module(f"act{number}", activation())
    return model


def adam(model: nn.Module, lr: float = 1e-3) -> torch.optim.Adam:
    """Adam on the parameters that can be trained."""
    return torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=lr)


def initialised(model: nn.Module, begin: Callable[[Tensor], object]) -> nn.Module:
    """`model` with all weight matrices initialised by `begin`."""
    for one in model.parameters():
        if one.dim() >= 2:
            begin(one)
    return model
