"""NaN and infinity: marked in every colouring, named in the header, and nowhere to be seen in a clean run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import nn

from tests.browser.page import Viewer, expect_open, expect_soon, expect_true
from tests.browser.runs import mean_square, watching
from tests.record.long_runs import write_long_run
from tests.shared import once
from tests.tables import thinned
from tests.troubled import STEPS, TROUBLED, record_troubled
from torchgraph_explorer import open_run
from torchgraph_explorer.server.export import export_page

COLOURS = ("class", "std", "mean", "nonfinite", "grad_norm", "grad_nonfinite")

FIRST = {
    "all": "First NaN at step 6: stem, parameter weight",
    "deep": "First NaN at step 3: body.1.act (call 1), output",
    "gradient": "First NaN at step 4: body (call 1), gradient of output",
    "parameter": "First NaN at step 2: words, parameter weight",
    "infinite": "First infinity at step 7: body.0.act (call 1), output",
}
BAD_STEP = {"all": 6, "deep": 3, "gradient": 4, "parameter": 2, "infinite": 7}
OWNERS = {
    "all": "stem#0",
    "deep": "body.1.act#0",
    "gradient": "body#0",
    "parameter": "words#0",
    "infinite": "body.0.act#0",
}

BADGES = """(all) => Object.fromEntries(all.flatMap((node) => {
  const badge = node.querySelector('.node-badge');
  return badge ? [[node.dataset.key, badge.textContent]] : [];
}))"""

RED = """(element) => {
  const probe = document.createElement('i');
  probe.style.color = 'var(--bad)';
  document.body.append(probe);
  const wanted = getComputedStyle(probe).color;
  probe.remove();
  return getComputedStyle(element).stroke === wanted;
}"""


@pytest.fixture(scope="session")
def troubled(logdir: Path) -> Path:
    """All of `TROUBLED` are recorded."""
    for run in TROUBLED:
        once(logdir, run, record_troubled)
    return logdir


@pytest.fixture
def shown(viewer: Viewer, troubled: Path) -> Viewer:
    """The viewer, where all of `TROUBLED` can be opened."""
    assert troubled.exists()
    return viewer


def check_badges(viewer: Viewer, expected: dict[str, str]) -> None:
    """What is written on the marks of nodes, by the nodes' keys."""
    assert viewer.page.locator(".node").evaluate_all(BADGES) == expected


def first(viewer: Viewer) -> Locator:
    """Where it began, in the header."""
    return viewer.page.locator(".first-trouble")


def marks(viewer: Viewer) -> Locator:
    """The marks on the time bar."""
    return viewer.page.locator(".time-marks i")


def colour_choice(viewer: Viewer) -> Locator:
    """What the nodes are coloured by."""
    return viewer.page.get_by_label("Colour", exact=True)


def in_tree(viewer: Viewer, module: str) -> Locator:
    """The mark of a module in the tree."""
    return viewer.page.locator(f'[id="module-{module}"] .outline-bad')


# A tensor at the top, and one deep inside that leads there.
@pytest.mark.parametrize("run", thinned(FIRST, 0, 1))
def test_the_header_names_the_first_step_and_tensor_and_leads_there(shown: Viewer, run: str) -> None:
    shown.open(run, step=0)
    expect(first(shown)).to_have_text(FIRST[run])
    expect(marks(shown)).to_have_count(1)
    first(shown).click()
    key = OWNERS[run]
    expect(shown.readout).to_contain_text(f"step {BAD_STEP[run]}")
    expect(shown.node(key)).to_have_attribute("aria-selected", "true")
    expect(shown.node(key)).to_be_in_viewport()
    expect(shown.panel(key)).to_be_visible()
    expect(shown.node(key).locator(".node-badge")).to_have_text(re.compile("^first (NaN|∞)"))


