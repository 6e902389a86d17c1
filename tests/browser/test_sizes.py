"""Windows of several sizes: nothing is cut off or laid over something else."""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import Tensor, nn

from tests.browser.page import Viewer, expect_soon, expect_true
from tests.browser.runs import MICRO_BATCHES, mean_square, record_short, train, watching
from torchgraph_explorer import Keep

SIDEWAYS = """(all) => all
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.className)"""

OUTSIDE = """(all) => all
  .filter((one) => one.checkVisibility())
  .map((one) => [one.ariaLabel || one.title || one.textContent, one.getBoundingClientRect()])
  .filter(([, box]) => box.left < 0 || box.right > innerWidth || box.top < 0 || box.bottom > innerHeight)
  .map(([name]) => name)"""

ENDS_IN_AN_ELLIPSIS = """() => {
  const bar = document.querySelector('.breadcrumb'), name = bar.firstElementChild;
  return bar.scrollWidth <= bar.clientWidth && name.scrollWidth > name.clientWidth;
}"""

STEP_IN_SIGHT = (
    """(text) => text.querySelector('b').getBoundingClientRect().right <= text.getBoundingClientRect().right"""
)

AS_WIDE_AS_IT_LIKES = """(select) => {
  const [label, width] = [select.parentElement, select.offsetWidth];
  label.style.flex = 'none';
  const liked = select.offsetWidth;
  label.style.flex = '';
  return width === liked;
}"""

BEYOND_THEIR_BOX = """(all) => all.filter((one) => {
  const box = one.querySelector('.node-box').getBoundingClientRect();
  return [...one.querySelectorAll('text')].some((text) => text.getBoundingClientRect().right > box.right);
}).map((one) => one.dataset.key)"""

WINDOWS = [(800, 600), (1100, 700), (1440, 900)]


def test_bars_panels_and_their_controls_are_within_the_window(viewer: Viewer, digits: str) -> None:
    viewer.page.set_viewport_size({"width": 800, "height": 600})
    viewer.open(digits, inside="stage2.0#0", pin="0.stage2.0.conv1#0", step=12)
    for width, height in WINDOWS:
        viewer.page.set_viewport_size({"width": width, "height": height})
        expect(viewer.strips).not_to_have_count(0)
        viewer.settle()
        expect_soon(lambda: check_bars_and_panels(viewer))


def test_whether_a_run_is_live_is_not_cut_off_beside_its_trouble(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, view="network")
    trouble = viewer.page.locator(".first-trouble-text")
    expect(trouble).to_be_visible()
    for width in (1280, 1440):
        viewer.page.set_viewport_size({"width": width, "height": 800})
        expect_soon(lambda: check_not_cut_off(viewer, ".header, .connection > span"))
        expect_true(trouble, STEP_IN_SIGHT)
        expect_true(viewer.page.get_by_label("Model", exact=True), AS_WIDE_AS_IT_LIKES)
    viewer.page.set_viewport_size({"width": 1040, "height": 800})
    expect_true(trouble, STEP_IN_SIGHT)
    expect_soon(lambda: check_not_cut_off(viewer, ".header"))


@pytest.mark.parametrize("face", ["Picture", "Table", "Changes"])
def test_the_bar_of_the_x_ray_shows_its_choice_whole_in_a_window_of_1280_pixels(
    viewer: Viewer, digits: str, face: str
) -> None:
    viewer.page.set_viewport_size({"width": 1280, "height": 720})
    viewer.open(digits, face=face.lower())
    expect(viewer.page.get_by_role("radio", name=face)).to_be_checked()
    statistic = viewer.page.get_by_label("Statistic of the x-ray")
    expect(statistic).to_have_count(0 if face == "Changes" else 1)  # a list of changes is of all statistics
    for one in statistic.all():
        expect_true(one, "(select) => select.offsetWidth >= 150")


def test_charts_side_by_side_and_their_bars_keep_in_line(viewer: Viewer, digits: str) -> None:
    viewer.open(digits)
    expect(viewer.page.get_by_role("button", name="Fold", exact=True)).to_be_visible()
    expect_true(viewer.page.locator(".xray-bar"), "(bar) => bar.offsetHeight < 40")
    viewer.open(digits, pin=["0.stage2.0.conv1#0"])
    names = "value", "gradient norm per sample"
    pair = [viewer.chart(f"stage2.0.conv1, output, {name}") for name in names]
    for chart in pair:
        expect(chart).to_be_visible()
    expect_soon(lambda: check_in_line(*pair))


def check_in_line(left: Locator, right: Locator) -> None:
    places = [one.evaluate("(one) => one.getBoundingClientRect().top") for one in (left, right)]
    assert places[0] == places[1]


