"""Records made by hand: the statistics of a few series over steps, for the arithmetic of the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.record.examples import SESSION, quietly, write
from tests.record.pooling import histograms_of, statistics_of
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import (
    Call,
    Edge,
    Frame,
    Logged,
    Module,
    ModuleGraph,
    Node,
    Series,
    StepFacts,
    TensorInfo,
    TrainingFacts,
)

Values = Mapping[Any, Any]
"""The elements of each tensor, by (module, role, path, kind)."""

UPDATED = StepFacts("update", 1, 1, ("SGD",))


def weight(*shape: int, requires_grad: bool = True) -> TensorInfo:
    return TensorInfo("weight", shape, "float32", requires_grad)


def tensor(path: str, *, requires_grad: bool = True, dtype: str = "float32") -> TensorInfo:
    return TensorInfo(path, (4, 4), dtype, requires_grad)


def module(name: str, class_name: str, *params: TensorInfo, **options: str) -> Module:
    return Module(name, class_name, f"torch.nn.{class_name}", tuple(options.items()), params, 0, 0, 0)


def chain(*modules: Module, dtype: str = "float32") -> ModuleGraph:
    """A model of these modules, one after the other."""
    called = [Call("", 0, None, (tensor("input[0]", requires_grad=False),), (tensor("output", dtype=dtype),))]
    for number, one in enumerate(modules):
        inputs = tensor("input[0]", requires_grad=number > 0, dtype=dtype)
        called.append(Call(one.name, 0, 0, (inputs,), (tensor("output", dtype=dtype),)))
    nodes = [Node("call", None, call=0), *(Node("call", 0, call=at + 1) for at in range(len(modules)))]
    edges = [Edge(at, at + 1, True) for at in range(1, len(modules))]
    return ModuleGraph(0, 0, (module("", "Net"), *modules), tuple(called), tuple(nodes), tuple(edges))


def recorded(
    folder: Path,
    graph: ModuleGraph,
    steps: Sequence[Values],
    *,
    every: int = 1,
    at: Sequence[int] = (),
    facts: Sequence[StepFacts] = (),
    training: Sequence[TrainingFacts] = (),
    scale: float | None = None,
    scalars: Mapping[str, Sequence[float]] | None = None,
) -> Model:
    """A run with one frame for each of `steps`, and with `scalars` logged at steps 0, 1, …

    The frames are `every` so many steps, or those `at` which they are.
    """
    keys = list(dict.fromkeys(key for values in steps for key in values))
    series = tuple(
        Series(number, name, None if role == "param" else 0, role, path, kind)
        for number, (name, role, path, kind) in enumerate(keys)
    )
    frames = []
    for number, values in enumerate(steps):
        arrays = [np.array(elements, dtype=np.float32) for elements in values.values()]
        ids = np.array([keys.index(key) for key in values], dtype=np.uint32)
        rows = np.arange(len(ids), dtype=np.uint32)
        statistics = np.array([statistics_of(one) for one in arrays], dtype=np.float32)
        histograms = histograms_of(arrays)
        ended = facts[number] if facts else UPDATED
        step = at[number] if at else number * every
        frame = Frame(step, 1.0, None, 0, ids, rows, statistics, histograms, scale, ended)
        frames.append(replace(frame, training=training[number] if training else None))
    logged = [_logged(scalars)] if scalars else []
    write(folder, graph, series, *frames, *logged, session=replace(SESSION, clock=None))
    return quietly(folder).model()


def _logged(scalars: Mapping[str, Sequence[float]]) -> Logged:
    names = tuple(scalars)
    rows = sorted((step, names.index(name), value) for name in names for step, value in enumerate(scalars[name]))
    steps, name, values = (np.array(column) for column in zip(*rows, strict=True))
    return Logged(names, name.astype(np.uint32), steps.astype(np.int64), np.ones(len(rows)), values.astype(np.float64))


def assert_outside_band(model: Model, found: Finding) -> None:
    """At the first and last step of `found`, its tensor is beyond what the rule allows, as the viewer draws it."""
    band, evidence = found.band, Evidence(model)
    assert band is not None
    [column] = [
        one.id
        for one in model.series
        if (one.module, one.call, one.path, one.kind) == (found.module, found.call, found.path, band.kind)
    ]
    drawn: dict[str, npt.NDArray[np.floating[Any]]] = {
        "rms": evidence.rms[:, column],
        "largest": evidence.peaks[:, column],
        "zero_fraction": evidence.zero_shares[:, column],
        "std": evidence.column("std", column),
    }
    values = drawn[band.statistic]
    for step in (found.step, found.last_step):
        value = values[evidence.steps.tolist().index(step)]
        is_low = band.low is not None and value <= band.low
        assert is_low or (band.high is not None and value >= band.high)
