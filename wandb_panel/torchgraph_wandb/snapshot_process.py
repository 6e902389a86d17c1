"""The child process that makes a snapshot from the run's record: the chart's table, and the page on request."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path

from torchgraph_explorer.errors import NotFoundError, TorchgraphWarning
from torchgraph_explorer.findings.engine import judge
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.live import MOST_CELLS
from torchgraph_explorer.record.discovery import open_record
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.schema import Frame, ModuleGraph
from torchgraph_explorer.server.page.choice import with_frame
from torchgraph_wandb.chart_data import NONFINITE, NONFINITE_BEFORE, ChartData, NonfiniteSummary
from torchgraph_wandb.graph_layout import MAX_WORK, Engine, layout_insides
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
    most = affordable_steps(len(model.series), MAX_STEPS)
    numbers = with_frame(thinned_indices(len(model), most), search.first)
    frames = [model.frame(number) for number in numbers]
    notes = (*model.notes, *_unsearched(model, search))
    return ChartData(
        model.session,
        graph,
        layout_insides(graph, engine=engine),
        model.series,
        frames,
        len(model),
        notes=notes,
        findings=tuple(judge(Evidence(model, most=MOST_CELLS))),
        xray=xray_data(model),
        nonfinite=_nonfinite_summary(model, graph, search=search, shown=dict(zip(numbers, frames, strict=True))),
    )


def _unsearched(model: ModelRecord, search: NonfiniteSearch) -> tuple[str, ...]:
    if not 0 < len(search.found) < len(model):
        return ()
    return (f"Steps after {search.last_step} are still to be searched for NaN and infinity.",)


def _nonfinite_summary(
    model: ModelRecord, graph: ModuleGraph, *, search: NonfiniteSearch, shown: Mapping[int, Frame]
) -> NonfiniteSummary | None:
    """Where the record has NaN or infinity; `shown` holds the frames that are shown, by their numbers."""
    first = search.first
    if first is None:
        return None
    numbers = list(shown)
    gaps = [search.found[before + 1 : number].any() for before, number in zip([-1, *numbers], numbers, strict=False)]
    own = [number < len(search.found) and bool(search.found[number]) for number in numbers]
    flags = [NONFINITE * int(mine) + NONFINITE_BEFORE * int(gap) for mine, gap in zip(own, gaps, strict=True)]
    frame = shown.get(first)
    index = numbers.index(first) if frame is not None else 0
    origin = first_nonfinite_series(model, frame, graph) if frame is not None else None
    return NonfiniteSummary(index, origin, flags, int(search.found.sum()))


def page(run: RunRecord, model: str, *, engine: Engine = "graphviz", tensors: float = 0.0) -> bytes:
    """The exported page of one model, with so many MB of its kept tensors."""
    from torchgraph_explorer.server.export import page_of

    return page_of(
        run, models=[model], steps=PAGE_STEPS, tensors=tensors, most_work=MAX_WORK[engine], opens_panels=True
    )


if __name__ == "__main__":
    main()
