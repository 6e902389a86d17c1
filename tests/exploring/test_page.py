"""What a page of the gradient flow asks for and changes, over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from tests.exploring.asking import Client, is_complete
from tests.exploring.models import mlp
from torchgraph_explorer.exploring import desk
from torchgraph_explorer.exploring.adapter import open_source
from torchgraph_explorer.exploring.case import Case, load
from torchgraph_explorer.exploring.serving import Page
from torchgraph_explorer.exploring.session import Session
from torchgraph_explorer.exploring.source import CaseSource, LiveSource, Source

OpenPage = Callable[[Source], tuple[Page, Client]]


@pytest.fixture
def open_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenPage]:
    """Serves a source until the test ends; cases are saved in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    opened: list[Page] = []

    def open_one(source: Source) -> tuple[Page, Client]:
        opened.append(Page(source, host="127.0.0.1", port=0, logdir=None))
        return opened[-1], Client(opened[-1])

    yield open_one
    for page in opened:
        page.close()


def conv() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 2), nn.Tanh(), nn.Conv2d(2, 1, 2))


def live(model: nn.Module | None = None, x: Tensor | None = None) -> tuple[Session, LiveSource]:
    session = Session(model or conv(), torch.rand(1, 1, 4, 4) if x is None else x, loss=torch.sum)
    return session, LiveSource(session, loss=torch.sum)


def test_a_page_shows_a_chain_with_values_gradients_and_links(open_page: OpenPage) -> None:
    session, source = live()
    _, client = open_page(source)
    state = client.state(is_complete)
    assert state["chain"] == ["input[0]", "0", "2"]
    assert [one["name"] for one in state["tensors"]] == ["input[0]", "0", "1", "2"]
    np.testing.assert_array_equal(client.array("0", "value", lead="0,all"), session.value("0")[0])
    np.testing.assert_array_equal(client.array("0", "gradient", lead="0,1"), session.gradient("0")[0, 1:])
    meta, links = client.links(1)
    matrix = session.matrix("0", "2").reshape(18, 4).numpy()
    assert meta["total"] == pytest.approx(np.abs(matrix).sum(), rel=1e-5)
    np.testing.assert_array_equal(matrix[links["source"], links["target"]], links["value"])
    assert np.all(np.diff(np.abs(links["value"])) <= 0)
    np.testing.assert_allclose(links["past"], 0, atol=1e-6)


def test_links_that_are_not_sent_are_in_the_total(open_page: OpenPage) -> None:
    _, client = open_page(live()[1])
    client.state(is_complete)
    meta, links = client.links(0, most=3)
    assert (len(links["value"]), meta["total"] > np.abs(links["value"]).sum()) == (3, True)


def test_a_selection_is_shown_to_both_sides(open_page: OpenPage) -> None:
    session, source = live()
    _, client = open_page(source)
    client.state(is_complete)
    client.post("select", tensor="0", elements=[[0, 1, [0, 2], 1]])
    stamp = client.state(lambda state: state["parts"]["selection"]["stamp"] > 3)["selection"]
    assert stamp == {"tensor": "0", "elements": [[0, 1, [0, 2], 1]]}
    index = (0, 1, slice(0, 2), 1)
    expected = session.contributions("input", "0", to=index)
    np.testing.assert_allclose(client.array("input[0]", "contribution")[0], expected[0, 0], rtol=1e-5)
    expected = session.contributions("0", "2", from_=index)
    np.testing.assert_allclose(client.array("2", "contribution")[0], expected[0, 0], rtol=1e-5)


