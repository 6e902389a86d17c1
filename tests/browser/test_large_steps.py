"""Steps of eight digits: written in one way, and whole."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.page import Viewer
from tests.browser.runs import record_short
from torchgraph_explorer.training import start
from torchgraph_explorer.training.first_step import Start

FIRST, STEPS = 9_999_990, 20


@pytest.fixture
def long(own_logdir: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run that begins just before step ten million."""
    monkeypatch.setattr(start, "begin_in", lambda *_args, **_options: Start(FIRST, is_certain=True))
    record_short(own_logdir, "long", steps=STEPS)
    return "long"


@pytest.mark.parametrize(
    "choices",
    [
        pytest.param({}, id="x-ray"),
        pytest.param({"face": "table"}, id="table"),
        pytest.param({"face": "changes"}, id="changes"),
        pytest.param({"pin": ["0.0.a#0"], "mode": "ridge"}, id="panel"),
        pytest.param({"view": "tensors"}, id="tensors"),
    ],
)
def test_no_step_stands_without_its_thousands_apart(own_viewer: Viewer, long: str, choices: dict[str, object]) -> None:
    own_viewer.open(long, **choices)
    expect(own_viewer.page.get_by_text("Loading …")).to_have_count(0)
    expect(own_viewer.page.get_by_role("contentinfo")).to_contain_text("step 10,000,009")
    own_viewer.settle()
    assert re.findall(r"\d{7,}", own_viewer.page.locator("body").inner_text()) == []


@pytest.mark.parametrize(
    ("face", "name"), [("table", "Change since step"), ("changes", "Compare with step")], ids=["table", "changes"]
)
def test_a_step_to_type_is_shown_whole(own_viewer: Viewer, long: str, face: str, name: str) -> None:
    own_viewer.open(long, face=face)
    field = own_viewer.page.get_by_role("spinbutton", name=name)
    expect(field).to_have_value(re.compile(r"^\d{7,8}$"))
    assert field.evaluate("(one) => one.offsetWidth") >= 84
    if face == "table":
        bar = own_viewer.page.locator(".xray-table-bar")
        assert bar.evaluate("(one) => one.offsetHeight") < 45  # the button that saves stands in the same line


def test_the_steps_below_the_x_ray_keep_off_each_other(own_viewer: Viewer, long: str) -> None:
    for width in (1280, 1440, 1920):
        own_viewer.page.set_viewport_size({"width": width, "height": 800})
        own_viewer.open(long)
        steps = own_viewer.page.locator(".xray-axis span")
        expect(steps).not_to_have_count(0)
        places = steps.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect())")
        assert all(one["right"] < other["left"] for one, other in pairwise(places))


def test_on_a_phone_the_findings_keep_off_the_buttons_that_zoom(viewer: Viewer, broken: str) -> None:
    viewer.page.set_viewport_size({"width": 390, "height": 844})
    viewer.open(broken)
    trouble = viewer.page.locator(".trouble-over")
    expect(trouble.get_by_role("button").first).to_be_visible()
    # As wide as `NaN at step 10,000,010` and `1 finding` are beside each other.
    trouble.evaluate(
        "(box) => { const one = box.lastElementChild.cloneNode(true); one.style.width = '200px'; box.prepend(one); }"
    )
    zoom = viewer.page.get_by_role("button", name=re.compile("^Zoom in")).bounding_box()
    assert zoom is not None
    for button in trouble.get_by_role("button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= zoom["x"] or box["y"] + box["height"] <= zoom["y"]
