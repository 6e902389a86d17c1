"""What watching costs a training step: its CPU time, and the memory, against the same step unwatched.

Blocks of steps with and without `watch` take turns (plain, watched, watched, plain), in one process and on one thread.
CPU time is that of the whole process, so the recorder's thread counts too, and a block ends when all is written.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.models import Subject, deep, mean_square, transformer
from benchmarks.tables import Cell, Options, Table, main, spread
from torchgraph_explorer import watch

STEPS, WARM = 10, 3
LOGGED: dict[str, dict[str, Any]] = {
    "every step": {"log_freq": 1},
    "every 50th": {"log_freq": 50},
    "no step": {"log_freq": lambda step: step < WARM - 1},
}


class Residual(nn.Module):
    """Two convolutions and a way around them, with in-place operations as in torchvision's."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.around = nn.Sequential()
        if stride != 1 or channels_in != channels:
            around = nn.Conv2d(channels_in, channels, 1, stride, bias=False)
            self.around = nn.Sequential(around, nn.BatchNorm2d(channels))

    def forward(self, images: Tensor) -> Tensor:
        """The images after both convolutions, added to what they were."""
        inner = self.norm2(self.second(self.relu(self.norm1(self.first(images)))))
        inner += self.around(images)
        result: Tensor = self.relu(inner)
        return result


def resnet18(batch: int = 32) -> Subject:
    """18 layers for images of 32×32."""
    blocks: list[nn.Module] = []
    channels_in = 64
    for stage, channels in enumerate((64, 128, 256, 512)):
        blocks += [Residual(channels_in, channels, 2 if stage else 1), Residual(channels, channels, 1)]
        channels_in = channels
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    return Subject("ResNet-18, 32×32", nn.Sequential(*stem, *blocks, *head), torch.randn(batch, 3, 32, 32), mean_square)


def small_modules(groups: int = 20, pairs: int = 10, width: int = 32) -> Subject:
    """400 modules that do next to nothing: the cost of a call."""
    group = [
        nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(pairs))) for _ in range(groups)
    ]
    return Subject("400 small modules", nn.Sequential(*group), torch.randn(width, width), mean_square)


SUBJECTS: tuple[Callable[[], Subject], ...] = (deep, resnet18, transformer, small_modules)


def tables(options: Options) -> Iterator[Table]:
    """The ratios of CPU time, and the memory."""
    torch.set_num_threads(1)
    repeats = 12 if options.full else 4
    yield Table(
        "Step time",
        ["", "plain step, ms", *(f"logging {name}" for name in LOGGED)],
        [times(make, repeats) for make in SUBJECTS],
        "CPU time of the process as a ratio to that of the plain step: the median, and the quartiles, over blocks.",
    )
    columns = ["", "plain", "logging every step", "more"]
    yield Table("Peak memory of 30 steps, MB", columns, [memory(make) for make in SUBJECTS])


def times(make: Callable[[], Subject], repeats: int) -> list[Cell]:
    """The row of one model."""
    found = [measure(make(), repeats, watching) for watching in LOGGED.values()]
    plain = spread(milliseconds for milliseconds, _ in found[0])
    return [make().name, plain, *(spread(ratio for _, ratio in one) for one in found)]


def memory(make: Callable[[], Subject]) -> list[Cell]:
    """The row of one model."""
    plain, watched = (peak(make.__name__, way) for way in ("plain", "watched"))
    return [make().name, plain, watched, watched - plain]


def measure(subject: Subject, repeats: int, watching: dict[str, Any]) -> list[tuple[float, float]]:
    """For each repeat, the plain step in milliseconds, and the ratio of the watched one to it."""
    step = trainer(subject)
    for _ in range(WARM):
        step()
    found = []
    for _ in range(repeats):
        first, *watched, last = (
            plain_block(step),
            *(watched_block(step, subject, watching) for _ in "BB"),
            plain_block(step),
        )
        found.append((500 * (first + last), sum(watched) / (first + last)))
    return found


def trainer(subject: Subject) -> Callable[[], None]:
    """A function that makes one step of SGD."""
    optimizer = torch.optim.SGD(subject.model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        subject.loss(subject.model(subject.batch)).backward()
        optimizer.step()

    return step


def plain_block(step: Callable[[], None]) -> float:
    """CPU seconds of one unwatched step."""
    begin = time.process_time()
    for _ in range(STEPS):
        step()
    return (time.process_time() - begin) / STEPS


def watched_block(step: Callable[[], None], subject: Subject, watching: dict[str, Any]) -> float:
    """CPU seconds of one watched step, the first few left out: the graph is traced in them."""
    with tempfile.TemporaryDirectory() as logdir:
        watcher = watch(subject.model, backend="record", logdir=logdir, verbose=False, **watching)
        for _ in range(WARM):
            step()
        begin = time.process_time()
        for _ in range(STEPS):
            step()
        watcher.close()
        return (time.process_time() - begin) / STEPS


def peak(subject: str, way: str) -> float:
    """Peak memory in MB of a process that trains."""
    child = [sys.executable, "-m", "benchmarks.overhead", "--child", subject, way]
    said = subprocess.run(child, check=True, capture_output=True, text=True).stdout
    return float(said) / 1024


def train_and_tell(subject: str, way: str) -> None:
    """Train, and print the peak memory in kilobytes."""
    torch.set_num_threads(1)
    training: Subject = globals()[subject]()
    step = trainer(training)
    with tempfile.TemporaryDirectory() as logdir:
        if way == "watched":
            watch(training.model, log_freq=1, backend="record", logdir=logdir, verbose=False)
        for _ in range(30):
            step()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        train_and_tell(*sys.argv[2:])
    else:
        main(tables, __doc__)
