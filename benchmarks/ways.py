"""The ways to watch a training that are compared: this package with each of its backends, and its peers.

Each is a context manager of a training, entered to begin to watch it. Its library is imported only then, and whatever
it writes lands below the current folder.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from torch import Tensor, nn

from benchmarks.training import Switch, Training

Watching: TypeAlias = "Callable[[Training, Switch], AbstractContextManager[None]]"

A_PAGE = "import sys; from benchmarks.server import follow; follow(*sys.argv[1:])"


@dataclass(frozen=True)
class Way:
    """A way to watch.

    Attributes:
        watching: Begins to watch a training and logs the steps that the switch says; at the end the training is as
            before.
        stays: It cannot be taken off again. Then a twin of the training is watched.
        compiles: The model is compiled.
        in_wandb: A W&B run is open meanwhile, offline.
    """

    watching: Watching
    stays: bool = False
    compiles: bool = False
    in_wandb: bool = False


@contextmanager
def nothing(_training: Training, _switch: Switch) -> Iterator[None]:
    """Watch nothing."""
    yield


@contextmanager
def ours(training: Training, switch: Switch, **options: Any) -> Iterator[None]:
    """Watch with this package."""
    from torchgraph_explorer import watch

    watcher = watch(training.model, log_freq=switch, verbose=False, block_at_exit=False, **options)
    with watcher, following(watcher.url, Path(watcher.run_dir or "").name, watcher.name):
        yield


@contextmanager
def following(url: str | None, run: str, model: str) -> Iterator[None]:
    """A page that polls the viewer at `url`, if there is one, in a process of its own."""
    if url is None:
        yield
        return
    page = subprocess.Popen([sys.executable, "-c", A_PAGE, url, run, model])
    try:
        yield
    finally:
        page.terminate()
        page.wait()


@contextmanager
def torchlens(training: Training, _switch: Switch) -> Iterator[None]:
    """Parameters, their gradients and the activations, with histograms, to TensorBoard."""
    trackers = import_module("torchlens.trackers")
    steps = count()
    settings = {"every": 1, "hist_every": 1, "signals": ("parameters", "gradients", "activations")}
    with trackers.watch(
        training.model,
        to=trackers.TensorBoardSink("torchlens"),
        optimizer=training.optimizer,
        select=tuple(name for name, _ in training.model.named_modules() if name),
        example_input=training.subject.batch,
        step=partial(next, steps),
        **settings,
    ):
        yield


@contextmanager
def trainscope(training: Training, _switch: Switch) -> Iterator[None]:
    """Everything it can log, at every step."""
    often = {"histogram_every_n_steps": 1, "activation_metrics_every_n_steps": 1}
    config = import_module("trainscope.core.config").TrainScopeConfig(**often)
    scope = import_module("trainscope").TrainScope(training.model, training.optimizer, config=config).attach()
    training.before_update = lambda loss: scope.step(loss.item())
    yield
    scope.detach()


@contextmanager
def wandb_watch(training: Training, _switch: Switch) -> Iterator[None]:
    """Parameters and their gradients only."""
    wandb = import_module("wandb")
    wandb.watch(training.model, log="all", log_freq=1)
    training.before_update = lambda loss: wandb.log({"loss": loss.item()})
    yield


@contextmanager
def add_histogram(training: Training, _switch: Switch) -> Iterator[None]:
    """Parameters and their gradients only."""
    writer = import_module("torch.utils.tensorboard").SummaryWriter("tensorboard")
    steps = count()

    def look(_loss: Tensor) -> None:
        step = next(steps)
        for name, parameter in training.model.named_parameters():
            writer.add_histogram(name, parameter, step)
            writer.add_histogram(f"{name}.grad", parameter.grad, step)

    training.before_update = look
    yield
    writer.close()


@contextmanager
def torchexplorer(training: Training, _switch: Switch) -> Iterator[None]:
    """With its own viewer. In-place modules must be named."""
    import_module("torchexplorer").watch(
        training.model,
        log_freq=1,
        backend="standalone",
        standalone_port=0,
        verbose=False,
        disable_inplace=True,
        ignore_io_grad_classes=[nn.BatchNorm2d],
    )
    yield


WAYS = {
    "nothing": Way(nothing),
    "nothing in wandb": Way(nothing, in_wandb=True),
    "record": Way(partial(ours, backend="record")),
    "standalone": Way(partial(ours, backend="standalone", port=0)),
    "tensorboard": Way(partial(ours, backend="tensorboard")),
    "wandb": Way(partial(ours, backend="wandb"), in_wandb=True),
    "compiled": Way(nothing, compiles=True),
    "eager": Way(partial(ours, backend="record", compiled="eager"), compiles=True),
    "inline": Way(partial(ours, backend="record", compiled="inline"), compiles=True),
    "torchlens": Way(torchlens, stays=True),
    "trainscope": Way(trainscope, stays=True),
    "wandb.watch": Way(wandb_watch, stays=True, in_wandb=True),
    "add_histogram": Way(add_histogram, stays=True),
    "TorchExplorer": Way(torchexplorer, stays=True),
}
