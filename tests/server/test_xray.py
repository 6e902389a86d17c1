"""`api/xray`, and the same on an exported page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.record.examples import write
from tests.record.test_cells import SERIES, STEPS, frames
from tests.server.asking import ask, unpack
from torchgraph_explorer import open_run
from torchgraph_explorer.record.cells.codes import is_bad
from torchgraph_explorer.schema import Call, Finished, ModuleGraph
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app
from torchgraph_explorer.server.xray import page_xray
from torchgraph_explorer.xray.order import execution_order


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("xray")
    write(path, SERIES, *frames(range(STEPS)), Finished(3_000.0))
    return path


@pytest.fixture(scope="module")
def served(folder: Path) -> App:
    return app(Runs(folder))


def asked(served: App, **query: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    answer = ask(served, "/api/xray", {"run": ".", "model": "net", "statistic": "output_std", "most": 64, **query})
    assert answer.status == 200, answer.json
    return unpack(answer.body)


@pytest.mark.slow
def test_all_steps_come_in_as_many_columns_as_were_asked_for(served: App) -> None:
    meta, arrays = asked(served)
    assert (meta["unit"], meta["is_complete"], meta["modules"]) == (4, True, ["", "a", "b"])
    assert arrays["first"].tolist() == list(range(0, STEPS, 4))
    assert arrays["last"].tolist() == [*range(3, STEPS, 4), STEPS - 1]
    assert arrays["codes"].shape == (3, 38)
    bad = is_bad(arrays["codes"].view(np.uint16))
    assert np.argwhere(bad).tolist() == [[2, 77 // 4]]


def test_a_stretch_comes_in_finer_columns(served: App) -> None:
    meta, arrays = asked(served, **{"from": 70, "to": 90})
    assert (meta["unit"], arrays["first"].tolist()) == (1, list(range(70, 91)))


def test_a_client_that_has_everything_gets_nothing(served: App) -> None:
    version = asked(served)[0]["version"]
    assert asked(served, version=version)[0] == {"version": version, "is_same": True}
    assert not asked(served, version=version, statistic="zeros")[0]["is_same"]


def test_the_statistics_that_the_model_has_are_named(served: App) -> None:
    meta, _ = asked(served, statistic="")
    assert meta["available"] == [
        *("output_gradient", "output_std", "output_magnitude", "zeros", "update_ratio", "parameter_norm", "nonfinite")
    ]
    assert meta["statistic"] == "output_gradient"


def test_an_unknown_statistic_is_refused_with_those_there_are(served: App) -> None:
    answer = ask(served, "/api/xray", {"run": ".", "model": "net", "statistic": "size", "most": 64})
    assert answer.status == 400
    assert answer.json["error"].startswith("statistic='size' is not one of output_gradient, ")


def test_a_page_has_the_cells_of_all_steps(folder: Path) -> None:
    facts, arrays = page_xray(open_run(folder).model())
    assert facts["modules"] == ["", "a", "b"]
    assert arrays["last"][-1] == STEPS - 1
    assert is_bad(arrays["codes.zeros"].view(np.uint16)).any()
    assert {name.partition(".")[2] for name in arrays if "." in name} == set(facts["available"])


def graph(number: int, *modules: str) -> ModuleGraph:
    return ModuleGraph(number, 0, (), tuple(Call(name, 0, None, (), ()) for name in modules), (), ())


@pytest.mark.parametrize(
    ("modules", "calls", "expected"),
    [
        pytest.param(["b", "", "a"], [["", "a", "b"]], ["", "a", "b"], id="as called"),
        pytest.param(["", "a", "b", "c"], [["", "a", "c"], ["", "a", "b", "c"]], ["", "a", "b", "c"], id="later graph"),
        pytest.param(["", "a", "a.w", "b"], [["", "a", "b"]], ["", "a", "a.w", "b"], id="not called"),
        pytest.param(["x", "y"], [], ["x", "y"], id="no graph"),
        pytest.param(["", "a"], [["", "a", "a", "gone"]], ["", "a"], id="only those that are there"),
    ],
)
def test_modules_are_in_the_order_of_execution(modules: list[str], calls: list[list[str]], expected: list[str]) -> None:
    assert execution_order(modules, [graph(number, *names) for number, names in enumerate(calls)]) == expected


def test_very_many_modules_that_are_not_called_are_put_in_order_at_once() -> None:
    inside = [f"part{i % 500}.layer{i}" for i in range(50_000)]
    began = time.process_time()
    order = execution_order(inside, [graph(0, "", *inside[:20_000]), graph(1, "", *inside[:20_000])])
    assert time.process_time() - began < 5
    assert sorted(order) == sorted(inside)
    assert [name for name in order if int(name.partition("layer")[2]) < 20_000] == inside[:20_000]


def told(served: App, route: str, **query: Any) -> Any:
    return ask(served, route, {"run": ".", "model": "net", **query})


def test_what_changed_is_told_as_json(served: App) -> None:
    answer = told(served, "/api/changes", step=77).json
    assert (answer["step"], answer["since"]) == (77, 76)
    first = answer["ranked"][0]
    assert first["series"] == {"module": "b", "call": 0, "role": "output", "path": "output", "kind": "value"}
    assert (first["measure"], first["before"], first["now"]) == ("nonfinite", "0 %", "10 %")
    assert told(served, "/api/changes", step=77, since=50).json["since"] == 50
    assert told(served, "/api/changes", step=0).status == 404


def test_what_is_related_is_told_as_json(served: App) -> None:
    assert told(served, "/api/related", scalar="gone").status == 404
    series = {"module": "a", "call": 1, "role": "output", "path": "output", "kind": "value"}
    assert told(served, "/api/related", **{**series, "module": "gone"}).status == 404
    answer = told(served, "/api/related", **series)
    assert answer.json["target"] == "a, output, value"
    assert {"chance", "steps", "spacing", "count", "beyond_chance", "ranked"} <= set(answer.json)


def test_what_is_unusual_where_a_limit_is_passed_is_told_as_json(served: App) -> None:
    series = {"module": "b", "call": 0, "role": "output", "path": "output", "kind": "value"}
    answer = told(served, "/api/related", **series, above=0.0, measure="nonfinite").json
    assert (answer["steps"], answer["ranked"][0]["series"]["module"], answer["findings"]) == (1, "b", [])
    for wrong in ({"above": "high"}, {"above": "nan"}, {"below": 1.0, "measure": "median"}):
        assert told(served, "/api/related", **series, **wrong).status == 400
    assert told(served, "/api/related", **series, above=1e9).status == 404


def test_what_is_unusual_at_some_steps_is_told_as_json(served: App) -> None:
    assert told(served, "/api/related", **{"from": 5_000, "to": 5_001}).status == 404
    answer = told(served, "/api/related", **{"from": 77, "to": 77}).json
    assert (answer["steps"], answer["others"]) == (1, STEPS - 1)
    first = answer["ranked"][0]
    assert (first["series"]["module"], first["measure"], first["share"]) == ("b", "nonfinite", 1.0)
