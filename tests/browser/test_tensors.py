"""Looking at tensors that were kept whole: what is shown is what was recorded."""

from __future__ import annotations

import csv
import json
import re
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from playwright.sync_api import FloatRect, Locator, expect
from torch import nn

from tests.browser import runs
from tests.browser.conftest import NewContext
from tests.browser.page import Viewer, expect_soon, expect_true
from tests.browser.servers import ServerProcess
from tests.tables import thinned
from torchgraph_explorer import Keep
from torchgraph_explorer.record.tensors.reading import KeptTensor
from torchgraph_explorer.run import Model, open_run
from torchgraph_explorer.schema import Kind, Role, Series
from torchgraph_explorer.server.export import export_page

LAST = 10
"""The last kept step of the run."""

STEPS = (0, 2, 4, 6, 8, 10)


SHOWS_ITS_END = """(label) => {
  const text = label.firstElementChild.getBoundingClientRect(), box = label.getBoundingClientRect();
  return text.width > box.width && Math.abs(text.right - box.right) < 2;
}"""

WITHIN = """(nodes) => nodes.every((node) => {
  const [text, box] = ['text', 'rect'].map((name) => node.querySelector(name).getBoundingClientRect());
  return text.left >= box.left && text.right <= box.right;
})"""


def tensor(module: str, call: int | None, role: str, path: str) -> str:
    """A tensor, as the address names it."""
    return json.dumps([module, call, role, path], separators=(",", ":"))


FEATURES = tensor("", 0, "attached", "features")
CONV = tensor("conv", 0, "output", "output")
WEIGHT = tensor("head", None, "param", "weight")
CELL = tensor("cell", 1, "output", "output")
IMAGES = tensor("", 0, "input", "input[0]")


@lru_cache
def model(folder: Path) -> Model:
    return open_run(folder).model()


def recorded(logdir: Path, name: str, kind: Kind = "value", step: int = LAST) -> KeptTensor:
    """The oracle: what the record has."""
    module, call, role, path = json.loads(name)
    wanted: Role = role
    return model(logdir / "kept").tensor(Series(-1, module, call, wanted, path, kind), step)


def look(viewer: Viewer, run: str, name: str | None = None, **choices: Any) -> None:
    viewer.open(run, view="tensors", **({} if name is None else {"tensor": name}), **choices)
    expect(viewer.page.locator(".tensor-pane")).not_to_have_count(0)


def array(viewer: Viewer, at: int = 0) -> Locator:
    """Where the elements are drawn."""
    return viewer.page.get_by_role("application").nth(at)


def readout(viewer: Viewer, at: int = 0) -> Locator:
    return viewer.page.locator(".tensor-readout").nth(at)


def shown_value(viewer: Viewer, at: int = 0) -> float:
    """The value in the line below the picture."""
    text = readout(viewer, at).inner_text()
    return float(text.rpartition("= ")[2].replace("−", "-"))


def fact(viewer: Viewer, name: str) -> Locator:
    return (
        viewer.page.locator(".tensor-facts").first.locator("div").filter(has_text=re.compile(f"^{name}")).locator("dd")
    )


def test_every_kept_tensor_is_listed_and_leads_to_its_values(viewer: Viewer, kept: str) -> None:
    viewer.open(kept)
    viewer.page.locator(".view-tabs select:visible").select_option(label="Tensors")
    listed = viewer.page.get_by_role("navigation", name="Kept tensors")
    expect(listed.get_by_role("button")).to_have_count(24)
    listed.get_by_label("Find a tensor").fill("head weight")
    listed.get_by_role("button").click()
    expect(viewer.page.get_by_role("heading", name="head · weight")).to_be_visible()
    expect_true(viewer.page, "() => location.hash.includes('view=tensors')")


def test_hovering_and_clicking_tell_the_exact_value(viewer: Viewer, kept: str, logdir: Path) -> None:
    look(viewer, kept, CONV)
    values = recorded(logdir, CONV).values
    array(viewer).locator("canvas").hover(position={"x": 3, "y": 20})
    expect(readout(viewer)).to_contain_text("[sample 0, 0, 0, 0]")
    assert np.float32(shown_value(viewer)) == values[0, 0, 0, 0]
    array(viewer).locator("canvas").click(position={"x": 3, "y": 20})
    array(viewer).press("ArrowRight")
    array(viewer).press("ArrowDown")
    expect(readout(viewer)).to_contain_text("[sample 0, 0, 1, 1]")
    assert np.float32(shown_value(viewer)) == values[0, 0, 1, 1]


