"""The answers of the routes, as values: see http_api.md."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.layout.placing import layout
from torchgraph_explorer.record.discovery import RunInfo
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.record.steps.facts import StepKind, in_order
from torchgraph_explorer.schema import STATISTICS, Call, Edge, ModuleGraph, Node, Series, Session
from torchgraph_explorer.server.pack import pack

Json = dict[str, Any]

MOST_NEWS = 2**16
"""Frames, and series, in one answer of `api/updates` at most; the client asks again for more."""

MOST_CHOICES = 64
"""Optimizers that are offered, to show their steps alone."""

MOST_PARTS = 250_000
"""Modules, calls, nodes and edges of a graph that is sent and laid out; that takes seconds and about 20 MB."""


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
        "error": run.error if _is_text(run.name) else _NOT_TEXT,
    }


_NOT_TEXT = "The name of its folder is not UTF-8, so no address can contain it. Rename the folder to look at the run."


def _is_text(name: str) -> bool:
    """Whether a page can ask for a run of this name. A folder's may have bytes that are no characters."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ClientState:
    """What a client of `api/updates` already has: this many frames and series of an epoch."""

    epoch: int
    frames: int
    series: int


NEW_CLIENT = ClientState(epoch=-1, frames=0, series=0)


def updates_answer(
    run: RunRecord, model: ModelRecord, *, epoch: int, client: ClientState = NEW_CLIENT, most: int | None = None
) -> Json:
    """`api/updates`, with at most `most` frames and series.

    `epoch` is the model's, as clients know it. It is read before the rest, since another thread may refresh the run
    meanwhile: frames that are newer than the epoch are then sent again.
    """
    steps, series, finished = model.steps, model.series, model.finished
    reset = client.epoch != epoch or client.frames > len(steps) or client.series > len(series)
    first_frame, first_series = (0, 0) if reset else (client.frames, client.series)
    stop_frame, stop_series = len(steps), len(series)
    if most is not None:
        stop_frame, stop_series = min(stop_frame, first_frame + most), min(stop_series, first_series + most)
    new, kinds = slice(first_frame, stop_frame), model.kinds
    return {
        "run": run.name,
        "model": model.name,
        "epoch": epoch,
        "reset": reset,
        "session": session_json(model.session),
        "frames": {
            "first": first_frame,
            "step": steps[new].tolist(),
            "time": model.times[new].tolist(),
            "clock": [_number(value) for value in model.clock[new].tolist()],
            "graph": [graph if graph >= 0 else None for graph in model.graph_ids[new].tolist()],
            "kind": [kind if kind >= 0 else None for kind in model.kind_numbers[new].tolist()],
            "passes": model.passes[new].tolist(),
        },
        "kinds": [{"kind": number, **plain(kind._asdict())} for number, kind in kinds.items()],
        "optimizers": _choices(kinds.values()),
        "series": {"first": first_series, "items": [_series(one) for one in series[first_series:stop_series]]},
        "more": stop_frame < len(steps) or stop_series < len(series),
        "graphs": [
            {"graph": graph.id, "first_step": graph.first_step, "revision": model.graph_revision(graph.id)}
            for graph in model.graphs
        ],
        "finished": {"time": finished.time, "notes": list(finished.notes)} if finished is not None else None,
        "stopped": model.has_stopped,
        "warnings": [*run.warnings, *model.notes],
    }


def _choices(kinds: Collection[StepKind]) -> list[str]:
    """The optimizers that made some of the steps, but not all whose optimizers are known; at most `MOST_CHOICES`."""
    known = [set(kind.optimizers) for kind in kinds if kind.optimizers]
    names = in_order(name for kind in kinds for name in kind.optimizers)
    return [name for name in names if not all(name in one for one in known)][:MOST_CHOICES]


def session_json(session: Session) -> Json:
    """A session, as `api/updates` has it."""
    return {
        key: value
        for key, value in plain(session).items()
        if key not in ("id", "rank", "world_size", "notes", "processes")
    }


