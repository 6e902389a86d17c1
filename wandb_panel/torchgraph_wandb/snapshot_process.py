"""The child process that makes a snapshot: the chart's table, and the page if it is wanted, from the run's record."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from torchgraph_explorer.errors import NotFoundError, TorchgraphWarning
from torchgraph_explorer.record.discovery import open_run
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.reader import Run
from torchgraph_explorer.schema import Frame, ModuleGraph
from torchgraph_explorer.server.page.choice import with_frame
from torchgraph_wandb.drawing import Way, draw
from torchgraph_wandb.keeping import STEPS, thinned_numbers
from torchgraph_wandb.state import BAD, BAD_BEFORE, State, Trouble
from torchgraph_wandb.table import affordable_steps, table_rows
from torchgraph_wandb.troubles import NOTHING, Searched, origin, search_on

TABLE, PAGE, SEARCHED = "table.json", "page.html", "searched.npz"
"""The files it leaves; the last one is also what it finds of the snapshot before."""

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
    model = run.model(asked.model)
    searched = search_on(model, read_searched(asked.folder / SEARCHED))
    write_searched(asked.folder / SEARCHED, searched)
    rows = table_rows(state_of(model, searched, way=asked.way))
    (asked.folder / TABLE).write_text(json.dumps(rows), encoding="utf-8")
    if asked.page:
        unfinished = asked.folder / "page"
        unfinished.write_bytes(page(run, asked.model))
        unfinished.rename(asked.folder / PAGE)  # whoever runs out of patience finds all of it or nothing


def state_of(model: ModelRecord, searched: Searched = NOTHING, *, way: Way = "graphviz") -> State:
    """What a chart of `model` shows, of which so much was `searched` for NaN and infinity.

    Raises:
        NotFoundError: It has no step or no graph yet.
    """
    known = [graph for graph in model.graph_ids.tolist() if graph >= 0]
    if not known:
        raise NotFoundError(f"Model {model.name!r} has no recorded step yet.")
    graph = model.graphs[known[-1]]
    most = affordable_steps(len(model.series), STEPS)
    numbers = with_frame(thinned_numbers(len(model), most), searched.first)
    frames = [model.frame(number) for number in numbers]
    notes = (*model.notes, *_unsearched(model, searched))
    return State(
        model.session,
        graph,
        draw(graph, way=way),
        model.series,
        frames,
        len(model),
        notes=notes,
        trouble=_trouble(model, graph, searched=searched, shown=dict(zip(numbers, frames, strict=True))),
    )


def _unsearched(model: ModelRecord, searched: Searched) -> tuple[str, ...]:
    if not 0 < len(searched.bad) < len(model):
        return ()
    return (f"Steps after {searched.last_step} are still to be searched for NaN and infinity.",)


def _trouble(
    model: ModelRecord, graph: ModuleGraph, *, searched: Searched, shown: Mapping[int, Frame]
) -> Trouble | None:
    """Where the record has NaN or infinity; `shown` are its frames that are shown, by their numbers."""
    first = searched.first
    if first is None:
        return None
    numbers = list(shown)
    gaps = [searched.bad[before + 1 : number].any() for before, number in zip([-1, *numbers], numbers, strict=False)]
    own = [number < len(searched.bad) and bool(searched.bad[number]) for number in numbers]
    bad = [BAD * int(mine) + BAD_BEFORE * int(gap) for mine, gap in zip(own, gaps, strict=True)]
    frame = shown.get(first)
    place = numbers.index(first) if frame is not None else 0
    found = origin(model, frame, graph) if frame is not None else None
    return Trouble(place, found, bad, int(searched.bad.sum()))


def read_searched(file: Path) -> Searched:
    """What an earlier snapshot has found; nothing if there was none."""
    try:
        with file.open("rb") as opened, np.load(opened) as found:
            return Searched(found["bad"].astype(np.bool_), int(found["last_step"]))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return NOTHING


def write_searched(file: Path, searched: Searched) -> None:
    """Leave it to the next one."""
    with file.open("wb") as to:
        np.savez(to, bad=searched.bad, last_step=np.int64(searched.last_step))


def page(run: Run, model: str) -> bytes:
    """The exported page of one model."""
    from torchgraph_explorer.server.export import export_page

    return export_page(run, models=[model], steps=PAGE_STEPS)


if __name__ == "__main__":
    main()