@pytest.mark.parametrize(
    ("keys", "name", "kind", "of"),
    [
        pytest.param("]", CONV, "value", lambda one: one.values[1, 2, 3, 4], id="the next sample"),
        pytest.param("g", CONV, "grad_norm", lambda one: one.values[0, 2, 3, 4], id="the gradient"),
        pytest.param("g]]", CONV, "grad_norm", lambda one: one.values[2, 2, 3, 4], id="another sample's gradient"),
    ],
)
def test_keys_lead_to_samples_and_gradients(
    viewer: Viewer, kept: str, logdir: Path, keys: str, name: str, kind: Kind, of: Any
) -> None:
    look(viewer, kept, name, pick="0,2,3,4")
    for key in keys:
        viewer.page.keyboard.press(key)
    expected = float(of(recorded(logdir, name, kind)))
    expect(readout(viewer)).to_contain_text(", 2, 3, 4] = ")
    expect_true(
        viewer.page,
        "(wanted) => Math.abs(parseFloat(document.querySelector('.tensor-readout').textContent.split('= ')[1]"
        ".replaceAll('−', '-')) - wanted) <= 1e-6 * Math.abs(wanted)",
        arg=expected,
    )


@pytest.mark.parametrize("statistic", thinned(["mean", "std", "largest"], 1))
def test_a_statistic_of_each_neuron_is_shown(viewer: Viewer, kept: str, logdir: Path, statistic: str) -> None:
    look(viewer, kept, CONV, sample=statistic, pick="2,3,4")
    expect(readout(viewer)).to_contain_text("[2, 3, 4] = ")
    assert np.float32(shown_value(viewer)) == getattr(recorded(logdir, CONV), statistic)[2, 3, 4]


def test_kept_steps_are_marked_and_keys_go_from_one_to_the_next(viewer: Viewer, kept: str, logdir: Path) -> None:
    look(viewer, kept, CONV, pick="0,0,0,0")
    expect(viewer.page.locator(".time-marks .is-kept")).to_have_count(len(STEPS))
    viewer.page.keyboard.press(",")
    viewer.page.keyboard.press(",")
    expect(viewer.page.get_by_label("Step", exact=True).and_(viewer.page.locator("select"))).to_have_value("6")
    expect(viewer.readout).to_contain_text("step 6")
    expected = recorded(logdir, CONV, step=6).values[0, 0, 0, 0]
    expect(array(viewer)).to_have_attribute("aria-label", re.compile("at step 6"))
    expect_true(viewer.page, "() => !document.querySelector('.tensor-pane[aria-busy=true]')")
    assert np.float32(shown_value(viewer)) == expected


def test_choices_survive_another_tensor_and_a_reload(viewer: Viewer, kept: str) -> None:
    look(viewer, kept, CONV)
    viewer.page.keyboard.press("]")
    viewer.page.keyboard.press("g")
    viewer.choose("dim 1 (6)", "slider")
    viewer.page.get_by_label("Index along dim 1").fill("4")
    viewer.page.get_by_role("navigation", name="Kept tensors").get_by_role("button", name="tokens").first.click()
    expect(viewer.page.get_by_text("Gradient", exact=True)).to_have_count(0)
    viewer.page.get_by_role("navigation", name="Kept tensors").get_by_role(
        "button", name=re.compile("^output.*6, 8, 8")
    ).click()

    def as_chosen() -> None:
        expect(viewer.page.get_by_label("Sample", exact=True).and_(viewer.page.locator("select"))).to_have_value("1")
        expect(viewer.page.get_by_label("Index along dim 1")).to_have_value("4")
        expect(viewer.page.get_by_role("radio", name="Gradient")).to_be_checked()

    as_chosen()
    expect_true(viewer.page, "() => location.hash.includes('at=')")
    viewer.page.reload()
    as_chosen()


