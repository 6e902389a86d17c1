"""The child process that makes a snapshot: the chart's table, and the page if it is wanted, from the run's record."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path

from torchgraph_explorer.errors import NotFoundError, TorchgraphWarning
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.reader import Run
from torchgraph_explorer.record.runs import open_run
from torchgraph_wandb.drawing import Way, draw
from torchgraph_wandb.keeping import STEPS, thinned_numbers
from torchgraph_wandb.table import State, affordable_steps, table_rows

TABLE, PAGE = "table.json", "page.html"
"""The files it leaves."""

PAGE_STEPS = 100

NICENESS = 10
"""Of a snapshot that nobody waits for: the training goes first."""


def main() -> None:
    """Make what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run_dir")
    parser.add_argument("model")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--way", default="graphviz")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--aside", action="store_true")
    asked = parser.parse_args()
    if asked.aside and hasattr(os, "nice"):
        os.nice(NICENESS)
    warnings.simplefilter("ignore", TorchgraphWarning)  # a live run's torn end is nobody's fault
    run = open_run(asked.run_dir)
    rows = table_rows(state_of(run.model(asked.model), way=asked.way))
    (asked.folder / TABLE).write_text(json.dumps(rows), encoding="utf-8")
    if asked.page:
        unfinished = asked.folder / "page"
        unfinished.write_bytes(page(run, asked.model))
        unfinished.rename(asked.folder / PAGE)  # whoever runs out of patience finds all of it or nothing


def state_of(model: ModelRecord, *, way: Way = "graphviz") -> State:
    """What a chart of `model` shows.

    Raises:
        NotFoundError: It has no step or no graph yet.
    """
    known = [graph for graph in model.graph_ids.tolist() if graph >= 0]
    if not known:
        raise NotFoundError(f"Model {model.name!r} has no recorded step yet.")
    graph = model.graphs[known[-1]]
    most = affordable_steps(len(model.series), STEPS)
    frames = [model.frame(number) for number in thinned_numbers(len(model), most)]
    return State(model.session, graph, draw(graph, way=way), model.series, frames, len(model), model.notes)


def page(run: Run, model: str) -> bytes:
    """The exported page of one model."""
    from torchgraph_explorer.server.export import export_page

    return export_page(run, models=[model], steps=PAGE_STEPS)


if __name__ == "__main__":
    main()