@pytest.mark.parametrize("width", thinned([1000, 1200], 0))  # the narrower has the less room
def test_run_and_model_stay_legible_beside_the_first_bad_step(shown: Viewer, width: int) -> None:
    shown.page.set_viewport_size({"width": width, "height": 700})
    shown.open("deep", step=4)
    expect(first(shown)).to_be_visible()
    header = shown.page.locator(".header")
    expect(header.locator("select")).to_have_count(2)
    widths = header.locator("select").evaluate_all("(all) => all.map((one) => one.offsetWidth)")
    assert min(widths) >= 70
    ends = header.locator("> *").evaluate_all(
        "(all) => all.filter((one) => one.offsetWidth > 1).map((one) => one.getBoundingClientRect())"
        ".map(({left, right}) => [left, right])"
    )
    assert all(right <= left for (_, right), (left, _) in pairwise(ends))


@pytest.mark.parametrize("theme", thinned(["light", "dark"], 1))
def test_a_bad_step_is_red_and_hatched_in_every_colouring(shown: Viewer, theme: str) -> None:
    for colour in COLOURS:
        shown.open("all", step=8, colour=colour, theme=theme)
        expect(colour_choice(shown)).to_have_value(colour)
        for key in ("stem#0", "body#0", "head#0", "#0/output"):
            cover = shown.node(key).locator(".node-bad")
            expect(cover).to_have_css("fill", re.compile("hatch-bad"))
            expect_true(cover, RED)
            expect(shown.node(key).locator(".node-badge")).to_have_text("NaN")
        expect(shown.node("#0/input[0]").locator(".node-bad")).to_have_count(0)


def test_what_only_something_deep_inside_has_is_marked_on_all_that_is_around_it(shown: Viewer) -> None:
    shown.open("deep", step=4)
    expect(shown.node("body#0").locator(".node-badge")).to_have_text("NaN inside")
    expect_soon(lambda: check_badges(shown, {"body#0": "NaN inside"}))
    expect(in_tree(shown, "")).to_have_text("NaN inside")
    expect(in_tree(shown, "body")).to_have_text("NaN inside")
    shown.node("body#0").dblclick()
    expect(shown.node("body.1#0").locator(".node-badge")).to_have_text("NaN inside")
    expect(shown.crumbs.first).to_have_class(re.compile("is-bad"))
    shown.node("body.1#0").dblclick()
    expect(shown.node("body.1.act#0").locator(".node-badge")).to_have_text("NaN")
    shown.node("body.1.act#0").click()
    expect(in_tree(shown, "body.1.act")).to_have_text("NaN")
    expect(shown.node("body.1.act#0")).to_have_attribute("aria-label", re.compile("NaN in output"))


def test_only_the_bad_steps_of_a_run_are_marked_and_zero_has_a_look_of_its_own(shown: Viewer) -> None:
    shown.open("deep", step=5)
    expect(first(shown)).to_be_visible()
    expect(shown.node("body#0")).to_be_visible()
    expect(shown.page.locator(".node-badge, .outline-bad, .readout .is-bad")).to_have_count(0)
    shown.page.keyboard.press(",")
    expect(shown.page.locator(".readout .is-bad")).to_be_visible()
    expect(shown.node("body#0").locator(".node-badge")).to_have_text("NaN inside")
    shown.open("deep", step=3, colour="nonfinite", inside="body.1#0")
    expect(shown.node("body.1.fc#0").locator(".node-zero")).to_have_css("fill", re.compile("dots"))
    expect(shown.node("body.1.act#0").locator(".node-bad")).to_be_visible()
    expect(shown.node("body.1.act#0").locator(".node-zero")).to_have_count(0)
    expect(shown.page.get_by_role("group", name="Legend").locator(".swatch-zero")).to_be_visible()


def test_an_edge_along_which_nan_goes_is_marked_and_marks_stay_at_every_zoom(shown: Viewer) -> None:
    shown.open("gradient", step=4)
    expect(shown.node("stem#0").locator(".node-badge")).to_have_text("NaN gradient")
    expect(shown.page.locator(".edge.is-bad")).to_have_count(0)
    shown.open("all", step=8)
    expect(shown.page.locator(".edge.is-bad")).to_have_count(3)
    expect(shown.node("head#0").locator(".node-badge")).to_be_visible()
    for _ in range(14):
        shown.button("Zoom out").click()
    expect(shown.page.locator(".canvas")).to_have_attribute("data-detail", "none")
    cover = shown.node("head#0").locator(".node-bad")
    expect(cover).to_have_css("vector-effect", "non-scaling-stroke")
    expect_true(cover, RED)
    expect(shown.page.locator(".edge.is-bad")).to_have_count(3)


