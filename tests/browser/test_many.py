"""Very large drawings and very long runs: nothing breaks, and the summary tells how smooth it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.frame_times import moving_over_a_strip, panning
from tests.browser.page import Viewer
from tests.browser.runs import LONG_STEPS, MANY_CALLS

pytestmark = pytest.mark.slow

Tell = Callable[[str, list[float]], None]


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Tells frame times in the summary; they are a matter of the machine, so nothing is asserted."""

    def told(what: str, times: list[float]) -> None:
        middle, worst = sorted(times)[len(times) // 2], max(times)
        record_property("frame times", f"{what}: {middle:.0f} ms a frame, {worst:.0f} ms at worst")

    return told


def test_a_level_of_400_calls_is_drawn_and_panned(viewer: Viewer, many: str, tell: Tell) -> None:
    viewer.open(many)
    viewer.node("layers#0").dblclick()
    expect(viewer.node("layers.0#0")).to_be_visible()
    viewer.page.keyboard.press("f")
    expect(viewer.page.locator(".node-call")).to_have_count(MANY_CALLS)
    tell("panning, 400 nodes in sight", panning(viewer))
    viewer.search("layers.200").first.click()
    expect(viewer.node("layers.200#0")).to_be_in_viewport()
    tell("panning, 400 nodes close up", panning(viewer))
    expect(viewer.node("layers.200#0")).to_be_attached()


def test_40_strips_of_1000_steps_are_drawn_and_stepped_through(viewer: Viewer, long: str, tell: Tell) -> None:
    viewer.open(long, pin=[f"{i}.{i}#0" for i in range(6)])
    expect(viewer.readout).to_contain_text(f"step {LONG_STEPS - 1}")
    expect(viewer.strips).to_have_count(53)  # nine a layer, but no gradient reaches the model's input
    expect(viewer.page.get_by_text("loading …")).to_have_count(0)
    viewer.chart("0, output, value").scroll_into_view_if_needed()
    tell("hovering over 53 strips of 1,000 steps", moving_over_a_strip(viewer, "0, output, value", buttons=0))
    expect(viewer.readout).to_contain_text(f"step {LONG_STEPS - 1}")
    tell("scrubbing through 53 strips of 1,000 steps", moving_over_a_strip(viewer, "0, output, value", buttons=1))
    expect(viewer.readout).not_to_contain_text(f"step {LONG_STEPS - 1}")
    for mode in ("Bands", "Line", "Heat"):
        viewer.select_mode(mode)
    expect(viewer.strips).to_have_count(53)
