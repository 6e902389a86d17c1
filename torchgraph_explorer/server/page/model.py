"""One model of a page: the answers that the server's routes would give, each once, and its numbers as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.schema import ModuleGraph
from torchgraph_explorer.server.answers import graph_answer, updates_answer
from torchgraph_explorer.server.page.drawings import drawings
from torchgraph_explorer.server.page.histories import read_histories
from torchgraph_explorer.server.page.numbers import number_arrays
from torchgraph_explorer.server.scalars import page_scalars
from torchgraph_explorer.server.xray import page_xray

SCALAR_BINS, SCALAR_BYTES = 512, 400_000
"""Bins of a logged scalar on a page at most; fewer where all scalars together would have more bytes than this."""

Json = dict[str, Any]
Arrays = dict[str, npt.NDArray[np.generic]]


def page_model(
    run: RunRecord, model: ModelRecord, *, frames: Sequence[int], series: Sequence[int], most_work: int
) -> tuple[Json, Arrays]:
    """The page's facts about `model`, and its numbers; these frames and series are renumbered from 0."""
    graphs = _graphs(model, frames)
    updates = updates_answer(run, model, epoch=0)
    thinned = _thinned(updates, frames, series)
    known = [one for one in updates["graphs"] if one["graph"] in {graph.id for graph in graphs}]
    missing = _missing(model, frames=len(frames), series=len(series))
    scalars, scalar_arrays = page_scalars(model.logged, most=SCALAR_BINS, most_bytes=SCALAR_BYTES)
    facts = {
        "updates": {**thinned, "graphs": known, "warnings": [*missing, *updates["warnings"]]},
        "graphs": [graph_answer(model, graph) for graph in graphs],
        **drawings(graphs, most_work=most_work),
        "scalars": scalars,
        "recorded": {"frames": len(model), "series": len(model.series)},
    }
    facts["xray"], xray_arrays = page_xray(model)
    arrays = dict(number_arrays(read_histories(model, frames, series)))
    arrays |= {f"xray.{name}": array for name, array in xray_arrays.items()}
    return facts, arrays | {f"scalars.{name}": array for name, array in scalar_arrays.items()}


def _missing(model: ModelRecord, *, frames: int, series: int) -> list[str]:
    """Sentences about what the page leaves out."""
    sentences = []
    if frames < len(model):
        which = "the last one" if frames == 1 else "the first, the last, and others evenly between"
        sentences.append(
            f"This page shows {frames:,} of {len(model):,} steps: {which}. Export with --steps N for more."
        )
    if series < len(model.series):
        sentences.append(
            f"This page has the numbers of {series:,} of {len(model.series):,} series: of what was attached by hand, "
            f"of the model itself, and of the modules that lie least deep. Export with --series N for more."
        )
    return sentences


def _graphs(model: ModelRecord, frames: Sequence[int]) -> list[ModuleGraph]:
    """The graphs of the frames; if they have none, the latest graph."""
    ids, known = model.graph_ids, model.graphs
    used = sorted({int(ids[frame]) for frame in frames} - {-1})
    return [known[graph] for graph in used] or list(known[-1:])


def _thinned(updates: Json, frames: Sequence[int], series: Sequence[int]) -> Json:
    """`updates` with only these frames and series, renumbered from 0."""
    every, items = updates["frames"], updates["series"]["items"]
    kept = {name: [values[frame] for frame in frames] for name, values in every.items() if name != "first"}
    return {
        **updates,
        "epoch": 0,
        "reset": True,
        "frames": {"first": 0, **kept},
        "series": {"first": 0, "items": [{**items[one], "series": number} for number, one in enumerate(series)]},
    }
