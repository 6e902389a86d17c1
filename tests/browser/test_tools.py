"""What narrows choices, and what is taken out of the page: regular expressions, pictures, tables."""

from __future__ import annotations

import csv
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
from playwright.sync_api import Download, FrameLocator, Page, expect

from tests.browser import runs
from tests.browser.page import Viewer, expect_painted
from tests.browser.test_export import open_file
from torchgraph_explorer import export_page, open_run
from torchgraph_explorer.histogram import QUANTILES
from torchgraph_explorer.schema import STATISTICS

pytestmark = pytest.mark.slow

SHOTS = os.environ.get("TORCHGRAPH_SHOTS")
SVG = "{http://www.w3.org/2000/svg}"
PIN, SERIES = "0.classifier#0", "classifier, output, value"


def shoot(page: Page, name: str) -> None:
    if SHOTS:
        page.wait_for_timeout(300)
        page.screenshot(path=f"{SHOTS}/{name}.png")


def saved(page: Page, act: Callable[[], object], tmp_path: Path) -> Path:
    """The file that `act` has the page save, by the name that the page gives it."""
    with page.expect_download() as waiting:
        act()
    done: Download = waiting.value
    path = tmp_path / done.suggested_filename
    done.save_as(path)
    return path


# Searching.


def test_a_search_takes_a_regular_expression_and_a_long_list_leaves_the_box_its_height(
    viewer: Viewer, digits: str
) -> None:
    viewer.open(digits)
    expect(viewer.node("classifier#0")).to_be_visible()
    viewer.page.keyboard.press("/")
    dialog = viewer.page.get_by_role("dialog")
    expect(dialog.get_by_role("option")).not_to_have_count(0)
    box = dialog.locator("input").bounding_box()
    assert box is not None
    assert box["height"] == 44
    dialog.locator("input").fill(r"^stage[12]\.0$|classifier")
    found = dialog.get_by_role("option")
    expect(found).to_have_count(3)
    expect(found.filter(has_text="classifier")).to_have_count(1)
    shoot(viewer.page, "search-regex")
    found.filter(has_text="classifier").click()
    expect(viewer.node("classifier#0")).to_have_attribute("aria-selected", "true")


UNUSABLE = {
    "stage1|(": "is not a regular expression",
    "(s+)+$|(a|a)*b": "could take too long",
}


def test_a_search_says_what_it_cannot_use(viewer: Viewer, digits: str) -> None:
    viewer.open(digits)
    expect(viewer.node("classifier#0")).to_be_visible()
    viewer.page.keyboard.press("/")
    box = viewer.page.get_by_role("combobox", name="Name or class")
    told = viewer.page.get_by_role("dialog").get_by_role("status")
    for typed, said in UNUSABLE.items():
        began = perf_counter()
        box.fill(typed)
        expect(told).to_contain_text(said)
        expect(told).to_contain_text("plain text")
        assert perf_counter() - began < 25
        shoot(viewer.page, f"search-{said.rpartition(' ')[2]}")
        box.fill("stage1")
        expect(viewer.page.get_by_role("listbox", name="Calls").get_by_role("option").first).to_contain_text("stage1")
        expect(told).to_be_empty()


def test_the_runs_are_filtered_by_a_regular_expression(own_viewer: Viewer, own_logdir: Path) -> None:
    for name in ("lr=0.1", "lr=0.01", "seed(1"):
        runs.record_digits(own_logdir, name, steps=1)
    own_viewer.open("lr=0.1")
    chooser, box = own_viewer.page.get_by_label("Run", exact=True), own_viewer.page.get_by_role("searchbox")
    expect(chooser.locator("option")).to_have_count(3)
    box.fill(r"^LR=.*1$")
    expect(chooser.locator("option")).to_have_text(["lr=0.01", "lr=0.1"], use_inner_text=False)
    box.fill("01$")
    expect(chooser.locator("option")).to_have_text(["lr=0.1", "lr=0.01"])  # the one on show stays
    box.press("Enter")
    expect(chooser).to_have_value("lr=0.01")
    expect(chooser.locator("option")).to_have_text(["lr=0.01"])
    box.fill("seed(")
    expect(own_viewer.page.locator(".run-filter-problem")).to_contain_text("is not a regular expression")
    expect(chooser.locator("option")).to_have_text(["lr=0.01", "seed(1"])
    shoot(own_viewer.page, "run-filter")
    box.press("Escape")
    expect(chooser.locator("option")).to_have_count(3)


# Pictures.


def save_picture(page: Page | FrameLocator, kind: str) -> None:
    page.get_by_label("Save the graph as a picture").first.click()
    page.get_by_role("button", name=f"Save as {kind}").click()


def labels_on_screen(viewer: Viewer) -> list[str]:
    return sorted(viewer.page.locator(".canvas .node text").all_text_contents())


