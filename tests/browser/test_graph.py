"""Ways through the graph: in, out, search, outline, colours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect
from torch import nn

from tests.browser import runs
from tests.browser.page import Viewer, expect_open, expect_soon, number


@pytest.fixture
def at_top(viewer: Viewer, digits: str) -> Viewer:
    """The demo's network, nothing chosen."""
    viewer.open(digits)
    expect(viewer.node("stage2#0")).to_be_visible()
    return viewer


def test_the_model_itself_is_open_at_first(at_top: Viewer) -> None:
    expect_open(at_top, "DigitsNet")
    expect(at_top.page).to_have_title(re.compile("DigitsNet.*digits"))
    keys = [
        "#0/input[0]",
        "#0/output",
        "#0@features",
        "classifier#0",
        "pool#0",
        "stage1#0",
        "stage2#0",
        "stage3#0",
        "stem#0",
    ]
    expect(at_top.page.locator(".node")).to_have_count(len(keys))
    shown = at_top.page.locator(".node").evaluate_all("(all) => all.map((one) => one.dataset.key).sort()")
    assert shown == sorted(keys)


def test_a_double_click_or_enter_opens_the_inside_if_there_is_one(at_top: Viewer) -> None:
    at_top.node("pool#0").dblclick()
    at_top.page.keyboard.press("Enter")
    expect_open(at_top, "DigitsNet")
    expect(at_top.node("pool#0")).to_have_attribute("aria-selected", "true")
    at_top.node("stage2#0").click()
    at_top.page.keyboard.press("Enter")
    expect_open(at_top, "DigitsNet", "stage2")
    at_top.node("stage2.0#0").dblclick()
    expect_open(at_top, "DigitsNet", "stage2", "stage2.0")
    expect(at_top.node("stage2.0.relu#1")).to_be_visible()


def test_backspace_and_the_breadcrumb_lead_out_over_one_level_or_several(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, inside="stage2.0#0")
    expect(viewer.node("stage2.0.conv1#0")).to_be_visible()
    viewer.page.keyboard.press("Backspace")
    expect_open(viewer, "DigitsNet", "stage2")
    expect(viewer.node("stage2.0#0")).to_have_attribute("aria-selected", "true")
    viewer.node("stage2.0#0").dblclick()
    expect_open(viewer, "DigitsNet", "stage2", "stage2.0")
    viewer.crumbs.first.click()
    expect_open(viewer, "DigitsNet")
    expect(viewer.node("stage2#0")).to_be_visible()


def test_back_and_forward_lead_out_and_in_and_undo_and_redo_a_pin(at_top: Viewer) -> None:
    at_top.node("stage3#0").dblclick()
    expect(at_top.page).to_have_url(re.compile("inside=stage3%23"))  # the entry in the history has been made
    at_top.page.go_back()
    expect_open(at_top, "DigitsNet")
    at_top.page.go_forward()
    expect_open(at_top, "DigitsNet", "stage3")
    at_top.node("stage3.1#0").click()
    at_top.page.keyboard.press("p")
    expect(at_top.page).to_have_url(re.compile("pin="))
    at_top.node("stage3.1#0").dblclick()
    expect(at_top.page).to_have_url(re.compile("inside=stage3.1%23"))
    panel = at_top.panel("stage3.1#0")
    for go, names, panels in (
        ("back", ["stage3"], 1),
        ("back", ["stage3"], 0),
        ("back", [], 0),
        ("forward", ["stage3"], 0),
        ("forward", ["stage3"], 1),
        ("forward", ["stage3", "stage3.1"], 1),
    ):
        getattr(at_top.page, f"go_{go}")()
        expect_open(at_top, "DigitsNet", *names)
        expect(panel).to_have_count(panels)


def test_the_model_itself_is_found_as_the_whole_of_what_is_open(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, inside="stage2#0", selected="stage2.0#0")
    expect_open(viewer, "DigitsNet", "stage2")
    viewer.page.get_by_role("treeitem", name="DigitsNet").click()
    expect_open(viewer, "DigitsNet")
    expect(viewer.node("stage2#0")).to_be_visible()
    expect(viewer.page.get_by_label("Facts").get_by_role("heading", name="DigitsNet")).to_be_visible()
    viewer.node("stage3#0").dblclick()
    expect_open(viewer, "DigitsNet", "stage3")


