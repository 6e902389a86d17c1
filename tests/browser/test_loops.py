"""A module that is called again and again is one node, with a slider for which call."""

from __future__ import annotations

from pathlib import Path

import torch
from playwright.sync_api import Page, expect

from tests.browser.page import Viewer, expect_true
from tests.browser.runs import BAD_TURN, TURNS, Recurrent, mean_square, watching
from tests.browser.test_accessible import AXE, FOUND, LEFT_OUT
from torchgraph_explorer.record.discovery import open_record
from torchgraph_explorer.server.export import export_page

NAME = "cell, head"

APART = """(bar) => {
  const parts = [...bar.querySelectorAll('.turn-slider > *, .calls-single')].map((one) => one.getBoundingClientRect());
  const meets = (one, other) =>
    one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
  const isApart = (one, i) => parts.slice(i + 1).every((other) => !meets(one, other));
  return bar.scrollWidth <= bar.clientWidth && parts.every(isApart);
}"""


def drawn(page: Page) -> list[str]:
    keys: list[str] = page.locator(".node").evaluate_all("(all) => all.map((one) => one.dataset.key).sort()")
    return keys


def test_repeated_calls_are_one_node_whose_slider_chooses_what_is_shown_opened_and_pinned(
    viewer: Viewer, loop: str
) -> None:
    page = viewer.page
    viewer.open(loop, step=1)
    expect(viewer.node("cell#0")).to_contain_text(f"×{TURNS}")
    assert drawn(page) == ["#0/input[0]", "#0/output", "cell#0", "head#0"]
    slider = page.get_by_role("slider", name=f"Call of {NAME}")
    slider.fill("12")
    expect(viewer.node("head#12")).to_be_visible()  # both take the same turn
    page.get_by_role("button", name=f"Next call of {NAME}").click()
    expect(page.locator(".calls-bar output")).to_have_text(f"14 of {TURNS}")
    viewer.node("cell#13").click()
    page.keyboard.press("p")
    expect(viewer.panel("cell#13")).to_be_visible()
    viewer.node("cell#13").dblclick()
    expect(viewer.node("cell.gates#13")).to_be_visible()
    page.get_by_role("slider", name="Call of cell, which is open").fill("20")
    expect(viewer.node("cell.gates#20")).to_be_visible()
    page.keyboard.press("Backspace")
    expect(viewer.node("cell#20")).to_have_attribute("aria-selected", "true")


def test_a_panel_shows_all_calls_as_a_band_in_which_one_is_chosen(viewer: Viewer, loop: str) -> None:
    page = viewer.page
    viewer.open(loop, step=1, pin="0.cell#3")
    panel = viewer.panel("cell#3")
    panel.get_by_role("button", name="All calls").click()
    chart = page.get_by_role("slider", name="cell, output, value, over calls")
    chart.fill("7")
    expect(viewer.panel("cell#7").get_by_text(f"value, all {TURNS} calls at step 1").first).to_be_visible()
    shown = viewer.panel("cell#7").locator(".calls-facts").first
    expect(shown).to_contain_text("call 8: mean")
    page.wait_for_url("**pin=0*.cell%237*")
    page.reload()
    expect(page.get_by_role("slider", name="cell, output, value, over calls")).to_have_value("7")
    page.evaluate(AXE.read_text())
    assert page.evaluate(FOUND, list(LEFT_OUT)) == []


def test_the_calls_together_are_asked_for_again_after_a_failure(viewer: Viewer, loop: str) -> None:
    page = viewer.page
    page.route("**/api/calls*", lambda route: route.fulfill(status=502, json={"error": "The proxy is tired."}))
    viewer.open(loop, step=1, pin="0.cell#3")
    viewer.panel("cell#3").get_by_role("button", name="All calls").click()
    expect(page.get_by_text("All calls together could not be fetched: The proxy is tired.").first).to_be_visible()
    page.unroute_all()
    expect(page.get_by_text("All calls together:").first).to_be_visible()
    viewer.complaints.clear()  # the refusals are on the console


def test_nan_in_any_call_is_marked_and_gone_to(viewer: Viewer, loop: str) -> None:
    viewer.open(loop)
    node = viewer.page.locator(".node", has_text=f"×{TURNS}").first
    expect(node.locator(".node-badge")).to_contain_text("NaN")
    viewer.page.locator(".first-trouble").first.click()
    expect(viewer.node(f"cell#{BAD_TURN}")).to_be_visible()


def test_calls_are_drawn_one_by_one_if_that_is_wanted_and_fold_again(viewer: Viewer, loop: str) -> None:
    page = viewer.page
    viewer.open(loop, step=1)
    page.get_by_role("button", name="One by one").click()
    expect(viewer.node("cell#1")).to_be_visible()
    page.get_by_role("button", name="Fold repeated calls").click()
    expect(page.locator(".node")).to_have_count(4)


def test_sliders_of_passes_and_calls_stand_apart_in_a_small_window(own_viewer: Viewer, own_logdir: Path) -> None:
    model = Recurrent()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(model, own_logdir, "passes"):
        for _ in range(3):
            mean_square(model(torch.randn(2, TURNS, 4))).backward()
        optimizer.step()
    own_viewer.page.set_viewport_size({"width": 480, "height": 300})
    own_viewer.open("passes")
    bar = own_viewer.page.locator(".calls-bar")
    expect(bar.locator(".turn-slider")).to_have_count(2)
    expect_true(bar, APART)


def test_an_exported_page_folds_them_too(viewer: Viewer, loop: str, logdir: Path, tmp_path: Path) -> None:
    export_page(open_record(logdir / loop), tmp_path / "loop.html")
    viewer.page.goto(f"{(tmp_path / 'loop.html').as_uri()}#turn=12.cell%230")
    expect(viewer.node("head#12")).to_be_visible()
    assert drawn(viewer.page) == ["#0/input[0]", "#0/output", "cell#12", "head#12"]