def test_calls_are_told_apart_and_followed(viewer: Viewer, kept: str, logdir: Path) -> None:
    look(viewer, kept, CELL, pick="0,3", over="calls")
    expect(viewer.page.get_by_role("heading", name="cell #2 · output")).to_be_visible()
    viewer.page.keyboard.press("'")
    expect(viewer.page.get_by_role("heading", name="cell #3 · output")).to_be_visible()
    third = tensor("cell", 2, "output", "output")
    expect(readout(viewer)).to_contain_text("[sample 0, 3]")
    expect(array(viewer)).to_have_attribute("aria-label", re.compile("cell #3"))
    expect_true(viewer.page, "() => !document.querySelector('.tensor-pane[aria-busy=true]')")
    assert np.float32(shown_value(viewer)) == recorded(logdir, third).values[0, 3]
    line = viewer.page.get_by_role("slider", name="value over calls")
    expect(line).to_have_attribute("aria-valuemax", "2")
    line.press("ArrowLeft")
    expect(viewer.page.get_by_role("heading", name="cell #2 · output")).to_be_visible()


def test_the_call_is_kept_on_the_way_over_another_tensor(viewer: Viewer, kept: str) -> None:
    heading = viewer.page.locator(".tensor-title")
    look(viewer, kept, tensor("cell", 0, "output", "output"))
    viewer.page.keyboard.press("'")
    expect(heading).to_have_text("cell #2 · output")
    listed = viewer.page.get_by_role("navigation", name="Kept tensors")
    listed.get_by_role("button", name="features").click()
    expect(heading).to_contain_text("features")
    expect_true(viewer.page, "() => location.hash.includes('call=1')")
    viewer.page.reload()
    listed.locator("section", has_text="cell").get_by_role("button", name="output").click()
    expect(heading).to_have_text("cell #2 · output")


def test_an_element_is_followed_over_the_steps(viewer: Viewer, kept: str, logdir: Path) -> None:
    look(viewer, kept, WEIGHT, pick="3,4")
    line = viewer.page.get_by_role("slider", name="value over steps")
    expect(line).to_have_attribute("aria-valuemax", str(len(STEPS) - 1))
    line.press("ArrowLeft")
    expect(viewer.readout).to_contain_text("step 8")
    shown = viewer.page.locator(".tensor-line figcaption b")
    expected = recorded(logdir, WEIGHT, step=8).values[3, 4]

    def check() -> None:
        assert np.float32(float(shown.inner_text().replace("−", "-"))) == expected

    expect_soon(check)


def test_two_steps_are_compared_with_their_difference(viewer: Viewer, kept: str, logdir: Path) -> None:
    look(viewer, kept, WEIGHT, pick="3,4", beside="step:0")
    expect(viewer.page.locator(".tensor-pane figcaption")).to_have_text(["step 10", "step 0", "difference"])
    now, before = (recorded(logdir, WEIGHT, step=step).values[3, 4] for step in (10, 0))
    found = [shown_value(viewer, at) for at in range(3)]
    np.testing.assert_allclose(found, [now, before, np.float64(now) - np.float64(before)], rtol=1e-6)


A = tensor("0.a", 0, "output", "output")

ORDER = """(heading) => {
  const walker = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT), range = document.createRange();
  const text = walker.nextNode();
  return [...text.data].map((one, at) => {
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    return [range.getBoundingClientRect().left, one];
  }).sort((a, b) => a[0] - b[0]).map(([, one]) => one).join('');
}"""
"""The characters of an element from left to right, as they are drawn."""


def test_another_run_is_compared_at_its_last_kept_step_before(own_viewer: Viewer, own_logdir: Path) -> None:
    runs.record_short(own_logdir, "long", steps=4)
    runs.record_short(own_logdir, "short", steps=2)
    look(own_viewer, "long", A, beside="run:short")
    titles = own_viewer.page.locator(".tensor-pane figcaption")
    expect(titles).to_have_text(["step 3, sample 0", "run short, step 1", "difference"])
    own_viewer.page.goto("about:blank")
    look(own_viewer, "long", A, beside="run:short", step=0)
    expect(titles).to_have_text(["step 0, sample 0", "run short", "difference"])


