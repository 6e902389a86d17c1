"""`api/view`: what the server asks a view for, and what a view's page may do in the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.record.examples import write_small_run
from tests.server.asking import ask
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.own_views import ViewInfo
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app


class Echo:
    """One view, whose page is what it was asked for."""

    def infos(self) -> Sequence[ViewInfo]:
        return [ViewInfo("mine", "7")]

    def page(self, name: str, asked: Mapping[str, Any], *, is_fresh: bool) -> str:
        self.asked = {**asked, "name": name, "is_fresh": is_fresh}
        return "<p>page"


ASKED = {"run": "a", "model": "net", "view": "mine"}


@pytest.fixture(scope="module")
def views() -> Echo:
    return Echo()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, views: Echo) -> App:
    logdir = tmp_path_factory.mktemp("logdir")
    write_small_run(logdir / "a")
    return app(Runs(logdir), views=views)


def test_the_list_of_runs_tells_the_views(served: App, tmp_path: Path) -> None:
    assert ask(served, "/api/runs").json["views"] == [{"name": "mine", "version": "7"}]
    assert "views" not in ask(app(Runs(tmp_path)), "/api/runs").json


def test_a_page_may_run_scripts_and_nothing_else(served: App) -> None:
    answer = ask(served, "/api/view", ASKED)
    assert (answer.status, answer.body) == (200, b"<p>page")
    policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["sandbox"] == "allow-scripts"
    assert policy["default-src"] == "'none'"
    sources = {source for name, one in policy.items() if name.endswith("-src") for source in one.split()}
    assert sources == {"'none'", "'unsafe-inline'", "data:", "blob:"}
    assert policy["frame-ancestors"] == "'self'"
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


def test_a_view_is_asked_for_what_is_chosen(served: App, views: Echo) -> None:
    tensor = {"module": "conv", "call": 0, "role": "output", "path": "output", "kind": "grad_norm", "loss": "policy"}
    chosen = {**tensor, "step": 3, "sample": 2, "index": "0,4,4", "rank": 1, "theme": "dark", "fresh": 1}
    assert ask(served, "/api/view", {**ASKED, **chosen}).status == 200
    assert views.asked["series"] == ("conv", 0, "output", "output", "grad_norm")
    rest = {name: views.asked[name] for name in ("loss", "step", "sample", "index", "rank", "theme", "is_fresh")}
    assert rest == {
        **{"loss": "policy", "step": 3, "sample": 2, "index": [0, 4, 4], "rank": 1, "theme": "dark"},
        "is_fresh": True,
    }
    ask(served, "/api/view", {**ASKED, "sample": "std", "module": "conv"})
    assert (views.asked["series"], views.asked["module"], views.asked["sample"]) == (None, "conv", "std")


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        pytest.param({"run": "b"}, 404, "There is no run 'b' here.", id="no run"),
        pytest.param({"step": "x"}, 400, "step='x' is not a whole number of at least 0.", id="no step"),
        pytest.param({"theme": "pink"}, 400, "theme='pink' is not one of light, dark.", id="no theme"),
        pytest.param({"role": "output"}, 400, "The query has no module=.", id="half a tensor"),
        pytest.param({"index": "1,x"}, 400, "index='x' is not a whole number of at least 0.", id="no index"),
    ],
)
def test_a_wrong_question_is_refused(served: App, query: dict[str, str], status: int, told: str) -> None:
    answer = ask(served, "/api/view", {**ASKED, **query})
    assert (answer.status, answer.json["error"][: len(told)]) == (status, told)


def test_without_views_there_is_no_such_route(tmp_path: Path) -> None:
    write_small_run(tmp_path / "a")
    assert ask(app(Runs(tmp_path)), "/api/view", ASKED).status == 404