def require_self_contained(picture: ET.Element) -> None:
    """Nothing from elsewhere, no styles that need a sheet, and only colours that every program knows."""
    ids = {one.get("id") for one in picture.iter()}
    for one in picture.iter():
        assert one.tag.startswith(SVG)
        assert one.tag.removeprefix(SVG) not in ("script", "style", "image", "foreignObject")
        assert not {"class", "style", "href", "{http://www.w3.org/1999/xlink}href"} & set(one.keys())
        for name, value in one.attrib.items():
            assert not name.startswith("on")
            assert "var(" not in value
            assert "http" not in value
            if reference := re.search(r"url\((.*)\)", value):
                assert reference[1].removeprefix("#") in ids
            elif name in ("fill", "stroke"):
                assert re.fullmatch(r"#[0-9a-f]{6}|none|rgba\(\d+,\d+,\d+,[\d.]+\)", value), value


GROUNDS = {"light": "#f5f6f8", "dark": "#0f1218"}


def test_the_graph_is_saved_as_it_is_drawn(viewer: Viewer, digits: str, tmp_path: Path) -> None:
    viewer.open(digits, inside="stage1#0")
    expect(viewer.node("stage1.0#0")).to_be_visible()
    for scheme, ground in GROUNDS.items():
        viewer.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        expect(viewer.page.locator("html")).to_have_attribute("data-theme", scheme)
        for colour in ("Class", "Output mean"):
            viewer.choose("Colour", colour)
            viewer.settle()
            shown = labels_on_screen(viewer)
            path = saved(viewer.page, lambda: save_picture(viewer.page, "SVG"), tmp_path)
            assert path.name == f"digits-DigitsNet-stage1-step {runs.STEPS - 1}.svg"
            picture = ET.parse(path).getroot()
            require_self_contained(picture)
            assert sorted(one.text or "" for one in picture.iter(f"{SVG}text")) == shown
            assert next(picture.iter(f"{SVG}rect")).get("fill") == ground
            expect(viewer.page.locator("details.save-menu")).not_to_have_attribute("open", "")
            if SHOTS:
                Path(SHOTS, f"picture-{scheme}-{colour}.svg").write_bytes(path.read_bytes())


def test_the_command_that_exports_what_is_on_show_is_beside_pictures(viewer: Viewer, digits: str, logdir: Path) -> None:
    viewer.open(digits)
    expect(viewer.node("classifier#0")).to_be_visible()
    viewer.page.locator("details.save-menu summary").click()
    command = f"torchgraph export {logdir / digits} -o page.html"
    expect(viewer.page.locator(".save-export code")).to_have_text(command)


