"""What the time bar says of a step, and the steps of one optimizer alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import runs
from tests.browser.page import Viewer, expect_painted
from tests.record.examples import GRAPH, SERIES, SESSION, clean, frame, write
from tests.tables import thinned
from torchgraph_explorer import open_run
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import StepFacts
from torchgraph_explorer.server.export import export_page

PLAIN_TIME = re.compile(r"^step \d+\d\d:\d\d:\d\d$")


def choice(viewer: Viewer) -> Locator:
    """Whose steps are shown."""
    return viewer.page.get_by_label("Steps of", exact=True)


def test_the_readout_says_how_many_passes_a_step_had_and_what_a_step_is(viewer: Viewer, accumulating: str) -> None:
    viewer.open(accumulating, step=1)
    expect(viewer.readout).to_contain_text(f"step 1{runs.MICRO_BATCHES - 5} of {runs.MICRO_BATCHES} passes recorded")
    expect(viewer.readout).to_have_attribute(
        "title", re.compile(r"^A step is one update .*Made by: AdamW\.", re.DOTALL)
    )
    expect(choice(viewer)).to_have_count(0)


def test_a_skipped_update_is_marked_and_said_in_words(viewer: Viewer, accumulating: str) -> None:
    viewer.open(accumulating)
    expect(viewer.page.locator(".time-marks .is-skipped")).to_have_count(1)  # both steps together
    expect(viewer.readout).not_to_contain_text("skipped")
    viewer.open(accumulating, step=runs.SKIPPED_UPDATES[0])
    expect(viewer.readout).to_contain_text("update skipped")
    expect(viewer.readout).to_have_attribute("title", re.compile("This update was skipped"))
    expect(viewer.slider).to_have_attribute(
        "aria-valuetext", re.compile("^step 3, 4 of 9 passes recorded, update skipped")
    )


def test_nothing_is_said_of_a_step_that_is_one_pass_and_one_update(viewer: Viewer, pair: str, logdir: Path) -> None:
    assert {one.passes for one in open_run(logdir / pair).model("linear").facts if one} == {1}
    viewer.open(pair, model="linear")
    expect(viewer.readout).to_have_text(PLAIN_TIME)
    expect(choice(viewer)).to_have_count(0)
    expect(viewer.page.locator(".time-marks")).to_have_count(0)


def test_the_steps_of_one_optimizer_can_be_shown_alone(viewer: Viewer, gan: str, logdir: Path) -> None:
    model = open_run(logdir / gan).model()
    assert model.optimizers == ("Adam", "Adam #2")
    own = model.updated_by("Adam").steps.tolist()
    viewer.open(gan, pin="0.discriminator.0#0")
    last = model.steps.tolist()[-1]
    expect(viewer.readout).to_contain_text(f"step {last}")
    viewer.choose("Steps of", "Adam")
    expect(viewer.readout).to_contain_text(f"step {own[-1]}")
    expect(viewer.slider).to_have_attribute("max", str(len(own) - 1))
    expect(viewer.connection).to_contain_text(f"{len(own)} steps")
    strip = viewer.chart("discriminator.0, output, value")
    expect_painted(strip)
    expect(strip).to_have_attribute("aria-label", re.compile(f"{len(own)} steps"))
    viewer.button("Step back").click()
    expect(viewer.readout).to_contain_text(f"step {own[-2]}")
    viewer.page.keyboard.press("l")
    expect(viewer.readout).to_contain_text(f"step {own[-1]}")


def test_the_choice_stays_at_another_node_and_after_a_reload(viewer: Viewer, gan: str) -> None:
    viewer.open(gan, optimizer="Adam #2", step=5)
    expect(choice(viewer)).to_have_value("Adam #2")
    viewer.node("generator#0").dblclick()
    expect(viewer.node("generator.0#0")).to_be_visible()
    expect(choice(viewer)).to_have_value("Adam #2")
    viewer.page.wait_for_url(re.compile("inside=generator"))
    viewer.page.reload()
    expect(viewer.node("generator.0#0")).to_be_visible()
    expect(choice(viewer)).to_have_value("Adam #2")
    expect(viewer.slider).to_have_attribute("max", str(runs.ROUNDS - 1))
    viewer.choose("Steps of", "All optimizers")
    expect(viewer.slider).to_have_attribute("max", str(2 * runs.ROUNDS - 1))
    viewer.page.wait_for_url(lambda url: "optimizer" not in url)


def test_an_optimizer_that_is_not_there_is_said_to_be_missing(viewer: Viewer, gan: str) -> None:
    viewer.open(gan, optimizer="SGD")
    expect(choice(viewer).locator("option:checked")).to_have_text("SGD (not found)")
    expect(viewer.page.locator(".readout")).to_have_text("No step by SGD")
    viewer.choose("Steps of", "Adam")
    expect(viewer.readout).to_be_visible()


def test_an_exported_page_has_the_same_choice(offline: Viewer, gan: str, logdir: Path, tmp_path: Path) -> None:
    export_page(open_run(logdir / gan), tmp_path / "page.html")
    offline.page.goto(f"{(tmp_path / 'page.html').as_uri()}#pin=0.discriminator.0%230")
    expect(offline.slider).to_have_attribute("max", str(2 * runs.ROUNDS - 1))
    offline.choose("Steps of", "Adam #2")
    expect(offline.slider).to_have_attribute("max", str(runs.ROUNDS - 1))
    strip = offline.chart("discriminator.0, output, value")
    expect_painted(strip)
    expect(strip).to_have_attribute("aria-label", re.compile(f"{runs.ROUNDS} steps"))


@pytest.fixture
def training(own_logdir: Path) -> Iterator[RecordWriter]:
    """A run that is still being written."""
    writer = RecordWriter(own_logdir / "run")
    for record in (SESSION, GRAPH, SERIES):
        writer.write(record)
    yield writer
    writer.close()


def test_the_latest_step_of_the_chosen_optimizer_is_followed(own_viewer: Viewer, training: RecordWriter) -> None:
    def record(step: int, optimizer: str) -> None:
        training.write(replace(frame(step), facts=StepFacts("update", 1, 1, (optimizer,))))

    record(0, "Adam")
    own_viewer.open("run", optimizer="SGD")
    expect(own_viewer.page.locator(".readout")).to_have_text("No step by SGD")
    record(1, "SGD")
    expect(own_viewer.readout).to_contain_text("step 1")
    record(2, "Adam")
    record(3, "SGD")
    record(4, "Adam")
    expect(own_viewer.readout).to_contain_text("step 3")
    own_viewer.choose("Steps of", "All optimizers")
    expect(own_viewer.readout).to_contain_text("step 4")


def test_nan_is_named_for_the_steps_that_are_shown(own_viewer: Viewer, own_logdir: Path) -> None:
    facts = [StepFacts("update", 1, 1, (("Adam", "SGD")[step % 2],)) for step in range(4)]
    frames = (clean(0), clean(1, nan=2), clean(2, nan=1), clean(3))
    write(own_logdir / "run", GRAPH, SERIES, *(replace(one, facts=facts[one.step]) for one in frames))
    own_viewer.open("run")
    trouble = own_viewer.page.locator(".first-trouble")
    expect(trouble).to_contain_text("First NaN at step 1:")
    own_viewer.choose("Steps of", "Adam")
    expect(trouble).to_contain_text("First NaN at step 2 (Adam):")
    trouble.click()
    expect(own_viewer.readout).to_contain_text("step 2")


@pytest.mark.parametrize("size", thinned([(1200, 760), (480, 300), (320, 240)], 2), ids=str)
def test_the_time_bar_fits(viewer: Viewer, page: Page, gan: str, accumulating: str, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    for run in (gan, accumulating):
        viewer.open(run, step=4)
        expect(viewer.slider).to_be_visible()
        box = viewer.page.get_by_role("contentinfo", name="Step").locator("button").last.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= size[0]
