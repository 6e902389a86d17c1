"""Every route against a run on disk: what it answers, and what it says when it cannot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.record.examples import GRAPH, SERIES, SESSION, frame, write, write_small_run
from tests.server.asking import Answer, ask, unpack
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import STATISTICS, Finished, Frame
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.response import COMPRESSED_FROM, App
from torchgraph_explorer.server.routes import ROUTES, app
from torchgraph_explorer.version import __version__

OF_NET = {"run": "a", "model": "net"}
FROM_NOTHING = {**OF_NET, "epoch": -1, "frames": 0, "series": 0}


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run `a` with one of everything, and `group/b` with four hundred frames. Not to be changed."""
    logdir = tmp_path_factory.mktemp("logdir")
    write_small_run(logdir / "a")
    write(logdir / "group" / "b", GRAPH, SERIES, *(frame(step, graph=None) for step in range(400)))
    return logdir


@pytest.fixture(scope="module")
def served(logdir: Path) -> App:
    return app(Runs(logdir))


@pytest.fixture(scope="module")
def epoch(served: App) -> int:
    return int(ask(served, "/api/updates", FROM_NOTHING).json["epoch"])


def test_health_says_what_is_served(served: App, logdir: Path) -> None:
    said = {"product": "torchgraph_explorer", "version": __version__, "logdir": str(logdir)}
    assert ask(served, "/api/health").json == said


def test_a_run_whose_name_no_address_can_contain_is_listed_with_the_reason(tmp_path: Path) -> None:
    name = os.fsdecode(b"a \xff run")
    try:
        write_small_run(tmp_path / name)
    except OSError as refused:
        pytest.skip(f"this file system has no such names: {refused}")
    write_small_run(tmp_path / "sound")
    told = {run["run"]: run["error"] for run in ask(app(Runs(tmp_path)), "/api/runs").json["runs"]}
    assert told["sound"] is None
    assert "is not UTF-8, so no address can contain it. Rename the folder" in told[name]


def test_runs_are_listed_by_their_path_from_the_logdir(served: App, logdir: Path) -> None:
    told = ask(served, "/api/runs").json
    assert told["logdir"] == str(logdir)
    assert {run["run"]: run["models"] for run in told["runs"]} == {"a": ["net"], "group/b": ["net"]}
    assert set(told["runs"][0]) == {"run", "models", "first_write", "last_write", "bytes", "error"}


def test_updates_from_nothing_tell_everything(served: App) -> None:
    told = ask(served, "/api/updates", FROM_NOTHING).json
    session = {
        **{"model": "net", "class_name": "ResNet", "created": 1000.5, "host": "laptop", "pid": 77},
        **{"versions": SESSION.versions, "log": ["io", "params"], "log_freq": "50", "sample_n": None, "bins": 64},
        **{"reject_outlier_proportion": 0.1, "clock": "epoch"},
    }
    assert (told["run"], told["model"], told["reset"], told["session"]) == ("a", "net", True, session)
    assert told["frames"] == {
        **{"first": 0, "step": [0, 10, 20], "time": [2000, 2010, 2020], "clock": [0, 2.5, 5], "graph": [0, 0, 0]},
        **{"kind": [None, None, None], "passes": [[0, 0], [0, 0], [0, 0]]},
    }
    assert (told["kinds"], told["optimizers"]) == ([], [])
    assert told["series"]["first"] == 0
    assert told["series"]["items"][2] == {
        **{"series": 2, "module": "fc", "call": None, "role": "param", "path": "weight", "kind": "grad"}
    }
    assert told["graphs"] == [{"graph": 0, "first_step": 10, "revision": 0}]
    assert told["finished"] == {"time": 3000, "notes": ["Nothing was lost."]}
    assert told["warnings"] == []