def test_the_graph_is_saved_as_pixels(viewer: Viewer, digits: str, tmp_path: Path) -> None:
    viewer.open(digits)
    expect(viewer.node("classifier#0")).to_be_visible()
    svg = ET.parse(saved(viewer.page, lambda: save_picture(viewer.page, "SVG"), tmp_path)).getroot()
    path = saved(viewer.page, lambda: save_picture(viewer.page, "PNG"), tmp_path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")
    assert (width, height) == (2 * int(svg.get("width") or 0), 2 * int(svg.get("height") or 0))
    assert len(content) > 10_000
    if SHOTS:
        Path(SHOTS, "picture.png").write_bytes(content)


def test_all_of_a_large_drawing_is_saved_and_the_screen_stays_as_it_was(
    viewer: Viewer, many: str, tmp_path: Path
) -> None:
    viewer.open(many)
    expect(viewer.page.locator(".node").first).to_be_visible()
    near = viewer.page.locator(".canvas .node").count()
    path = saved(viewer.page, lambda: save_picture(viewer.page, "SVG"), tmp_path)
    picture = ET.parse(path).getroot()
    require_self_contained(picture)
    assert len(list(picture.iter(f"{SVG}text"))) > near
    expect(viewer.page.locator(".canvas .node")).to_have_count(near)


# Tables.


def rows_of(path: Path) -> dict[str, np.ndarray]:
    """The columns of a table; an empty cell is NaN."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: np.array([float(row[at] or "nan") for row in rows]) for at, name in enumerate(header)}


def save_table(page: Page | FrameLocator, name: str = SERIES) -> None:
    page.get_by_role("button", name=f"Save {name} as CSV").click()


def test_a_series_is_saved_as_it_was_recorded(viewer: Viewer, digits: str, logdir: Path, tmp_path: Path) -> None:
    viewer.open(digits, pin=PIN)
    expect_painted(viewer.chart(SERIES))
    shoot(viewer.page, "panel")
    path = saved(viewer.page, lambda: save_table(viewer.page), tmp_path)
    assert path.name == "digits-DigitsNet-classifier_ output_ value.csv"
    table = rows_of(path)
    model = open_run(logdir / digits).model()
    history = model.history(model.find("classifier", role="output", kind="value")[0])
    quantiles = [f"quantile_{share:.2f}" for share in QUANTILES]
    assert list(table) == ["step", "last_step", "steps_merged", "time", "clock", *STATISTICS, *quantiles]
    np.testing.assert_array_equal(table["step"], history.steps)
    np.testing.assert_array_equal(table["last_step"], history.steps)
    assert set(table["steps_merged"]) == {1}
    np.testing.assert_allclose(table["time"], history.times, atol=1e-3)
    for name in STATISTICS:
        np.testing.assert_array_equal(table[name].astype(np.float32), history.column(name))
    np.testing.assert_allclose(np.stack([table[name] for name in quantiles], axis=1), history.quantiles(), rtol=1e-5)


def test_of_a_long_run_a_row_says_which_steps_it_stands_for(
    viewer: Viewer, long: str, logdir: Path, tmp_path: Path
) -> None:
    model = open_run(logdir / long).model()
    series = next(one for one in model.series if one.role == "output" and one.kind == "value")
    viewer.page.set_default_timeout(60_000)
    viewer.open(long, pin=f"0.{series.module}#0")
    button = viewer.page.get_by_role(
        "button", name=re.compile(rf"^Save .*{re.escape(series.module)}, output.*, value as CSV")
    )
    expect(button.first).to_be_enabled(timeout=60_000)
    path = saved(viewer.page, button.first.click, tmp_path)
    table = rows_of(path)
    merged = table["steps_merged"].max() > 1
    assert path.stem.endswith("steps merged") == merged
    assert table["steps_merged"].sum() == len(model)
    assert (table["step"][0], table["last_step"][-1]) == (model.steps[0], model.steps[-1])
    assert (table["step"][1:] > table["last_step"][:-1]).all()


# Wherever the viewer is.


def test_an_exported_page_saves_too(
    offline: Viewer,
    tmp_path: Path,
    logdir: Path,
    digits: str,
) -> None:
    path = tmp_path / "page.html"
    export_page(open_run(logdir / digits), path)
    open_file(offline, path)
    offline.drag(offline.node("stem#0"), offline.panels)
    expect(offline.chart("stem, output, value")).to_be_visible()
    table = rows_of(saved(offline.page, lambda: save_table(offline.page, "stem, output, value"), tmp_path))
    assert len(table["step"]) == runs.STEPS
    for kind in ("SVG", "PNG"):
        assert saved(offline.page, lambda kind=kind: save_picture(offline.page, kind), tmp_path).stat().st_size > 5000  # type: ignore[misc]


def test_a_page_in_a_notebook_saves_too(
    offline: Viewer,
    tmp_path: Path,
    logdir: Path,
    digits: str,
) -> None:
    notebook = tmp_path / "notebook.html"
    shown = open_run(logdir / digits)._repr_html_().replace("640px", "880px")
    notebook.write_text(f"<!doctype html><meta charset=utf-8><body style='margin:0'>{shown}", encoding="utf-8")
    open_file(offline, notebook)
    frame = offline.page.frame_locator("iframe")
    expect(frame.locator(".node").first).to_be_visible()
    for kind in ("SVG", "PNG"):
        assert saved(offline.page, lambda kind=kind: save_picture(frame, kind), tmp_path).stat().st_size > 5000  # type: ignore[misc]


def test_everything_can_be_saved_by_the_keyboard(viewer: Viewer, digits: str, tmp_path: Path) -> None:
    viewer.open(digits, pin=PIN)
    expect_painted(viewer.chart(SERIES))
    viewer.page.get_by_label("Save the graph as a picture").first.focus()
    for key in ("Enter", "Tab"):
        viewer.page.keyboard.press(key)
    assert saved(viewer.page, lambda: viewer.page.keyboard.press("Enter"), tmp_path).suffix == ".svg"
    viewer.page.get_by_role("button", name=f"Save {SERIES} as CSV").focus()
    assert saved(viewer.page, lambda: viewer.page.keyboard.press("Enter"), tmp_path).suffix == ".csv"


def test_a_menu_closes_as_something_else_is_pressed_or_focused(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, pin=PIN)
    save = viewer.page.get_by_label("Save the graph as a picture").first
    options = viewer.panels.get_by_label("More chart options")
    save.click()
    expect(viewer.button("Save as SVG")).to_be_visible()
    options.click()
    expect(viewer.button("Save as SVG")).to_be_hidden()
    expect(viewer.page.get_by_label("Time axis")).to_be_visible()
    viewer.slider.focus()
    expect(viewer.page.get_by_label("Time axis")).to_be_hidden()