def test_what_another_run_keeps_later_is_shown_beside_this_one(own_viewer: Viewer, own_logdir: Path) -> None:
    runs.record_short(own_logdir, "this")
    runs.record_short(own_logdir, "other", steps=1)
    own_viewer.open("this", view="tensors", beside="run:other", closed="time")
    title = own_viewer.page.locator(".tensor-pane figcaption").nth(1)
    expect(title).to_have_text("run other, step 0")
    runs.record_short(own_logdir.parent, "again")
    shutil.rmtree(own_logdir / "other")
    (own_logdir.parent / "again").rename(own_logdir / "other")
    expect(title).to_have_text("run other")
    expect(own_viewer.page.locator(".tensor-problem")).to_have_count(0)


def test_names_that_begin_with_a_number_are_drawn_in_their_order(own_viewer: Viewer, own_logdir: Path) -> None:
    runs.record_short(own_logdir)
    look(own_viewer, "short", A)
    heading = own_viewer.page.get_by_role("navigation", name="Kept tensors").get_by_role("heading")
    assert heading.evaluate(ORDER) == "0.a"


def test_the_page_is_not_longer_than_the_window(viewer: Viewer, kept: str) -> None:
    viewer.page.set_viewport_size({"width": 900, "height": 300})
    look(viewer, kept, CELL, list="graph")
    expect(viewer.page.get_by_role("radio", name="over calls")).to_be_attached()
    viewer.page.evaluate("window.scrollTo(0, 500)")
    assert viewer.page.evaluate("scrollY") == 0


def test_the_choices_are_one_line_each_in_a_small_window(viewer: Viewer, dependent: str) -> None:
    viewer.page.set_viewport_size({"width": 480, "height": 300})
    look(viewer, dependent, tensor("", None, "attached", "loss"), label="train", list="graph")
    bars = viewer.page.locator(".tensor-bar")
    expect(bars).to_have_count(4)  # the last one is that of the line over time
    expect_true(
        viewer.page, "() => [...document.querySelectorAll('.tensor-bar')].every((one) => one.offsetHeight < 48)"
    )


def test_the_choices_of_how_it_is_shown_are_folded_in_a_narrow_window(viewer: Viewer, kept: str) -> None:
    viewer.page.set_viewport_size({"width": 390, "height": 844})
    look(viewer, kept, CONV)
    scale = viewer.page.get_by_role("combobox", name="Scale")
    expect(scale).to_be_hidden()
    box = array(viewer).bounding_box()
    assert box is not None
    assert box["y"] < 210
    viewer.page.get_by_role("button", name="How it is shown").click()
    expect(scale).to_be_visible()


def test_the_name_of_the_tensor_has_a_line_of_its_own_on_a_phone(viewer: Viewer, kept: str) -> None:
    viewer.page.set_viewport_size({"width": 390, "height": 844})
    look(viewer, kept, CONV)
    title = viewer.page.locator(".tensor-title")
    expect(title).to_contain_text("conv")
    assert title.evaluate("(title) => title.scrollWidth <= title.clientWidth")
    previous, shown = viewer.button("Previous tensor (k)").bounding_box(), title.bounding_box()
    assert previous is not None
    assert shown is not None
    assert shown["y"] >= previous["y"] + previous["height"] - 4


def test_what_cannot_be_negative_is_coloured_from_zero_on(viewer: Viewer, kept: str) -> None:
    least = viewer.page.locator(".tensor-ramp span").first
    look(viewer, kept, CONV, sample="std")
    expect(least).to_have_text("0")
    look(viewer, kept, CONV, sample="mean")
    expect(least).to_contain_text("−")


def test_where_nothing_is_finite_no_range_of_colours_is_told(own_viewer: Viewer, own_logdir: Path) -> None:
    lost = nn.Linear(2, 2)
    nn.init.constant_(lost.weight, torch.nan)
    with runs.watching(lost, own_logdir, "lost", keep=Keep("*")):
        lost(torch.ones(3, 2)).sum().backward()
    look(own_viewer, "lost", tensor("", None, "param", "weight"))
    legend = own_viewer.page.locator(".tensor-legend")
    expect(legend).to_contain_text("nothing finite")
    expect(legend.locator(".tensor-ramp")).to_have_count(0)