FOUND = {
    "stage3.1.conv2": ("stage3.1.conv2#0", ["DigitsNet", "stage3", "stage3.1"]),
    "stage1 BatchNorm2d": ("stage1.0.norm1#0", ["DigitsNet", "stage1", "stage1.0"]),
}


def test_searching_jumps_to_a_call_by_name_or_class_or_finds_none(at_top: Viewer) -> None:
    for words, (key, crumbs) in FOUND.items():
        expect(at_top.search(words).first).to_contain_text(key.removesuffix("#0"))
        at_top.page.keyboard.press("Enter")
        expect_open(at_top, *crumbs)
        expect(at_top.node(key)).to_have_attribute("aria-selected", "true")
        expect(at_top.node(key)).to_be_in_viewport()
    at_top.search("stage1.0.relu").nth(1).click()
    expect(at_top.node("stage1.0.relu#1")).to_have_attribute("aria-selected", "true")
    at_top.search("transformer")
    expect(at_top.page.get_by_text("Nothing of that name or class is called in this graph.")).to_be_visible()
    at_top.page.keyboard.press("Escape")
    expect(at_top.page.get_by_role("dialog")).to_be_hidden()


def test_the_outline_shows_a_module_in_the_graph(at_top: Viewer) -> None:
    outline = at_top.page.get_by_role("tree", name="Modules")
    outline.get_by_role("treeitem", name="stage3").locator(".outline-twist").click()
    outline.locator('[id="module-stage3.1"]').click()
    expect_open(at_top, "DigitsNet", "stage3")
    expect(at_top.node("stage3.1#0")).to_have_attribute("aria-selected", "true")
    expect(outline.locator('[id="module-stage3.1"]')).to_have_attribute("aria-selected", "true")


def test_the_facts_of_a_node_are_told_when_it_is_selected_and_in_short_on_hover(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, inside="stage2.0#0", selected="stage2.0.conv1#0")
    facts = viewer.page.get_by_role("region", name="Facts")
    for text in (
        "stage2.0.conv1",
        "torch.nn.modules.conv.Conv2d",
        "32×16×8×8",
        "32×32×4×4",
        "4.61k, trainable",
        "(2, 2)",
    ):
        expect(facts).to_contain_text(text)
    viewer.node("stage2.0.conv1#0").hover()
    tooltip = viewer.page.get_by_role("tooltip")
    for text in ("stage2.0.conv1", "Conv2d", "32×16×8×8", "stride=(2, 2)"):
        expect(tooltip).to_contain_text(text)


def test_what_was_told_of_a_node_goes_with_it(at_top: Viewer) -> None:
    at_top.node("stage2#0").hover()
    told = at_top.page.get_by_role("tooltip").get_by_text("stage2", exact=True)
    expect(told).to_be_visible()
    at_top.node("stage2#0").dblclick()
    expect(at_top.node("stage2.0#0")).to_be_visible()
    expect(told).to_have_count(0, timeout=200)


def test_what_has_no_gradient_is_dashed_or_hatched_and_explained(viewer: Viewer, pair: str) -> None:
    viewer.open(pair, model="gates")
    legend = viewer.page.get_by_role("group", name="Legend")
    dashed = viewer.page.locator(".canvas path.edge.no-gradient")
    expect(dashed).not_to_have_count(0)
    assert dashed.first.evaluate("(one) => getComputedStyle(one).strokeDasharray") != "none"
    expect(legend).to_contain_text("data, no gradient")
    viewer.open(pair, model="gates", colour="grad_norm")
    expect(viewer.node("quiet#0").locator(".node-hatch")).to_be_attached()
    expect(legend).to_contain_text("not recorded")


def test_nodes_are_coloured_by_a_statistic_of_the_step(at_top: Viewer) -> None:
    fill = "(one) => getComputedStyle(one.querySelector('.node-box')).fill"
    at_top.choose("Colour", "Output std")
    expect(at_top.node("stage1#0")).to_have_class(re.compile("by-value"))
    expect(at_top.page.locator(".legend-ramp")).to_be_visible()
    last = [at_top.node(key).evaluate(fill) for key in ("stage1#0", "stage3#0")]
    assert last[0] != last[1]
    at_top.slider.fill("0")
    expect(at_top.readout).to_contain_text("step 0")
    expect(at_top.node("stage3#0").locator(".node-box")).not_to_have_css("fill", last[1])


