"""Graphs of large models: tracing, storing, serving and laying them out.

Run it with `python -m benchmarks.graphs`; `--full` goes up to 20,000 module calls.
"""

from __future__ import annotations

import gc
import gzip
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor, nn

from benchmarks.tables import Cell, Options, Table, main
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.layout.placing import KEPT, layout
from torchgraph_explorer.record.graphs.encoding import encode_graph
from torchgraph_explorer.schema import ModuleGraph
from torchgraph_explorer.server.answers import graph_answer

Made: TypeAlias = "tuple[str, Callable[[], nn.Module]]"

WIDTH = 4
LAYERS = 8
"""Layers of a block; with the block itself, nine calls."""

BLOCKS_A_STAGE = 50


class Block(nn.Module):
    """A chain of layers with skips past some of them."""

    def __init__(self, skips: tuple[tuple[int, int], ...]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) if i % 2 == 0 else nn.Tanh() for i in range(LAYERS))
        self.skips = skips

    def forward(self, x: Tensor) -> Tensor:
        """Each skip adds what came out of one layer to what goes into a later one."""
        results = [x]
        for at, layer in enumerate(self.layers):
            results.append(layer(sum((results[source] for source, to in self.skips if to == at), results[-1])))
        return results[-1]


class Fan(nn.Module):
    """One tensor goes to very many modules, and their results to one module."""

    def __init__(self, wide: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Linear(WIDTH, 1) for _ in range(wide))

    def forward(self, x: Tensor) -> Tensor:
        """All results side by side."""
        return torch.cat([branch(x) for branch in self.branches], dim=1)


class Residual(nn.Module):
    """Very many layers in one module; each result is added to the sum so far."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        """A running sum."""
        for layer in self.layers:
            x = x + layer(x)
        return x


def nested(calls: int, *, repeated: bool) -> nn.Module:
    """Stages of blocks of layers; blocks that are `repeated` are alike, others differ in their skips."""
    rng = random.Random(0)
    pairs = [(source, to) for to in range(2, LAYERS) for source in range(to - 1)]
    blocks = [Block(((0, 4),) if repeated else tuple(rng.sample(pairs, 3))) for _ in range(calls // (LAYERS + 1))]
    stages = [blocks[at : at + BLOCKS_A_STAGE] for at in range(0, len(blocks), BLOCKS_A_STAGE)]
    return nn.Sequential(*(nn.Sequential(*stage) for stage in stages))


@dataclass(frozen=True)
class Seen:
    """The results for one model.

    Attributes:
        graph: Its graph.
        plain: Seconds of a step.
        traced: Seconds of a step that is traced.
        served: Bytes of the answer that the viewer gets, compressed.
    """

    graph: ModuleGraph
    plain: float
    traced: float
    served: int


def tables(options: Options) -> Iterator[Table]:
    """Models made of blocks, and models that are one huge module."""
    sizes = (100, 1_000, 5_000, 20_000) if options.full else (100, 1_000)
    models: list[Made] = [
        (f"{calls:,} calls, {'alike' if repeated else 'all different'}", partial(nested, calls, repeated=repeated))
        for calls in sizes
        for repeated in (True, False)
    ]
    yield table("Stages of blocks", models)
    flat: list[Made] = [
        ("2,000 in one Sequential", lambda: nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(2_000)))),
        ("fan-out of 500", lambda: Fan(500)),
        ("250 residual additions in one module", lambda: Residual(250)),
        ("500 residual additions in one module", lambda: Residual(500)),
    ]
    yield table("One huge module", flat)


def table(title: str, models: list[Made]) -> Table:
    """A table of some models."""
    columns = (
        "",
        "calls",
        "edges",
        "step, s",
        "traced step, s",
        "to store, s",
        "stored, kB",
        "served, kB",
        "first drawing, s",
        "slowest drawing, s",
        "all drawings, s",
    )
    rows = [[name, *row(seen(make()))] for name, make in models]
    note = f"Drawings are made when somebody looks, in the server's process; equal ones once, {KEPT} are kept."
    return Table(title, columns, rows, note)


def row(found: Seen) -> list[Cell]:
    """The cells of a model."""
    graph = found.graph
    began = time.perf_counter()
    stored = len(encode_graph(graph)[1])
    stored_in = time.perf_counter() - began
    insides = sorted({node.inside for node in graph.nodes if node.inside is not None})
    drawn = [seconds_to_draw(graph, inside) for inside in insides]
    sizes = [stored_in, stored / 1e3, found.served / 1e3]
    return [len(graph.calls), len(graph.edges), found.plain, found.traced, *sizes, drawn[0], max(drawn), sum(drawn)]


def seconds_to_draw(graph: ModuleGraph, inside: int) -> float:
    """How long one layout takes."""
    began = time.perf_counter()
    layout(graph, inside)
    return time.perf_counter() - began


def seen(model: nn.Module) -> Seen:
    """Train two steps, of which one is traced."""
    x = torch.randn(2, WIDTH)
    plain = min(seconds_of_a_step(model, x) for _ in range(3))
    gc.collect()
    with tempfile.TemporaryDirectory() as folder:
        with watch(model, log=[], log_freq=1, backend="record", logdir=folder, run="run", verbose=False) as watcher:
            traced = seconds_of_a_step(model, x)
        record = open_run(Path(folder, "run")).model()
        served = len(gzip.compress(json.dumps(graph_answer(record, record.graphs[0])).encode(), compresslevel=5))
        graph = watcher.graph
    assert graph is not None
    return Seen(graph, plain, traced, served)


def seconds_of_a_step(model: nn.Module, x: Tensor) -> float:
    """Forward and backward."""
    began = time.perf_counter()
    model(x).square().mean().backward()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(tables, __doc__)
