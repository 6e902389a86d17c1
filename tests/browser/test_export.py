"""The exported page in a browser: from disk without a network, and in a frame that may run scripts and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import nn

from tests.browser import runs
from tests.browser.conftest import NewContext
from tests.browser.page import Viewer, expect_open, expect_soon
from tests.record.examples import write_small_run
from tests.tables import thinned
from torchgraph_explorer import open_run
from torchgraph_explorer.server.export import PAGE_BYTES, export_page

SANDBOX = """<!doctype html><title>host</title><body style="margin:0"><div id="app">of the host</div>
<iframe sandbox="allow-scripts" style="width:1440px;height:880px;border:0" src="page.html"></iframe>"""

NOTEBOOK = """<!doctype html><meta charset="utf-8"><title>notebook</title><body style="margin:0">{frame}"""

MODULES = 1200


@pytest.fixture(scope="module")
def digits_page(logdir: Path, digits: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    export_page(open_run(logdir / digits), path, steps=20)
    return path


def open_file(viewer: Viewer, path: Path) -> None:
    viewer.page.goto(path.as_uri())


def test_a_page_offers_no_comparison_of_steps_that_it_has_no_numbers_for(offline: Viewer, digits_page: Path) -> None:
    open_file(offline, digits_page)
    offline.page.locator(".xray-bar .segments").get_by_text("Changes", exact=True).click()
    changes = offline.page.locator(".xray-changes")
    expect(changes).to_contain_text("open the run itself with “torchgraph serve”")
    expect(changes.get_by_role("button")).to_have_count(0)
    expect(changes.get_by_role("spinbutton")).to_have_count(0)


def test_a_page_opens_from_disk_and_says_what_it_shows_with_the_numbers_of_the_record(
    offline: Viewer, digits_page: Path, logdir: Path, digits: str
) -> None:
    open_file(offline, digits_page)
    expect(offline.connection).to_have_text(f"Exported, showing 20 of {runs.STEPS} steps")
    offline.page.locator(".warnings summary").click()
    expect(offline.page.locator(".warnings")).to_contain_text("the first, the last, and others evenly between")
    expect(offline.page).to_have_title(re.compile("digits"))
    offline.page.keyboard.press("Escape")
    offline.drag(offline.node("stem#0"), offline.panels)
    model = open_run(logdir / digits).model()
    history = model.history(model.find("stem", role="output", kind="value")[0])
    wanted = {name: float(history.column(name)[-1]) for name in ("mean", "std", "min", "max")}

    def check() -> None:
        shown = offline.statistics("stem, output, value")
        assert {name: shown.get(name) for name in wanted} == pytest.approx(wanted, rel=0.01)

    expect_soon(check)


def test_a_page_drills_pins_steps_is_searched_and_coloured(offline: Viewer, digits_page: Path) -> None:
    open_file(offline, digits_page)
    offline.node("stage1#0").dblclick()
    expect_open(offline, "DigitsNet", "stage1")
    offline.drag(offline.node("stage1.0#0"), offline.panels)
    expect(offline.panel("stage1.0#0")).to_be_visible()
    expect(offline.chart("stage1.0, output, value")).to_be_visible()
    offline.page.go_back()
    expect(offline.panel("stage1.0#0")).to_have_count(0)
    offline.page.go_back()
    expect_open(offline, "DigitsNet")
    offline.slider.fill("3")
    expect(offline.readout).to_contain_text("step 6")
    offline.choose("Colour", "Output std")
    expect(offline.node("classifier#0")).not_to_have_class(re.compile("by-class"))
    offline.search("stage2.0").first.click()
    expect(offline.node("stage2.0#0")).to_have_attribute("aria-selected", "true")


def test_a_link_into_a_page_reproduces_the_screen(offline: Viewer, digits_page: Path) -> None:
    offline.page.goto(f"{digits_page.as_uri()}#inside=stage1%230&pin=0.stage1.0%230")
    expect_open(offline, "DigitsNet", "stage1")
    expect(offline.panel("stage1.0#0")).to_be_visible()


def test_a_page_works_in_a_frame_that_may_only_run_scripts(offline: Viewer, digits_page: Path) -> None:
    host = digits_page.with_name("host.html")
    host.write_text(SANDBOX, encoding="utf-8")
    open_file(offline, host)
    assert_works_in_its_frame(offline.page)


def test_a_notebook_shows_a_page_that_works(offline: Viewer, tmp_path: Path, logdir: Path, digits: str) -> None:
    notebook = tmp_path / "notebook.html"
    shown = open_run(logdir / digits)._repr_html_()
    notebook.write_text(NOTEBOOK.format(frame=shown.replace("640px", "880px")), encoding="utf-8")
    open_file(offline, notebook)
    assert_works_in_its_frame(offline.page)


def test_a_page_in_a_notebook_is_no_wider_than_its_cell(new_context: NewContext, tmp_path: Path) -> None:
    write_small_run(tmp_path / "run")
    notebook = tmp_path / "notebook.html"
    cell = f"<div style='overflow: auto; width: 700px'>{open_run(tmp_path)._repr_html_()}</div>"
    notebook.write_text(NOTEBOOK.format(frame=cell), encoding="utf-8")
    tab = new_context().new_page()
    tab.goto(notebook.as_uri())
    assert tab.locator("div:has(> iframe)").evaluate("each => each.scrollWidth - each.clientWidth") == 0


THEMES = [
    pytest.param("body", "data-jp-theme-light", ("false", "true"), id="JupyterLab"),
    pytest.param("body", "data-vscode-theme-kind", ("vscode-dark", "vscode-light"), id="VS Code"),
    pytest.param(
        "body", "data-vscode-theme-kind", ("vscode-high-contrast", "vscode-high-contrast-light"), id="contrast"
    ),
    pytest.param("html", "theme", ("dark", "light"), id="Colab"),
]
"""Where a notebook says its theme: an element, an attribute, and its values where it is dark and where it is light."""


@pytest.mark.parametrize(("element", "attribute", "values"), thinned(THEMES, 0, 3))  # on the body, and on the page
def test_a_page_in_a_notebook_has_the_theme_of_the_notebook(
    new_context: NewContext, tmp_path: Path, element: str, attribute: str, values: tuple[str, str]
) -> None:
    write_small_run(tmp_path / "run")
    notebook = tmp_path / "notebook.html"
    notebook.write_text(NOTEBOOK.format(frame=open_run(tmp_path)._repr_html_()), encoding="utf-8")
    tab = new_context(color_scheme="null").new_page()  # an emulated scheme would be that of all frames
    tab.goto(notebook.as_uri())
    for value, theme in zip(values, ("dark", "light"), strict=True):
        tab.locator(element).evaluate("(each, [name, value]) => each.setAttribute(name, value)", [attribute, value])
        expect(tab.frame_locator("iframe").locator(":root")).to_have_attribute("data-theme", theme)


def assert_works_in_its_frame(page: Page) -> None:
    """Drill, pin by dragging, and search, in the page's only frame."""
    frame = page.frame_locator("iframe")

    def node(key: str) -> Locator:
        return frame.locator(f'.node[data-key="{key}"]')

    node("stage1#0").dblclick()
    expect(frame.get_by_role("navigation", name="Where you are").get_by_role("button")).to_have_count(2)
    node("stage1.0#0").hover()
    page.mouse.down()
    frame.locator('[data-drop="panels"]').hover(force=True)
    page.mouse.up()
    expect(frame.locator('[data-pin="stage1.0#0"] canvas').first).to_be_visible()
    page.keyboard.press("/")
    frame.get_by_role("combobox", name="Name or class").fill("classifier")
    frame.get_by_role("listbox", name="Calls").get_by_role("option").first.click()
    expect(node("classifier#0")).to_have_attribute("aria-selected", "true")


