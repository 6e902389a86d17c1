"""Histograms over time: hovering, choosing a step, modes; and that they say what is in the record."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.page import Viewer, expect_painted, expect_soon, expect_true
from tests.browser.runs import BROKEN_STEPS, STEPS
from torchgraph_explorer import open_run
from torchgraph_explorer.record.steps.history import History

OUTPUT = "classifier, output, value"
INPUT = "classifier, x, value"
FACTS = {"mean": "mean", "std": "std", "min": "min", "max": "max", "l2": "l2_norm"}


@pytest.fixture
def pinned(viewer: Viewer, digits: str) -> Viewer:
    """The classifier's panel is open."""
    viewer.open(digits, pin="0.classifier#0")
    for name in (OUTPUT, INPUT):
        expect_painted(viewer.chart(name))
    return viewer


def recorded(logdir: Path, run: str, path: str = "output") -> History:
    """What the record says of a tensor of the classifier."""
    model = open_run(logdir / run).model("DigitsNet")
    [series] = model.find("classifier", path=path, kind="value")
    return model.history(series)


def expect_one_place(markers: Locator) -> None:
    """The markers stand at the same place, each within its strip."""

    def check() -> None:
        places = markers.evaluate_all("(all) => all.map((one) => one.style.display + one.style.transform)")
        assert len(set(places)) == 1

    expect_soon(check)


def test_hovering_tells_step_bin_count_mean_and_std_and_all_strips_show_where(
    pinned: Viewer, logdir: Path, digits: str
) -> None:
    pinned.point_at(pinned.chart(OUTPUT), 12, of=STEPS)
    expect(pinned.tip).to_contain_text("step 12 · epoch 1.2")
    expect(pinned.tip).to_contain_text(re.compile(r"bin.*….*in it.*mean.*std"))
    mean = float(recorded(logdir, digits).column("mean")[12])
    expect(pinned.tip).to_contain_text(f"mean{mean:.3}".replace("-", "−"))
    crosshairs = pinned.page.locator(".strip-crosshair")
    expect(pinned.chart(INPUT).locator(".strip-crosshair")).to_be_visible()
    expect(crosshairs).to_have_count(9)
    expect_one_place(crosshairs)
    pinned.page.mouse.move(5, 5)
    expect(pinned.chart(INPUT).locator(".strip-crosshair")).to_be_hidden()


def test_the_counts_of_all_bins_add_up_to_the_elements(viewer: Viewer, logdir: Path, digits: str) -> None:
    viewer.open(digits, pin="0.classifier#0", bins=16, range="full")
    total = 0.0
    for row in range(16):
        viewer.point_at(viewer.chart(OUTPUT), 30, of=STEPS, height=(row + 0.5) / 16)
        viewer.settle()
        counted = viewer.tip.locator("dt:text-is('in it') + dd").inner_text()
        total += float(counted.removeprefix("≈ ").replace("< 1", "0.5").replace(",", ""))
    assert total == pytest.approx(recorded(logdir, digits).column("sampled")[30], abs=16)


def test_clicking_and_dragging_on_a_strip_choose_the_step_for_all(pinned: Viewer) -> None:
    strip = pinned.chart(OUTPUT)
    pinned.point_at(strip, 12, of=STEPS)
    pinned.page.mouse.down()
    pinned.page.mouse.up()
    expect(pinned.readout).to_contain_text("step 12")
    expect(pinned.slider).to_have_value("12")
    expect_one_place(pinned.page.locator(".strip-chosen"))
    pinned.point_at(strip, 5, of=STEPS)
    pinned.page.mouse.down()
    pinned.point_at(strip, 25, of=STEPS)
    pinned.page.mouse.up()
    expect(pinned.readout).to_contain_text("step 25")


def test_the_slider_the_buttons_and_the_keys_choose_the_step(pinned: Viewer) -> None:
    follow = pinned.button("Follow latest")
    pinned.slider.fill("7")
    expect(pinned.readout).to_contain_text("step 7")
    expect(follow).to_have_attribute("aria-pressed", "false")
    pinned.button("Step back").click()
    expect(pinned.readout).to_contain_text("step 6")
    pinned.button("Step forward").click()
    expect(pinned.readout).to_contain_text("step 7")
    follow.click()
    expect(pinned.readout).to_contain_text(f"step {STEPS - 1}")
    expect(follow).to_have_attribute("aria-pressed", "true")
    pinned.chart(OUTPUT).focus()
    for key, step in (("Home", 0), ("ArrowRight", 1), ("PageUp", 11), ("ArrowLeft", 10), ("End", STEPS - 1)):
        pinned.page.keyboard.press(key)
        expect(pinned.readout).to_contain_text(f"step {step}")


