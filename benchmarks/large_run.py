"""A record of a large model over many steps, written without a training: its numbers are made up, its bytes are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.record.examples import SESSION, frame_record
from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.cells.codes import Codes
from torchgraph_explorer.record.cells.encoding import STEPS, encode_block
from torchgraph_explorer.record.cells.statistics import STATISTIC_NAMES, CellTable
from torchgraph_explorer.record.format.envelope import enveloped
from torchgraph_explorer.record.outbox import Encoded
from torchgraph_explorer.record.scalars.encoding import encode_logged
from torchgraph_explorer.record.steps.body import encode_body
from torchgraph_explorer.record.steps.facts import encode_facts
from torchgraph_explorer.record.steps.layout import encode_layout
from torchgraph_explorer.record.steps.training import encode_training
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import (
    STATISTICS,
    Call,
    Finished,
    Logged,
    Module,
    ModuleGraph,
    Node,
    ParameterGroup,
    Series,
    StepFacts,
    TrainingFacts,
    Units,
)

POOL = 64
"""Different steps that a run is made of."""

PARTS = ("norm1", "attention", "attention.q", "attention.k", "attention.v", "attention.out", "norm2", "mlp", "drop")
KINDS = (("output", "value"), ("output", "grad_norm"), ("param", "value"), ("param", "grad"))


def write_large_run(run_dir: Path, *, modules: int, steps: int, seed: int = 0) -> None:
    """A run of `steps` logged steps of a transformer of so many modules, with four series each and a loss."""
    writer = RecordWriter(run_dir)
    names = module_names(modules)
    series = tuple(
        Series(4 * at + kind, name, 0 if role == "output" else None, role, path_of(role), what)  # type: ignore[arg-type]
        for at, name in enumerate(names)
        for kind, (role, what) in enumerate(KINDS)
    )
    writer.write(replace(SESSION, model="net", class_name="Transformer", log_freq="1", clock=None))
    writer.write(graph_of(names))
    writer.write(series)
    for piece in frames(writer, series, names, steps=steps, seed=seed):
        writer._outbox.add(piece)  # type: ignore[union-attr]
    writer.write(Finished(2_000.0 + steps, ()))
    writer.close()


def module_names(count: int) -> list[str]:
    """The model, its layers, and what is in each."""
    layers = range(-(-(count - 1) // (len(PARTS) + 1)))
    inside = (name for at in layers for name in (f"layers.{at}", *(f"layers.{at}.{part}" for part in PARTS)))
    return ["", *inside][:count]


def path_of(role: str) -> str:
    """Which tensor of a module its series are of."""
    return "output" if role == "output" else "weight"


def graph_of(names: list[str]) -> ModuleGraph:
    """All modules beside each other in the model."""
    modules = tuple(Module(name, "Linear", "torch.nn.Linear", (), (), 0, 0, 0) for name in names)
    calls = tuple(Call(name, 0, None if at == 0 else 0, (), ()) for at, name in enumerate(names))
    nodes = tuple(Node("call", None if at == 0 else 0, call=at) for at in range(len(names)))
    return ModuleGraph(0, 0, modules, calls, nodes, ())


def frames(
    writer: RecordWriter, series: tuple[Series, ...], names: list[str], *, steps: int, seed: int
) -> Iterator[Encoded]:
    """What a training writes at each step, encoded once for each of `POOL` different ones."""
    rng = np.random.default_rng(seed)
    pool = [statistics_at(place, len(names), rng) for place in np.linspace(0, 1, POOL)]
    rows = len(series)
    empty = Histograms(np.zeros(rows + 1, np.uint32), np.zeros(0, np.int16), np.zeros(0, np.uint32))
    bodies = [encode_body(each, empty, head_check=0) for each in pool]
    table = CellTable(series)
    cells = [table.cells(each.T[:, None])[:, 0] for each in pool]
    ids = np.arange(rows, dtype=np.uint32)
    template = pb.Frame(graph=0, layout=encode_layout(ids, ids, rows))
    encode_facts(template, StepFacts("update", 1, 1, ("AdamW",)))
    encode_training(template, training_facts(names))
    block: list[tuple[int, Codes]] = []
    for step in range(steps):
        template.step, template.time = step, 2_000.0 + step
        place = step * POOL // steps
        frame = frame_record(template, bodies[place], rows)
        block.append((step, cells[place]))
        is_due = len(block) == STEPS or step == steps - 1
        yield Encoded(writer._definitions.due(len(frame)) + frame + (index_of(block, table) if is_due else b""), step)
        block = [] if is_due else block
        yield Encoded(loss_at(step, steps, rng), None)


def statistics_at(place: float, modules: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers that spread over the modules as `place` goes from 0 to 1, `[series, STATISTICS]`; some NaN at the end."""
    depth = np.repeat(np.arange(modules) / modules, len(KINDS))
    scale = np.exp(-8 * (1 - depth) * place + 0.3 * rng.standard_normal(len(depth)))
    columns = dict.fromkeys(STATISTICS, np.zeros(len(depth)))
    columns |= {"count": np.full(len(depth), 1e3), "sampled": np.full(len(depth), 1e3)}
    columns |= {"zeros": 100 * rng.random(len(depth)), "min": -scale, "max": scale, "mean": 0.1 * scale}
    columns |= {"absolute_mean": scale, "std": scale, "l2_norm": 30 * scale}
    found = np.stack([columns[name] for name in STATISTICS], axis=1).astype(np.float32)
    if place > 0.99:
        found[len(found) // 2, STATISTICS.index("nan")] = 3
    return found


def training_facts(names: list[str]) -> TrainingFacts:
    """As `watch` records them: of every fourth module, the units of its output."""
    group = ParameterGroup("AdamW", 1e-3, 1e-2, True, tuple(f"{name}.weight" for name in names[:900]))
    units = tuple(Units(name, 0, 64, at % 3, 10, 0, 0.5) for at, name in enumerate(names[::4]))
    return TrainingFacts(batch_size=32, groups=(group,), gradient_norm=1.0, clipped_norm=1.0, units=units)


def index_of(block: list[tuple[int, Codes]], table: CellTable) -> bytes:
    """The cells of some steps, in their envelope."""
    steps = [step for step, _ in block]
    cells = np.stack([one for _, one in block], axis=1)
    times = [2_000.0 + step for step in steps]
    head, body = encode_block(steps, times, cells, modules=table.modules, statistics=STATISTIC_NAMES)
    return enveloped(pb.Head(cells=head).SerializeToString(), body)


def loss_at(step: int, steps: int, rng: np.random.Generator) -> bytes:
    """The loss, which `watcher.log` writes step by step, in its envelope."""
    value = 5 / (1 + 30 * step / steps) + 0.1 * rng.random()
    number, at = np.zeros(1, dtype=np.uint32), np.array([2_000.0 + step])
    logged = Logged(("loss",), number, np.array([step]), at, np.array([value]))
    head, body = encode_logged(logged)
    return enveloped(pb.Head(logged=head).SerializeToString(), body)
