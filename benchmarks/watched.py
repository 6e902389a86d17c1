"""One way to watch one model, measured in a process of its own.

Run it with `python -m benchmarks.watched QUESTION WAY MODEL COUNT CLOCK`. The answer is a line of JSON. A process of
its own keeps the libraries and the memory of one way apart from the others', and lets peers run in environments of
their own.
"""

from __future__ import annotations

import gc
import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from shutil import which
from statistics import fmean
from typing import Any, TypeAlias

import torch

from benchmarks.models import SUBJECTS
from benchmarks.training import WARM, Switch, Training
from benchmarks.ways import WAYS, Way

Attach: TypeAlias = "Callable[[], AbstractContextManager[Training]]"

Block: TypeAlias = "Callable[[Training, int], float]"
"""Trains so many steps, and returns the seconds that one took."""

LOGGED, UNLOGGED = "logged", "unlogged"
"""Kinds of watched steps."""

BLOCK_SECONDS, FEWEST_STEPS = 1.0, 5
"""The least duration of a block of steps of one kind, in seconds."""

QUIET_SECONDS, BUSY_SHARE, LONGEST_SECONDS = 0.3, 0.02, 60.0
"""A process is quiet if it has hardly used the processor for this long, which is more than our writer waits."""


def ratios(way: Way, subject: str, repeats: int, *, block: Block, order: Sequence[str]) -> dict[str, list[float]]:
    """Seconds of the unwatched step in each repeat, and ratios to it of the watched steps, logged or unlogged.

    Each repeat is a block of unwatched steps, blocks of watched ones in `order`, and a block of unwatched ones.
    """
    plain, watched = made(way, subject)
    switch = Switch()
    found: dict[str, list[float]] = {"plain": [], **{name: [] for name in order}}
    with attached(way, watched, switch) as attach:
        with attach() as training:
            block(training, WARM)
            counts = fitting_each(training, switch, block=block, order=order)
        plain.steps(WARM)
        count = fitting(plain, block)
        for _ in range(repeats):
            first = block(plain, count)
            switch.on = True
            with attach() as training:
                block(training, WARM)
                between = blocks(training, counts, switch=switch, block=block, order=order)
            settle()
            mean = (first + block(plain, count)) / 2
            found["plain"].append(mean)
            for name, seconds in between.items():
                found[name].append(seconds / mean)
    return found


def seconds(way: Way, subject: str, repeats: int, *, block: Block) -> dict[str, list[float]]:
    """Seconds of steps logged and unlogged, with no unwatched step between: a compiled model has no unwatched twin.

    Equal models share what torch.compile makes of them in a process.
    """
    switch, order = Switch(), (LOGGED, UNLOGGED, UNLOGGED, LOGGED)
    training = Training(SUBJECTS[subject](), compiler=compiler(way))
    found: dict[str, list[float]] = {name: [] for name in order}
    with way.watching(training, switch):
        block(training, WARM)
        counts = fitting_each(training, switch, block=block, order=order)
        for _ in range(repeats):
            for name, each in blocks(training, counts, switch=switch, block=block, order=order).items():
                found[name].append(each)
    return found


def made(way: Way, subject: str) -> tuple[Training, Training]:
    """The training that is measured unwatched, and the one that is watched: the same, or its twin."""
    plain, watched = (Training(SUBJECTS[subject]()) for _ in range(2))
    return (plain, watched) if way.stays else (plain, plain)


def compiler(way: Way) -> str | None:
    """The backend of torch.compile. Its default backend needs a C compiler."""
    if not way.compiles:
        return None
    return "inductor" if any(map(which, ("cc", "gcc", "clang"))) else "aot_eager"


@contextmanager
def attached(way: Way, training: Training, switch: Switch) -> Iterator[Attach]:
    """The context of each repeat. A way that cannot be left is entered once, here."""
    with offline_run() if way.in_wandb else nullcontext():
        if way.stays:
            with way.watching(training, switch):
                yield lambda: nullcontext(training)
        else:
            yield partial(on_and_off, way, training, switch)


@contextmanager
def on_and_off(way: Way, training: Training, switch: Switch) -> Iterator[Training]:
    """The training, watched until the block ends."""
    with way.watching(training, switch):
        yield training


@contextmanager
def offline_run() -> Iterator[None]:
    """An offline W&B run."""
    wandb = import_module("wandb")
    with wandb.init(project="p", mode="offline", settings=wandb.Settings(x_disable_stats=True, silent=True)):
        yield


def fitting(training: Training, block: Block) -> int:
    """How many of its steps make a block."""
    return max(FEWEST_STEPS, math.ceil(BLOCK_SECONDS / block(training, WARM)))


def fitting_each(training: Training, switch: Switch, *, block: Block, order: Sequence[str]) -> dict[str, int]:
    """How many steps of each kind make a block."""
    found = {}
    for name in order:
        switch.on = name == LOGGED
        training.steps(WARM)  # the first steps of a kind may compile
        found[name] = fitting(training, block)
    return found


def blocks(
    training: Training, counts: Mapping[str, int], *, switch: Switch, block: Block, order: Sequence[str]
) -> dict[str, float]:
    """Seconds of a step of each kind, on average of its blocks."""
    found: dict[str, list[float]] = {name: [] for name in order}
    for name in order:
        switch.on = name == LOGGED
        found[name].append(block(training, counts[name]))
    return {name: fmean(seconds) for name, seconds in found.items()}


def processor_time(training: Training, count: int) -> float:
    """Seconds of processor time that a step takes, with all that other threads still have to do for it."""
    gc.collect()
    began = time.process_time()
    training.steps(count)
    settle()
    return (time.process_time() - began) / count


def wall_time(training: Training, count: int) -> float:
    """Seconds until a step has ended. What other threads have left to do then is done before the next block."""
    gc.collect()
    began = time.perf_counter()
    training.steps(count)
    ended = time.perf_counter()
    settle()
    return (ended - began) / count


def settle() -> None:
    """Wait until the other threads of this process have nothing to do."""
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end:
        used = time.process_time()
        time.sleep(QUIET_SECONDS)
        if time.process_time() - used < BUSY_SHARE * QUIET_SECONDS:
            return


def memory(way: Way, subject: str, steps: int, *, block: Block) -> dict[str, float]:
    """Peak megabytes of a training of this many steps, all logged, which nothing times."""
    del block
    training = Training(SUBJECTS[subject](), compiler=compiler(way))
    with offline_run() if way.in_wandb else nullcontext(), way.watching(training, Switch()):
        training.steps(steps)
    return {"peak": peak()}


def peak() -> float:
    """Peak megabytes of this process.

    `getrusage` counts what the parent had when it made this process, too; the kernel's own count does not.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


BLOCKS: dict[str, Block] = {"processor": processor_time, "wall": wall_time}

QUESTIONS: dict[str, Callable[..., Any]] = {
    "ratios": partial(ratios, order=(LOGGED, UNLOGGED, UNLOGGED, LOGGED)),
    "logged ratios": partial(ratios, order=(LOGGED, LOGGED)),
    "seconds": seconds,
    "memory": memory,
}


if __name__ == "__main__":
    torch.manual_seed(0)
    _, question, chosen, model, number, clock = sys.argv
    print(json.dumps(QUESTIONS[question](WAYS[chosen], model, int(number), block=BLOCKS[clock])), flush=True)
    os._exit(0)  # a peer's server would keep this process alive
