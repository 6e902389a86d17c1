"""`api/scalars`: bins of logged scalars, what is new of them, and notes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.record.examples import SESSION, labelled, logged, write
from tests.server.asking import ask, unpack
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import StepNote
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app
from torchgraph_explorer.server.scalars import binned, page_scalars, unit_for


def asked(served: App, **query: Any) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """What is said, and the arrays as lists."""
    answer = ask(served, "/api/scalars", {"run": ".", "model": "net", "scalars": "0,1", "most": 64, **query})
    assert answer.status == 200, answer.json
    meta, arrays = unpack(answer.body)
    return meta, {name: array.tolist() for name, array in arrays.items()}


def scalar(values: list[float], *, every: int = 1) -> Scalar:
    steps = np.arange(len(values), dtype=np.int64) * every
    return Scalar("it", steps, steps.astype(np.float64), np.array(values, dtype=np.float64))


def test_a_client_follows_a_run_by_asking_for_what_is_new(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    writer.write(SESSION)
    writer.write(logged([0, 1, 2], loss=[3, 2, math.nan], tokens=[8, 9, 10], notes=(StepNote(1, 2_000.0, "so"),)))
    served = app(Runs(tmp_path))
    meta, arrays = asked(served)
    assert [(one["name"], one["values"], one["is_axis"]) for one in meta["scalars"]] == [
        ("loss", 3, False),
        ("tokens", 3, True),
    ]
    assert meta["notes"] == [{"step": 1, "time": 2_000.0, "text": "so"}]
    assert (arrays["1.step"], arrays["1.value"], arrays["1.time"][0]) == ([0, 1, 2], [8, 9, 10], 2_000.0)
    held = {"version": meta["version"], "unit": meta["unit"], "from": 2}
    assert asked(served, **held) == ({"version": meta["version"], "is_same": True}, {})
    writer.write(logged([2, 3], loss=[1, 0.5], tokens=[11, 12]))
    meta, arrays = asked(served, **held)
    assert (meta["from"], arrays["0.step"], arrays["0.value"]) == (2, [2, 3], [1, 0.5])
    writer.write(logged([0], loss=[9]))
    meta, arrays = asked(served, **held)
    assert (meta["from"], arrays["0.value"]) == (0, [9, 2, 1, 0.5])
    writer.close()


def test_labels_have_numbers_of_their_own_on_the_server_and_a_page(tmp_path: Path) -> None:
    write(tmp_path, logged([0, 1], loss=[3, 2]), labelled("eval", logged([1], loss=[5])))
    meta, arrays = asked(app(Runs(tmp_path)))
    page, page_arrays = page_scalars(open_run(tmp_path).model().logged, most=512, most_bytes=200_000)
    facts = [
        {"name": "loss", "values": 2, "is_axis": False},
        {"name": "loss", "label": "eval", "values": 1, "is_axis": False},
    ]
    assert (meta["scalars"], page["scalars"]) == (facts, facts)
    assert (arrays["0.value"], arrays["1.value"]) == ([3, 2], [5]) == (page_arrays["0.value"].tolist(), [5])


def test_a_long_run_is_thinned_and_a_spike_stays(tmp_path: Path) -> None:
    values = [1.0] * 10_000
    values[7_777] = 1e6
    values[50] = math.nan
    write(tmp_path, logged([*range(10_000)], loss=values))
    meta, arrays = asked(app(Runs(tmp_path)), scalars="0")
    assert (meta["unit"], len(arrays["0.step"])) == (256, 40)
    assert (max(arrays["0.high"]), min(arrays["0.low"])) == (1e6, 1.0)
    assert (sum(arrays["0.count"]), sum(arrays["0.bad"])) == (10_000, 1)
    assert (arrays["0.step"][1], arrays["0.last"][1]) == (256, 511)


def test_a_scalar_that_is_logged_seldom_keeps_each_value() -> None:
    seldom = scalar([1.0, math.inf, 3.0], every=1000)
    unit = unit_for([scalar([0.0] * 5_000), seldom], 100)
    found = binned(seldom, unit)
    assert (unit, found["value"].tolist(), found["step"].tolist()) == (64, [1.0, math.inf, 3.0], [0, 1000, 2000])


def test_a_mean_of_huge_values_does_not_overflow() -> None:
    found = binned(scalar([1.5e308, 1.5e308, math.nan, -math.inf]), 2)
    np.testing.assert_array_equal(found["value"], [1.5e308, math.nan])
    np.testing.assert_array_equal(found["high"], [1.5e308, math.nan])


def test_a_page_has_all_scalars_in_bounded_bytes(tmp_path: Path) -> None:
    values = [*map(float, range(2_000))]
    write(tmp_path, *(logged([*range(2_000)], **{f"s{number}": values}) for number in range(20)))  # type: ignore[arg-type]
    facts, arrays = page_scalars(open_run(tmp_path).model().logged, most=512, most_bytes=200_000)
    assert len(facts["scalars"]) == 20
    assert sum(array.nbytes for array in arrays.values()) < 200_000


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ({"scalars": "x"}, "scalars='x' is not a whole number"),
        ({"scalars": ",".join(map(str, range(600)))}, "600 scalars were asked for at once"),
        ({"most": 3}, "most='3' is not a whole number of at least 64"),
    ],
)
def test_a_wrong_question_is_answered_with_what_is_allowed(query: dict[str, Any], what: str, tmp_path: Path) -> None:
    write(tmp_path, logged([0], loss=[1.0]))
    told = ask(app(Runs(tmp_path)), "/api/scalars", {"run": ".", "model": "net", "scalars": "0", "most": 64, **query})
    assert (told.status, what in told.json["error"]) == (400, True)


def test_a_scalar_that_does_not_exist_has_no_values(tmp_path: Path) -> None:
    write(tmp_path, logged([0], loss=[1.0]))
    meta, arrays = asked(app(Runs(tmp_path)), scalars="5")
    assert (meta["wanted"], arrays) == ([], {})
