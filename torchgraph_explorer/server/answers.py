"""What each route answers, as values: see http_api.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torchgraph_explorer.layout.placing import layout
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.runs import RunInfo
from torchgraph_explorer.records import STATISTICS, Call, Edge, Module, ModuleGraph, Node, Series, Session, TensorInfo
from torchgraph_explorer.server.pack import pack
from torchgraph_explorer.server.runs import OpenRun

Json = dict[str, Any]


def runs_answer(logdir: str, runs: Sequence[RunInfo]) -> Json:
    """`api/runs`."""
    return {"logdir": logdir, "runs": [_run(run) for run in runs]}


def _run(run: RunInfo) -> Json:
    return {
        "run": run.name,
        "models": list(run.models),
        "first_write": _number(run.first_write) or 0.0,
        "last_write": _number(run.last_write) or 0.0,
        "bytes": run.bytes,
        "error": run.error,
    }


@dataclass(frozen=True, slots=True)
class Held:
    """What a client of `api/updates` has: so many frames and series of an epoch."""

    epoch: int
    frames: int
    series: int


def updates_answer(opened: OpenRun, model: ModelRecord, held: Held) -> Json:
    """`api/updates`.

    Another thread may read on meanwhile. So the epoch is asked for first: what is newer than it is then told again.
    """
    now = opened.epoch(model)
    steps, series, finished = model.steps, model.series, model.finished
    reset = held.epoch != now or held.frames > len(steps) or held.series > len(series)
    first_frame, first_series = (0, 0) if reset else (held.frames, held.series)
    new = slice(first_frame, len(steps))
    return {
        "run": opened.run.name,
        "model": model.name,
        "epoch": now,
        "reset": reset,
        "session": session_json(model.session),
        "frames": {
            "first": first_frame,
            "step": steps[new].tolist(),
            "time": model.times[new].tolist(),
            "clock": [_number(value) for value in model.clock[new].tolist()],
            "graph": [graph if graph >= 0 else None for graph in model.graph_ids[new].tolist()],
        },
        "series": {"first": first_series, "items": [_series(one) for one in series[first_series:]]},
        "graphs": [
            {"graph": graph.id, "first_step": graph.first_step, "revision": model.graph_revision(graph.id)}
            for graph in model.graphs
        ],
        "finished": {"time": finished.time, "notes": list(finished.notes)} if finished is not None else None,
        "warnings": [*opened.run.warnings, *model.notes],
    }


def session_json(session: Session) -> Json:
    """A session, as `api/updates` has it."""
    return {key: value for key, value in asdict(session).items() if key not in ("id", "rank", "world_size")}


def _series(one: Series) -> Json:
    return {
        "series": one.id,
        "module": one.module,
        "call": one.call,
        "role": one.role,
        "path": one.path,
        "kind": one.kind,
    }


def graph_answer(model: ModelRecord, graph: ModuleGraph) -> Json:
    """`api/graph`."""
    number = {module.name: i for i, module in enumerate(graph.modules)}
    return {
        "graph": graph.id,
        "revision": model.graph_revision(graph.id),
        "first_step": graph.first_step,
        "modules": [_module(module) for module in graph.modules],
        "calls": [_call(call, number[call.module]) for call in graph.calls],
        "nodes": [_node(node) for node in graph.nodes],
        "edges": [_fields_of(edge) for edge in graph.edges],
    }


def _module(module: Module) -> Json:
    return {**_fields_of(module), "params": [_fields_of(one) for one in module.params]}


def _call(call: Call, module: int) -> Json:
    inputs, outputs = ([_fields_of(one) for one in some] for some in (call.inputs, call.outputs))
    return {**_fields_of(call), "module": module, "inputs": inputs, "outputs": outputs}


def _node(node: Node) -> Json:
    return {**_fields_of(node), "tensor": _fields_of(node.tensor) if node.tensor else None}


def _fields_of(one: Module | Call | Node | Edge | TensorInfo) -> Json:
    """As `asdict`, but for what is within, and ten times as fast; there may be a hundred thousand."""
    return {name: getattr(one, name) for name in one.__slots__}


def layout_answer(graph: ModuleGraph, inside: int | None) -> Json:
    """`api/layout`."""
    return asdict(layout(graph, inside))


def frame_answer(opened: OpenRun, model: ModelRecord, index: int) -> bytes:
    """`api/frame`."""
    epoch, frame = opened.epoch(model), model.frame(index)
    meta = {"epoch": epoch, "frame": index, "step": frame.step, "statistics": list(STATISTICS)}
    return pack(meta, {"series": frame.series, "statistics": frame.statistics[frame.rows]})


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