def test_updates_tell_a_client_only_what_it_lacks(served: App, epoch: int) -> None:
    told = ask(served, "/api/updates", {**OF_NET, "epoch": epoch, "frames": 2, "series": 4}).json
    assert not told["reset"]
    assert told["frames"] == {
        **{"first": 2, "step": [20], "time": [2020], "clock": [5], "graph": [0], "kind": [None], "passes": [[0, 0]]}
    }
    assert told["series"] == {"first": 4, "items": []}


@pytest.mark.parametrize("held", [{"epoch": 1}, {"frames": 4}, {"series": 5}], ids=str)
def test_a_client_that_holds_something_else_is_told_everything(held: dict[str, int], served: App, epoch: int) -> None:
    asked = {**OF_NET, "epoch": epoch, "frames": 3, "series": 4, **held}
    told = ask(served, "/api/updates", asked).json
    assert told["reset"]
    assert (told["frames"]["first"], told["series"]["first"]) == (0, 0)


def test_a_graph_is_told_by_indices(served: App) -> None:
    told = ask(served, "/api/graph", {**OF_NET, "graph": 0}).json
    assert {key: told[key] for key in ("graph", "revision", "first_step")} == {
        "graph": 0,
        "revision": 0,
        "first_step": 10,
    }
    assert told["modules"][1]["extra_repr"] == [["", "4"], ["bias", "False"]]
    assert [(call["module"], call["call"], call["parent"]) for call in told["calls"]] == [
        (0, 0, None),
        (1, 0, 0),
        (1, 1, 0),
    ]
    image = {
        "path": "input['image']",
        "shape": [None, 4],
        "dtype": "bfloat16",
        "requires_grad": False,
        "varied": [[32, 7]],
    }
    assert told["modules"][1]["forward_parameters"] == ["input"]
    assert told["nodes"][1] == {"kind": "input", "inside": 0, "call": None, "tensor": image}
    assert told["edges"][0] == {"source": 1, "target": 2, "gradient": False, "series": []}


def test_a_layout_places_the_nodes_of_one_inside(served: App) -> None:
    told = ask(served, "/api/layout", {**OF_NET, "graph": 0, "inside": 0}).json
    assert set(told) == {"width", "height", "nodes", "edges", "approximate"}
    assert [node["node"] for node in told["nodes"]] == [1, 2, 3, 4, 5]
    assert set(told["edges"][0]) == {"edge", "points", "is_stub"}
    assert [node["node"] for node in ask(served, "/api/layout", {**OF_NET, "graph": 0}).json["nodes"]] == [0]


def test_a_history_holds_what_the_reader_reads(served: App, logdir: Path, epoch: int) -> None:
    answer = ask(served, "/api/history", {**OF_NET, "series": "3,0", "from": 1})
    meta, arrays = unpack(answer.body)
    place = {"epoch": epoch, "frames": 3, "unit": 1, "from": 1}
    assert meta == {**place, "series": [3, 0], "statistics": list(STATISTICS)}
    expected = open_run(logdir / "a").model().history(3, 1)
    assert arrays["3.frame"].tolist() == [1, 2]
    np.testing.assert_array_equal(arrays["3.statistics"], expected.statistics)
    for name in ("offsets", "buckets", "counts"):
        np.testing.assert_array_equal(arrays[f"3.{name}"], getattr(expected.histograms, name))


def test_a_frame_holds_the_statistics_of_every_series(served: App, epoch: int) -> None:
    meta, arrays = unpack(ask(served, "/api/frame", {**OF_NET, "step": 10}).body)
    assert meta == {"epoch": epoch, "step": 10, "statistics": list(STATISTICS)}
    written = frame(10)
    assert arrays["series"].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(arrays["statistics"], written.statistics[written.rows])