def test_it_is_said_that_facts_are_of_more_than_the_picture_has(viewer: Viewer, kept: str) -> None:
    legend = viewer.page.locator(".tensor-legend")
    look(viewer, kept, CONV)
    expect(legend).to_contain_text("all kept samples:")
    viewer.choose("Sample", "all that were kept")
    expect(legend).not_to_contain_text("all kept samples:")


def test_the_order_of_the_table_and_the_size_of_the_graph_survive_a_reload(viewer: Viewer, kept: str) -> None:
    look(viewer, kept, CONV, closed="time,scatter", list="graph")
    viewer.page.get_by_role("table").get_by_role("button", name="std of the batch").click()
    viewer.page.get_by_label(re.compile("^Filter: an index")).fill("2, *, 7")
    viewer.button("Larger").click()
    expect_true(viewer.page, "() => /sort=-3&filter=2.*large=1.25/.test(location.hash)")
    viewer.page.reload()
    expect(viewer.page.get_by_text("8 of 384")).to_be_visible()
    expect(viewer.page.get_by_role("columnheader", name="std of the batch")).to_have_attribute(
        "aria-sort", "descending"
    )


def test_making_the_graph_smaller_moves_nothing_below_it(viewer: Viewer, kept: str) -> None:
    look(viewer, kept, CONV, list="graph")
    expect(viewer.page.locator(".dependencies-node")).not_to_have_count(0)
    viewer.settle()
    before = viewer.page.locator(".tensor-view").bounding_box()
    viewer.button("Smaller").click()
    expect_true(viewer.page, "() => location.hash.includes('large=0.8')")
    expect_soon(lambda: check_place(viewer, before))


def check_place(viewer: Viewer, expected: FloatRect | None) -> None:
    assert viewer.page.locator(".tensor-view").bounding_box() == expected


@pytest.mark.parametrize("is_small", [False, True], ids=["few nodes", "many"])
def test_a_key_shows_the_whole_graph_and_hides_names_that_are_too_small(
    viewer: Viewer, kept: str, dependent: str, *, is_small: bool
) -> None:
    viewer.page.set_viewport_size({"width": 1440, "height": 900})
    run, name_of_tensor = (kept, CONV) if is_small else (dependent, tensor("", None, "attached", "loss"))
    look(viewer, run, name_of_tensor, list="graph", large=3)
    name = viewer.page.locator(".dependencies-node text").first
    viewer.page.keyboard.press("f")
    expect_true(viewer.page, "() => location.hash.includes('large=fit')")
    pane = viewer.page.locator(".dependencies-box")
    expect_true(pane, "(one) => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight")
    expect(name).to_be_visible(visible=not is_small)
    viewer.page.keyboard.press("f")
    expect_true(viewer.page, "() => !location.hash.includes('large=')")
    expect(name).to_be_visible()


def test_where_no_two_samples_share_a_category_no_std_is_drawn(own_viewer: Viewer, own_logdir: Path) -> None:
    runs.record_short(own_logdir)
    look(own_viewer, "short", A)
    expect(own_viewer.page.get_by_role("slider", name="mean of each category over steps")).to_be_visible()
    expect(own_viewer.page.get_by_text("No step has two kept samples of the same category")).to_be_visible()
    expect(own_viewer.page.get_by_role("slider", name="std between samples of each category")).to_have_count(0)


def test_a_tensor_without_elements_has_no_charts(viewer: Viewer, kept: str) -> None:
    look(viewer, kept, tensor("", 0, "attached", "empty"))
    expect(viewer.page.get_by_text("This tensor has no elements")).to_be_visible()
    expect(viewer.page.get_by_text("Over time")).to_have_count(0)


