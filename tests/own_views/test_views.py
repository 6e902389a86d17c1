"""Views of the user's own: what they get, what they may return, and what is told of those that fail."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.runs import record_kept
from tests.record.examples import write_small_run
from tests.shared import once, shared_folder
from torchgraph_explorer.errors import NotFoundError, OptionError
from torchgraph_explorer.own_views.html import page_of
from torchgraph_explorer.own_views.selection import ViewSelection, selection_from
from torchgraph_explorer.own_views.views import Views
from torchgraph_explorer.run import Model, open_run

SECONDS = 30.0
"""For a view that is to succeed, on a busy machine."""

CELL = ("cell", 1, "output", "output", "value")
NOTHING: dict[str, Any] = {
    "run": "kept",
    "model": "Curious",
    "optimizer": None,
    "step": 10,
    "module": None,
    "series": CELL,
    "loss": "",
    "sample": 1,
    "index": None,
    "rank": None,
    "theme": "light",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that keeps tensors of many shapes at steps 0, 2, ..., 10."""
    folder = shared_folder(tmp_path_factory, "runs")
    return folder / once(folder, "kept", record_kept)


@pytest.fixture(scope="module")
def model(run: Path) -> Model:
    return open_run(run).model()


def selection(model: Model, **chosen: Any) -> ViewSelection:
    return selection_from({**NOTHING, **chosen}, "kept", model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "name", "expected"),
    [
        pytest.param({}, None, lambda one: one("cell", 1).values[1], id="the chosen sample of the chosen tensor"),
        pytest.param({"sample": "all"}, None, lambda one: one("cell", 1).values, id="all kept samples"),
        pytest.param({"sample": "std"}, None, lambda one: one("cell", 1).std, id="a statistic over the batch"),
        pytest.param({"sample": 99}, None, lambda one: one("cell", 1).values[3], id="the last sample, of too few"),
        pytest.param({}, "head", lambda one: one("head", 0).values[1], id="an output, by its module's name"),
        pytest.param({}, "cell", lambda one: one("cell", 1).values[1], id="the call of the chosen tensor"),
        pytest.param({"series": None}, "cell", lambda one: one("cell", 0).values[1], id="else the first call"),
        pytest.param(
            {}, "feat*", lambda one: one("", 0, "attached", "features").values[1], id="attached, by a pattern"
        ),
        pytest.param({}, "head.weight", lambda one: one("head", None, "param", "weight").values, id="a parameter"),
        pytest.param({}, "head:input", lambda one: one("head", 0, "input", "input[0]").values[1], id="an input"),
    ],
)
def test_a_view_gets_the_numbers_that_are_chosen(
    model: Model, chosen: dict[str, Any], name: str | None, expected: Callable[..., Any]
) -> None:
    def recorded(module: str, call: int | None, role: Any = "output", path: str = "output") -> Any:
        series = next(one for one in model.kept.series if one.key == (module, call, role, path, "value"))
        return model.tensor(series, 10)

    np.testing.assert_array_equal(selection(model, **chosen).array(name), expected(recorded))


@pytest.mark.slow
def test_a_view_gets_the_gradient_that_is_chosen(model: Model) -> None:
    value, gradient = selection(model).tensor(), selection(model, series=(*CELL[:4], "grad_norm")).tensor()
    assert value.gradient is not None
    np.testing.assert_array_equal(value.gradient.values, gradient.values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "name", "told"),
    [
        pytest.param({}, "haed", r"No tensor 'haed' was kept at step 10\. There is head, ", id="a name like another"),
        pytest.param({"step": 3}, "head", r"at step 3\. Nothing was kept there\.", id="a step that was not kept"),
        pytest.param({"series": None}, None, r"No tensor is chosen\. Choose one on the left", id="no choice"),
    ],
)
def test_what_was_not_kept_is_an_error_that_tells_what_was(
    model: Model, chosen: dict[str, Any], name: str | None, told: str
) -> None:
    with pytest.raises(NotFoundError, match=told):
        selection(model, **chosen).tensor(name)


