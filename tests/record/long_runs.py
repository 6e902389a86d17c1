"""Long runs, written without a training: as many steps and series as wanted, in seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.record.examples import SESSION, frame_record
from tests.record.pooling import histograms_of, statistics_of
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.outbox import Encoded
from torchgraph_explorer.record.steps.body import encode_body
from torchgraph_explorer.record.steps.layout import encode_layout
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import STATISTICS, Call, Finished, Frame, Module, ModuleGraph, Node, Series

POOL = 64
"""Different frames that a run is made of."""


VARIANTS = 3
"""Different rows of a frame."""


def graph_of(series: int) -> ModuleGraph:
    """A model of as many modules, one beside the other, each of which has one series."""
    names = [f"layer{i}" for i in range(series)]
    modules = (Module("", "Long", "tests.Long", (), (), 0, 0, 0), *(layer(name) for name in names))
    calls = (Call("", 0, None, (), ()), *(Call(name, 0, 0, (), ()) for name in names))
    nodes = (Node("call", None, call=0), *(Node("call", 0, call=i + 1) for i in range(series)))
    return ModuleGraph(0, 0, modules, calls, nodes, ())


def layer(name: str) -> Module:
    return Module(name, "Linear", "torch.nn.Linear", (), (), 0, 0, 0)


def frames(series: int, elements: int) -> list[Frame]:
    """The different frames: normal values that spread ever wider, and drift."""
    rng = np.random.default_rng(0)
    pool = []
    for place in np.linspace(0, 1, POOL):
        drawn = [(rng.standard_normal(elements) * 4**place + place).astype(np.float32) for _ in range(VARIANTS)]
        statistics = np.array([statistics_of(values) for values in drawn], dtype=np.float32)
        ids = np.arange(series, dtype=np.uint32)
        which = ids % VARIANTS
        histograms = histograms_of([drawn[variant] for variant in which])
        pool.append(Frame(0, 0.0, None, 0, ids, ids, statistics[which], histograms))
    return pool


def broken(frame: Frame) -> npt.NDArray[np.float32]:
    """Its statistics with 3 NaN in the first series."""
    statistics = frame.statistics.copy()
    statistics[0, STATISTICS.index("nan")] = 3
    return statistics


def body_of(statistics: npt.NDArray[np.float32], frame: Frame) -> bytes:
    """The body for `frame_record` with these statistics, and the histograms of `frame`."""
    return encode_body(statistics, frame.histograms, head_check=0)


def write_long_run(
    run_dir: Path, steps: int, *, series: int = 1, elements: int = 100, bad_step: int | None = None
) -> None:
    """A run of `steps` logged steps; at `bad_step` 3 elements of the first series are NaN."""
    writer = RecordWriter(run_dir)
    writer.write(replace(SESSION, model="long", class_name="Long", log_freq="1", clock=None))
    writer.write(graph_of(series))
    writer.write(tuple(Series(i, f"layer{i}", 0, "output", "output", "value") for i in range(series)))
    pool = frames(series, elements)
    bodies = [body_of(frame.statistics, frame) for frame in pool]  # once: that takes longest
    layout = encode_layout(pool[0].series, pool[0].rows, series)
    assert writer._outbox is not None
    for step in range(steps):
        place = step * POOL // steps
        body = bodies[place] if step != bad_step else body_of(broken(pool[place]), pool[place])
        frame = pb.Frame(step=step, time=2_000.0 + step, graph=0, layout=layout)
        writer._outbox.add(Encoded(frame_record(frame, body, series), step))
    writer.write(Finished(2_000.0 + steps, ()))
    writer.close()
