"""`api/calls`: one histogram of a tensor over all calls of its module."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.record.examples import GRAPH, SERIES, frame, write
from tests.server.asking import ask
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.schema import STATISTICS
from torchgraph_explorer.server.calls import BARS, calls_answer
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.routes import app

TURNS = 6


class Loop(nn.Module):
    """The outputs of its cell are known: they are what it was given, and 1 more at each turn."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.weight = nn.Identity(), nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(TURNS):
            x = self.cell(x) + self.weight
        return x


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = Loop()
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="run", verbose=False):
        model(torch.zeros(100)).sum().backward()
        model(torch.full((100,), torch.nan)).sum().backward()
    return tmp_path / "run"


def test_the_calls_of_a_step_are_one_histogram(folder: Path) -> None:
    model = open_run(folder).model()
    (first, *_) = model.find("cell", role="output", kind="value")
    answer = calls_answer(model, first, 0)
    assert (answer["calls"], answer["elements"], answer["low"], answer["high"]) == (TURNS, 100 * TURNS, 0.0, TURNS - 1)
    assert sum(answer["counts"]) == pytest.approx(100 * TURNS, abs=0.5)
    filled = np.flatnonzero(answer["counts"])
    assert (len(answer["counts"]), filled[0], filled[-1]) == (BARS, 0, BARS - 1)


def test_calls_without_finite_elements_have_no_bars(folder: Path) -> None:
    model = open_run(folder).model()
    (first, *_) = model.find("cell", role="output", kind="value")
    assert calls_answer(model, first, 1)["counts"] == []
    with pytest.raises(NotFoundError):
        calls_answer(model, first, 7)


@pytest.mark.parametrize("ends", [(np.nan, np.nan), (-np.inf, 1.0), (0.0, np.inf)])
def test_elements_whose_ends_are_not_finite_have_no_bars(ends: tuple[float, float], tmp_path: Path) -> None:
    odd = frame(0)
    odd.statistics[:, STATISTICS.index("min")], odd.statistics[:, STATISTICS.index("max")] = ends
    write(tmp_path, GRAPH, SERIES, odd)
    answer = calls_answer(open_run(tmp_path).model(), SERIES[0], 0)
    assert (answer["elements"] > 0, answer["counts"]) == (True, [])


def test_a_constant_is_one_bar(folder: Path) -> None:
    model = open_run(folder).model()
    (weight,) = model.find(role="param", kind="value")
    answer = calls_answer(model, weight, 0)
    assert (answer["low"], answer["high"], answer["counts"]) == (1.0, 1.0, [1])


def test_calls_are_drawn_as_one_node_or_if_asked_for_each_by_itself(folder: Path) -> None:
    served = app(Runs(folder.parent))
    asked = {"run": "run", "model": "Loop", "graph": 0, "inside": 0}
    folded = ask(served, "/api/layout", asked).json
    assert [len(node["all"]) for node in folded["nodes"] if node.get("all")] == [TURNS]
    apart = ask(served, "/api/layout", {**asked, "single": 1}).json
    assert not any(node.get("all") for node in apart["nodes"])
    assert len(apart["nodes"]) == len(folded["nodes"]) + TURNS - 1
