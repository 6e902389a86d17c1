"""Where the graph looks after what one does: at what was asked for, whole if it can be read, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from tests.browser.page import Viewer, expect_open, expect_soon, expect_true
from tests.tables import thinned

LOOK = """() => {
  const pane = document.querySelector('.canvas').getBoundingClientRect();
  const boxesOf = (what) => [...document.querySelectorAll(what)].map((one) => one.getBoundingClientRect());
  const [covers, boxes] = [boxesOf('[data-covers=graph]'), boxesOf('.node-box')];
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const isIn = (a, b) => a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
  const isFree = (box) => isIn(box, pane) && !covers.some((one) => meet(one, box));
  const nodes = [...document.querySelectorAll('.node')].map((one) => [one.dataset.key, one.querySelector('.node-box')]);
  const sight = Object.fromEntries(nodes.map(([key, box]) => [key, isFree(box.getBoundingClientRect())]));
  const transform = document.querySelector('.canvas > g').getAttribute('transform');
  const [, x, y, scale] = /translate\\((.*),(.*)\\) scale\\((.*)\\)/.exec(transform);
  return {
    sight,
    view: [Number(x), Number(y), Number(scale)],
    left: Math.min(...boxes.map((box) => box.left)) - pane.left,
    right: pane.right - Math.max(...boxes.map((box) => box.right)),
    top: Math.min(...boxes.map((box) => box.top)) - pane.top,
    bottom: pane.bottom - Math.max(...boxes.map((box) => box.bottom)),
  };
}"""

READABLE = 0.6
MOST_SLANT = 110
"""Pixels that the boxes may stand nearer to one side than to the other: lines beside them are of the drawing, too."""


@dataclass(frozen=True)
class Look:
    """What the pane shows.

    Attributes:
        sight: Whether each box that is in the page is within the pane, and covered by nothing.
        view: Shift and scale of the drawing.
        left: Pixels from the pane's side to the nearest box; negative if it is cut off. So are the others.
    """

    sight: dict[str, bool]
    view: list[float]
    left: float
    right: float
    top: float
    bottom: float

    @property
    def scale(self) -> float:
        return self.view[2]


def look(viewer: Viewer) -> Look:
    """What the pane shows, once two frames have passed."""
    viewer.settle()
    return Look(**viewer.page.evaluate(LOOK))


def expect_drawn(viewer: Viewer, node: str, *crumbs: str) -> None:
    """A call is open, and its drawing has come: until then, the one before stays on show, which a key would move."""
    expect_open(viewer, *crumbs)
    expect(viewer.node(node)).to_be_visible()


def expect_whole(viewer: Viewer) -> None:
    """The whole drawing is in sight, can be read, and stands in the middle, as soon as its layout has come."""

    def check() -> None:
        seen = look(viewer)
        assert seen.sight
        assert [key for key, is_free in seen.sight.items() if not is_free] == []
        assert seen.scale >= READABLE
        assert abs(seen.left - seen.right) < MOST_SLANT
        assert abs(seen.top - seen.bottom) < MOST_SLANT

    expect_soon(check)


def expect_in_sight(viewer: Viewer, key: str) -> None:
    """The node can be seen and read, and no part of the pane is empty beside a part of the drawing that is cut off."""

    def check() -> None:
        seen = look(viewer)
        assert seen.sight.get(key)
        assert seen.scale >= READABLE
        assert seen.left > 0
        assert seen.right > 0
        assert min(seen.top, seen.bottom) < 60, "it is a long drawing"

    expect_soon(check)


def expect_uncovered(viewer: Viewer, key: str) -> None:
    """The node is within the pane, and nothing lies over it."""

    def check() -> None:
        assert look(viewer).sight.get(key)

    expect_soon(check)


Act = Callable[[Viewer], None]


def press(*keys: str) -> Act:
    def act(viewer: Viewer) -> None:
        for key in keys:
            viewer.page.keyboard.press(key)

    return act


def drag_to_the_panels(viewer: Viewer) -> None:
    viewer.drag(viewer.node("stage2.0.conv2#0"), viewer.panels)
    expect(viewer.panel("stage2.0.conv2#0")).to_be_visible()


def resize(width: int, height: int) -> Act:
    return lambda viewer: viewer.page.set_viewport_size({"width": width, "height": height})


def widen_the_panels(viewer: Viewer) -> None:
    splitter = viewer.page.get_by_role("separator", name="Width of the panels")
    for _ in range(6):
        splitter.press("ArrowRight")


def pin_the_last(viewer: Viewer) -> None:
    viewer.node("stage2.0.relu#1").click()
    viewer.page.keyboard.press("p")


BLOCK_ACTIONS: dict[str, list[Act]] = {
    "something is pinned": [drag_to_the_panels, widen_the_panels, pin_the_last],
    "parts are put away and brought back": [
        press("1"),
        press("1", "2"),
        press("1", "3", "4", "5"),
        press("1", "2", "3", "4", "5"),
        press(*"1234512345"),
    ],
    "the window changes": [resize(900, 640), resize(2560, 1440), resize(620, 1000), resize(1440, 900)],
    "one zooms in and fits": [press("+", "+", "+", "f")],
    "the last one is pinned by its key": [pin_the_last],
}


# Each changes the room of the drawing: in `make test` pinning and putting away do, which also takes the most steps.
@pytest.mark.parametrize("acts", thinned(BLOCK_ACTIONS.values(), 0, 1), ids=BLOCK_ACTIONS)
def test_what_fits_stays_in_sight_as_a_whole_when(viewer: Viewer, digits: str, acts: list[Act]) -> None:
    viewer.open(digits, inside="stage2.0#0")
    expect(viewer.node("stage2.0.conv2#0")).to_be_visible()
    expect_whole(viewer)
    for act in acts:
        act(viewer)
        expect_whole(viewer)


def by_double_click(viewer: Viewer) -> None:
    viewer.node("stage2#0").dblclick()
    viewer.node("stage2.0#0").dblclick()


def by_the_tree(viewer: Viewer) -> None:
    outline = viewer.page.get_by_role("tree", name="Modules")
    outline.get_by_role("treeitem", name="stage2").locator(".outline-twist").click()
    outline.locator('[id="module-stage2.0"]').dblclick()


def by_searching(viewer: Viewer) -> None:
    viewer.search("stage2.0.relu").first.click()


def by_leading_out(viewer: Viewer) -> None:
    viewer.search("stage2.0.relu").first.click()
    expect_open(viewer, "DigitsNet", "stage2", "stage2.0")
    viewer.crumbs.nth(1).click()
    expect_open(viewer, "DigitsNet", "stage2")
    viewer.node("stage2.0#0").dblclick()


@pytest.mark.parametrize(
    "go",
    thinned(
        [
            pytest.param(by_double_click, id="double click"),
            pytest.param(by_the_tree, id="the tree"),
            pytest.param(by_searching, id="the search"),
            pytest.param(by_leading_out, id="out and in again"),
        ],
        1,
        3,
    ),
)
def test_what_is_opened_is_seen_as_a_whole_though_one_looked_elsewhere_before(
    viewer: Viewer, digits: str, go: Act
) -> None:
    viewer.open(digits)
    expect(viewer.node("stage2#0")).to_be_visible()
    go(viewer)
    expect_drawn(viewer, "stage2.0.conv2#0", "DigitsNet", "stage2", "stage2.0")
    expect_whole(viewer)
    for key in ("+", "+", "+", "Backspace"):
        viewer.page.keyboard.press(key)
    expect_drawn(viewer, "stage2.0#0", "DigitsNet", "stage2")
    expect_whole(viewer)
    viewer.node("stage2.0#0").dblclick()
    expect_drawn(viewer, "stage2.0.conv2#0", "DigitsNet", "stage2", "stage2.0")
    expect_whole(viewer)


def test_another_run_or_model_is_seen_as_a_whole(viewer: Viewer, digits: str, pair: str) -> None:
    viewer.open(digits)
    expect_open(viewer, "DigitsNet")
    for _ in range(4):
        viewer.page.keyboard.press("+")
    viewer.choose("Run", pair)
    expect_open(viewer, "CompiledEntries")
    expect_whole(viewer)
    viewer.choose("Model", "linear")
    expect_open(viewer, "Sequential")
    expect_whole(viewer)


def pan(viewer: Viewer) -> list[float]:
    """Move and zoom the drawing with the mouse; where it stands then."""
    box = viewer.page.locator(".canvas").bounding_box()
    assert box is not None
    scale = look(viewer).scale
    viewer.page.mouse.move(box["x"] + 40, box["y"] + box["height"] - 30)
    viewer.page.mouse.down()
    viewer.page.mouse.move(box["x"] + 110, box["y"] + box["height"] - 90, steps=4)
    viewer.page.mouse.up()
    viewer.page.mouse.wheel(0, -120)
    transform = viewer.page.locator(".canvas > g")
    expect(transform).not_to_have_attribute("transform", re.compile(rf"scale\({re.escape(f'{scale:g}')}\)"))
    return look(viewer).view


def test_the_users_own_view_is_kept_while_he_changes_time_and_colour(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, inside="stage2.0#0")
    expect(viewer.node("stage2.0.conv2#0")).to_be_visible()
    mine = pan(viewer)
    viewer.slider.fill("7")
    expect(viewer.readout).to_contain_text("step 7")
    viewer.choose("Colour", "Output std")
    expect(viewer.node("stage2.0.conv2#0")).to_have_class(re.compile("by-value"))
    viewer.page.keyboard.press("t")
    assert look(viewer).view == mine


def test_the_users_own_view_keeps_what_he_selected_in_sight(viewer: Viewer, many: str) -> None:
    viewer.open(many, inside="layers#0", selected="layers.30#0")
    expect(viewer.node("layers.30#0")).to_be_visible()
    scale = pan(viewer)[2]
    viewer.search("layers.200").first.click()
    expect(viewer.node("layers.200#0")).to_be_visible()
    viewer.page.keyboard.press("+")
    for keys in ("1", "2", "1", "p", "3", "5"):
        viewer.page.keyboard.press(keys)
        expect_uncovered(viewer, "layers.200#0")
    assert look(viewer).scale > scale


def zoom_out_and_search(viewer: Viewer) -> None:
    viewer.page.keyboard.press("f")
    viewer.search("layers.17").first.click()


MANY_ACTIONS: dict[str, list[tuple[Act, int]]] = {
    "another is chosen": [
        (lambda viewer: viewer.page.locator('[id="module-layers.203"]').click(), 203),
        (press(*["ArrowDown"] * 12), 215),
        (lambda viewer: viewer.search("layers.390").first.click(), 390),
        (zoom_out_and_search, 17),
    ],
    "the sides change": [(press("p"), 200), (press("p"), 200), (press("1", "2"), 200)],
    "the window changes": [(resize(480, 300), 200), (resize(300, 480), 200), (resize(2560, 1440), 200)],
}
"""What is done, and the layer that is asked for then."""


@pytest.mark.parametrize("acts", thinned(MANY_ACTIONS.values(), 0, 2), ids=MANY_ACTIONS)
def test_of_400_modules_the_one_that_was_asked_for_is_in_sight_when(
    viewer: Viewer, many: str, acts: list[tuple[Act, int]]
) -> None:
    viewer.open(many, inside="layers#0", selected="layers.200#0")
    expect(viewer.node("layers.200#0")).to_be_visible()
    expect_in_sight(viewer, "layers.200#0")
    for act, layer in acts:
        act(viewer)
        expect(viewer.page.locator(".node.is-selected")).to_have_attribute("data-key", f"layers.{layer}#0")
        expect_in_sight(viewer, f"layers.{layer}#0")


def test_400_modules_are_first_seen_at_their_beginning(viewer: Viewer, many: str) -> None:
    viewer.open(many, inside="layers#0")
    expect(viewer.node("layers.0#0")).to_be_visible()
    expect_in_sight(viewer, "layers#0/input[0]")
    assert 0 < look(viewer).top < 40


@pytest.mark.parametrize("size", thinned([(480, 300), (640, 480), (320, 480)], 0), ids=str)
def test_what_is_asked_for_is_not_hidden_below_what_lies_over_the_graph(
    viewer: Viewer, many: str, size: tuple[int, int]
) -> None:
    viewer.page.set_viewport_size({"width": size[0], "height": size[1]})
    viewer.open(many, inside="layers#0", selected="layers.200#0")
    expect(viewer.node("layers.200#0")).to_be_visible()
    for drawer, wanted in (("1", "layers.100"), ("2", "layers.300")):  # the modules, the panels
        viewer.page.keyboard.press(drawer)
        expect(viewer.page.locator(".drawer")).to_be_visible()
        viewer.search(wanted).first.click()
        expect(viewer.node(f"{wanted}#0")).to_be_visible()
        expect_uncovered(viewer, f"{wanted}#0")


def test_the_drawing_glides_unless_one_prefers_no_motion(viewer: Viewer, many: str) -> None:
    viewer.page.emulate_media(reduced_motion="no-preference")
    viewer.open(many, inside="layers#0", selected="layers.20#0")
    expect(viewer.node("layers.20#0")).to_be_visible()
    viewer.page.evaluate(
        """() => {
          const drawing = document.querySelector('.canvas > g');
          window.views = new Set();
          const note = () => window.views.add(drawing.getAttribute('transform'));
          new MutationObserver(note).observe(drawing, {attributes: true});
        }"""
    )
    viewer.search("layers.25").first.click()
    expect_true(viewer.page, "() => window.views.size > 3")
    expect_true(viewer.page, f"() => ({LOOK})().sight['layers.25#0']")
