"""The child process that makes a snapshot from the run's record: the chart's table, and the page on request."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from torchgraph_explorer.errors import NotFoundError, TorchgraphWarning
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.engine import judge
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.live import MOST_CELLS
from torchgraph_explorer.record.discovery import open_record
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.schema import ModuleGraph, Series
from torchgraph_explorer.server.page.choice import with_frame
from torchgraph_wandb.chart_data import NONFINITE, NONFINITE_BEFORE, ChartData, NonfiniteSummary
from torchgraph_wandb.finding_rows import MOST_FINDINGS
from torchgraph_wandb.graph_layout import MAX_WORK, Engine, held_calls, layout_insides
from torchgraph_wandb.heat_strips import step_flags
from torchgraph_wandb.held_series import held_series, narrowed, numbered_from_0
from torchgraph_wandb.nonfinite_marks import nonfinite_marks
from torchgraph_wandb.nonfinite_search import (
    NOT_SEARCHED,
    NonfiniteSearch,
    continue_search,
    first_nonfinite_series,
    read_search,
    write_search,
)
from torchgraph_wandb.table import affordable_steps, table_rows
from torchgraph_wandb.thinning import MAX_STEPS, thinned_indices
from torchgraph_wandb.xray_data import xray_data

TABLE, PAGE, SEARCHED = "table.json", "page.html", "searched.npz"
"""The files it writes. The last one is there from the start, with what the previous snapshot found."""

PAGE_STEPS = 100

NICENESS = 10
"""The priority of a snapshot that is not waited for: the training comes first."""


def main() -> None:
    """Make what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run_dir")
    parser.add_argument("model")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", default="graphviz")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--tensors", type=float, default=0.0)
    parser.add_argument("--low-priority", action="store_true")
    options = parser.parse_args()
    if options.low_priority and hasattr(os, "nice"):
        os.nice(NICENESS)
    warnings.simplefilter("ignore", TorchgraphWarning)  # the record of a live run may end in the middle of a step
    run = open_record(options.run_dir)
    model = run.model(options.model)
    search = continue_search(model, read_search(options.folder / SEARCHED))
    write_search(options.folder / SEARCHED, search)
    rows = table_rows(chart_data(model, search, engine=options.engine))
    (options.folder / TABLE).write_text(json.dumps(rows), encoding="utf-8")
    if options.page:
        unfinished = options.folder / "page"
        unfinished.write_bytes(page(run, options.model, engine=options.engine, tensors=options.tensors))
        unfinished.rename(options.folder / PAGE)  # a parent that stops waiting finds all of it or nothing


def chart_data(model: ModelRecord, search: NonfiniteSearch = NOT_SEARCHED, *, engine: Engine = "graphviz") -> ChartData:
    """What a chart of `model` shows; `search` says how far it was searched for NaN and infinity.

    Raises:
        NotFoundError: The model has no step or no graph yet.
    """
    known = [graph for graph in model.graph_ids.tolist() if graph >= 0]
    if not known:
        raise NotFoundError(f"Model {model.name!r} has no recorded step yet.")
    graph = model.graphs[known[-1]]
    findings = tuple(judge(Evidence(model, most=MOST_CELLS)))
    origin = _origin(model, graph, search)
    layouts = layout_insides(graph, engine=engine, wanted=_wanted(graph, findings, origin))
    calls = held_calls(graph, layouts)
    shown = held_series(model.series, graph, layouts, calls=calls)
    most = affordable_steps(len(shown), MAX_STEPS)
    numbers = with_frame(thinned_indices(len(model), most), search.first)
    held = np.full(len(model.series), -1, dtype=np.int64)
    held[[one.id for one in shown]] = np.arange(len(shown))
    series = numbered_from_0(shown)
    frames, flags = [], []
    for number in numbers:  # one at a time: with a call repeated a thousand times, a frame is large
        frame = model.frame(number)
        flags.append(step_flags([frame], model.series))
        frames.append(narrowed(frame, held))
    return ChartData(
        model.session,
        graph,
        layouts,
        calls,
        series,
        frames,
        nonfinite_marks(graph, model.series, np.concatenate(flags, axis=1)),
        len(model),
        notes=(*model.notes, *_unsearched(model, search)),
        findings=findings,
        xray=xray_data(model),
        nonfinite=_nonfinite_summary(
            search=search,
            numbers=numbers,
            origin=series[held[origin.id]] if origin is not None and held[origin.id] >= 0 else None,
        ),
    )


def _origin(model: ModelRecord, graph: ModuleGraph, search: NonfiniteSearch) -> Series | None:
    """The series at which NaN or infinity came up first; None if there is none, or if it is unknown."""
    return None if search.first is None else first_nonfinite_series(model, model.frame(search.first), graph)


def _wanted(graph: ModuleGraph, findings: Sequence[Finding], origin: Series | None) -> set[int]:
    """The calls that findings lead to, and that at which NaN or infinity came up first."""
    places = {(one.module, one.call) for one in findings[:MOST_FINDINGS]}
    places |= {(origin.module, origin.call)} if origin is not None else set()
    return {number for number, call in enumerate(graph.calls) if (call.module, call.call) in places}


def _unsearched(model: ModelRecord, search: NonfiniteSearch) -> tuple[str, ...]:
    if not 0 < len(search.found) < len(model):
        return ()
    return (f"Steps after {search.last_step} are still to be searched for NaN and infinity.",)


def _nonfinite_summary(
    *, search: NonfiniteSearch, numbers: Sequence[int], origin: Series | None
) -> NonfiniteSummary | None:
    """Where the record has NaN or infinity; `numbers` are those of the frames that are shown."""
    if search.first is None:
        return None
    gaps = [search.found[before + 1 : number].any() for before, number in zip([-1, *numbers], numbers, strict=False)]
    own = [number < len(search.found) and bool(search.found[number]) for number in numbers]
    flags = [NONFINITE * int(mine) + NONFINITE_BEFORE * int(gap) for mine, gap in zip(own, gaps, strict=True)]
    if search.first not in numbers:
        return NonfiniteSummary(0, None, flags, int(search.found.sum()))
    return NonfiniteSummary(numbers.index(search.first), origin, flags, int(search.found.sum()))


def page(run: RunRecord, model: str, *, engine: Engine = "graphviz", tensors: float = 0.0) -> bytes:
    """The exported page of one model, with so many MB of its kept tensors."""
    from torchgraph_explorer.server.export import page_of

    return page_of(
        run, models=[model], steps=PAGE_STEPS, tensors=tensors, most_work=MAX_WORK[engine], opens_panels=True
    )


if __name__ == "__main__":
    main()