WRONG: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "route": ("/api/nothing", {}, 404, "There is no such route. Below /api/ there are runs, "),
    "run": ("/api/updates", {**FROM_NOTHING, "run": "z"}, 404, "There is no run 'z' here."),
    "model": ("/api/updates", {**FROM_NOTHING, "model": "z"}, 404, "has no model 'z'. Name one of: 'net'."),
    "graph": ("/api/graph", {**OF_NET, "graph": 3}, 404, "has no graph 3; it has 1."),
    "inside": ("/api/layout", {**OF_NET, "graph": 0, "inside": 9}, 404, "has no call 9; it has 3."),
    "the first call that is not there": (
        "/api/layout",
        {**OF_NET, "graph": 0, "inside": 3},
        404,
        "has no call 3; it has 3.",
    ),
    "series": ("/api/history", {**OF_NET, "series": "9", "from": 0}, 404, "has no series 9."),
    "step": (
        "/api/frame",
        {**OF_NET, "step": 9},
        404,
        "has no frame of step 9. It has 3 from 0 to 20; nearest: 0 and 10.",
    ),
    "missing": ("/api/graph", OF_NET, 400, "The query has no graph=."),
    "text": ("/api/graph", {**OF_NET, "graph": "x" * 99}, 400, "is not a whole number of at least 0."),
    "many digits": ("/api/graph", {**OF_NET, "graph": "9" * 9999}, 400, "is not a whole number of at least 0."),
    "large": ("/api/frame", {**OF_NET, "step": 10**30}, 404, "has no frame of step 10000"),
    "below zero": (
        "/api/updates",
        {**FROM_NOTHING, "frames": -1},
        400,
        "frames='-1' is not a whole number of at least 0.",
    ),
    "too many": ("/api/history", {**OF_NET, "series": "0," * 600, "from": 0}, 400, "600 series were asked for at once"),
}