def test_the_bar_of_steps_fits_into_a_small_window(own_viewer: Viewer, own_logdir: Path) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(model, own_logdir, "passes", time_log=("epoch", lambda _, step: step + 0.25)):
        for _ in range(MICRO_BATCHES):
            mean_square(model(torch.ones(8, 4))).backward()
        optimizer.step()
    own_viewer.open("passes")
    expect(own_viewer.readout).to_contain_text("passes recorded")
    for width in (390, 480, 640):
        own_viewer.page.set_viewport_size({"width": width, "height": 300})
        expect_soon(lambda: check_not_cut_off(own_viewer, "html, .time-bar"))


class Alternating(nn.Module):
    """Every other forward calls one layer more."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.more, self.calls = nn.Linear(4, 4), nn.Linear(4, 4), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.first(x) if self.calls % 2 else self.more(self.first(x))


def test_the_choice_of_a_graph_can_be_read_on_a_phone(own_viewer: Viewer, own_logdir: Path) -> None:
    model = Alternating()
    with watching(model, own_logdir, "alternating"):
        train(model, [(torch.ones(2, 4),)] * 4, mean_square)
    own_viewer.page.set_viewport_size({"width": 390, "height": 800})
    own_viewer.open("alternating")
    choice = own_viewer.page.get_by_role("combobox", name="Graph", exact=True)
    expect(choice).to_be_visible()
    box = choice.bounding_box()
    assert box is not None
    assert box["width"] > 200
    check_not_cut_off(own_viewer, ".pane-bar")
    choice.select_option(label="From step 3")
    expect(own_viewer.node("more#0")).to_be_visible()


def check_bars_and_panels(viewer: Viewer) -> None:
    bars = viewer.page.locator(".header, .pane-bar, .time-bar, .legend, .panel-header")
    assert bars.evaluate_all(SIDEWAYS) == []
    assert bars.locator("button, select, input, summary").evaluate_all(OUTSIDE) == []
    check_not_cut_off(viewer, ".panels-columns, .panel-body")


def check_not_cut_off(viewer: Viewer, what: str) -> None:
    assert viewer.page.locator(what).evaluate_all(SIDEWAYS) == []


def test_colours_are_printed_that_are_behind_something(viewer: Viewer, digits: str) -> None:
    viewer.open(digits)
    viewer.page.emulate_media(media="print")
    expect_true(
        viewer.page.locator(".legend .swatch").first, "(one) => getComputedStyle(one).printColorAdjust === 'exact'"
    )


def test_two_panels_fit_beside_each_other(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, pin=["0.stage2.0.conv1#0", "1.stage2.0.relu#1"])
    expect(viewer.strips).to_have_count(11)
    expect_soon(lambda: check_not_cut_off(viewer, ".panels-columns"))


LONGER = "() => document.documentElement.scrollHeight > innerHeight"


def test_hidden_texts_do_not_make_the_page_longer(own_viewer: Viewer, own_logdir: Path) -> None:
    record_short(own_logdir)
    own_viewer.page.set_viewport_size({"width": 800, "height": 320})
    own_viewer.open("short")
    expect(own_viewer.page.locator(".details-box")).to_contain_text("At step")
    assert own_viewer.page.locator(".details-box").evaluate("(box) => box.scrollHeight > box.clientHeight")
    assert not own_viewer.page.evaluate(LONGER)
    own_viewer.page.set_viewport_size({"width": 480, "height": 300})
    for name in ("Modules", "Panels"):
        own_viewer.page.get_by_text(name, exact=True).first.click()
        expect(own_viewer.page.locator(".drawer")).to_be_visible()
        assert not own_viewer.page.evaluate(LONGER), name


def test_the_header_fits_beside_trouble_findings_and_notes(own_viewer: Viewer, own_logdir: Path) -> None:
    record_short(own_logdir)
    for run in ("one", "other"):
        model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(6)))
        with watching(model, own_logdir, run, keep=Keep("nothing"), phases=("train", "eval")):
            train(model, [(torch.full((4, 2), math.inf if step > 9 else 100.0),) for step in range(12)], mean_square)
    own_viewer.page.set_viewport_size({"width": 1000, "height": 500})
    own_viewer.open("one", view="network")
    for named in (".run-filter", ".first-trouble", ".findings-button", ".warnings"):
        expect(own_viewer.page.locator(named)).to_be_visible()
    for width in range(1000, 1440, 20):
        own_viewer.page.set_viewport_size({"width": width, "height": 500})
        expect_true(own_viewer.page, "() => document.documentElement.scrollWidth <= innerWidth")


def test_names_stay_within_their_boxes(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, inside="stage2.0#0")
    expect(viewer.node("stage2.0.norm1#0")).to_be_visible()
    expect_soon(lambda: check_names(viewer))


def check_names(viewer: Viewer) -> None:
    assert viewer.page.locator(".node").evaluate_all(BEYOND_THEIR_BOX) == []


SMALL = """() => [...document.querySelectorAll('button, input, select, summary, a')]
  .filter((one) => one.checkVisibility() && !one.closest('[inert]'))
  .map((one) => one.closest('label') ?? one)
  .filter((one) => {
    const {width, height} = one.getBoundingClientRect();
    const around = getComputedStyle(one, '::after');
    return Math.min(width, height) < 24 && !(parseFloat(around.height) >= 24);
  })
  .map((one) => one.ariaLabel || one.title || one.textContent || one.className)"""


def test_what_is_pressed_is_at_least_24_pixels_large(viewer: Viewer, digits: str, kept: str) -> None:
    viewer.page.set_viewport_size({"width": 1280, "height": 800})
    for run, choices in (
        (digits, {"pin": "0.classifier#0"}),
        (kept, {"view": "tensors"}),
        (digits, {"view": "network"}),
    ):
        viewer.open(run, **choices)
        expect(viewer.page.locator("canvas[style], .network-name").first).to_be_visible()
        viewer.settle()
        assert viewer.page.evaluate(SMALL) == []


def test_options_are_below_each_other_on_a_phone_and_fade_in_a_low_window(viewer: Viewer, kept: str) -> None:
    bars = viewer.page.locator(".tensor-view > .tensor-bar")
    viewer.page.set_viewport_size({"width": 390, "height": 844})
    viewer.open(kept, view="tensors")
    expect(bars).to_have_count(2)
    expect_true(
        viewer.page, f"() => ({SIDEWAYS})([...document.querySelectorAll('.tensor-view > .tensor-bar')]).length === 0"
    )
    viewer.page.set_viewport_size({"width": 480, "height": 300})
    expect_true(bars.first, "(bar) => bar.scrollWidth > bar.clientWidth")
    behind = "(bar) => getComputedStyle(bar).getPropertyValue('--more-behind')"
    expect_true(bars.first, f"(bar) => ({behind})(bar) === '32px'")
    bars.first.evaluate("(bar) => bar.scrollTo({left: bar.scrollWidth})")
    expect_true(bars.first, f"(bar) => ({behind})(bar) === '0px'")


def test_no_number_of_the_facts_is_cut_off_beside_links_to_values(viewer: Viewer, kept: str) -> None:
    viewer.open(kept, selected="head#0")
    cells = viewer.page.locator(".fact-table.statistics tbody td:not(.values-cell)")
    expect(cells).not_to_have_count(0)
    assert cells.evaluate_all(SIDEWAYS) == []


def test_the_row_of_what_is_selected_is_in_sight_in_a_low_window(viewer: Viewer, digits: str) -> None:
    viewer.page.set_viewport_size({"width": 1280, "height": 600})
    viewer.open(digits, inside="stage3.1#0", selected="stage3.1.conv2#0")
    expect(viewer.page.get_by_role("treeitem", name="conv2 Conv2d")).to_be_in_viewport(ratio=1)


def test_the_row_of_what_is_selected_stays_in_sight_when_the_list_gets_lower(viewer: Viewer, digits: str) -> None:
    viewer.page.set_viewport_size({"width": 1280, "height": 1100})
    viewer.open(digits, inside="stage3.1#0", selected="classifier#0")
    row = viewer.page.locator('[id="module-classifier"]')
    expect(row).to_be_in_viewport(ratio=1)
    viewer.page.set_viewport_size({"width": 1280, "height": 600})  # as findings do that come later
    expect(row).to_be_in_viewport(ratio=1)


def test_a_name_without_room_ends_in_an_ellipsis(viewer: Viewer, gan: str) -> None:
    viewer.page.set_viewport_size({"width": 390, "height": 300})
    viewer.open(gan)
    expect(viewer.crumbs).to_have_text(["Calls of the model"])
    expect_true(viewer.page, ENDS_IN_AN_ELLIPSIS)


def test_the_legend_has_one_number_where_all_edges_are_equally_wide(own_viewer: Viewer, own_logdir: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 2))
    with watching(model, own_logdir, "one"):
        train(model, [(torch.ones(8, 4),)], mean_square)
    own_viewer.open("one")
    expect(own_viewer.page.locator(".legend-widths span")).to_have_count(1)


def test_a_badge_on_the_uppermost_node_is_in_sight(own_viewer: Viewer, own_logdir: Path) -> None:
    """The loop calls two modules of the model, so the graph does not begin with an input."""
    model = nn.ModuleDict({"first": nn.Linear(4, 4), "second": nn.Linear(4, 1)})
    nn.init.constant_(cast(nn.Linear, model["first"]).weight, math.nan)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(model, own_logdir, "apart"):
        for _ in range(2):
            optimizer.zero_grad()
            mean_square(model["second"](model["first"](torch.ones(8, 4)))).backward()
            optimizer.step()
    own_viewer.page.set_viewport_size({"width": 480, "height": 300})
    own_viewer.open("apart")
    expect_true(
        own_viewer.node("first#0").locator(".node-badge"),
        "(badge) => badge.getBoundingClientRect().top >= document.querySelector('.canvas').getBoundingClientRect().top",
    )