def test_the_statistics_are_those_of_the_record(pinned: Viewer, logdir: Path, digits: str) -> None:
    histories = {path: recorded(logdir, digits, path) for path in ("input[0]", "output", "weight")}
    for step in (0, 12, 21, STEPS - 1):
        pinned.slider.fill(str(step))
        expect(pinned.readout).to_contain_text(f"step {step}")
        for path, history in histories.items():
            expected = {fact: float(history.column(column)[step]) for fact, column in FACTS.items()}
            expect_soon(partial(check_statistics, pinned, path.replace("input[0]", "x"), expected))


def check_statistics(viewer: Viewer, path: str, expected: dict[str, float]) -> None:
    shown = viewer.statistics(f"classifier, {path}, value")
    assert {fact: shown.get(fact) for fact in FACTS} == pytest.approx(expected, rel=0.05)  # two digits are shown


def test_nan_is_counted_and_marked_in_red_at_the_steps_that_have_some(
    pinned: Viewer, logdir: Path, digits: str
) -> None:
    nan = recorded(logdir, digits).column("nan")
    assert [step for step in range(STEPS) if nan[step]] == list(BROKEN_STEPS)
    strip = pinned.chart(OUTPUT)
    told = rf"{STEPS} steps, 0 to {STEPS - 1}; values from .* to .*; NaN or infinite values at 3 steps\."
    expect(strip).to_have_accessible_name(re.compile(told))
    marked = pinned.marked_columns(strip)
    box = strip.bounding_box()
    assert box is not None
    for x, expected in ((marked[0], BROKEN_STEPS[0]), (marked[-1], BROKEN_STEPS[-1])):
        pinned.page.mouse.move(box["x"] + x + 0.5, box["y"] + 60)
        expect(pinned.tip).to_contain_text(f"step {expected} ")
    assert marked == list(range(marked[0], marked[-1] + 1))
    assert pinned.marked_columns(pinned.chart(INPUT)) == []
    pinned.slider.fill("20")
    expect(pinned.readout).to_contain_text("step 20")

    def check() -> None:
        assert pinned.statistics(OUTPUT).get("NaN") == nan[20]
        assert "NaN" not in pinned.statistics(INPUT)

    expect_soon(check)


def test_every_mode_draws_and_tells_something_of_its_own(viewer: Viewer, digits: str) -> None:
    viewer.open(digits, pin="0.classifier#0", statistic="std")
    told = {"Bands": "25–75 %", "Line": "Standard deviation", "Heat": "in it"}
    for mode, own in told.items():
        viewer.select_mode(mode)
        viewer.point_at(viewer.chart(OUTPUT), 12, of=STEPS)
        expect(viewer.tip).to_contain_text(own)
        for other in set(told.values()) - {own}:
            expect(viewer.tip).not_to_contain_text(other)


def test_every_option_of_the_charts_changes_the_picture(pinned: Viewer) -> None:
    pinned.panels.get_by_label("More chart options").click()
    for label in ("Time axis", "Rows of a histogram", "Left out of the robust range, %"):
        expect(pinned.page.get_by_label(label)).to_be_in_viewport(ratio=1)
    canvas = pinned.chart(OUTPUT).locator("canvas").first
    for label, option in {"Range": "Full", "Scale": "Symlog", "Counts": "Log", "Time axis": "epoch"}.items():
        pinned.settle()
        before = canvas.evaluate("(one) => one.toDataURL()")
        pinned.choose(label, option)
        expect_true(pinned.page, "([one, before]) => one.toDataURL() !== before", arg=[canvas.element_handle(), before])


def test_the_number_of_rows_can_be_changed_and_is_whole(pinned: Viewer) -> None:
    def rows() -> int:
        pinned.point_at(pinned.chart(OUTPUT), 12, of=STEPS)
        low, high = pinned.tip.locator("dt:text-is('bin') + dd").inner_text().replace("−", "-").split(" … ")
        return round(1 / (float(high) - float(low)))

    before = rows()
    pinned.panels.get_by_label("More chart options").click()
    box = pinned.page.get_by_label("Rows of a histogram")
    box.fill("16")
    box.press("Enter")
    assert rows() < before / 2
    box.fill("10.5")
    box.press("Enter")
    expect(box).to_have_value("11")
    expect(pinned.page).to_have_url(re.compile("bins=11"))