def _series(one: Series) -> Json:
    return {
        "series": one.id,
        "module": one.module,
        "call": one.call,
        "role": one.role,
        "path": one.path,
        "kind": one.kind,
    }


def require_drawable(graph: ModuleGraph) -> None:
    """Refuse a graph that would take too long to send, and that no browser could draw.

    Raises:
        OptionError: It is larger than `MOST_PARTS`.
    """
    parts = len(graph.modules) + len(graph.calls) + len(graph.nodes) + len(graph.edges)
    if parts > MOST_PARTS:
        raise OptionError(
            f"Graph {graph.id} has {parts:,} modules, calls, nodes and edges; at most {MOST_PARTS:,} can be shown. "
            f"Watch a part of the model: watch(model.part)."
        )


def graph_answer(model: ModelRecord, graph: ModuleGraph) -> Json:
    """`api/graph`."""
    number = {module.name: i for i, module in enumerate(graph.modules)}
    calls: dict[tuple[str, int | None], int] = {(call.module, call.call): i for i, call in enumerate(graph.calls)}
    tensor = _tensors(graph)
    return {
        "graph": graph.id,
        "revision": model.graph_revision(graph.id),
        "first_step": graph.first_step,
        "modules": [plain(module) for module in graph.modules],
        "calls": [_call(call, number[call.module], tensor) for call in graph.calls],
        "nodes": [_node(node, tensor) for node in graph.nodes],
        "edges": [_edge(edge, calls) for edge in graph.edges],
    }


def _tensors(graph: ModuleGraph) -> Mapping[int, Json]:
    """The tensors of calls and nodes, by `id`: most of a loop's are one value, and thousands of calls have them."""
    of_calls = (tensor for call in graph.calls for tensor in (*call.inputs, *call.outputs))
    of_nodes = (node.tensor for node in graph.nodes if node.tensor is not None)
    return {number: plain(tensor) for number, tensor in {id(one): one for one in (*of_calls, *of_nodes)}.items()}


def _edge(edge: Edge, calls: Mapping[tuple[str, int | None], int]) -> Json:
    series = [{"call": calls[module, call], "role": role, "path": path} for module, call, role, path, _ in edge.series]
    return {"source": edge.source, "target": edge.target, "gradient": edge.gradient, "series": series}


def _node(node: Node, tensor: Mapping[int, Json]) -> Json:
    return {
        "kind": node.kind,
        "inside": node.inside,
        "call": node.call,
        "tensor": None if node.tensor is None else tensor[id(node.tensor)],
    }


def _call(call: Call, module: int, tensor: Mapping[int, Json]) -> Json:
    return {
        "module": module,
        "call": call.call,
        "parent": call.parent,
        "inputs": [tensor[id(one)] for one in call.inputs],
        "outputs": [tensor[id(one)] for one in call.outputs],
    }


def layout_answer(graph: ModuleGraph, inside: int | None, *, folds: bool = True, stacked: Collection[int] = ()) -> Json:
    """`api/layout`."""
    placed: Json = plain(layout(graph, inside, folds=folds, stacked=stacked))
    for name in ("loops", "stacks"):
        if not placed[name]:
            del placed[name]
    for one in [*placed["nodes"], *placed["edges"]]:
        if not one["all"]:
            del one["all"]
    return placed


def frame_answer(model: ModelRecord, step: int, *, epoch: int) -> bytes:
    """`api/frame`; `epoch` as in `updates_answer`."""
    frame = model.frame_at(step)
    meta = {"epoch": epoch, "step": frame.step, "statistics": list(STATISTICS)}
    return pack(meta, {"series": frame.series, "statistics": frame.statistics[frame.rows]})


def plain(value: Any) -> Any:
    """A value of `schema` or `layout` as JSON values; faster than `dataclasses.asdict`, which copies deeply."""
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    kind: type = type(value)
    names = _names(kind)
    return {name: plain(getattr(value, name)) for name in names} if names else value


@lru_cache(maxsize=64)
def _names(kind: type) -> tuple[str, ...]:
    """The names of the fields of a dataclass; empty for another type."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
