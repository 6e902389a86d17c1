"""Runs that earlier releases wrote, kept as they were: see tests/contracts/runs/README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torchgraph_explorer.run import open_run

RUNS = Path(__file__).parent.parent / "contracts" / "runs"
OLD = sorted(path for path in RUNS.iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", OLD, ids=[path.name for path in OLD])
def test_an_old_run_is_read_as_ever(folder: Path) -> None:
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    model = open_run(folder).model()
    assert [model.name, model.steps.tolist()] == [expected["model"], expected["steps"]]
    assert [list(series.key) for series in model.series] == expected["series"]
    assert [node.kind for node in model.graphs[0].nodes] == expected["nodes"]
    for series, rows in zip(model.series, expected["histories"], strict=True):
        history = model.history(series)
        np.testing.assert_array_equal(history.column("mean"), np.array(rows["mean"], dtype=np.float32))
        assert history.histograms.buckets.tolist() == rows["buckets"]
        assert history.histograms.counts.tolist() == rows["counts"]


@pytest.mark.parametrize("folder", OLD, ids=[path.name for path in OLD])
def test_nothing_in_an_old_run_counts_as_damaged(folder: Path) -> None:
    run = open_run(folder)
    model = run.model()
    rows = model.rows(range(len(model)))
    for number, series in enumerate(model.series):
        np.testing.assert_array_equal(model.history(series).statistics, rows.statistics[:, :, number].T)
    assert [model.frame(at).series.tolist() for at in range(len(model))] == [[0, 1, 2, 3]] * 3
    assert run.warnings == ()


def test_there_are_old_runs() -> None:
    assert [path.name for path in OLD] == ["v1", "v2"]
