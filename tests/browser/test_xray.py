"""The x-ray: what it shows, where it leads, and what it costs."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Position, expect
from torch import nn

from tests.browser.conftest import NewContext
from tests.browser.page import Viewer, expect_soon, expect_true
from tests.browser.runs import mean_square, train, watching
from tests.browser.servers import ServerProcess
from torchgraph_explorer import open_run
from torchgraph_explorer.record.cells.reading import Wanted
from torchgraph_explorer.server.export import export_page

RED = """(canvas) => {
  const colour = getComputedStyle(canvas).getPropertyValue('--bad').trim();
  const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const {data, width} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const columns = new Set();
  for (let i = 0; i < data.length; i += 4)
    if (wanted.every((part, k) => data[i + k] === part)) columns.add(((i / 4) % width) / width);
  return [...columns].sort((a, b) => a - b);
}"""
"""Where along the picture, from 0 to 1, anything is marked as not finite."""


def picture(viewer: Viewer) -> Locator:
    return viewer.page.get_by_role("application", name=re.compile("^X-ray"))


def place(viewer: Viewer, row: float, step: float, *, rows: int, steps: int) -> Position:
    """The middle of a cell."""
    box = picture(viewer).bounding_box()
    assert box is not None
    return {"x": (step + 0.5) / steps * box["width"], "y": (row + 0.5) / rows * box["height"]}


@pytest.fixture
def shown(viewer: Viewer, digits: str) -> Viewer:
    viewer.open(digits)
    expect(picture(viewer).locator("canvas")).to_have_attribute("style", re.compile("width"))
    return viewer


def test_it_is_shown_where_nothing_is_pinned_and_marks_what_is_not_finite(shown: Viewer) -> None:
    def check() -> None:
        red = picture(shown).locator("canvas").evaluate(RED)
        assert red
        assert (min(red), max(red)) == pytest.approx((20 / 40, 23 / 40), abs=0.02)

    expect_soon(check)
    expect(shown.page.get_by_label("Statistic of the x-ray")).to_have_value("output_gradient")


def test_marks_of_findings_lie_within_the_picture(viewer: Viewer, broken: str) -> None:
    viewer.open(broken)
    marks = viewer.page.locator(".xray-mark")
    expect(marks).not_to_have_count(0)
    expect_soon(lambda: check_marks(marks, viewer.page.locator(".xray-room")))


def check_marks(marks: Locator, room: Locator) -> None:
    box = room.bounding_box()
    assert box is not None
    for mark in marks.all():
        one = mark.bounding_box()
        assert one is not None
        assert box["y"] <= one["y"]
        assert one["y"] + one["height"] <= box["y"] + box["height"]


def test_where_nothing_is_finite_the_legend_is_in_sight_in_a_small_window(own_viewer: Viewer, own_logdir: Path) -> None:
    model = nn.Linear(4, 2)
    with watching(model, own_logdir, "nan") as watcher:
        train(model, [(torch.full((8, 4), torch.nan),)] * 2, mean_square)
        watcher.log({"loss": torch.nan})
    own_viewer.page.set_viewport_size({"width": 480, "height": 300})
    own_viewer.open("nan")
    expect(own_viewer.page.locator(".node").first).to_be_visible()  # before, the page hears no keys
    own_viewer.page.keyboard.press("2")
    legend = own_viewer.page.get_by_role("note", name=re.compile("^Legend"))
    expect(legend).to_contain_text("nothing finite")
    expect(legend).to_be_in_viewport(ratio=1)


def test_what_is_not_finite_is_hatched_for_who_cannot_tell_red(own_viewer: Viewer, own_logdir: Path) -> None:
    model = nn.Linear(4, 2)
    with watching(model, own_logdir, "nan"):
        train(model, [(torch.full((8, 4), torch.nan),)] * 2, mean_square)
    own_viewer.open("nan")
    canvas = picture(own_viewer).locator("canvas")
    expect_soon(lambda: check_share_of_lines(canvas))


def check_share_of_lines(canvas: Locator) -> None:
    """Lines of another colour cross what is red."""
    data = "(it) => [...it.getContext('2d').getImageData(0, it.height >> 1, it.width, 1).data]"
    row = canvas.evaluate(data)[2::4]
    assert 0.1 < np.mean(np.array(row) != np.min(row)) < 0.5


def test_the_legend_and_the_zoom_are_in_sight_in_a_very_small_window(viewer: Viewer, scalars: str) -> None:
    viewer.page.set_viewport_size({"width": 400, "height": 300})
    viewer.open(scalars)
    expect(viewer.page.locator(".node").first).to_be_visible()
    viewer.page.keyboard.press("2")
    expect(viewer.page.locator(".xray-loss")).to_be_visible()
    expect(viewer.page.get_by_role("note", name=re.compile("^Legend"))).to_be_in_viewport(ratio=0.95)
    expect(viewer.page.locator(".xray-bar label", has_text="Changes")).to_be_in_viewport(ratio=1)
    expect(viewer.page.get_by_role("button", name="Show fewer steps")).to_be_in_viewport(ratio=1)


def test_the_range_of_a_single_loss_is_its_value(own_viewer: Viewer, own_logdir: Path) -> None:
    model = nn.Linear(4, 2)
    with watching(model, own_logdir, "one") as watcher:
        train(model, [(torch.ones(8, 4),)], mean_square)
        watcher.log({"loss": 0.125})
    own_viewer.open("one")
    expect(own_viewer.page.locator(".xray-loss-name small")).to_have_text("0.125")


def test_a_cell_tells_module_step_and_value_and_leads_there(shown: Viewer, logdir: Path, digits: str) -> None:
    cells = open_run(logdir / digits).model().cells(Wanted("output_gradient"))
    rows = len(cells.modules)
    picture(shown).hover(position=place(shown, rows - 1, 12, rows=rows, steps=40))
    expect(shown.tip).to_contain_text("classifierStep12Gradient of outputs")
    picture(shown).click(position=place(shown, rows - 1, 12, rows=rows, steps=40))
    expect(shown.panel("classifier#0")).to_be_visible()
    expect(shown.readout).to_contain_text("step 12")
    expect(shown.node("classifier#0")).to_have_attribute("aria-selected", "true")
    expect(picture(shown)).to_be_visible()  # for the next cell
    shown.button("X-ray").click()
    expect(picture(shown)).to_have_count(0)


def test_looking_around_shows_one_panel_which_back_undoes_and_a_pin_keeps(viewer: Viewer, digits: str) -> None:
    viewer.page.set_viewport_size({"width": 1280, "height": 800})
    viewer.open(digits)
    expect(picture(viewer).locator("canvas")).to_have_attribute("style", re.compile("width"))
    panels = viewer.page.locator("[data-pin]")
    seen = []
    for row in (3, 14):
        picture(viewer).click(position=place(viewer, row, 10, rows=37, steps=40))
        expect(panels).to_have_count(1)
        expect_soon(lambda: check_beside(panels, picture(viewer)))
        seen.append(panels.get_attribute("data-pin"))
    assert seen[0] != seen[1]
    viewer.page.go_back()
    expect(panels).to_have_attribute("data-pin", str(seen[0]))
    viewer.page.go_forward()
    expect(panels).to_have_attribute("data-pin", str(seen[1]))
    viewer.button("Keep the panel of").click()
    picture(viewer).click(position=place(viewer, 3, 10, rows=37, steps=40))
    expect(panels).to_have_count(2)


def test_lists_have_most_of_the_room_beside_scalars(viewer: Viewer, scalars: str) -> None:
    viewer.page.set_viewport_size({"width": 1440, "height": 800})
    viewer.open(scalars)
    expect(picture(viewer).locator("canvas")).to_have_attribute("style", re.compile("width"))
    viewer.page.get_by_text("Changes", exact=True).click()
    expect(viewer.page.get_by_role("list", name="What changed at this step")).to_be_visible()
    panel, room = viewer.page.get_by_label("X-ray", exact=True).first, viewer.page.locator(".panels-stack")
    one, other = panel.bounding_box(), room.bounding_box()
    assert one is not None
    assert other is not None
    assert one["height"] > 0.7 * other["height"]


def check_beside(panel: Locator, xray: Locator) -> None:
    """All of both is in the window."""
    one, other = panel.bounding_box(), xray.bounding_box()
    assert one is not None
    assert other is not None
    assert other["x"] > 300
    assert other["x"] + other["width"] <= one["x"]
    assert one["x"] + one["width"] <= 1280


def test_why_there_is_no_picture_is_told_until_there_is_one(viewer: Viewer, digits: str) -> None:
    viewer.page.route("**/api/xray*", lambda route: route.fulfill(status=503, json={"error": "Busy."}))
    viewer.open(digits)
    told = viewer.page.get_by_text("The x-ray could not be fetched: Busy. Trying again.")
    expect(told).to_be_visible()
    expect(viewer.page.locator(".xray-loss")).to_have_count(0)  # nothing tells yet which steps are in sight
    viewer.page.unroute_all()
    expect(picture(viewer)).to_be_visible()
    expect(told).to_have_count(0)
    viewer.complaints.clear()  # the refusals are on the console


def test_modules_fold_and_unfold(shown: Viewer) -> None:
    gutter = shown.page.get_by_role("list", name="Modules of the x-ray")
    shown.page.get_by_role("button", name="Fold", exact=True).click()
    expect(gutter.get_by_role("listitem")).to_have_text(
        ["DigitsNet", "stem", "stage1", "stage2", "stage3", "pool", "classifier"]
    )
    gutter.get_by_role("button", name="Unfold stage2").click()
    expect(gutter.get_by_role("listitem")).to_contain_text(["stage2", "0", "conv1"])


HEIGHTS = "(all) => all.map((one) => one.getBoundingClientRect()).map(({top, height}) => [top, height])"


def test_what_folds_can_be_pressed_with_a_finger(new_context: NewContext, server: ServerProcess, digits: str) -> None:
    page = new_context(has_touch=True, viewport={"width": 390, "height": 844}).new_page()
    page.goto(f"{server.url}#run={digits}")
    page.get_by_role("button", name="Show the panels").click()
    folds = page.locator(".xray-gutter button")
    expect(folds.first).to_be_visible()
    places = folds.evaluate_all(HEIGHTS)
    assert len(places) > 3
    assert all(height >= 23.9 for _, height in places)
    assert all(below[0] >= above[0] + above[1] - 0.1 for above, below in pairwise(places))
    page.get_by_role("button", name="Fold stage2", exact=True).click()
    expect(page.get_by_role("button", name="Unfold stage2", exact=True)).to_be_visible()


def test_it_is_used_by_keyboard(shown: Viewer) -> None:
    picture(shown).focus()
    said = picture(shown).locator("[aria-live]")
    shown.page.keyboard.press("ArrowDown")
    expect(said).to_have_text(re.compile("^DigitsNet, Step 39, Gradient of outputs "))
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("ArrowLeft")
    expect(said).to_have_text(re.compile("^stem, Step 38, Gradient of outputs "))
    shown.page.keyboard.press("+")
    expect(shown.button("Show all steps")).to_be_enabled()
    shown.page.keyboard.press("0")
    expect(shown.button("Show all steps")).to_be_disabled()
    shown.page.keyboard.press("Enter")
    expect(shown.panel("stem#0")).to_be_visible()
    expect(shown.readout).to_contain_text("step 38")


def test_the_statistic_is_chosen_and_in_the_address(shown: Viewer) -> None:
    shown.choose("Statistic of the x-ray", "Output share of zeros")
    expect(shown.page).to_have_url(re.compile("cells=zeros"))
    expect(shown.page.get_by_role("note", name=re.compile("^Legend"))).to_contain_text("NaN or ∞")


def test_an_exported_page_has_all_steps_of_it(offline: Viewer, logdir: Path, digits: str, tmp_path: Path) -> None:
    export_page(open_run(logdir / digits), tmp_path / "page.html", steps=3)
    offline.page.goto((tmp_path / "page.html").as_uri())

    def check() -> None:
        red = np.array(picture(offline).locator("canvas").evaluate(RED))
        assert ((red > 0.48) & (red < 0.6)).any()

    expect(picture(offline)).to_be_visible()
    expect_soon(check)


def test_the_table_has_all_modules_and_leads_to_them(shown: Viewer, logdir: Path, digits: str) -> None:
    shown.page.locator(".xray-bar .segments").get_by_text("Table", exact=True).click()
    table = shown.page.get_by_role("region", name="Modules at the step")
    names = table.get_by_role("rowheader")
    expect(names).to_have_count(len(open_run(logdir / digits).model().cells(Wanted("zeros")).modules))
    table.get_by_role("button", name="Output share of zeros").click()
    expect(table.get_by_role("columnheader", name="Output share of zeros")).to_have_attribute("aria-sort", "descending")
    shown.page.get_by_role("searchbox", name="Filter modules").fill("stage2 relu")
    expect(names).to_have_count(2)
    with shown.page.expect_download() as saved:
        shown.page.get_by_role("button", name="Save 2 modules as CSV").click()
    lines = saved.value.path().read_text().splitlines()
    assert lines[0].startswith("module,output_gradient,")
    assert sorted(line.partition(",")[0] for line in lines[1:]) == ["stage2.0.relu", "stage2.1.relu"]
    names.get_by_role("button", name="stage2.0.relu").click()
    expect(shown.panel("stage2.0.relu#0")).to_be_visible()


def test_a_reload_shows_the_table_again(shown: Viewer) -> None:
    shown.page.locator(".xray-bar .segments").get_by_text("Table", exact=True).click()
    expect_true(shown.page, "() => location.hash.includes('face=table')")
    shown.page.reload()
    expect(shown.page.get_by_role("region", name="Modules at the step")).to_be_visible()


def test_the_table_is_filled_once_the_server_answers_again(shown: Viewer) -> None:
    shown.page.route(
        re.compile(r"/api/xray\?.*from="), lambda route: route.fulfill(status=503, json={"error": "Busy."})
    )
    with shown.page.expect_response(re.compile(r"/api/xray\?.*from=")):
        shown.page.locator(".xray-bar .segments").get_by_text("Table", exact=True).click()
    table = shown.page.get_by_role("region", name="Modules at the step")
    numbers = table.locator("td:nth-child(2)").filter(has_text=re.compile(r"\d"))
    expect(numbers).to_have_count(0)
    shown.page.unroute_all()
    expect(numbers).not_to_have_count(0)
    shown.complaints.clear()  # the refusals are on the console


def test_what_changed_is_one_click_from_the_step(shown: Viewer) -> None:
    shown.page.locator(".xray-bar .segments").get_by_text("Changes", exact=True).click()
    shown.slider.focus()
    for _ in range(19):
        shown.page.keyboard.press("ArrowLeft")
    expect(shown.readout).to_contain_text("step 20")
    changes = shown.page.get_by_role("list", name="What changed at this step").get_by_role("listitem")
    expect(changes.first).to_contain_text("classifier")
    expect(changes.first).to_contain_text("NaN or infinite: 0 % → 10 %")
    changes.first.get_by_role("button", name="What moves with").click()
    expect(shown.panels).to_contain_text("By chance alone, the highest correlation among")
    shown.button("Back to what changed").click()
    changes.first.get_by_role("button").first.click()
    expect(shown.page.locator("[data-pin]")).to_have_count(1)
    expect(shown.readout).to_contain_text("step 20")


def test_two_steps_are_compared_in_the_list_and_in_the_colours_of_the_graph(shown: Viewer) -> None:
    shown.page.locator(".xray-bar .segments").get_by_text("Changes", exact=True).click()
    before = shown.page.get_by_role("spinbutton", name="Compare with step")
    expect(before).to_have_value("38")
    before.fill("10")
    before.press("Enter")
    expect(shown.panels).to_contain_text("Step 39 compared with the recorded steps up to 10")
    shown.button("Colour the graph by it").click()
    expect(shown.page).to_have_url(re.compile("since=10.*colour=since.std|colour=since.std.*since=10"))
    legend = shown.page.get_by_role("group", name="Legend")
    expect(legend).to_contain_text("Output standard deviation: log₂ of its ratio to step 10")
    expect(shown.node("stem#0")).to_have_attribute("style", re.compile("--fill"))
    shown.button("Colour the graph by it").click()
    expect(shown.page.get_by_label("Colour", exact=True)).to_have_value("class")


def test_what_moved_first_is_one_click_from_a_finding(shown: Viewer) -> None:
    findings = shown.page.get_by_role("tree", name=re.compile("^Findings"))
    findings.get_by_role("treeitem").first.click()
    shown.button("What moved first?").click()
    expect(shown.panels).to_contain_text("recorded steps compared with the")
    expect(shown.panels).to_contain_text("By chance alone, the highest score among")
    unusual = shown.page.get_by_role("list", name=re.compile("^What is unusual during")).get_by_role("listitem")
    expect(unusual.first).to_contain_text("NaN or infinite at 100 % of its steps, 0 % of others")
    others = shown.page.get_by_role("list", name=re.compile("^Findings during"))
    expect(others.filter(has_text="NaN or infinity, ")).to_have_count(0)
    expect(others.filter(has_text="is there at 0 %")).to_have_count(0)
    unusual.first.get_by_role("button").first.click()
    expect(shown.readout).to_contain_text("step 20")
    expect(shown.page.locator("[data-pin] .tensor.is-sought")).to_be_in_viewport()


def test_the_steps_at_which_a_series_passes_a_limit_are_compared_with_the_others(
    shown: Viewer, logdir: Path, digits: str
) -> None:
    model = open_run(logdir / digits).model()
    bad = next(one for one in model.series if one.role == "output" and model.history(one).statistics[:, 2:5].any())
    shown.page.locator(".xray-bar .segments").get_by_text("Changes", exact=True).click()
    shown.page.get_by_role("button", name=re.compile(rf"^What moves with {re.escape(bad.module)}")).first.click()
    shown.choose("Measure", "NaN or infinite")
    limit = shown.page.get_by_role("spinbutton", name=re.compile("^Limit of"))
    limit.fill("0")
    limit.press("Enter")
    expect(shown.panels.get_by_role("heading", name=re.compile("NaN or infinite of .* above 0"))).to_be_visible()
    rates = shown.page.get_by_role("list", name=re.compile("^Findings during")).get_by_role("listitem")
    expect(rates.first).to_contain_text("% of others; chance gives up to")
    shown.button("Back to what changed").click()
    expect(shown.page.get_by_role("spinbutton", name="Compare with step")).to_be_visible()
