"""One case of the fuzzer: a sound run and one that was changed at random, read in every way, within time and memory."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import FrameType

import numpy as np

from tests.kept import KeptArray, together
from tests.record.examples import (
    FOUND,
    GRAPH,
    SERIES,
    SESSION,
    frame,
    logged,
    other_session,
    segment,
    write,
    write_small_run,
)
from tests.record.long_runs import write_long_run
from tests.record.mutations import mutated
from tests.record.reading import read_everything
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import (
    Finished,
    KeptStep,
    NamedTensor,
    Noted,
    Record,
    StepFacts,
    StepNote,
    TensorEdge,
    TensorGraph,
)

MOST_SECONDS = 30
"""Of computing, for one case; most take a tenth of a second."""

MOST_WAITING = 240
"""Seconds by the clock, for the machine may be busy."""

MOST_BYTES = 400 << 20
"""Of memory, for one case, of which the files are at most some hundred kilobytes."""


ODD_DTYPES = (
    ("complex64", (2, 3), 48),
    ("bfloat16", (4,), 8),
    ("int64", (), 8),
    ("bool", (0, 2), 0),
    ("float8_e5m2", (5,), 5),
)
"""Element types, shapes, and bytes."""


def small(run: Path) -> None:
    write_small_run(run)


def ranks(run: Path) -> None:
    for rank in range(3):
        session = other_session(f"rank {rank}", rank=rank, world_size=3)
        last = replace(frame(20), facts=StepFacts("update", 9, 4, ("Adam", f"Adam #{rank}")))
        write(run, GRAPH, SERIES, frame(0), frame(10 + rank), last, Finished(9.0, (f"note {rank}",)), session=session)


def resumed(run: Path) -> None:
    write(run, GRAPH, SERIES, frame(0), frame(1))
    write(run, GRAPH, SERIES, frame(1), frame(2), session=other_session("later", created=5_000.0))
    critic = (frame(3), Noted(5.0, "A note."), FOUND, replace(frame(4), facts=StepFacts("skipped", 1, 1)))
    write(run, SERIES, *critic, session=other_session("critic", model="critic"))


def wide(run: Path) -> None:
    write_long_run(run, 4, series=40, bad_step=2)


def scalars(run: Path) -> None:
    noted = (StepNote(1, 2_000.0, "warm-up is over"),)
    write(run, SERIES, frame(0), logged([0, 1, 2], loss=[3, 2, 1], tokens=[5, 6, 7], notes=noted), frame(2))
    write(run, logged([2, 3], loss=[1, 0.5]), session=other_session("later", created=5_000.0))
    write(run, logged([0], loss=[1]), session=other_session("rank", created=6_000.0, rank=1, world_size=2))


def kept(run: Path) -> None:
    values = np.arange(12, dtype=np.float32)
    output = KeptArray(
        key=("fc", 0, "output", "output", "value"),
        dtype="float32",
        shape=(6, 4),
        batch_dim=0,
        samples=(0, 2, 4),
        values=values.view(np.uint8),
        statistics=values,
        categories=("cat", "dog", "cat"),
        kind="loss",
        node="heads",
    )
    gradient = output._replace(key=("fc", 0, "output", "output", "grad_norm"), loss="policy loss")
    weight = output._replace(key=("fc", None, "param", "weight", "value"), shape=(3, 4), batch_dim=None)
    weight = weight._replace(samples=(), statistics=None, categories=(), values=np.zeros(48, np.uint8))
    graph = TensorGraph(
        (NamedTensor("fc", None, "param", "weight", "parameter"), NamedTensor("fc", 0, "output", "output", "loss")),
        (TensorEdge(0, 1, gradient=True),),
    )
    others = [
        weight._replace(
            key=("", 0, "attached", dtype, "value"), dtype=dtype, shape=shape, values=np.ones(size, np.uint8)
        )
        for dtype, shape, size in ODD_DTYPES
    ]
    step = KeptStep(0, 1_000.0, 8.0, together(output, gradient, weight, *others), "rare", ("loss above 3",), graph)
    writer = RecordWriter(run)
    records: tuple[Record, ...] = (SESSION, GRAPH, SERIES, replace(frame(0), label="rare"), frame(1))
    for record in records:
        writer.write(record)
    for number in (0, 1):
        writer.keep(replace(step, step=number), 1 << 20)
    writer.close()


BASES: tuple[Callable[[Path], None], ...] = (small, small, ranks, resumed, wide, scalars, scalars, kept, kept)


@lru_cache
def sound_segments(base: Callable[[Path], None], folder: Path) -> tuple[tuple[Path, bytes], ...]:
    """The segments that `base` writes, each with its place below the run's folder."""
    run = folder / f"sound {base.__name__}"
    base(run)
    files = sorted(path for path in segment(run).parent.rglob("*") if path.is_file())
    return tuple((path.relative_to(run), path.read_bytes()) for path in files)


def check(seed: int, folder: Path) -> None:
    """Read what `seed` makes of a sound run, and a sound one beside it."""
    rng = random.Random(seed)
    logdir = folder / f"logdir {seed}"
    write_small_run(logdir / "good")
    parts = sound_segments(rng.choice(BASES), folder)
    hit = rng.randrange(len(parts))
    for number, (place, data) in enumerate(parts):
        file = logdir / "bad" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(mutated(data, rng) if number == hit or rng.random() < 0.3 else data)
        if rng.random() < 0.5:
            os.utime(file, (0, 0))
    if rng.random() < 0.15:
        rng.choice(ODD_FILES)(segment(logdir / "bad", 700_000 + rng.randrange(9)))
    with within_bounds(f"seed {seed}"):
        read_everything(logdir, "bad", rng, export=rng.random() < 0.15)
    shutil.rmtree(logdir)


def _long_name(place: Path) -> None:
    place.with_name("99999999999999999999.tgraph").write_bytes(b"x")


def _link_to_itself(place: Path) -> None:
    place.symlink_to(place.name)


def _link_to_nothing(place: Path) -> None:
    place.symlink_to("nowhere")


ODD_FILES: tuple[Callable[[Path], None], ...] = (
    os.mkfifo,
    Path.mkdir,
    Path.touch,
    _link_to_itself,
    _link_to_nothing,
    _long_name,
)


@contextmanager
def within_bounds(what: object) -> Iterator[None]:
    """Fail if what is done within takes too long, or too much memory."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"{what}: {'computes' if number == signal.SIGPROF else 'waits'} for too long")

    before = _memory(forget=True)
    limits = ((signal.SIGPROF, signal.ITIMER_PROF, MOST_SECONDS), (signal.SIGALRM, signal.ITIMER_REAL, MOST_WAITING))
    handlers = [signal.signal(number, end) for number, _, _ in limits]
    for _, timer, seconds in limits:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(limits, handlers, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
    grown = _memory() - before
    assert grown < MOST_BYTES, f"{what}: {grown >> 20} MiB"


def _memory(*, forget: bool = False) -> int:
    """The most bytes that this process had in memory, since it was last told to forget them where Linux can."""
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not os.access(reset, os.W_OK):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if forget:
        reset.write_text("5", encoding="ascii")
    (line,) = (line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
