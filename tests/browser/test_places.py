"""Small places: the graph has most of the room, and all else can be reached. What is put away by hand stays away."""

from __future__ import annotations

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.browser.page import Viewer, expect_soon
from tests.browser.test_sizes import OUTSIDE
from tests.tables import matrix

SHARE = """() => {
  const box = document.querySelector('.canvas').getBoundingClientRect();
  return box.width * box.height / innerWidth / innerHeight;
}"""

OVERLAPS = """() => {
  const names = ['.header button', '.header select', '.header .connection', '.word-mark', '.pane-bar button', '.crumb',
    '.pane-bar select', '.time-bar button', '.time-bar input', '.readout', '.legend select', '.legend-item', '.rail'];
  const shown = [...document.querySelectorAll(names.join())].filter((one) => one.checkVisibility());
  const boxes = shown.map((one) => [one.ariaLabel || one.className, one.getBoundingClientRect(), one]);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const cross = ([, a, one], [, b, other]) => !one.contains(other) && !other.contains(one) && meet(a, b);
  const crossed = (one, i) => boxes.slice(i + 1).filter((other) => cross(one, other));
  return boxes.flatMap((one, i) => crossed(one, i).map(([name]) => [one[0], name]));
}"""

LANDSCAPE = [(320, 240), (480, 300), (640, 480), (1024, 600), (1440, 900), (2560, 1440)]
SIZES = [*LANDSCAPE, *((height, width) for width, height in LANDSCAPE[:4])]
SMALL = [size for size in SIZES if min(size) < 480]
PARTS = ["modules", "panels", "header", "legend", "steps"]


PINS = {"no pins": [], "pins": ["0.stage2.0.conv1#0", "1.stage2.0.relu#1"]}


@pytest.mark.parametrize(("pins", "first"), matrix(list(PINS), [SIZES[0], SIZES[-1]]), ids=str)
def test_nothing_overlaps_or_is_cut_off(viewer: Viewer, digits: str, pins: str, first: tuple[int, int]) -> None:
    resize(viewer, first)
    viewer.open(digits, inside="stage2.0#0", selected="stage2.0.conv1#0", pin=PINS[pins])
    for size in (first, *SIZES):
        resize(viewer, size)
        expect(viewer.node("stage2.0.conv1#0")).to_be_visible()
        viewer.settle()
        expect_soon(partial(check_bars, viewer, size))


def check_bars(viewer: Viewer, size: tuple[int, int]) -> None:
    bars = ".header *, .pane-bar *, .time-bar *, .rail, .legend *"
    assert viewer.page.locator(bars).evaluate_all(OUTSIDE) == [], size
    assert viewer.page.evaluate(OVERLAPS) == [], size


def test_in_a_small_place_the_graph_has_most_of_the_room(viewer: Viewer, digits: str) -> None:
    resize(viewer, SMALL[0])
    viewer.open(digits, pin=["0.classifier#0"])
    expect(viewer.node("stem#0")).to_be_visible()
    for size in SMALL:
        resize(viewer, size)
        viewer.settle()
        expect_soon(partial(check_share, viewer, size))


def check_share(viewer: Viewer, size: tuple[int, int]) -> None:
    assert viewer.page.evaluate(SHARE) > 0.6, size


def resize(viewer: Viewer, size: tuple[int, int]) -> None:
    width, height = size
    viewer.page.set_viewport_size({"width": width, "height": height})


