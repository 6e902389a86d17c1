"""What the rules cost: while a model trains, in their process and in the training's; and on a run that is finished."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.replay import healthy_jobs, replayed
from benchmarks.tables import Options, Table, spread
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.findings.live import LiveModel
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import Finished, Frame, Record

SERIES = 500
STEPS = (100, 1_000, 4_000)
GOAL_MS = 20.0
"""A logged step of 500 series, in the process that runs the rules."""


FINISHED_STEPS, FINISHED_GOAL = 10_000, 10.0
"""Steps of a finished run, and the seconds in which its rules are to have run."""

HEALTHY = "unseen"
"""The module of programs that are replayed."""

REPEATS = 3
TRAINED = 100


class Records:
    """A sink that keeps the records, for a run of many steps."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, record: Record) -> None:
        """Keep it."""
        self.records.append(record)

    def close(self) -> None:
        """Nothing to do."""


def tables(_options: Options) -> Iterator[Table]:
    """A row for each length of a run."""
    begun, frames, count = recorded()
    rows = [measured(begun, frames, steps) for steps in STEPS]
    yield Table(
        f"Rules while a model trains, {count} series",
        ["logged steps", "ms a logged step", "goal", "the longest look, ms", "times the rules ran"],
        [
            [f"{steps:,}", total, GOAL_MS, longest, runs]
            for steps, (total, longest, runs) in zip(STEPS, rows, strict=True)
        ],
        "Processor time of reading what is new and running the rules whenever the record has grown, looking after each "
        "logged step, divided by the steps. In the process of the rules.",
    )
    yield said_while_healthy()
    opened, judged = finished(begun, frames)
    yield Table(
        f"Rules on a finished run of {FINISHED_STEPS:,} steps and {count} series",
        ["", "processor time, s", "goal"],
        [["open the run", opened, ""], ["run the rules", judged, ""], ["together", opened + judged, FINISHED_GOAL]],
    )
    plain, looked_at = zip(*(pair() for _ in range(REPEATS)), strict=True)
    yield Table(
        "The training's process, each of its steps logged",
        ["", "processor time of a step, ms"],
        [
            ["nothing is looked for", spread(plain)],
            ["with rules", spread(looked_at)],
            ["ratio", spread([one / other for one, other in zip(looked_at, plain, strict=True)])],
        ],
        f"{TRAINED} steps of a network of {SERIES} series, in turn, {REPEATS} times. Child processes are not counted.",
    )


def said_while_healthy() -> Table:
    """What is said while healthy programs train."""
    found = [replayed(job) for job in healthy_jobs(HEALTHY)]
    warned = [one for one in found if one.said]
    return Table(
        "What is said while healthy programs train",
        ["trainings", "steps, each looked at", "of which something was said", "what"],
        [
            [
                len(found),
                sum(one.steps for one in found),
                len(warned),
                "; ".join(f"{one.program}: {', '.join(one.said)}" for one in warned) or "–",
            ]
        ],
        f"The healthy programs and mended twins of `benchmarks.programs.{HEALTHY}`, replayed from their recordings.",
    )


def recorded() -> tuple[list[Record], list[Frame], int]:
    """What comes before the first frame, some frames, and the number of series, of a model that learns."""
    model, sink = network(), Records()
    with watch(model, log_freq=1, backend=sink, verbose=False):
        train(model, 64)
    frames = [one for one in sink.records if isinstance(one, Frame)]
    begun = [one for one in sink.records if not isinstance(one, Frame | Finished)]
    return begun, frames, len(frames[0].series)


def network() -> nn.Module:
    """A network of about `SERIES` series."""
    torch.manual_seed(0)
    layers = [part for _ in range(SERIES // 20) for part in (nn.Linear(256, 256), nn.BatchNorm1d(256), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(256, 4))


def train(model: nn.Module, steps: int) -> None:
    """Some steps with Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(64, 256)).square().mean().backward()
        optimizer.step()


def pair() -> tuple[float, float]:
    """Milliseconds of a step of the training's process, without and with rules beside it."""
    plain, looked_at = trained(), trained(on_finding=id)
    return plain, looked_at


def trained(**options: Any) -> float:
    """Milliseconds of processor time a step, with what is written and said at the end."""
    with tempfile.TemporaryDirectory() as folder:
        model = network()
        began = time.process_time()
        with watch(model, log_freq=1, backend="record", logdir=folder, verbose=False, **options):
            train(model, TRAINED)
        return 1e3 * (time.process_time() - began) / TRAINED


def finished(begun: list[Record], frames: list[Frame]) -> tuple[float, float]:
    """Seconds to open a finished run, and to run the rules over it."""
    with tempfile.TemporaryDirectory() as folder:
        writer = RecordWriter(Path(folder))
        for record in begun:
            writer.write(record)
        for step in range(FINISHED_STEPS):
            writer.write(replace(frames[step % len(frames)], step=step))
        writer.close()
        began = time.process_time()
        model = open_run(folder).model()
        opened = time.process_time()
        model.findings()
        return opened - began, time.process_time() - opened


def measured(begun: list[Record], frames: list[Frame], steps: int) -> tuple[float, float, int]:
    """Milliseconds a logged step, those of the longest look, and how often the rules ran."""
    with tempfile.TemporaryDirectory() as folder:
        writer = RecordWriter(Path(folder))
        for record in begun:
            writer.write(record)
        writer.write(replace(frames[0], step=0))
        run = open_run(folder)
        # A clock that stands still: the rules run whenever the record has grown, and are not spared for being slow.
        live, costs, runs = LiveModel(run.model(), clock=lambda: 0.0), [], 0
        for step in range(1, steps):
            writer.write(replace(frames[step % len(frames)], step=step))
            began, evidence = time.process_time(), live._evidence
            run.refresh()
            live.look()
            costs.append(1e3 * (time.process_time() - began))
            runs += live._evidence is not evidence
        writer.close()
    return float(np.sum(costs)) / steps, float(np.max(costs)), runs
