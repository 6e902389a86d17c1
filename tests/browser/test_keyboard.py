"""Without a mouse."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import Tensor, nn

from tests.browser.page import CONTROLS, FOCUSED, Viewer, expect_open
from tests.browser.runs import mean_square, train, watching

AT_ONCE = """(element, keys) => {
    for (const key of keys) element.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    return new Promise((drawn) => setTimeout(() => requestAnimationFrame(drawn), 200));
}"""
"""Presses keys faster than the page is drawn, and waits until it is."""


class Layered(nn.Module):
    """The list of its layers is a module that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.mark.parametrize("pins", [[], ["0.classifier#0"]], ids=["no panel", "a panel"])
def test_every_control_has_a_name_and_tab_reaches_it_and_shows_where_it_is(
    viewer: Viewer, digits: str, pins: list[str]
) -> None:
    viewer.open(digits, pin=pins, inside="stage2#0", selected="stage2.0#0", step=12)
    expect(viewer.strips).to_have_count(9 * len(pins))
    expect(viewer.node("stage2.0#0")).to_be_visible()
    expect(viewer.page.locator(".time-finding").first).to_be_visible()  # what is found comes last, and has controls
    controls = viewer.page.evaluate(CONTROLS)
    assert [name for name in controls if name.startswith("<")] == []
    reached = []
    for _ in controls:
        viewer.page.keyboard.press("Tab")
        reached.append(viewer.page.evaluate(FOCUSED))
    assert sorted(one["name"] for one in reached) == sorted(controls)
    assert [one["name"] for one in reached if not one["isRinged"]] == []


def test_one_can_walk_open_pin_and_leave_by_keyboard_alone(viewer: Viewer, digits: str) -> None:
    viewer.open(digits)
    expect(viewer.node("stem#0")).to_be_visible()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):  # input, stem, stage1
        viewer.page.keyboard.press(key)
    expect_open(viewer, "DigitsNet", "stage1")
    expect(viewer.node("stage1.0#0")).to_be_visible()
    for key in ("ArrowDown", "ArrowDown", "p"):
        viewer.page.keyboard.press(key)
    expect(viewer.panel("stage1.0#0")).to_be_visible()
    viewer.page.keyboard.press("Backspace")
    expect_open(viewer, "DigitsNet")


def test_the_outline_is_walked_by_arrow_keys(viewer: Viewer, digits: str) -> None:
    viewer.open(digits)
    expect(viewer.node("stem#0")).to_be_visible()
    outline = viewer.page.get_by_role("tree", name="Modules")
    outline.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "p", "Enter"):
        outline.press(key)
    expect(viewer.panel("stage1.0#0")).to_be_visible()
    expect_open(viewer, "DigitsNet", "stage1", "stage1.0")


def test_the_outline_is_walked_past_modules_that_are_not_called(own_viewer: Viewer, own_logdir: Path) -> None:
    model = Layered()
    with watching(model, own_logdir, "layered"):
        train(model, [(torch.randn(4, 3),)], mean_square)
    own_viewer.open()
    expect(own_viewer.node("layers.0#0")).to_be_visible()
    outline = own_viewer.page.get_by_role("tree", name="Modules")
    outline.focus()
    walk = [("ArrowDown", "layers"), ("ArrowDown", "head"), ("ArrowUp", "layers"), ("ArrowRight", "layers")]
    for key, name in [*walk, ("ArrowRight", "layers.0"), ("ArrowUp", "layers"), ("ArrowDown", "layers.0")]:
        outline.press(key)
        expect(outline.locator('[aria-selected="true"]')).to_have_id(f"module-{name}")
    for name in ("layers.1", "head"):
        outline.press("ArrowDown")
        expect(own_viewer.node(f"{name}#0")).to_have_attribute("aria-selected", "true")
    outline.evaluate(AT_ONCE, ["ArrowUp"] * 3)  # before the graph shows a layer, the module around it is reached
    expect(outline.locator('[aria-selected="true"]')).to_have_id("module-layers")
    outline.press("ArrowLeft")
    expect(outline.locator('[id="module-layers"]')).to_have_attribute("aria-expanded", "false")


def test_a_dialog_lists_the_keys_and_gives_the_focus_back(viewer: Viewer, digits: str) -> None:
    viewer.open(digits)
    viewer.button("Keys and help").focus()
    viewer.page.keyboard.press("?")
    expect(viewer.page.get_by_role("dialog")).to_contain_text("Open the inside of a call")
    viewer.page.keyboard.press("Escape")
    expect(viewer.page.get_by_role("dialog")).to_have_count(0)
    expect(viewer.button("Keys and help")).to_be_focused()
    graph = viewer.page.get_by_role("listbox", name="Graph")
    for key in ("?", "/"):
        graph.focus()
        viewer.page.keyboard.press(key)
        expect(graph).not_to_be_focused()
        viewer.page.keyboard.press("Escape")
        expect(graph).to_be_focused()


def test_typing_in_the_search_does_not_press_shortcuts(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, selected="pool#0")
    expect(viewer.node("pool#0")).to_be_visible()
    viewer.page.keyboard.press("/")
    viewer.page.keyboard.type("pt?/")
    expect(viewer.page.get_by_role("combobox", name="Name or class")).to_have_value("pt?/")
    expect(viewer.panels).to_contain_text("No node is pinned")


def test_steps_and_zoom_by_keyboard(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, step=12)
    expect(viewer.readout).to_contain_text("step 12")
    for key, step in ((",", 11), (".", 12), (".", 13), ("l", 39)):
        viewer.page.keyboard.press(key)
        expect(viewer.readout).to_contain_text(f"step {step}")
    expect(viewer.node("stage2#0")).to_be_visible()
    before = width_of(viewer.node("stage2#0"))
    viewer.page.keyboard.press("+")
    assert width_of(viewer.node("stage2#0")) == pytest.approx(1.3 * before, rel=0.01)
    viewer.page.keyboard.press("f")
    expect(viewer.node("#0/output")).to_be_in_viewport(ratio=1)
    assert width_of(viewer.node("stage2#0")) < 1.3 * before


def width_of(node: Locator) -> float:
    """In pixels of the screen."""
    box = node.locator(".node-box").bounding_box()
    assert box is not None
    return box["width"]