def test_where_a_run_kept_none_a_view_tells_what_keeps_tensors(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    with pytest.raises(NotFoundError, match=r"This run kept none: `watch\(model, keep=Keep\(\.\.\.\)\)` keeps"):
        selection(open_run(tmp_path).model(), series=None).tensor()


@pytest.mark.slow
def test_without_a_chosen_step_a_view_gets_the_last_one(model: Model) -> None:
    assert selection(model, step=None, series=None).step == 11


@pytest.mark.parametrize("whole", ["<!doctype html><p>1", " <HTML><p>1", "<!-- a note -->\n<!DOCTYPE html>"])
def test_a_whole_page_is_shown_as_it_is(whole: str) -> None:
    assert page_of(whole, theme="light") == whole


def test_a_part_of_a_page_becomes_one_in_the_viewers_theme() -> None:
    page = page_of("<p>1</p>", theme="dark")
    assert page.startswith("<!doctype html>")
    assert "<p>1</p>" in page
    assert "color-scheme: dark" in page


@pytest.mark.parametrize("made", [None, 3, b"<p>", ["<p>"]], ids=repr)
def test_anything_else_is_an_error_that_tells_what_is_allowed(made: object) -> None:
    with pytest.raises(TypeError, match=r"Return HTML text, a matplotlib figure or a plotly figure\."):
        page_of(made, theme="light")


@pytest.mark.parametrize("made", ["", " \n"])
def test_a_page_without_anything_says_so(made: str) -> None:
    assert "The view returned an empty text." in page_of(made, theme="light")


VIEWS = """
import os, sys, time

def view(selection):
    print("what a view prints disturbs nothing")
    heavy = sorted({"matplotlib", "plotly", "torch"} & set(sys.modules))
    return f"{selection.step} {selection.array().shape} {heavy}"

def fails(selection):
    return helper(selection.step)

def helper(step):
    raise ValueError(f"<b>{step}</b>")

def lasts(selection):
    if selection.step == 10:
        print(os.getpid(), file=open("pid", "w"))
        while True:
            pass
    return "done"

def counts(selection):
    return 42

def leaves(selection):
    os._exit(7)

def stops(selection):
    sys.exit("no more")

def is_large(selection):
    return "x" * 2**25 + "x"

def matplotlib_figure(selection):
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(figsize=(3, 2), dpi=100)
    axes.plot(selection.array())
    return figure

def plotly_figure(selection):
    import plotly.graph_objects as go
    return go.Figure(go.Bar(y=[1, 2, 3]))

no_function = 3
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("views") / "my_view.py"
    place.write_text(VIEWS)
    return place


@pytest.fixture
def draw(run: Path, file: Path) -> Iterator[Callable[..., str]]:
    """Draws a view of the file, and returns its page as text."""
    opened: list[Views] = []

    def page(function: str = "view", *, seconds: float = SECONDS, **chosen: Any) -> str:
        if not opened:
            opened.append(Views([f"{file}:{function}"], seconds=seconds))
        (info,) = opened[0].infos()
        return opened[0].page(info.name, {**NOTHING, "path": str(run), **chosen}, is_fresh=False)

    yield page
    for views in opened:
        views.close()


def text_of(page: str) -> str:
    body = page.partition("<body>")[2].partition("</body>")[0]
    return html.unescape(re.sub(r"<[^>]+>", "", body))


@pytest.mark.slow
def test_a_view_runs_in_a_process_without_any_library_that_it_does_not_import(draw: Callable[..., str]) -> None:
    assert text_of(draw()) == "10 (12,) []"
    assert text_of(draw(step=2, sample="all")) == "2 (4, 12) []"


@pytest.mark.slow
def test_a_view_that_raises_shows_its_traceback_and_can_be_asked_again(draw: Callable[..., str]) -> None:
    for step in (10, 2):
        told = text_of(draw("fails", step=step))
        assert told.startswith("my_view.py:fails failed.")
        assert re.findall(r"line \d+, in (\w+)\n", told) == ["fails", "helper"]
        assert told.endswith(f"ValueError: <b>{step}</b>\n")


@pytest.mark.slow
def test_a_view_that_takes_too_long_is_ended_and_another_selection_is_drawn(
    draw: Callable[..., str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    told = text_of(draw("lasts", seconds=3.0))
    assert told.startswith("my_view.py:lasts was ended: drawing took longer than 3 seconds.")
    pid = int((file.parent / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert text_of(draw(step=2)) == "done"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "told"),
    [
        pytest.param("leaves", "my_view.py:leaves ended its process with status 7.", id="ends its process"),
        pytest.param("stops", "SystemExit: no more", id="exits"),
        pytest.param("is_large", "The view's page has 33,55", id="draws too much"),
        pytest.param("no_function", "has no function 'no_function'. Write one: def view(selection)", id="no function"),
    ],
)
def test_whatever_else_a_view_does_is_told(draw: Callable[..., str], function: str, told: str) -> None:
    assert told in text_of(draw(function))


@pytest.mark.slow
def test_what_is_no_page_is_told_without_the_lines_of_this_package(draw: Callable[..., str]) -> None:
    sentence = "The view returned 42. Return HTML text, a matplotlib figure or a plotly figure."
    assert text_of(draw("counts")) == f"my_view.py:counts failed.{sentence}"


@pytest.mark.slow
def test_an_edit_is_picked_up_also_one_that_mends_a_fault(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    file.write_text("def view(selection) return 1")
    views = Views([str(file)], seconds=SECONDS)
    asked = {**NOTHING, "path": str(run)}
    first = views.infos()[0].version
    assert "SyntaxError: expected ':'" in text_of(views.page("edited", asked, is_fresh=False))
    file.write_text("def view(selection): return 'mended'")
    assert views.infos()[0].version != first
    assert text_of(views.page("edited", asked, is_fresh=False)) == "mended"
    views.close()


@pytest.mark.slow
def test_asked_for_afresh_a_view_sees_edits_of_what_it_imports(run: Path, tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("word = 'one'")
    (tmp_path / "importing.py").write_text("from beside_it import word\ndef view(selection): return word")
    views = Views([str(tmp_path / "importing.py")], seconds=SECONDS)
    asked = {**NOTHING, "path": str(run)}
    assert text_of(views.page("importing", asked, is_fresh=False)) == "one"
    (tmp_path / "beside_it.py").write_text("word = 'another'")
    assert text_of(views.page("importing", asked, is_fresh=True)) == "another"
    views.close()


@pytest.mark.slow
def test_a_matplotlib_figure_becomes_a_picture_of_its_size(draw: Callable[..., str]) -> None:
    pytest.importorskip("matplotlib")
    page = draw("matplotlib_figure")
    assert 'style="width: 300px"' in page
    assert "data:image/png;base64,iVBOR" in page


@pytest.mark.slow
def test_a_plotly_figure_brings_what_draws_it(draw: Callable[..., str]) -> None:
    pytest.importorskip("plotly")
    page = draw("plotly_figure")
    assert "Plotly.newPlot" in page
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)


@pytest.mark.parametrize(
    ("texts", "seconds", "told"),
    [
        pytest.param(["nowhere.py"], 1.0, "--view nowhere.py: there is no file nowhere.py.", id="no file"),
        pytest.param(["{0}", "{0}"], 1.0, r"2 views have 1 names \(my_view\)", id="the same one twice"),
        pytest.param(["{0}"], 0.0, "--view-seconds 0 allows no time", id="no time"),
    ],
)
def test_wrong_options_are_refused(file: Path, texts: list[str], seconds: float, told: str) -> None:
    with pytest.raises((NotFoundError, OptionError), match=told):
        Views([text.format(file) for text in texts], seconds=seconds)
