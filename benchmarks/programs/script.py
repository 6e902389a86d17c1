"""A training written out as people write them: networks, loop and all, with one line that watches it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.programs.program import BATCH, STEPS, Losses
from torchgraph_explorer import watch
from torchgraph_explorer.training.watcher import Watcher


class Watched:
    """The one line of a script that watches, and what it logs.

    Attributes:
        options: Of `watch`, and of the callbacks of trainers: how often it is recorded, and below which folder.
    """

    def __init__(self, logdir: Path, log_freq: int) -> None:
        self.options: dict[str, Any] = {"log_freq": log_freq, "backend": "record", "logdir": logdir, "verbose": False}
        self._watcher: Watcher | None = None

    def watch(self, model: nn.Module, **options: Any) -> Callable[[Losses], None]:
        """Watch `model`; what is returned logs the losses of a step."""
        self._watcher = watcher = watch(model, **self.options, **options)
        return lambda losses: watcher.log(losses if isinstance(losses, dict) else {"loss": losses})

    def close(self) -> None:
        """End the watch, unless a trainer's callback has done so."""
        if self._watcher:
            self._watcher.close()


@dataclass(frozen=True)
class Script:
    """A training with a loop of its own, and the truth about it.

    Attributes:
        name: What it is.
        run: The training; its first argument says whether to break it.
        kinds: As of a `Program`.
        modules: As of a `Program`.
        since: As of a `Program`.
    """

    name: str
    run: Callable[[bool, Watched], None]
    kinds: tuple[str, ...] = ()
    modules: tuple[str | None, ...] = field(default=())
    since: int = 0


def run_script(script: Script, logdir: Path, *, broken: bool, seed: int, log_freq: int = 1) -> None:
    """Train `script`, recorded below `logdir` at every step or less often."""
    torch.manual_seed(seed)
    watched = Watched(logdir, log_freq)
    script.run(broken, watched)
    watched.close()


def drawn(data: tuple[Tensor, Tensor], *, size: int = BATCH, steps: int = STEPS) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches drawn at random."""
    samples, targets = data
    for _ in range(steps):
        at = torch.randint(len(samples), (size,))
        yield samples[at], targets[at]


def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """The usual end of a step."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
