"""Writes page.bin and page.json, which the Python and the TypeScript tests both read.

Run `python -m tests.contracts.page` after a change. page.bin is the data of an exported page, as its loader hands it to
the viewer; page.json says what the record has: of each series and frame the statistics, as the bits of float32, and the
elements in each bucket. tests/server/test_export.py checks by itself that a page says what its record says.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.record.examples import GRAPH, SERIES, frame, logged, write
from tests.server.pages import read_page
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import STATISTICS, Frame, StepFacts, StepNote
from torchgraph_explorer.server.export import export_page
from torchgraph_explorer.server.pack import pack

FILE = Path(__file__).with_suffix(".bin")
CONTENT = FILE.with_suffix(".json")

FRAMES = 12


EXPLANATION = {
    "name": "dead-units",
    "title": "dead-units",
    "line": "They are dead.",
    "is_kind": True,
    "parts": [{"name": "What it means", "blocks": [{"text": [{"text": "See "}, {"text": "units", "link": "#units"}]}]}],
}
"""In place of those that the release at hand has."""


def odd_frame(step: int) -> Frame:
    """Random numbers, series that come and go, counts up to the largest, and statistics that are no numbers."""
    one = frame(step, series=(0, 1, 2, 3) if step % 4 else (1, 3))
    counts = one.histograms.counts.copy()
    counts[:: step % 7 + 2] = (1, 2**32 - 1, 300, 70_000)[step % 4]
    statistics = one.statistics.copy()
    statistics[0, step % len(STATISTICS) :] = (np.nan, np.inf, -0.0, 3e38)[step % 4]
    return replace(one, statistics=statistics, histograms=replace(one.histograms, counts=counts), facts=facts(step))


def facts(step: int) -> StepFacts | None:
    """Two optimizers take turns; one of their updates is skipped, and of the last step nothing is known."""
    if step == FRAMES - 1:
        return None
    return StepFacts("skipped" if step == 2 else "update", 1 + step, min(1 + step, 4), (("Adam", "Adam #2")[step % 2],))


def files() -> tuple[bytes, str]:
    """The contents of page.bin and page.json. What another Graphviz, release or rule would change is left out."""
    with TemporaryDirectory() as folder:
        run_dir = Path(folder, "page")
        noted = (StepNote(4, 2_004.0, "switched"),)
        scalars = logged([0, 4, 9], loss=[2.5, np.nan, -0.125], tokens=[8, 9, 64], notes=noted)
        write(run_dir, GRAPH, SERIES, *(odd_frame(step) for step in range(FRAMES)), scalars)
        page, model = read_page(export_page(open_run(run_dir))), open_run(run_dir).model()
        content = [_row(model.frame(at), series) for at in range(FRAMES) for series in range(len(SERIES))]
    found = {**page.model["findings"], "findings": []}
    meta = {
        **page.meta,
        "version": "",
        "explanations": [EXPLANATION],
        "models": [{**page.model, "drawings": [], "findings": found}],
    }
    meta = json.loads(json.dumps(meta, sort_keys=True))  # a map of protobuf has its keys in any order
    rows = ",\n".join(json.dumps(row) for row in content)
    return pack(meta, page.arrays), f"[\n{rows}\n]\n"


def _row(one: Frame, series: int) -> dict[str, Any] | None:
    if series not in one.series:
        return None
    row = int(one.rows[one.series.tolist().index(series)])
    histogram = one.histograms.row(row)
    return {
        "series": series,
        "step": one.step,
        "statistics": one.statistics[row].view(np.uint32).tolist(),
        "buckets": histogram.buckets.tolist(),
        "counts": histogram.counts.tolist(),
    }


if __name__ == "__main__":
    binary, text = files()
    FILE.write_bytes(binary)
    CONTENT.write_text(text, encoding="utf-8")
