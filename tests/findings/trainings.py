"""Trainings that are recorded, and what is told of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from torchgraph_explorer import open_run, watch
from torchgraph_explorer.finding import Finding

Step = Callable[[nn.Module, int], Tensor]
"""The loss of a model at a step."""


def trained(  # the model's own parameters, and those of `beside`
    folder: Path,
    model: nn.Module,
    step: Step,
    *,
    steps: int = 40,
    rate: float = 0.05,
    logs: bool = True,
    **more: object,
) -> list[Finding]:
    """What is told of a training with SGD and `log_freq=1`."""
    beside = more.pop("beside", None)
    parameters = [*model.parameters(), *(beside.parameters() if isinstance(beside, nn.Module) else ())]
    optimizer = torch.optim.SGD(parameters, rate, **more)  # type: ignore[arg-type]
    with watch(model, log_freq=1, backend="record", logdir=str(folder), run="run", verbose=False) as watcher:
        for number in range(steps):
            loss = step(model, number)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if logs:
                watcher.log({"loss": loss.item()})
    return list(open_run(str(folder / "run")).model().findings())