def test_a_page_without_all_series_says_so(offline: Viewer, tmp_path: Path, logdir: Path, digits: str) -> None:
    path = tmp_path / "few.html"
    export_page(open_run(logdir / digits), path, series=2)
    open_file(offline, path)
    expect(offline.connection).to_have_text(f"Exported, all of {runs.STEPS} steps")
    offline.drag(offline.node("stem#0"), offline.panels)
    expect(offline.panel("stem#0")).to_contain_text("This page has no numbers of this node.")
    offline.page.locator(".warnings summary").click()
    expect(offline.page.locator(".warnings")).to_contain_text("Export with --series N for more.")


def test_a_page_without_tensors_does_not_say_that_none_was_kept(offline: Viewer, digits_page: Path) -> None:
    offline.page.goto(f"{digits_page.as_uri()}#view=tensors")
    note = offline.page.locator(".tensor-note")
    expect(note).to_contain_text("This page has no kept tensors. To have on it what the run kept, export it again")
    expect(note).to_contain_text("torchgraph export RUN --tensors")


def test_a_damaged_page_says_so(offline: Viewer, tmp_path: Path, digits_page: Path) -> None:
    text = digits_page.read_text(encoding="utf-8")
    start = text.index('id="torchgraph-data">') + 2000
    damaged = tmp_path / "damaged.html"
    damaged.write_text(text[:start] + text[start + 2000 :], encoding="utf-8")
    open_file(offline, damaged)
    expect(offline.page.locator("#app")).to_contain_text("This page cannot be opened here")


class Wide(nn.Module):
    """As a large transformer: blocks of twelve modules, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(*(nn.Linear(4, 4) for _ in range(11))) for _ in range(MODULES // 12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


@pytest.mark.slow
def test_a_model_of_very_many_modules_opens(
    offline: Viewer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    model = Wide()
    with runs.watching(model, tmp_path, "wide"):
        runs.train(model, [(torch.randn(8, 4),)], runs.mean_square)
    path = tmp_path / "wide.html"
    assert len(export_page(open_run(tmp_path / "wide"), path)) < PAGE_BYTES
    start = perf_counter()
    open_file(offline, path)
    expect(offline.page.locator(".node").first).to_be_visible()
    # Told and not demanded: a machine that is busy with something else takes several times as long.
    record_property("frame times", f"an exported page of {MODULES:,} modules: {perf_counter() - start:.1f} s to open")


def test_a_page_that_fails_says_so(offline: Viewer, digits_page: Path) -> None:
    open_file(offline, digits_page)
    notice = offline.page.get_by_role("alert").filter(has_text="The viewer has failed")
    offline.page.evaluate("() => void Promise.reject(new DOMException('given up', 'AbortError'))")
    expect(notice).to_have_count(0)
    offline.page.evaluate("() => setTimeout(() => { throw new TypeError('i is not iterable'); })")
    expect(notice).to_contain_text("i is not iterable. A part of this page may be missing or old.")
    notice.get_by_role("button", name="Close").click()
    expect(notice).to_have_count(0)
    offline.complaints.clear()  # of what was thrown
