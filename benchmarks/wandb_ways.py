"""One way to log a training to W&B, measured in a process of its own: `python -m benchmarks.wandb_ways WAY MODEL ...`.

It runs in whichever environment has the way's library, logs to an offline run below the current folder, and prints a
line of JSON. Steps of a watched and of an unwatched network take turns, in the order unwatched, watched, watched,
unwatched, so that whatever else the machine does weighs on both alike.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
import wandb
from torch import Tensor, nn
from torch.nn import functional

SECONDS_TO_SETTLE = 0.4
"""Seconds to wait after each block, so that the work of other threads for its steps is counted."""

WARM_UP = 5


def cnn() -> nn.Module:
    """For digits of 8 × 8: two convolutions and a linear layer."""
    convolutions = (nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU())
    return nn.Sequential(*convolutions, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 16, 10))


def mlp() -> nn.Module:
    """Eight linear layers."""
    layers = [part for _ in range(6) for part in (nn.Linear(256, 256), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), *layers, nn.Linear(256, 10))


MODELS = {"CNN": cnn, "MLP": mlp}


def watch_ours(model: nn.Module) -> None:
    """Inputs, outputs and parameters of every module, and their gradients."""
    from torchgraph_explorer import watch

    watch(model, backend="wandb", log_freq=1, verbose=False)


def watch_torchexplorer(model: nn.Module) -> None:
    """The same, with TorchExplorer."""
    import_module("torchexplorer").watch(model, backend="wandb", log_freq=1, verbose=False)


def watch_wandb(model: nn.Module) -> None:
    """Parameters and their gradients only."""
    wandb.watch(model, log="all", log_freq=1)


WAYS: dict[str, Callable[[nn.Module], None]] = {
    "nothing": lambda _model: None,
    "torchgraph": watch_ours,
    "TorchExplorer": watch_torchexplorer,
    "wandb.watch": watch_wandb,
}
"""What each way does to the watched network. `nothing` measures the run itself."""


def digits() -> tuple[Tensor, Tensor]:
    """Images `[n, 1, 8, 8]`, and their digits."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    return torch.tensor(loaded.images, dtype=torch.float32)[:, None] / 16, torch.tensor(loaded.target)


def training(model: nn.Module, run: Any) -> Callable[[int], None]:
    """Trains a number of steps, each of which logs its loss."""
    images, labels = digits()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train(steps: int) -> None:
        for _ in range(steps):
            chosen = torch.randint(len(labels), (64,))
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            run.log({"loss": loss.item()})

    return train


def timed(train: Callable[[int], None], steps: int) -> tuple[float, float]:
    """Seconds by the clock, and of processor time of all threads of this process."""
    began, used = time.perf_counter(), time.process_time()
    train(steps)
    took = time.perf_counter() - began
    time.sleep(SECONDS_TO_SETTLE)
    return took, time.process_time() - used


def measure(way: str, model: str, *, blocks: int, steps: int) -> dict[str, Any]:
    """Ratios of watched to unwatched, block by block, and what other processes took."""
    torch.manual_seed(0)
    unwatched, watched = MODELS[model](), MODELS[model]()
    with wandb.init(project="p", mode="offline", settings=wandb.Settings(x_disable_stats=True, silent=True)) as run:
        WAYS[way](watched)
        alone, along = training(unwatched, run), training(watched, run)
        alone(WARM_UP)
        along(WARM_UP)
        pairs = [[timed(each, steps) for each in (alone, along, along, alone)] for _ in range(blocks)]
    wandb.teardown()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall": [ratio([one[0] for one in four]) for four in pairs],
        "processor": [ratio([one[1] for one in four]) for four in pairs],
        "unwatched": [(four[0][0] + four[3][0]) / 2 / steps for four in pairs],
        "beside": children.ru_utime + children.ru_stime,
        "logged": WARM_UP + 2 * blocks * steps,
    }


def ratio(four: list[float]) -> float:
    """Watched to unwatched, from unwatched, watched, watched, unwatched."""
    return (four[1] + four[2]) / (four[0] + four[3])


if __name__ == "__main__":
    torch.set_num_threads(1)
    measured = measure(sys.argv[1], sys.argv[2], blocks=int(sys.argv[3]), steps=int(sys.argv[4]))
    print(json.dumps(measured))