def test_edges_are_as_wide_as_the_gradient_that_comes_back_along_them(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, inside="stage2.0#0")
    page, skip = viewer.page, "stage2.0.shortcut#0 → stage2.0.relu#1"
    target = page.locator(f'.edge-target[data-edge="{skip}"]')
    expect(target).to_be_attached()
    widths = page.locator(".edge").evaluate_all("(all) => all.map((one) => parseFloat(one.style.strokeWidth))")
    assert len(widths) > 1
    assert all(1 <= width <= 8 for width in widths)
    middle = """(path) => {
        const point = path.getPointAtLength(path.getTotalLength() / 2).matrixTransform(path.getScreenCTM());
        return [point.x, point.y];
    }"""
    page.mouse.move(*target.evaluate(middle))
    tip = page.locator(".tooltip")
    expect(tip).to_contain_text("shortcut → relu #2")
    told = number(tip.locator("b").last.inner_text())
    page.mouse.down()
    page.mouse.up()
    panel = viewer.panel(skip)
    expect(panel).to_contain_text("Gradient along the edge")
    expect(panel.locator("canvas").first).to_be_visible()

    def check() -> None:
        text = panel.locator("text=l2").locator("xpath=..").inner_text()
        assert number(text.split()[-1]) == pytest.approx(told, rel=0.05)

    expect_soon(check)
    expect(page).to_have_url(re.compile("pin="))
    page.reload()
    expect(viewer.panel(skip)).to_contain_text("shortcut → relu #2")
    viewer.choose("Width", "None")
    expect(page.locator(".edge").first).not_to_have_attribute("style", re.compile("stroke-width"))
    expect(page).to_have_url(re.compile("width=none"))


def test_a_wide_edge_of_a_selected_node_keeps_an_arrow_as_wide(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, inside="stage2.0#0", selected="stage2.0.conv1#0")
    expect(viewer.page.locator(".selected-edges .edge")).to_have_count(2)
    drawn = """(all) => all.map((one) => [parseFloat(one.style.strokeWidth) > 3, one.getAttribute('marker-end')])"""
    arrows = dict(viewer.page.locator(".edge.is-selected").evaluate_all(drawn))
    assert arrows[True] == "url(#arrow-selected-wide)"
    expect(viewer.page.locator("#arrow-selected-wide")).to_be_attached()


def test_the_facts_of_a_node_lead_to_the_gradient_along_its_edges(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, inside="stage2.0#0", selected="stage2.0.conv1#0")
    rows = viewer.page.locator(".edge-flows")
    rows.get_by_role("button", name="x → conv1").press("Enter")
    expect(viewer.panel("stage2.0#0/input[0] → stage2.0.conv1#0")).to_be_visible()


def test_a_model_of_one_module_is_drawn_as_that_module(own_viewer: Viewer, own_logdir: Path) -> None:
    model = nn.Linear(4, 2)
    with runs.watching(model, own_logdir, "alone"):
        runs.train(model, [(torch.ones(2, 4),)], runs.mean_square)
    own_viewer.open("alone")
    expect(own_viewer.node("#0")).to_contain_text("Linear")
    expect(own_viewer.page.locator(".node")).to_have_count(1)
    expect(own_viewer.page.get_by_role("region", name="Facts")).to_contain_text("in_features")


def test_of_several_calls_the_first_that_gradients_come_back_to_is_open(own_viewer: Viewer, own_logdir: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with runs.watching(model, own_logdir, "again"):
        for _ in range(2):
            optimizer.zero_grad()
            guess = model(torch.ones(2, 4)).detach()
            (model(torch.ones(2, 4)) - guess + 1).square().mean().backward()
            optimizer.step()
    own_viewer.open("again")
    expect(own_viewer.node("0#1")).to_be_visible()
    expect(own_viewer.page.locator(".outline-row.is-inside")).to_contain_text("Sequential")