def test_the_table_of_neurons_is_sorted_and_filtered(viewer: Viewer, kept: str, logdir: Path) -> None:
    look(viewer, kept, CONV, closed="time,scatter")
    table = viewer.page.get_by_role("table")
    table.get_by_role("button", name="largest of the batch").click()
    largest = recorded(logdir, CONV).largest
    assert largest is not None
    at = np.unravel_index(np.argmax(largest), largest.shape)
    expect(table.locator("tbody th").first).to_have_text(f"[{', '.join(map(str, at))}]")
    viewer.page.get_by_label(re.compile("^Filter: an index")).fill("2, *, 7")
    expect(viewer.page.get_by_text("8 of 384")).to_be_visible()
    table.locator("tbody th button").first.click()
    expect(readout(viewer)).to_contain_text("[sample 0, 2, ")


def test_the_table_of_neurons_is_saved_as_it_is_sorted_and_filtered(viewer: Viewer, kept: str, logdir: Path) -> None:
    look(viewer, kept, CONV, closed="time,scatter", sort="-4", filter="2, *, 7")
    with viewer.page.expect_download() as saved:
        viewer.page.get_by_role("button", name="Save 8 rows as CSV").click()
    head, *rows = csv.reader(saved.value.path().read_text().splitlines())
    assert head[:4] == ["index 0", "index 1", "index 2", "value of sample 0"]
    values = recorded(logdir, CONV).values[0]
    assert [float(row[3]) for row in rows] == [
        pytest.approx(float(values[tuple(map(int, row[:3]))]), rel=1e-6) for row in rows
    ]
    assert [(row[0], row[2]) for row in rows] == [("2", "7")] * 8


def test_tensors_of_modules_that_are_called_once_are_offered_for_comparison_without_a_call(
    viewer: Viewer, kept: str
) -> None:
    look(viewer, kept, CONV, closed="time,neurons")
    offered = viewer.page.get_by_label("Other tensor").locator("option").all_text_contents()
    assert offered
    assert [one for one in offered if "#" in one and not one.startswith("cell #")] == []


@pytest.mark.parametrize(("sample", "of"), [("0", slice(0, 1)), ("all", slice(None))])
def test_two_tensors_are_correlated(viewer: Viewer, kept: str, logdir: Path, sample: str, of: slice) -> None:
    other = json.dumps([CONV, "value"], separators=(",", ":"))
    look(viewer, kept, FEATURES, closed="time,neurons", other=other, sample=sample)
    relu, conv = (recorded(logdir, name).values[of].ravel() for name in (FEATURES, CONV))
    told = viewer.page.locator(".tensor-scatter figcaption")
    expect(told).to_contain_text(f"{relu.size:,} pairs")
    text = told.locator("b").inner_text()
    assert float(text.removeprefix("correlation ")) == pytest.approx(np.corrcoef(relu, conv)[0, 1], abs=5e-3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("empty", "This tensor has no elements: its shape is [4, 0, 8, 8].", id="empty"),
        pytest.param("broken", "256 NaN", id="nothing but NaN"),
        pytest.param("mask", "elements64", id="bool"),
        pytest.param("tokens", "elements64", id="integers"),
    ],
)
def test_odd_tensors_are_shown(viewer: Viewer, kept: str, name: str, text: str) -> None:
    look(viewer, kept, tensor("", 0, "attached", name), closed="")
    expect(viewer.page.locator(".tensor-panes")).to_contain_text(text)


def test_a_scalar_is_a_number(viewer: Viewer, kept: str, logdir: Path) -> None:
    name = tensor("", 0, "attached", "energy")
    look(viewer, kept, name)
    shown, expected = viewer.page.locator(".tensor-number"), recorded(logdir, name).values

    def check() -> None:
        assert np.float32(float(shown.inner_text())) == expected

    expect_soon(check)


def test_an_image_is_grey_unless_a_heat_map_is_asked_for(viewer: Viewer, kept: str) -> None:
    look(viewer, kept, IMAGES)
    expect(viewer.page.get_by_text("black 0, white 1")).to_be_visible()
    viewer.choose("As", "heat map")
    expect(viewer.page.get_by_role("img", name="Colours from 0 to 1", exact=True)).to_be_visible()


def test_a_node_of_the_graph_leads_to_its_values(viewer: Viewer, kept: str) -> None:
    viewer.open(kept, selected="head#0")
    viewer.page.get_by_role("button", name="Values of weight").click()
    expect(viewer.page.get_by_role("heading", name="head · weight")).to_be_visible()