def test_in_a_small_place_everything_can_still_be_reached(viewer: Viewer, digits: str) -> None:
    page = viewer.page
    page.set_viewport_size({"width": 480, "height": 300})
    viewer.open(digits, pin=["0.classifier#0"])
    expect(viewer.node("stem#0")).to_be_visible()
    viewer.button("Show the modules").click()
    expect(page.get_by_role("treeitem", name="stage3")).to_be_visible()
    viewer.button("Show the panels").click()
    expect(page.get_by_role("tree", name="Modules")).to_have_count(0)
    expect(viewer.chart("classifier, output, value")).to_be_attached()
    viewer.button("Show the header").click()
    expect(page.get_by_label("Run", exact=True)).to_be_visible()
    page.get_by_role("group", name="Menu").get_by_role("button", name="Theme").click()
    expect(page).to_have_url(re.compile("theme=light"))
    viewer.button("Show the legend").click()
    viewer.choose("Colour", "Output std")
    expect(viewer.node("stem#0")).to_have_class(re.compile("by-value"))
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="Legend")).to_have_count(0)
    viewer.slider.fill("7")
    expect(viewer.readout).to_contain_text("step 7")
    page.locator(".pane-bar").get_by_role("button", name="Search").click()
    page.keyboard.type("stage3.1.conv2")
    page.keyboard.press("Enter")
    expect(viewer.node("stage3.1.conv2#0")).to_have_attribute("aria-selected", "true")


def test_parts_are_put_away_and_brought_back_by_button_and_key_and_are_in_the_address(
    viewer: Viewer, digits: str
) -> None:
    viewer.open(digits)
    expect(viewer.node("stem#0")).to_be_visible()
    for part in PARTS:
        viewer.button(f"Hide the {part}").click()
        expect(viewer.button(f"Hide the {part}")).to_have_count(0)
        expect(viewer.page).to_have_url(re.compile(f"hide={part}"))
    viewer.page.reload()
    for key, part in enumerate(PARTS, start=1):
        expect(viewer.button(f"Show the {part}")).to_be_visible()
        viewer.button(f"Show the {part}").click()
        expect(viewer.button(f"Hide the {part}")).to_be_visible()
        viewer.page.keyboard.press(str(key))
        expect(viewer.button(f"Show the {part}")).to_be_visible()
        viewer.page.keyboard.press(str(key))
        expect(viewer.page).not_to_have_url(re.compile(f"hide={part}"))
    expect(viewer.page).not_to_have_url(re.compile("hide="))
    viewer.page.keyboard.press("?")
    expect(viewer.page.get_by_role("dialog")).to_contain_text(f"Show or hide: {', '.join(PARTS)}")


@pytest.mark.parametrize(("width", "height"), [(480, 300), (1440, 900)])
def test_pinning_brings_the_panels(viewer: Viewer, digits: str, width: int, height: int) -> None:
    viewer.page.set_viewport_size({"width": width, "height": height})
    viewer.open(digits, hide="panels")
    expect(viewer.node("stem#0")).to_be_visible()
    viewer.drag(viewer.node("stem#0"), viewer.panels)
    expect(viewer.panel("stem#0")).to_be_visible()
    viewer.page.keyboard.press("2")
    expect(viewer.panel("stem#0")).to_have_count(0)
    viewer.node("stem#0").click()
    viewer.page.keyboard.press("p")
    expect(viewer.panel("stem#0")).to_have_count(0)
    viewer.page.keyboard.press("p")
    expect(viewer.panel("stem#0")).to_be_visible()


def test_what_lies_over_the_graph_leaves_by_escape_and_the_selection_stays(viewer: Viewer, digits: str) -> None:
    viewer.page.set_viewport_size({"width": 480, "height": 300})
    viewer.open(digits, selected="stem#0")
    expect(viewer.node("stem#0")).to_be_visible()
    viewer.page.keyboard.press("1")
    expect(viewer.page.get_by_role("tree", name="Modules")).to_be_visible()
    viewer.page.keyboard.press("Escape")
    expect(viewer.page.get_by_role("tree", name="Modules")).to_have_count(0)
    expect(viewer.node("stem#0")).to_have_attribute("aria-selected", "true")


def test_a_place_that_grows_has_room_for_what_it_had_put_away_itself(viewer: Viewer, digits: str) -> None:
    viewer.page.set_viewport_size({"width": 480, "height": 300})
    viewer.open(digits)
    expect(viewer.node("stem#0")).to_be_visible()
    viewer.page.set_viewport_size({"width": 1440, "height": 900})
    for part in PARTS:
        expect(viewer.button(f"Hide the {part}")).to_be_visible()
