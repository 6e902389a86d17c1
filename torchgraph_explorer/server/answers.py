"""What each route answers, as values: see http_api.md."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.layout.placing import layout
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.reader import Run
from torchgraph_explorer.record.runs import RunInfo
from torchgraph_explorer.records import STATISTICS, Call, ModuleGraph, Session
from torchgraph_explorer.server.pack import pack

Json = dict[str, Any]


def runs_answer(logdir: str, runs: list[RunInfo]) -> Json:
    """`api/runs`."""
    return {"logdir": logdir, "runs": [_run(run) for run in runs]}


def _run(run: RunInfo) -> Json:
    return {
        "run": run.name,
        "models": list(run.models),
        "first_write": run.first_write,
        "last_write": run.last_write,
        "bytes": run.bytes,
        "error": run.error,
    }


def updates_answer(run: Run, model: ModelRecord, *, name: str, epoch: int, frames: int, series: int) -> Json:
    """`api/updates`, for a client that holds so many `frames` and `series` of `epoch`."""
    now, steps = model.epoch, model.steps
    reset = epoch != now or frames > len(steps) or series > len(model.series)
    frames, series = (0, 0) if reset else (frames, series)
    finished = model.finished
    return {
        "run": name,
        "model": model.name,
        "epoch": now,
        "reset": reset,
        "session": session_json(model.session),
        "frames": {
            "first": frames,
            "step": steps[frames:].tolist(),
            "time": model.times[frames : len(steps)].tolist(),
            "clock": [_number(value) for value in model.clock[frames : len(steps)].tolist()],
            "graph": [graph if graph >= 0 else None for graph in model.graph_ids[frames : len(steps)].tolist()],
        },
        "series": {"first": series, "items": [_series(one) for one in model.series[series:]]},
        "graphs": [
            {"graph": graph.id, "first_step": graph.first_step, "revision": model.graph_revision(graph.id)}
            for graph in model.graphs
        ],
        "finished": {"time": finished.time, "notes": list(finished.notes)} if finished is not None else None,
        "warnings": list(run.warnings),
    }


def session_json(session: Session) -> Json:
    """A session, as `api/updates` has it."""
    return {key: value for key, value in asdict(session).items() if key != "id"}


def _series(one: Any) -> Json:
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
        "modules": [asdict(module) for module in graph.modules],
        "calls": [_call(call, number[call.module]) for call in graph.calls],
        "nodes": [asdict(node) for node in graph.nodes],
        "edges": [asdict(edge) for edge in graph.edges],
    }


def _call(call: Call, module: int) -> Json:
    return {**asdict(call), "module": module}


def layout_answer(graph: ModuleGraph, inside: int | None) -> Json:
    """`api/layout`."""
    return asdict(layout(graph, inside))


def history_answer(model: ModelRecord, series: list[int], first_frame: int) -> bytes:
    """`api/history`."""
    frames = len(model.steps)
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for one in series:
        history = model.history(one, first_frame)
        arrays[f"{one}.frame"] = history.frames.astype(np.uint32)
        arrays[f"{one}.statistics"] = history.statistics
        arrays[f"{one}.offsets"] = history.histograms.offsets
        arrays[f"{one}.buckets"] = history.histograms.buckets
        arrays[f"{one}.counts"] = history.histograms.counts
    meta = {"epoch": model.epoch, "frames": frames, "series": series, "statistics": list(STATISTICS)}
    return pack(meta, arrays)


def frame_answer(model: ModelRecord, index: int) -> bytes:
    """`api/frame`."""
    frame = model.frame(index)
    meta = {"epoch": model.epoch, "frame": index, "step": frame.step, "statistics": list(STATISTICS)}
    return pack(meta, {"series": frame.series, "statistics": frame.statistics[frame.rows]})


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