def test_a_link_to_a_tensor_that_was_not_kept_says_so(viewer: Viewer, kept: str) -> None:
    viewer.open(kept, view="tensors", tensor=tensor("gone", 0, "output", "output"))
    expect(viewer.page.get_by_text("This tensor was not kept in this run.")).to_be_visible()


def test_a_label_without_the_tensor_can_be_changed_again(viewer: Viewer, dependent: str) -> None:
    viewer.open(dependent, view="tensors", tensor=tensor("spare", None, "param", "spare"))
    viewer.choose("Label", "eval")
    note = viewer.page.get_by_text("This tensor was not kept at a step with this label.")
    expect(note).to_be_visible()
    viewer.choose("Label", "train")
    expect(note).to_have_count(0)
    expect(viewer.page.get_by_role("combobox", name="Step")).to_have_value("10")


def test_a_run_that_keeps_nothing_says_how_to(viewer: Viewer, scalars: str) -> None:
    viewer.open(scalars, view="tensors")
    expect(viewer.page.get_by_text("No tensor of this model was kept whole.")).to_be_visible()
    expect(viewer.page.get_by_role("navigation", name="Kept tensors")).to_have_count(0)


def test_labels_categories_and_reasons_are_shown(viewer: Viewer, dependent: str) -> None:
    look(viewer, dependent, tensor("", None, "attached", "loss"), pick="0")
    expect(viewer.page.get_by_text("label eval")).to_be_visible()
    viewer.choose("Label", "train")
    expect(viewer.page.get_by_text("label train · loss above 3")).to_be_visible()
    expect(viewer.page.get_by_label("Sample", exact=True).locator("option").first).to_have_text(
        "number 0, category cat"
    )
    rows = viewer.page.locator(".tensor-categories tbody tr")
    expect(rows).to_have_text(["cat110", "dog12.5"])


def test_that_a_step_before_the_chosen_one_is_shown_is_said(viewer: Viewer, kept: str) -> None:
    look(viewer, kept, WEIGHT, step=9)
    expect(viewer.page.get_by_role("combobox", name="Step")).to_have_value("8")
    expect(viewer.page.get_by_text("the last one before step 9")).to_be_visible()
    viewer.slider.fill("8")
    expect(viewer.page.get_by_text("the last one before step")).to_have_count(0)


def test_the_dependency_graph_leads_to_tensors_and_shows_paths(viewer: Viewer, dependent: str) -> None:
    look(viewer, dependent, tensor("", None, "attached", "hidden"))
    viewer.button("Dependencies").click()
    nodes = viewer.page.get_by_role("group", name="Dependency graph of tensors").get_by_role("button")
    expect(nodes).to_have_count(5)
    expect(viewer.page.locator(".dependencies-link")).to_have_count(3)
    dead_end = "spare:param, parameter, nothing that is named here is computed from it"
    expect(nodes.filter(has_text="no link")).to_have_attribute("aria-label", dead_end)
    viewer.page.get_by_role("button", name="x, input").click()
    expect(viewer.page.locator(".dependencies-link")).to_have_count(1)
    nodes.filter(has_text="loss").click(modifiers=["Shift"])
    expect(viewer.page.get_by_text("3 nodes lie on paths between x and loss")).to_be_visible()
    nodes.filter(has_text="loss").click()
    expect(viewer.page.get_by_role("heading", name="the model · loss")).to_be_visible()


def test_the_network_page_counts_parameters(viewer: Viewer, kept: str) -> None:
    viewer.open(kept, view="network")
    rows = viewer.page.locator(".network tbody tr")
    expect(rows).to_have_count(5)
    expect(rows.nth(0)).to_contain_text("646")
    expect(viewer.page.get_by_text("5 modules", exact=True)).to_be_visible()
    viewer.page.get_by_role("button", name="own").click()
    expect(rows.nth(0)).to_contain_text("embed")
    viewer.page.get_by_label("Find a module").fill("conv2d")
    expect(rows).to_have_count(1)
    expect(viewer.page.get_by_text("1 of 5 modules", exact=True)).to_be_visible()
    rows.get_by_role("button", name="conv").click()
    expect(viewer.node("conv#0")).to_have_class(re.compile("is-selected"))