def test_a_selection_that_is_changed_and_changed_back_meanwhile_is_the_one_that_is_shown(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes come at the worst moments: when a computation begins, and when it has ended."""
    session, source = live()
    _page, client = open_page(source)
    client.state(is_complete)
    first, other = [[0, 0, 0, 0]], [[0, 1, 2, 2]]
    waiting = {"busy": other, "set": first}

    def changing(name: str, act: Callable[..., None]) -> Callable[..., None]:
        def changed(one: desk.Desk, what: Any, *rest: Any) -> None:
            part = what["what"] if isinstance(what, dict) else what
            if part == "selection" and name in waiting:
                one._want(selection=("0", waiting.pop(name)))
            act(one, what, *rest)

        return changed

    monkeypatch.setattr(desk.Desk, "_publish_busy", changing("busy", desk.Desk._publish_busy))
    monkeypatch.setattr(desk.Desk, "_set", changing("set", desk.Desk._set))
    client.post("select", tensor="0", elements=first)
    state = client.state(lambda state: not waiting and is_complete(state))
    assert state["selection"]["elements"] == first
    expected = session.contributions("input", "0", to=(0, 0, 0, 0))
    np.testing.assert_allclose(client.array("input[0]", "contribution")[0], expected[0, 0], rtol=1e-5)


def test_a_page_goes_on_where_torch_warns_of_itself_and_warnings_are_errors(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_dual(*_: object) -> None:
        raise FutureWarning("of torch.jit")

    monkeypatch.setattr(forward_ad, "make_dual", make_dual)
    session, source = live(mlp(), torch.rand(2, 6))
    _, client = open_page(source)
    client.state(is_complete)
    client.post("target", index=[1, 2])
    client.state(lambda state: state["target"]["name"] == "output[1, 2]" and is_complete(state))
    assert session.matrix("input", "output").shape == (2, 6, *session.value("output").shape)
    assert session.contributions("input", "output", from_=(0, 0)).shape == session.value("output").shape


def test_links_are_grouped_as_it_is_chosen(open_page: OpenPage) -> None:
    session, source = live()
    _, client = open_page(source)
    client.state(is_complete)
    client.post("dims", tensor="0", dims=[1])
    client.state(lambda state: state["dims"][1] == [1] and is_complete(state))
    meta, links = client.links(0)
    assert meta["groups"] == [16, 2]
    matrix = session.matrix("input", "0").sum((-1, -2)).reshape(16, 2).numpy()
    np.testing.assert_allclose(matrix[links["source"], links["target"]], links["value"], rtol=1e-5)


def test_an_edit_is_run_compared_and_undone_on_every_page(open_page: OpenPage) -> None:
    session, source = live()
    page, client = open_page(source)
    another = Client(page)
    before = client.state(is_complete)["target"]["now"]
    client.post("edit", kind="cells", tensor="input[0]", places=[5], values=[3.0])
    edited = another.state(lambda state: state["edits"]["edited"] and state["target"]["now"] != before)
    assert edited["target"]["before"] == before
    assert session.value("input[0]").flatten()[5] == 3
    difference = another.array("0", "value", when="difference", lead="0,0")[0]
    np.testing.assert_allclose(difference, session.value("0", when="difference")[0, 0], rtol=1e-4, atol=1e-6)
    another.post("edit", kind="undo")
    assert client.state(lambda state: state["target"]["now"] == before)["edits"] == {
        "undoable": 0,
        "redoable": 1,
        "edited": False,
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({"kind": "fill", "region": [0, 0, [1, 3], None], "value": 0}, 8, id="zero a region"),
        pytest.param({"kind": "shift", "dim": 3, "by": 1}, 16, id="shift"),
        pytest.param({"kind": "noise", "region": [None] * 4, "std": 1.0}, 16, id="noise"),
    ],
)
def test_edits_change_what_they_say(values: dict[str, Any], expected: int, open_page: OpenPage) -> None:
    session, source = live()
    _, client = open_page(source)
    client.state()
    assert client.post("edit", tensor="input[0]", **values)[0] == 200
    assert int((session.value("input") != session.value("input", when="before")).sum()) == expected


def test_an_edit_in_python_is_seen_by_the_page(open_page: OpenPage) -> None:
    session, source = live()
    _, client = open_page(source)
    before = client.state(is_complete)["target"]["now"]
    session.edit("input", 0, 2.0)
    client.state(lambda state: state["target"]["now"] != before)


def test_another_target_is_followed(open_page: OpenPage) -> None:
    _, source = live(mlp(), torch.rand(2, 6))
    _, client = open_page(source)
    client.state(is_complete)
    client.post("target", index=[1, 2])
    client.state(lambda state: state["target"]["name"] == "output[1, 2]" and is_complete(state))
    assert client.array("4", "gradient").tolist() == [[[0, 0, 0], [0, 0, 1]]]


def test_what_the_model_raises_is_shown_and_can_be_undone(open_page: OpenPage) -> None:
    class Picky(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if x.max() > 10:
                raise ValueError("too bright")
            return x * 2

    _, client = open_page(live(Picky(), torch.rand(3))[1])
    client.state(is_complete)
    client.post("edit", kind="cells", tensor="input[0]", places=[0], values=[99])
    state = client.state(lambda state: state["parts"]["tensors"]["fault"] is not None)
    assert state["parts"]["tensors"]["fault"] == "ValueError: too bright"
    client.post("edit", kind="undo")
    client.state(lambda state: state["parts"]["tensors"]["isThere"])


def test_nan_is_sent_and_counted(open_page: OpenPage) -> None:
    _, client = open_page(live(nn.Sequential(nn.Identity()), torch.tensor([1.0, float("nan")]))[1])
    state = client.state(is_complete)
    assert state["target"]["now"] == "nan"
    assert np.isnan(client.array("input[0]", "value")).tolist() == [[[False, True]]]


def test_long_links_wait_until_they_are_asked_for_and_can_be_cancelled(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "SECONDS_UNASKED", 0.0)
    model = nn.Sequential(nn.Linear(4, 100), nn.Tanh(), nn.Linear(100, 100))
    _, client = open_page(live(model, torch.rand(1, 4))[1])
    state = client.state(is_complete)
    assert "These links take about 0 s: a backward pass for each of 100 groups." in state["parts"]["links0"]["fault"]
    client.post("links")
    client.state(lambda state: all(state["parts"][f"links{i}"]["isThere"] for i in range(2)))
    client.post("cancel")
    client.post("chain", names=["0", "2"])
    client.state(is_complete)
    client.post("cancel")
    assert client.state(lambda state: state["parts"]["links0"]["fault"] is not None)["parts"]["links0"]["fault"]


def test_a_case_is_saved_in_the_folder_and_nowhere_else(open_page: OpenPage, tmp_path: Path) -> None:
    _, client = open_page(live()[1])
    client.state(is_complete)
    assert client.post("save", name="my.npz")[0] == 200
    assert load(tmp_path / "my.npz").tensors[0] == "input[0]"
    for name in ("../my.npz", "/tmp/my.npz", "my.py", ".npz", "a/b.npz", "a\\b.npz"):
        status, error = client.post("save", name=name)
        assert (status, "is not a file name" in error) == (400, True)


def test_a_page_can_end_the_session(open_page: OpenPage) -> None:
    page, client = open_page(live()[1])
    client.state()
    waiting = threading.Thread(target=page.wait)
    waiting.start()
    client.post("end")
    waiting.join(10)
    assert not waiting.is_alive()


CHANGE = {"Content-Type": "application/json"}


def test_nothing_is_told_without_the_token(open_page: OpenPage) -> None:
    _, client = open_page(live()[1])
    with pytest.raises(HTTPError, match="401"):
        urlopen(f"{client.base}api/flow/state", timeout=10)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Content-Type": "text/plain"}, 415, id="a form of another page"),
        pytest.param({**CHANGE, "Origin": "http://localhost:1"}, 403, id="another origin"),
        pytest.param({**CHANGE, "Origin": "http://localhost:1", "X-Torchgraph-Key": "guessed"}, 403, id="another key"),
        pytest.param({**CHANGE, "Origin": "http://[", "X-Torchgraph-Key": ""}, 403, id="a broken origin"),
    ],
)
def test_changes_come_from_pages_of_this_server_only(headers: dict[str, str], status: int, open_page: OpenPage) -> None:
    _, client = open_page(live()[1])
    client.state()
    assert client.post("edit", headers, kind="undo")[0] == status


def test_a_page_that_resolves_its_own_name_to_this_server_has_no_token(open_page: OpenPage) -> None:
    _, client = open_page(live()[1])
    request = Request(f"{client.base}api/flow/edit", data=b"{}", headers={**CHANGE, "Host": "evil.example"})
    with pytest.raises(HTTPError, match="401"):
        urlopen(request, timeout=10)


def test_a_page_behind_a_proxy_changes_with_the_key_of_its_state(open_page: OpenPage) -> None:
    _, client = open_page(live()[1])
    headers = {"Origin": "https://hub.example.org", "X-Torchgraph-Key": client.state()["key"]}
    assert client.post("edit", headers, kind="undo")[0] == 200


@pytest.mark.parametrize(
    ("change", "values", "text"),
    [
        pytest.param("jump", {}, "There is no change 'jump'", id="unknown"),
        pytest.param("chain", {"names": ["0"]}, "A chain has 2 to 12 different tensors", id="one tensor"),
        pytest.param("chain", {}, "chain cannot be answered (KeyError: 'names')", id="nothing given"),
        pytest.param("select", {"tensor": "1", "elements": []}, "'1' is not in the chain", id="not in the chain"),
        pytest.param(
            "select", {"tensor": "0", "elements": [[0, 9, 0, 0]]}, "9 is not an index or range", id="no element"
        ),
        pytest.param("edit", {"kind": "cells", "tensor": "0"}, "'0' is not an input", id="no input"),
        pytest.param(
            "edit",
            {"kind": "cells", "tensor": "input[0]", "places": [16], "values": [1]},
            "The tensor has elements 0 to 15",
            id="no place",
        ),
        pytest.param("edit", {"kind": "melt", "tensor": "input[0]"}, "There is no edit 'melt'", id="no edit"),
        pytest.param("dims", {"tensor": "0", "dims": [7]}, "cannot be grouped", id="no dimension"),
    ],
)
def test_a_wrong_change_is_answered_with_what_is_allowed(
    change: str, values: dict[str, Any], text: str, open_page: OpenPage
) -> None:
    _, client = open_page(live()[1])
    client.state()
    status, error = client.post(change, **values)
    assert status in (400, 404)
    assert text in error


def test_a_saved_case_is_shown_without_its_model(open_page: OpenPage, tmp_path: Path) -> None:
    session, _ = live()
    matrix = session.matrix("input", "0")
    session.save(tmp_path / "case.npz")
    _, client = open_page(open_source(str(tmp_path / "case.npz")))
    client.post("chain", names=["input[0]", "0", "2"])
    state = client.state(lambda state: len(state["chain"]) == 3 and is_complete(state))
    assert (state["edits"], state["estimates"]) == (None, [False, True])
    meta, _ = client.links(0)
    assert meta["total"] == pytest.approx(float(matrix.abs().sum()), rel=1e-5)
    status, error = client.post("edit", kind="undo")
    assert (status, "without its model" in error) == (400, True)


def test_flows_that_were_computed_elsewhere_are_shown_as_estimates_where_they_are_missing(open_page: OpenPage) -> None:
    case = Case(gradients={"a": np.ones((2, 2)), "b": np.array([1.0, 3.0])})
    _, client = open_page(CaseSource(case))
    assert client.state(is_complete)["estimates"] == [True]
    _, links = client.links(0)
    assert links["value"].sum() == pytest.approx(4.0)


def test_a_page_shows_a_model_again_that_could_not_be_looked_at(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "SECONDS_BETWEEN_LOOKS", 0.05)
    session, source = live()
    _, client = open_page(source)
    client.state(is_complete)
    with monkeypatch.context() as broken:
        broken.setattr(session.model, "modules", lambda: iter([object()]))
        state = client.state(lambda state: state["parts"]["model"]["fault"] is not None)
    assert state["parts"]["model"]["fault"].startswith("AttributeError")
    state = client.state(lambda state: state["parts"]["model"]["fault"] is None)
    assert is_complete(state)


def test_complex_numbers_are_drawn_by_their_magnitude(open_page: OpenPage) -> None:
    values = {"a": np.array([3 + 4j, 0, -5j]), "b": np.array([1e200, np.nan])}
    case = Case(values=values, gradients=values)
    _, client = open_page(CaseSource(case))
    np.testing.assert_array_equal(client.array("a", "value"), [[[5, 0, 5]]])
    np.testing.assert_array_equal(client.array("b", "value"), [[[np.inf, np.nan]]])


def test_the_command_line_explores_a_function(tmp_path: Path, open_page: OpenPage) -> None:
    (tmp_path / "my_case.py").write_text(
        "import torch\nfrom torch import nn\ndef make():\n    return nn.Linear(3, 2), torch.ones(1, 3), torch.sum\n"
    )
    _, client = open_page(open_source(f"{tmp_path / 'my_case.py'}:make"))
    assert client.state()["title"] == "Linear"


def test_the_first_chain_has_one_tensor_of_each_call(open_page: OpenPage) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.cell(x)[0][:, -1])

    _, client = open_page(live(Recurrent(), torch.rand(2, 5, 3))[1])
    assert client.state()["chain"] == ["input[0]", "cell:output[0]", "head"]