@pytest.mark.parametrize(("path", "query", "status", "sentence"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_answered_is_said_in_a_sentence(
    path: str, query: dict[str, Any], status: int, sentence: str, served: App
) -> None:
    answer = ask(served, path, query)
    assert (answer.status, list(answer.json)) == (status, ["error"])
    assert sentence in answer.json["error"]
    assert len(answer.json["error"]) < 300


@pytest.mark.parametrize("query", ["run=%ff%fe&model=%80", "run=a%00b&model=net", "&&=&%", "run=a;model=net"])
def test_a_query_of_garbage_is_refused_as_any_other(query: str, served: App) -> None:
    assert ask(served, "/api/frame", query + "&step=0").status in (400, 404)


OUTSIDE = (
    "..",
    "../logdir/a",
    "a/../a",
    "./a",
    "a/",
    "/etc",
    "a//",
    "",
    "group/../a",
    "a\0",
    "linked/inside/linked",
    "linked/..",
    "linked/../a",
    "x" * 5000,
    "group",
)


@pytest.mark.parametrize("name", [*OUTSIDE, "a/plugins", "..%2f", "%2e%2e", "group\\b"])
def test_only_names_that_are_listed_lead_to_a_run(name: str, tmp_path: Path) -> None:
    write_small_run(tmp_path / "logdir" / "a")
    write_small_run(tmp_path / "logdir" / "group" / "b")
    write_small_run(tmp_path / "secret")
    (tmp_path / "logdir" / "linked").symlink_to(tmp_path / "secret")
    (tmp_path / "secret" / "inside").symlink_to(tmp_path / "logdir")
    answer = ask(app(Runs(tmp_path / "logdir")), "/api/updates", {**FROM_NOTHING, "run": name})
    assert (answer.status, "There is no run" in answer.json["error"]) == (404, True)


def test_a_link_to_a_run_elsewhere_is_served(tmp_path: Path) -> None:
    write_small_run(tmp_path / "elsewhere" / "b")
    (tmp_path / "logdir").mkdir()
    (tmp_path / "logdir" / "a").symlink_to(tmp_path / "elsewhere" / "b")
    (tmp_path / "logdir" / "group").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(tmp_path / "logdir")
    served = app(Runs(tmp_path / "link"))
    names = [run["run"] for run in ask(served, "/api/runs").json["runs"]]
    assert names == ["a", "group/b"]
    for name in names:
        assert ask(served, "/api/updates", {**FROM_NOTHING, "run": name}).json["frames"]["step"] == [0, 10, 20]


def test_a_folder_above_a_single_run_is_not_that_run(served: App) -> None:
    assert ask(served, "/api/updates", {**FROM_NOTHING, "run": "group"}).status == 404
    assert ask(served, "/api/updates", {**FROM_NOTHING, "run": "group/b"}).status == 200


def test_the_logdir_may_be_a_run_itself(logdir: Path) -> None:
    served = app(Runs(logdir / "a"))
    assert [run["run"] for run in ask(served, "/api/runs").json["runs"]] == ["."]
    assert ask(served, "/api/updates", {**FROM_NOTHING, "run": "."}).json["frames"]["step"] == [0, 10, 20]


@pytest.mark.parametrize("path", [*ROUTES, "/", "/nothing", "/api/"])
def test_every_answer_carries_the_safety_headers(path: str, served: App) -> None:
    headers = ask(served, path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("default-src 'self';")
    assert "script" not in headers["Content-Security-Policy"]
    assert headers["Content-Security-Policy"].endswith("; frame-ancestors 'self'")
    assert headers["X-Frame-Options"] == "SAMEORIGIN"
    assert headers["Cache-Control"] in ("no-store", "no-cache")


@pytest.mark.parametrize("path", ["/api/runs", "/nothing"])
def test_head_says_what_get_would_without_the_body(path: str, served: App) -> None:
    got, head = ask(served, path), ask(served, path, method="HEAD")
    assert (head.status, head.headers, head.body) == (got.status, got.headers, b"")


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(method: str, served: App) -> None:
    answer = ask(served, "/api/runs", method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert method in answer.json["error"]


def test_a_long_text_is_compressed_for_who_takes_it(served: App) -> None:
    query = {**FROM_NOTHING, "run": "group/b"}
    plain, packed = (
        ask(served, "/api/updates", query),
        ask(served, "/api/updates", query, HTTP_ACCEPT_ENCODING="gzip, br"),
    )
    assert plain.json == packed.json
    assert "Content-Encoding" not in plain.headers
    assert len(plain.body) > COMPRESSED_FROM
    assert len(packed.body) < len(plain.body) / 3
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"


def test_numbers_are_not_compressed(served: App) -> None:
    query = {"run": "group/b", "model": "net", "series": "0", "from": 0}
    answer = ask(served, "/api/history", query, HTTP_ACCEPT_ENCODING="gzip")
    assert (answer.headers["Content-Type"], "Content-Encoding" in answer.headers) == ("application/octet-stream", False)


def test_missing_numbers_are_null(tmp_path: Path) -> None:
    without_clock = Frame(0, 1.0, None, None, *(getattr(frame(0), name) for name in Frame.__slots__[4:]))
    write(tmp_path / "a", SERIES, without_clock, Finished(2.0))
    told = ask(app(Runs(tmp_path)), "/api/updates", FROM_NOTHING).json
    assert (told["frames"]["clock"], told["frames"]["graph"]) == ([None], [None])


def test_mounted_without_a_slash_the_page_sends_the_browser_into_its_folder(served: App) -> None:
    answer = ask(served, "", SCRIPT_NAME="/tools/graph")
    assert (answer.status, answer.headers["Location"]) == (308, "./graph/")


def test_a_fault_of_ours_is_an_answer_too(monkeypatch: pytest.MonkeyPatch, served: App) -> None:
    def broken(*_: object) -> Answer:
        raise RuntimeError("wires crossed")

    monkeypatch.setitem(ROUTES, "/api/runs", broken)
    answer = ask(served, "/api/runs")
    assert answer.status == 500
    assert answer.json["error"].endswith("fault of torchgraph_explorer: RuntimeError: wires crossed")