def test_long_names_lose_their_beginning_and_leave_room_for_the_rest(own_viewer: Viewer, own_logdir: Path) -> None:
    runs.record_long_names(own_logdir)
    own_viewer.page.set_viewport_size({"width": 1280, "height": 500})
    own_viewer.open("long-names")
    expect(own_viewer.page.locator(".outline-label")).to_have_count(3)
    for label in own_viewer.page.locator(".outline-label").all()[1:]:
        assert label.evaluate(SHOWS_ITS_END), label.text_content()
    own_viewer.open("long-names", view="network")
    expect(own_viewer.page.get_by_role("columnheader", name="shapes")).to_be_in_viewport(ratio=1)
    look(own_viewer, "long-names", list="graph")
    expect(own_viewer.page.locator(".dependencies-node text").first).to_be_visible()
    texts = own_viewer.page.locator(".dependencies-node text").all_text_contents()
    assert {text[-2:] for text in texts if text.startswith("…")} >= {"_0", "_1"}, texts
    assert own_viewer.page.locator(".dependencies-node").evaluate_all(WITHIN), texts


@pytest.mark.parametrize("size", thinned([(480, 300), (800, 600)], 0), ids=str)
def test_the_page_fits_a_small_window(viewer: Viewer, kept: str, size: tuple[int, int]) -> None:
    viewer.page.set_viewport_size({"width": size[0], "height": size[1]})
    look(viewer, kept, CONV)
    expect(array(viewer)).to_be_visible()
    expect_true(viewer.page, "() => document.documentElement.scrollWidth <= innerWidth")
    box = array(viewer).bounding_box()
    assert box is not None
    assert box["y"] < size[1] - 60


def test_every_control_has_a_name(viewer: Viewer, kept: str) -> None:
    look(viewer, kept, CONV, closed="", list="graph")
    unnamed = viewer.page.evaluate(
        """() => [...document.querySelectorAll('.tensors-page :is(button, input, select)')]
        .filter((one) => !(one.ariaLabel || one.title || one.textContent.trim() || one.closest('label')))
        .map((one) => one.outerHTML)"""
    )
    assert unnamed == []


def test_an_exported_page_has_the_values_that_were_asked_for(
    offline: Viewer, kept: str, dependent: str, logdir: Path, tmp_path: Path
) -> None:
    page = offline.page
    for name in (kept, dependent):
        export_page(open_run(logdir / name), tmp_path / f"{name}.html", tensors=10)
    page.goto(f"{(tmp_path / f'{kept}.html').as_uri()}#{urlencode({'view': 'tensors', 'tensor': CONV})}")
    array(offline).locator("canvas").hover(position={"x": 3, "y": 20})
    expect_true(page, "() => document.documentElement.scrollHeight <= innerHeight")
    expect(readout(offline)).to_contain_text("[sample 0, 0, 0, 0]")
    assert np.float32(shown_value(offline)) == recorded(logdir, CONV).values[0, 0, 0, 0]
    expect(page.get_by_role("slider", name="mean over steps")).to_have_attribute("aria-valuemax", str(len(STEPS) - 1))
    page.keyboard.press("g")
    expect(page.get_by_role("radio", name="Gradient")).to_be_checked()
    page.goto(f"{(tmp_path / f'{dependent}.html').as_uri()}#{urlencode({'view': 'tensors', 'list': 'graph'})}")
    nodes = page.get_by_role("group", name="Dependency graph of tensors").get_by_role("button")
    expect(nodes).to_have_count(5)
    page.get_by_role("radio", name="Network").check(force=True)
    expect(page.locator(".network tbody tr")).not_to_have_count(0)


def test_a_tap_chooses_an_element_and_a_step(new_context: NewContext, server: ServerProcess, kept: str) -> None:
    page = new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844}).new_page()
    viewer = Viewer(page, server.url)
    look(viewer, kept, CONV)
    page.get_by_role("application").locator("canvas").tap(position={"x": 30, "y": 30})
    expect(page).to_have_url(re.compile("pick="))
    line = page.get_by_role("slider", name="value over steps")
    line.tap(position={"x": 6, "y": 20})
    expect(page).to_have_url(re.compile("step=0"))
