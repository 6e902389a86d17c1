"""The demo: a small residual network that learns handwritten digits while it is watched.

It has stages of blocks to drill through, in-place activations, residual additions, an activation used twice and an
attached tensor. It runs on the CPU and downloads nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchgraph_explorer import attach, watch
from torchgraph_explorer.browser import browse
from torchgraph_explorer.errors import OptionError, TorchgraphError
from torchgraph_explorer.extras import installing
from torchgraph_explorer.training.exit import is_interactive

if TYPE_CHECKING:
    from rich.progress import Progress

STEPS = 600
"""Default number of training steps, which take about half a minute."""

LOG_FREQ = 1
BATCH_SIZE = 64
HELD_OUT = 297
SEED = 0


class Block(nn.Module):
    """A residual block of two convolutions; the same activation is used after each."""

    def __init__(self, channels_in: int, channels_out: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.relu = nn.ReLU(inplace=True)
        changes_shape = stride != 1 or channels_in != channels_out
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride=stride) if changes_shape else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, channels_in, h, w]` to `[batch, channels_out, h / stride, w / stride]`."""
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        y += self.shortcut(x)
        return self.relu(y)


class DigitsNet(nn.Module):
    """Three stages of two residual blocks each, then one linear layer. About 175,000 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        self.stage1 = nn.Sequential(Block(16, 16, stride=1), Block(16, 16, stride=1))
        self.stage2 = nn.Sequential(Block(16, 32, stride=2), Block(32, 32, stride=1))
        self.stage3 = nn.Sequential(Block(32, 64, stride=2), Block(64, 64, stride=1))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(64, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Images `[batch, 1, 8, 8]` to one logit per digit, `[batch, 10]`."""
        x = self.stage3(self.stage2(self.stage1(self.stem(images))))
        features = attach(self.pool(x).flatten(1), self, "features")
        return self.classifier(features)


class BrokenNet(DigitsNet):
    """`DigitsNet` with three faults, for the rules to find. docs/findings.md names them."""

    def __init__(self) -> None:
        super().__init__()
        nn.init.constant_(self.stage2[0].norm1.bias, -20.0)  # type: ignore[union-attr, arg-type]  # nothing passes the ReLU
        self.classifier = nn.Sequential(nn.Dropout(0.95), self.classifier)  # type: ignore[assignment]

    def trained(self) -> list[nn.Parameter]:
        """All parameters but those of the classifier, as if the optimizer had been made before it."""
        forgotten = {id(one) for one in self.classifier.parameters()}
        return [one for one in self.parameters() if id(one) not in forgotten]


@dataclass(frozen=True, slots=True)
class Digits:
    """Images of handwritten digits.

    Attributes:
        images: `[n, 1, 8, 8]`, brightness from 0 to 1.
        labels: The digit in each image, `[n]`.
    """

    images: Tensor
    labels: Tensor

    def __getitem__(self, chosen: slice | Tensor) -> Digits:
        return Digits(self.images[chosen], self.labels[chosen])

    def __len__(self) -> int:
        return len(self.labels)


def run_demo(*, logdir: str, steps: int, serve: bool, port: int, open_browser: bool, broken: bool = False) -> str:
    """Train for `steps` steps, recording below `logdir`, and return the folder of the run.

    With `serve`, the viewer runs from the start, at `port` or the next free one. In a terminal, it stays until Ctrl-C;
    elsewhere it ends with the training, so that no job hangs.
    With `broken`, the network has three faults.

    Raises:
        OptionError: `steps` is below 1.
        TorchgraphError: scikit-learn or rich is not installed.
    """
    if steps < 1:
        raise OptionError(f"The demo cannot train for {steps} steps. Give it 1 or more, for instance --steps {STEPS}.")
    digits, progress = load_digits(), progress_bar()
    torch.manual_seed(SEED)
    model = BrokenNet() if broken else DigitsNet()
    training = Training(model, digits[:-HELD_OUT])
    watcher = watch(
        model,
        log_freq=LOG_FREQ,
        time_log=("epoch", lambda _model, _step: training.epoch()),
        backend="standalone" if serve else "record",
        logdir=logdir,
        port=port,
    )
    if open_browser and watcher.url:
        browse(watcher.url)
    # A served run is closed at exit, so that the viewer stays until then.
    with nullcontext() if serve else watcher, one_thread(), progress:
        task = progress.add_task("training", total=steps, loss="")
        for loss in training.losses(steps):
            watcher.log({"loss": loss, "images": training.seen})
            progress.update(task, advance=1, loss=f"loss {loss:.4f}")
    print(
        f"The network recognises {accuracy(model, digits[-HELD_OUT:]):.0%} of {HELD_OUT} digits "
        f"that it was not trained on."
    )
    if not serve and "://" not in logdir and not Path(watcher.run_dir or "").is_dir():  # its folder was refused
        raise TorchgraphError(
            f"{watcher.run_dir} could not be written, so nothing was recorded. Pass another --logdir."
        )
    if not (serve and is_interactive()):  # else the viewer stays
        print(f"Look at the run with: torchgraph serve {shlex.quote(logdir)}")
    return str(watcher.run_dir)


class Training:
    """Passes over the digits in shuffled batches, with Adam.

    Attributes:
        seen: Images trained on so far.
    """

    def __init__(self, model: nn.Module, digits: Digits) -> None:
        self._model, self._digits = model, digits
        self.seen = 0

    def epoch(self) -> float:
        """How many times every digit has been seen, as a fraction."""
        return self.seen / len(self._digits)

    def losses(self, steps: int) -> Iterator[float]:
        """Train for `steps` steps, yielding each one's loss."""
        model = self._model
        trained = model.trained() if isinstance(model, BrokenNet) else model.parameters()
        optimizer = torch.optim.Adam(trained, lr=2e-3)
        batches = self._batches()
        for _ in range(steps):
            batch = next(batches)
            optimizer.zero_grad()
            loss = functional.cross_entropy(self._model(batch.images), batch.labels)
            loss.backward()
            optimizer.step()
            self.seen += len(batch)
            yield loss.item()

    def _batches(self) -> Iterator[Digits]:
        while True:
            for chosen in torch.randperm(len(self._digits)).split(BATCH_SIZE):
                yield self._digits[chosen]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread, which is as fast for a network this small.

    Several threads wait for each other in busy loops: beside a browser on two cores, the same steps took four times as
    long.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@torch.no_grad()
def accuracy(model: nn.Module, digits: Digits) -> float:
    """The share of `digits` that `model` recognises. Leaves the model in evaluation mode."""
    found = model.eval()(digits.images).argmax(1)
    return (found == digits.labels).float().mean().item()


def load_digits() -> Digits:
    """The 1,797 digits that are part of scikit-learn."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise _missing("scikit-learn") from error
    digits = datasets.load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    return Digits(images, torch.tensor(digits.target))


def progress_bar() -> Progress:
    """A progress bar that shows the loss; without a terminal, only its last state is printed."""
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError as error:
        raise _missing("rich") from error
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeRemainingColumn(),
    )


def _missing(library: str) -> TorchgraphError:
    return TorchgraphError(
        f"The demo needs {library}, which is not installed. Install its libraries: {installing('demo')}"
    )
