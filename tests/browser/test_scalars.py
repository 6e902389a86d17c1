"""Logged scalars: charts, the curve behind the time bar, notes, and the choice of the time axis."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Position, expect

from tests.browser import runs
from tests.browser.page import Viewer, expect_soon
from torchgraph_explorer import open_run
from torchgraph_explorer.server.export import export_page


def chart(viewer: Viewer, name: str) -> Locator:
    """The chart of a scalar."""
    return viewer.page.get_by_role("img", name=f"{name}: ")


def expect_share(viewer: Viewer, expected: float) -> None:
    """The slider is so far, from 0 to 1."""

    def check() -> None:
        share = float(viewer.slider.input_value()) / float(viewer.slider.get_attribute("max") or 1)
        assert share == pytest.approx(expected, abs=1e-6)

    expect_soon(check)


def place(viewer: Viewer, name: str, share: float) -> Position:
    """The place in a chart at a share of its time axis."""
    box = viewer.page.locator(".scalar", has=chart(viewer, name)).locator(".scalar-frame").bounding_box()
    outer = chart(viewer, name).bounding_box()
    assert box is not None
    assert outer is not None
    return {"x": box["x"] - outer["x"] + share * box["width"], "y": box["y"] - outer["y"] + box["height"] / 2}


@pytest.fixture
def shown(viewer: Viewer, scalars: str) -> Viewer:
    viewer.open(scalars)
    expect(chart(viewer, "train/loss")).to_be_visible()
    return viewer


def test_scalars_are_grouped_and_say_their_last_value(shown: Viewer) -> None:
    group = shown.page.get_by_role("button", name="train 2")
    expect(group).to_be_visible()
    loss = chart(shown, "train/loss")
    expect(loss).to_have_attribute("aria-label", "train/loss: 40 values, the last 0.025 at step 39")
    group.click()
    expect(loss).to_have_count(0)
    expect(chart(shown, "tokens")).to_be_visible()
    other = shown.page.get_by_role("button", name="other 1")
    expect(other).to_be_visible()
    below, above = other.bounding_box(), group.bounding_box()
    assert below is not None
    assert above is not None
    assert below["y"] > above["y"]


def test_labels_are_lines_of_one_chart_with_a_legend(shown: Viewer) -> None:
    figure = shown.page.locator(".scalar", has=chart(shown, "train/acc"))
    summary = "train/acc: 40 values, the last 3.9 at step 39; train/acc (eval): 4 values, the last 1.95 at step 39"
    expect(chart(shown, "train/acc")).to_have_attribute("aria-label", summary)
    expect(figure.locator(".scalar-legend li")).to_have_text(["no label3.9", "eval1.95"])
    colours = "lines => new Set(lines.map((line) => getComputedStyle(line).stroke)).size"
    assert figure.locator(".scalar-line").evaluate_all(colours) == 2
    assert figure.locator(".scalar-legend path").evaluate_all(colours) == 2
    chart(shown, "train/acc").hover(position=place(shown, "train/acc", 19 / 39))
    expect(shown.page.locator(".tip")).to_have_text(
        re.compile(r"train/accno label \(step 19\)1\.9eval \(step 19\)0\.95")
    )


def test_the_pointer_shows_the_exact_value_and_a_press_goes_to_the_step(shown: Viewer) -> None:
    at = place(shown, "train/loss", 2 / 39)
    chart(shown, "train/loss").hover(position=at)
    expect(shown.page.locator(".tip")).to_have_text(re.compile(r"step 2train/loss0\.3333333333333333"))
    chart(shown, "train/loss").click(position=at)
    expect(shown.readout).to_contain_text("step 2")
    expect(shown.page).to_have_url(re.compile("step=2"))


def test_nan_is_a_gap_that_is_marked(shown: Viewer) -> None:
    figure = shown.page.locator(".scalar", has=chart(shown, "train/loss"))
    expect(figure.locator(".scalar-bad")).to_have_count(2)
    assert (figure.locator(".scalar-line").get_attribute("d") or "").count("M") == 2
    chart(shown, "train/loss").hover(position=place(shown, "train/loss", 5 / 39))
    expect(shown.page.locator(".tip")).to_contain_text("NaN")


def test_the_value_axis_can_be_logarithmic(shown: Viewer) -> None:
    shown.page.get_by_role("toolbar", name="Options of the scalars").get_by_text("Log").click()
    expect(shown.page).to_have_url(re.compile("curves=log"))
    figure = shown.page.locator(".scalar", has=chart(shown, "train/loss"))
    expect(figure.locator(".scalar-axis")).to_have_text("0.025100010")


def test_a_scalar_is_drawn_behind_the_time_bar_and_another_can_be(shown: Viewer) -> None:
    name = shown.page.locator(".time-curve-name")
    expect(name).to_have_text("train/loss")
    expect(shown.page.locator(".time-curve-line")).to_have_attribute("d", re.compile("^M"))
    shown.page.get_by_role("button", name="Draw tokens behind the time bar").click()
    expect(name).to_have_text("tokens")
    expect(shown.page).to_have_url(re.compile("curve=tokens"))
    shown.page.get_by_role("button", name="Remove tokens behind the time bar").click()
    expect(name).to_have_count(0)


def test_notes_are_marked_and_listed_and_lead_to_their_step(shown: Viewer) -> None:
    shown.page.locator(".time-note").click()
    expect(shown.readout).to_contain_text("step 12")
    shown.slider.fill("0")
    shown.page.get_by_role("button", name="12 switched to the big batch").click()
    expect(shown.readout).to_contain_text("step 12")


def test_the_time_axis_can_be_a_scalar_that_never_falls(shown: Viewer) -> None:
    select = shown.page.get_by_label("Time axis")
    choices = ["Step", "Time since start", "Wall time", "train/acc", "tokens"]
    expect(select.locator("option")).to_have_text(choices, use_inner_text=False)
    shown.slider.fill("10")
    expect_share(shown, 20 / 38)
    select.select_option("tokens")
    expect(shown.page).to_have_url(re.compile("time=scalar%3Atokens"))
    expect(shown.readout).to_contain_text("step 20")
    frames = [min(step + 1, 20) * 100 + max(step - 19, 0) * 900 for step in range(0, runs.SCALAR_STEPS, 2)]
    expect_share(shown, (frames[10] - frames[0]) / (frames[-1] - frames[0]))
    shown.slider.press("ArrowLeft")
    expect(shown.readout).to_contain_text("step 18")
    expect_share(shown, (frames[9] - frames[0]) / (frames[-1] - frames[0]))
    shown.page.reload()
    expect(select).to_have_value("scalar:tokens")


def test_scalars_make_way_for_pins_and_come_back(shown: Viewer) -> None:
    shown.drag(shown.node("0#0"), shown.panels)
    expect(shown.strips.first).to_be_visible()
    expect(chart(shown, "tokens")).to_have_count(0)
    shown.page.get_by_role("button", name="Scalars", exact=True).click()
    expect(chart(shown, "tokens")).to_be_visible()
    expect(shown.page).to_have_url(re.compile("scalars=1"))


def test_a_spike_among_very_many_values_is_seen(viewer: Viewer, values: str) -> None:
    viewer.open(values)
    loss = chart(viewer, "loss")
    expect(loss).to_have_attribute("aria-label", re.compile("^loss: 100,000 values"))
    loss.hover(position=place(viewer, "loss", 0.77777))
    expect(viewer.page.locator(".tip")).to_have_text(re.compile(r"steps 77,\d\d\d – 7\d,\d\d\dmean of \d+.*min1max500"))


def test_a_run_without_scalars_offers_none(viewer: Viewer, digits: str) -> None:
    viewer.open(digits)
    expect(viewer.page.locator(".panels-empty")).to_be_visible()
    expect(viewer.page.get_by_role("button", name="Scalars", exact=True)).to_have_count(0)
    expect(viewer.page.locator(".time-curve")).to_have_count(0)


def test_a_small_window_opens_them_over_the_graph(viewer: Viewer, scalars: str) -> None:
    viewer.page.set_viewport_size({"width": 480, "height": 300})
    viewer.open(scalars)
    expect(viewer.node("0#0")).to_be_visible()
    expect(viewer.page.locator(".time-curve-line")).to_have_count(1)
    viewer.page.keyboard.press("2")
    viewer.page.get_by_role("region", name="Scalars").hover()  # below the x-ray
    viewer.page.mouse.wheel(0, 400)
    expect(chart(viewer, "tokens")).to_be_visible()


def test_an_exported_page_has_them_too(offline: Viewer, logdir: Path, scalars: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    export_page(open_run(logdir / scalars), path, steps=5)
    offline.page.goto(path.as_uri())
    chart(offline, "train/loss").hover(position=place(offline, "train/loss", 25 / 39))
    expect(offline.page.locator(".tip")).to_have_text(re.compile("step 25train/loss1000"))
    expect(offline.page.locator(".time-curve-line")).to_have_count(1)
    expect(offline.page.locator(".time-note")).to_have_count(1)


def test_the_scalars_that_are_shown_are_saved_as_csv(shown: Viewer) -> None:
    with shown.page.expect_download() as saved:
        shown.page.get_by_role("button", name=re.compile(r"^Save \d scalars as CSV")).click()
    rows = list(csv.DictReader(saved.value.path().read_text().splitlines()))
    losses = {int(row["step"]): row for row in rows if row["name"] == "train/loss"}
    assert float(losses[3]["value"]) == 1 / 4
    assert losses[5]["value"] == "nan"
    assert [row["step"] for row in rows if row["label"] == "eval"] == ["9", "19", "29", "39"]
