"""Pinning nodes: by dragging, by key, by button; finding them again, and letting go."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import Viewer, expect_true

CONV = "stage2.0.conv1#0"


@pytest.fixture
def in_block(viewer: Viewer, digits: str) -> Viewer:
    """A residual block is open, nothing is pinned."""
    viewer.open(digits, inside="stage2.0#0")
    expect(viewer.node(CONV)).to_be_visible()
    return viewer


def test_a_node_is_pinned_by_dragging_it_to_the_panels_and_nowhere_else(in_block: Viewer) -> None:
    in_block.drag(in_block.node(CONV), in_block.page.get_by_role("tree", name="Modules"))
    expect(in_block.page.locator(".ghost")).to_have_count(0)
    expect(in_block.panels).to_contain_text("No node is pinned")
    in_block.node(CONV).hover()
    in_block.page.mouse.down()
    in_block.panels.hover(force=True)
    expect(in_block.panels).to_contain_text("Drop to pin conv1")
    in_block.page.keyboard.press("Escape")
    in_block.page.mouse.up()
    expect(in_block.panels).to_contain_text("No node is pinned")
    in_block.drag(in_block.node(CONV), in_block.panels)
    expect(in_block.panel(CONV)).to_contain_text("stage2.0.conv1")
    expect(in_block.chart("stage2.0.conv1, output, value")).to_be_visible()


def test_the_key_p_and_the_pin_button_pin_and_unpin_what_is_selected(in_block: Viewer) -> None:
    in_block.node(CONV).click()
    in_block.page.keyboard.press("p")
    expect(in_block.panel(CONV)).to_be_visible()
    in_block.page.keyboard.press("p")
    expect(in_block.panel(CONV)).to_have_count(0)
    in_block.button("Pin: show its histograms").click()
    expect(in_block.panel(CONV)).to_be_visible()
    in_block.button("Unpin").click()
    expect(in_block.panel(CONV)).to_have_count(0)


def test_a_pinned_node_carries_the_colour_of_its_panel_and_no_other(in_block: Viewer) -> None:
    colours = set()
    for key in (CONV, "stage2.0.conv2#0", "stage2.0.norm1#0"):
        in_block.node(key).click()
        in_block.page.keyboard.press("p")
        chip = in_block.panel(key).locator(".panel-chip").evaluate("(one) => getComputedStyle(one).backgroundColor")
        expect(in_block.node(key).locator(".node-pin")).to_have_css("fill", chip)
        colours.add(chip)
    assert len(colours) == 3


def test_a_panel_leads_to_its_node_from_anywhere_and_takes_the_pin_away(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, inside="stage3.1#0", pin=f"0.{CONV}")
    viewer.button("Find stage2.0.conv1 in the graph").click()
    expect(viewer.crumbs).to_have_text(["DigitsNet", "stage2", "stage2.0"])
    expect(viewer.node(CONV)).to_have_attribute("aria-selected", "true")
    expect(viewer.node(CONV)).to_be_in_viewport()
    expect(viewer.node(CONV)).to_have_class(re.compile("is-pinned"))
    viewer.button("Close the panel of stage2.0.conv1").click()
    expect(viewer.panels).to_contain_text("No node is pinned")
    expect(viewer.node(CONV)).not_to_have_class(re.compile("is-pinned"))


def test_each_tensor_has_its_value_and_gradient_side_by_side_until_its_section_is_folded(
    viewer: Viewer, digits: str
) -> None:
    viewer.open(digits, pin="0.classifier#0")
    expect(viewer.strips).to_have_count(9)
    expect(viewer.chart("classifier, x, value")).to_be_visible()
    names = [name.split(":")[0] for name in viewer.strips.evaluate_all("(all) => all.map((one) => one.ariaLabel)")]
    tensors = ("x", "output", "weight", "bias")
    kinds = ("gradient norm per sample", "gradient norm per sample", "gradient", "gradient")
    expected = [
        (f"classifier, {path}, value", f"classifier, {path}, {kind}") for path, kind in zip(tensors, kinds, strict=True)
    ]
    *others, bias = expected
    ratio = "classifier, weight, update-to-weight ratio"
    assert names == [*(name for both in others for name in both), ratio, *bias]
    viewer.panels.get_by_role("button", name="Params").click()
    expect(viewer.strips).to_have_count(4)


def test_an_attached_tensor_and_a_placeholder_have_panels_of_one_tensor(viewer: Viewer, digits: str) -> None:
    viewer.open(digits)
    viewer.node("#0@features").click()
    viewer.page.keyboard.press("p")
    expect(viewer.panel("#0@features")).to_contain_text("32×64")
    expect(viewer.strips).to_have_count(2)
    viewer.open(digits, inside="stage2.0#0", pin="0.stage2.0#0/input[0]")
    expect(viewer.chart("stage2.0 \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} x, x, value")).to_be_visible()
    expect(viewer.strips).to_have_count(2)


def test_many_panels_are_scrolled(viewer: Viewer, digits: str) -> None:
    keys = [f"stage{i}.{j}.conv1#0" for i in (1, 2, 3) for j in (0, 1)]
    viewer.open(digits, pin=[f"{i}.{key}" for i, key in enumerate(keys)])
    expect(viewer.page.locator(".panel")).to_have_count(6)
    viewer.panel(keys[-1]).scroll_into_view_if_needed()
    expect(viewer.panel(keys[-1])).to_be_in_viewport()


IN_SIGHT = """(panel) => {
  const [own, pane] = [panel, panel.parentElement].map((one) => one.getBoundingClientRect());
  return own.left >= pane.left && own.right <= pane.right;
}"""


def test_the_panel_of_what_is_pinned_last_is_in_sight(viewer: Viewer, digits: str) -> None:
    pins = [f"{at}.{key}" for at, key in enumerate(["stem#0", "stage1#0", "stage2#0"])]
    viewer.open(digits, pin=pins, selected="classifier#0")
    expect(viewer.panels.locator("[data-pin]")).to_have_count(3)
    viewer.page.keyboard.press("p")
    expect_true(viewer.panel("classifier#0"), IN_SIGHT)


def test_columns_out_of_sight_are_named_and_one_press_away(viewer: Viewer, digits: str) -> None:
    viewer.page.set_viewport_size({"width": 1280, "height": 800})
    keys = ["stem#0", "stage1#0", "stage2.0.relu#1"]
    viewer.open(digits, pin=[f"{at}.{key}" for at, key in enumerate(keys)])
    bar = viewer.page.get_by_role("navigation", name="Columns")
    expect(bar.get_by_role("button")).to_have_text(["stem", "stage1", "stage2.0.relu #2"])
    last = bar.get_by_role("button", name="stage2.0.relu")
    expect(last).to_have_attribute("aria-current", "false")
    last.click()
    expect_true(viewer.panel(keys[2]), IN_SIGHT)
    expect(last).to_have_attribute("aria-current", "true")
    expect(bar.get_by_role("button", name="stem")).to_have_attribute("aria-current", "false")
    viewer.button("Close the panel of stage1").click()
    expect(bar).to_have_count(0)


def test_what_is_shown_without_pins_is_said_to_be_of_the_whole_run(viewer: Viewer, scalars: str) -> None:
    viewer.open(scalars)
    whole = viewer.panels.locator(".panels-whole")
    expect(whole).to_contain_text("Of the whole run:")
    expect(whole.get_by_role("button")).to_have_text(["X-ray", "Scalars"])


def test_a_panel_says_why_a_gradient_is_missing(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, pin="0.#0")
    expect(viewer.panels).to_contain_text("The input does not require a gradient.")
