"""What watching costs a step on a GPU: the time of the step, and how often the host waits for the device.

Run it with `python -m benchmarks gpu` where torch finds a CUDA device; elsewhere it says that there is none.
Logged and unlogged steps take turns in one process, and with them blocks of the unwatched model. With `--full`, the
models are compiled, too, without and with CUDA graphs.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn

from benchmarks.models import Subject, mean_square
from benchmarks.tables import Cell, Options, Table, main, spread
from benchmarks.training import WARM, Switch, Training
from torchgraph_explorer import watch

STEPS = 10
"""Steps in a block, between two waits for the device."""

WAIT = "called a synchronizing CUDA operation"
"""The text of torch's warning when the host waits for the device."""


class Bottleneck(nn.Module):
    """Three convolutions, the middle one narrow, and a way around them."""

    def __init__(self, channels_in: int, width: int, stride: int) -> None:
        super().__init__()
        sizes = [(channels_in, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)]
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, k, s, k // 2, bias=False) for a, b, k, s in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _, _ in sizes)
        self.relu = nn.ReLU(inplace=True)
        self.around = nn.Sequential()
        if stride != 1 or channels_in != 4 * width:
            around = nn.Conv2d(channels_in, 4 * width, 1, stride, bias=False)
            self.around = nn.Sequential(around, nn.BatchNorm2d(4 * width))

    def forward(self, images: Tensor) -> Tensor:
        """The images after the convolutions, added to what they were."""
        inner = images
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            inner = norm(convolution(inner))
            if i < 2:
                inner = self.relu(inner)
        inner += self.around(images)
        result: Tensor = self.relu(inner)
        return result


def resnet50(device: str = "cuda", batch: int = 256, size: int = 224) -> Subject:
    """50 layers, in bfloat16."""
    blocks: list[nn.Module] = []
    channels = 64
    for stage, depth in enumerate((3, 4, 6, 3)):
        for i in range(depth):
            blocks.append(Bottleneck(channels, 64 << stage, 2 if stage and i == 0 else 1))
            channels = 256 << stage
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]
    model = nn.Sequential(*stem, *blocks, *head).to(device, torch.bfloat16)
    images = torch.randn(batch, 3, size, size, device=device, dtype=torch.bfloat16)
    return Subject(f"ResNet-50, batch {batch}", model, images, mean_square)


def encoder(device: str = "cuda", *, batch: int = 32, layers: int = 24, width: int = 1024) -> Subject:
    """A transformer of 300 million parameters over sequences of 512, in bfloat16."""
    layer = nn.TransformerEncoderLayer(width, 16, 4 * width, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(device, torch.bfloat16)
    sequences = torch.randn(batch, 512, width, device=device, dtype=torch.bfloat16)
    return Subject(f"transformer, {layers} × d {width}, batch {batch}", model, sequences, mean_square)


@dataclass(frozen=True)
class Way:
    """How a model is run and watched.

    Attributes:
        name: As the table has it.
        compiled: What `torch.compile` is given; None where the model is not compiled.
        options: What `watch` is given.
    """

    name: str
    compiled: Mapping[str, str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


EAGER = Way("eager")
COMPILED = (
    Way("compiled, logged eagerly", {"backend": "inductor"}),
    Way('compiled, logged `"inline"`', {"backend": "inductor"}, {"compiled": "inline"}),
    Way("CUDA graphs, logged eagerly", {"mode": "reduce-overhead"}),
)


def tables(options: Options) -> Iterator[Table]:
    """The ratios of wall time."""
    if not torch.cuda.is_available():
        yield Table("A step on a GPU", ("",), [["torch finds no CUDA device here"]])
        return
    repeats = 12 if options.full else 5
    ways = [EAGER, *(COMPILED if options.full else ())]
    yield Table(
        f"A step on {torch.cuda.get_device_name()}, bfloat16",
        ("", "plain, ms", "every step", "every 50th", "no step", "waits a logged step"),
        [row(make, way, repeats=repeats) for make in (resnet50, encoder) for way in ways],
        "Wall time over that of the plain step: median and quartiles. That of every 50th step is one logged step and "
        "49 unlogged ones, measured apart. A wait is what torch's sync_debug_mode warns of.",
    )


def row(make: Callable[[], Subject], way: Way, *, repeats: int) -> list[Cell]:
    """The row of one model."""
    subject, switch = make(), Switch()
    training = Training(subject)
    compile_anew(training, way)
    training.steps(WARM)
    plain, logged, unlogged = [], [], []
    for _ in range(repeats):
        first = seconds(training)
        with tempfile.TemporaryDirectory() as logdir:
            switch.on = True
            watcher = watch(
                subject.model, log_freq=switch, backend="record", logdir=logdir, verbose=False, **way.options
            )
            if way.options:  # what is compiled before the model is watched has no way in
                compile_anew(training, way)
            training.steps(WARM)
            between = []
            for switch.on in (True, False, False, True):
                training.steps(2)  # ends the previous block; the first one after a change may be compiled
                between.append(seconds(training))
            switch.on = True
            training.step()
            waits = count_waits(training.step)
            watcher.close()
        if way.options:
            compile_anew(training, way)
            training.steps(WARM)
        plain.append((first + seconds(training)) / 2)
        logged.append((between[0] + between[3]) / 2 / plain[-1])
        unlogged.append((between[1] + between[2]) / 2 / plain[-1])
    every_50th = [(one + 49 * other) / 50 for one, other in zip(logged, unlogged, strict=True)]
    name = subject.name if way is EAGER else f"{subject.name}, {way.name}"
    return [name, spread(plain) / 1e-3, spread(logged), spread(every_50th), spread(unlogged), waits]


def compile_anew(training: Training, way: Way) -> None:
    """Forget what was compiled, and compile the model in this way when it is called next."""
    if way.compiled is not None:
        torch.compiler.reset()
        model = training.subject.model
        training.model = cast("nn.Module", torch.compile(model, **way.compiled))  # type: ignore[call-overload]


def seconds(training: Training) -> float:
    """A step of a block."""
    wait_for(training)
    begin = time.perf_counter()
    training.steps(STEPS)
    wait_for(training)
    return (time.perf_counter() - begin) / STEPS


def wait_for(training: Training) -> None:
    """Wait until the device has finished."""
    if training.subject.batch.is_cuda:
        torch.cuda.synchronize()


def count_waits(step: Callable[[], None]) -> int:
    """How often the host waits for the device in `step`."""
    if not torch.cuda.is_available():
        return 0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum(WAIT in str(warning.message) for warning in said)


if __name__ == "__main__":
    main(tables, __doc__)
