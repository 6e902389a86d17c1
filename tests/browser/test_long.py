"""A run of very many logged steps: its strips come quickly, merged to the pixels there are, and lose nothing."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Request, expect

from tests.browser.page import Viewer, expect_painted, expect_soon
from tests.record.long_runs import write_long_run
from tests.shared import once
from tests.tables import thinned
from torchgraph_explorer import open_run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("endless")]  # one server reads it once

BAD_STEP = 6_666
OUTPUT = "layer0, output, value"
WAIT_MS = 60_000


@pytest.fixture(scope="session", params=thinned([20_000, 100_000], 0))
def steps(request: pytest.FixtureRequest) -> int:
    """How many steps are logged. Of either number, a column of pixels stands for dozens."""
    return int(request.param)


@pytest.fixture(scope="session")
def endless(logdir: Path, steps: int) -> str:
    """The name of a run of so many steps, one of which has NaN."""
    write = partial(write_long_run, bad_step=BAD_STEP)
    return once(logdir, f"endless {steps}", lambda folder, name: write(folder / name, steps))


@pytest.fixture
def pinned(viewer: Viewer, endless: str) -> Viewer:
    """Its only layer is pinned. What is answered for that takes less than a megabyte."""
    viewer.page.set_default_timeout(WAIT_MS)
    with viewer.page.expect_response(re.compile(r"api/history.*most=")) as answered:
        viewer.open(endless, pin="0.layer0#0")
    assert len(answered.value.body()) < 1_000_000
    viewer.chart(OUTPUT).wait_for()
    viewer.page.locator(".strip-loading").wait_for(state="detached")  # the server reads each row
    expect_painted(viewer.chart(OUTPUT))
    return viewer


def test_the_columns_say_which_steps_they_stand_for_and_where_the_one_nan_is(
    pinned: Viewer, logdir: Path, endless: str, steps: int
) -> None:
    strip = pinned.chart(OUTPUT)
    marked = pinned.marked_columns(strip)
    box, bars = strip.bounding_box(), strip.locator("canvas").nth(1).bounding_box()
    assert box is not None
    assert bars is not None
    left, right = 46, bars["x"] - box["x"] - 8
    expected = left + BAD_STEP / steps * (right - left)
    assert 1 <= len(marked) <= 3
    assert abs(marked[0] - expected) < 4
    expect(strip).to_have_attribute("aria-label", re.compile(f"first at step {BAD_STEP:,}"))
    pinned.point_at(strip, 14_000, of=steps)
    expect(pinned.tip).to_contain_text(re.compile(r"steps 1[34],\d{3}–1[34],\d{3}, merged"))
    press_the_mark(pinned, logdir, endless, steps)


def press_the_mark(viewer: Viewer, logdir: Path, endless: str, steps: int) -> None:
    """The very step is chosen, and its numbers are those of the record."""
    viewer.point_at(viewer.chart(OUTPUT), BAD_STEP, of=steps)
    expect(viewer.tip).to_contain_text(f"first at step{BAD_STEP:,}")
    viewer.page.mouse.down()
    viewer.page.mouse.up()
    expect(viewer.readout).to_contain_text(f"step {BAD_STEP:,}")
    expect(viewer.page.locator("figure .facts-none")).to_have_count(0, timeout=WAIT_MS)  # the step alone has come
    history = open_run(logdir / endless).model().history(0, BAD_STEP, BAD_STEP + 1)
    expected = {"NaN": 3, "std": pytest.approx(float(history.column("std")[0]), rel=0.01)}

    def check() -> None:
        shown = viewer.statistics(OUTPUT)
        assert {fact: shown.get(fact) for fact in expected} == expected

    expect_soon(check)


def test_a_strip_of_very_many_steps_takes_less_than_a_megabyte_and_is_not_asked_for_again(
    pinned: Viewer, steps: int
) -> None:
    told = re.compile(f"{steps:,} steps, 0 to {steps - 1:,}")
    expect(pinned.chart(OUTPUT)).to_have_attribute("aria-label", told, timeout=WAIT_MS)
    asked: list[str] = []

    def hear(request: Request) -> None:
        asked.append(request.url)

    expect(pinned.page.locator("figure .facts-none")).to_have_count(0, timeout=WAIT_MS)
    pinned.page.on("request", hear)
    with pinned.page.expect_response(re.compile("api/updates")), pinned.page.expect_response(re.compile("api/runs")):
        pass
    pinned.page.remove_listener("request", hear)
    assert not [url for url in asked if "api/history" in url]