# The one whose attention is masked by -inf is the likeliest to be marked by mistake.
@pytest.mark.parametrize("run", thinned(["clean", "causal", "empty"], 1))
def test_a_clean_run_has_no_mark_anywhere(shown: Viewer, run: str) -> None:
    anything = (
        ".first-trouble, .time-marks, .outline-bad, .node-badge, .node-bad, .edge.is-bad, .swatch-bad, .crumb.is-bad"
    )
    for step, theme in ((0, "light"), (STEPS - 1, "dark")):
        shown.page.goto("about:blank")
        answers = [shown.page.expect_response(re.compile(f"api/{route}")) for route in ("nonfinite", "frame")]
        with answers[0], answers[1]:
            shown.open(run, step=step, theme=theme)
        expect(shown.node("head#0")).to_be_visible()
        expect(shown.readout).to_contain_text(f"step {step}")
        expect(shown.page.locator(".details")).to_contain_text(f"At step {step}")
        for colour in COLOURS:
            colour_choice(shown).select_option(colour)
            shown.settle()
            expect(shown.page.locator(anything)).to_have_count(0)


def test_nan_in_all_of_a_tensor_is_told_from_nothing_recorded(shown: Viewer) -> None:
    shown.open("all", step=8, colour="grad_norm", pin="0.head#0")
    legend = shown.page.get_by_role("group", name="Legend")
    expect(legend).to_contain_text("Not finite at this step in 4 nodes.")
    expect(legend).to_contain_text("not recorded")
    shown.node("head#0").hover()
    expect(shown.page.get_by_role("tooltip")).to_contain_text("Gradient norm, mean: all 5 NaN")
    shown.node("#0/input[0]").hover()
    expect(shown.page.get_by_role("tooltip")).to_contain_text("Gradient norm, mean: not recorded at this step")
    figure = shown.page.locator("figure").filter(has=shown.chart("head, output, value"))
    expect(figure).to_contain_text("all 15 NaN")
    expect(figure.locator("[data-fact=mean]")).to_have_count(0)


def test_a_tensor_without_elements_is_neither_zero_nor_bad(shown: Viewer) -> None:
    shown.open("empty", colour="std", pin="0.none#0")
    expect(shown.node("none#0").locator(".node-empty")).to_be_visible()
    expect(shown.panels).to_contain_text("no elements")


def test_one_bad_step_of_ten_thousand_is_marked_and_can_be_pressed(shown: Viewer, logdir: Path) -> None:
    once(logdir, "needle", lambda folder, name: write_long_run(folder / name, 10_000, bad_step=7_000))
    shown.open("needle")
    expect(first(shown)).to_have_text("First NaN at step 7,000: layer0 (call 1), output")
    expect(marks(shown)).to_have_count(1)
    box = marks(shown).bounding_box()
    assert box is not None
    assert box["width"] >= 3
    shown.page.mouse.click(box["x"] + 1, box["y"] + box["height"])
    expect(shown.readout).to_contain_text("step 7,000")
    expect(shown.node("layer0#0").locator(".node-badge")).to_have_text("first NaN")


class Growing:
    """A model that is trained a step at a time, into the run `live`."""

    def __init__(self, logdir: Path) -> None:
        self.last = nn.Linear(3, 2)
        self.model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), self.last)
        self.watcher = watching(self.model, logdir, "live")

    def step(self) -> None:
        mean_square(self.model(torch.randn(5, 4))).backward()


@pytest.fixture
def growing(own_logdir: Path) -> Iterator[Growing]:
    training = Growing(own_logdir)
    yield training
    training.watcher.close()


def test_nan_that_comes_up_while_one_looks_on_is_marked_within_seconds(own_viewer: Viewer, growing: Growing) -> None:
    growing.step()
    own_viewer.open("live")
    expect(own_viewer.node("2#0")).to_be_visible()
    expect(first(own_viewer)).to_have_count(0)
    growing.last.weight.data[0, 0] = torch.nan
    growing.step()
    expect(first(own_viewer)).to_have_text("First NaN at step 1: 2, parameter weight")
    expect(own_viewer.node("2#0").locator(".node-badge")).to_have_text("first NaN")
    expect(own_viewer.page.get_by_role("tree", name="Findings")).to_contain_text("NaN or infinity2, weight")
    growing.last.weight.data[0, 0] = 0.0
    growing.model.zero_grad()
    growing.step()
    expect(own_viewer.readout).to_contain_text("step 2")
    expect(own_viewer.page.locator(".node-badge")).to_have_count(0)
    expect(first(own_viewer)).to_be_visible()


def test_another_model_of_the_run_that_has_some_says_so_in_the_list(own_viewer: Viewer, own_logdir: Path) -> None:
    good, bad = nn.Sequential(nn.Linear(4, 2)), nn.Sequential(nn.Linear(4, 2))
    bad.get_parameter("0.weight").data[0, 0] = torch.nan
    with watching(good, own_logdir, "two", name="good"), watching(bad, own_logdir, "two", name="bad"):
        for model in (good, bad):
            mean_square(model(torch.randn(5, 4))).backward()
    own_viewer.open("two", model="good")
    options = own_viewer.page.get_by_label("Model", exact=True).locator("option")
    expect(options).to_have_text(["good", "bad – NaN or ∞"])
    expect(first(own_viewer)).to_have_count(0)
    own_viewer.choose("Model", "bad – NaN or ∞")
    expect(first(own_viewer)).to_have_text("First NaN at step 0: 0, parameter weight")


def test_an_exported_page_marks_what_it_leaves_out(offline: Viewer, tmp_path: Path) -> None:
    write_long_run(tmp_path / "thinned", 500, series=40, bad_step=333)
    path = tmp_path / "page.html"
    export_page(open_run(tmp_path / "thinned"), path, steps=9, series=0)
    offline.page.goto(path.as_uri())
    expect(first(offline)).to_have_text("First NaN at step 333: layer0 (call 1), output")
    expect(marks(offline)).to_have_count(1)
    first(offline).click()
    expect(offline.readout).to_contain_text("step 333")
    expect(offline.node("layer0#0").locator(".node-badge")).to_have_text("first NaN")
    expect_soon(lambda: check_badges(offline, {"layer0#0": "first NaN"}))
    expect_open(offline, "Long")


def test_a_bad_step_that_a_page_leaves_out_is_marked_between_those_it_shows(offline: Viewer, tmp_path: Path) -> None:
    write_long_run(tmp_path / "two steps", 500, bad_step=333)
    path = tmp_path / "page.html"
    export_page(open_run(tmp_path / "two steps"), path, steps=2)
    offline.page.goto(path.as_uri())
    expect(marks(offline)).to_have_count(1)
    expect(first(offline)).to_have_attribute("title", re.compile("Step 333 is not on this page"))


def test_the_scale_that_the_data_choose_is_told_and_the_user_may_choose_another(viewer: Viewer, long: str) -> None:
    viewer.open(long, pin="0.0#0")
    scale = viewer.page.get_by_label("Scale", exact=True)
    expect(scale.locator("option").first).to_have_text(re.compile(r"^Auto \((linear|symlog|mixed)\)$"))
    assert "scale=" not in viewer.page.url
    viewer.choose("Scale", "Linear")
    expect(scale.locator("option").first).to_have_text("Auto")
    viewer.page.wait_for_url(re.compile("scale=linear"))


@pytest.mark.parametrize(
    "size", thinned([(480, 300), (700, 500), (320, 170)], 2), ids=lambda size: "x".join(map(str, size))
)
def test_the_first_nan_is_told_in_a_place_without_room_for_the_header(shown: Viewer, size: tuple[int, int]) -> None:
    width, height = size
    shown.page.set_viewport_size({"width": width, "height": height})
    shown.open("deep", step=4)
    expect(first(shown)).to_be_in_viewport(ratio=1)
    expect(first(shown)).to_contain_text("NaN at step 3")
    expect(marks(shown).first).to_be_visible()
    first(shown).click()
    expect(shown.node("body.1.act#0")).to_have_attribute("aria-selected", "true")
