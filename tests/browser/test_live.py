"""While a training writes, while there is nothing yet, and while the server is gone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic, time

import pytest
import torch
from playwright.sync_api import Route, expect
from torch import nn

from tests.browser.conftest import NewContext
from tests.browser.page import Viewer, expect_soon
from tests.browser.runs import STEPS, mean_square, train, watching
from tests.browser.servers import ServerProcess
from tests.record.examples import GRAPH, SERIES, SESSION, frame, records, segment, write
from torchgraph_explorer import Keep, TorchgraphWarning, Watcher
from torchgraph_explorer.capture.silence import MOST_UPDATES
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.writing_process import host, own_processes

SOON_SECONDS = 2.0
"""How long a new step may take until it is on show."""


class Training:
    """A model that is trained a step at a time, into the run `live`."""

    def __init__(self, logdir: Path) -> None:
        self.model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        self.watcher: Watcher = watching(self.model, logdir, "live")

    def steps(self, count: int) -> None:
        train(self.model, [(torch.randn(5, 4),)] * count, mean_square)


@pytest.fixture
def training(own_logdir: Path) -> Iterator[Training]:
    """Has begun to watch, and has made no step."""
    training = Training(own_logdir)
    yield training
    training.watcher.close()


def test_new_steps_appear_within_two_seconds_and_a_chosen_one_stays(own_viewer: Viewer, training: Training) -> None:
    training.steps(2)
    own_viewer.open("live", pin="0.0#0")
    expect(own_viewer.connection).to_have_text("Live, 2 steps")
    strip = own_viewer.chart("0, output, value")
    taken = []
    for steps in (3, 6, 7):
        training.steps(steps - int(own_viewer.slider.get_attribute("max") or 0) - 1)
        began = monotonic()
        expect(own_viewer.connection).to_have_text(f"Live, {steps} steps")
        taken.append(monotonic() - began)
        expect(own_viewer.readout).to_contain_text(f"step {steps - 1}")
        expect(strip).to_have_attribute("aria-valuemax", str(steps - 1))
        expect(strip).to_have_accessible_name(re.compile(f"{steps} steps"))
    assert min(taken) < SOON_SECONDS, "however busy the machine is with other tests"
    own_viewer.open("live", step=1)
    expect(own_viewer.readout).to_contain_text("step 1")
    training.steps(2)
    expect(own_viewer.connection).to_have_text("Live, 9 steps")
    expect(own_viewer.readout).to_contain_text("step 1")


FLASHES = """(seen) => {
  window.flashes = [];
  const note = () => {
    const found = document.querySelectorAll('.facts-none, .tensor-reasons, .tensor-line b');
    const texts = [...found].map((one) => one.textContent);
    const wrong = texts.filter((text) => /nothing recorded|the last one before|^–$/.test(text));
    window.flashes.push(...wrong, ...(document.querySelectorAll(seen).length ? [] : ['gone']));
  };
  new MutationObserver(note).observe(document.body, {childList: true, subtree: true, characterData: true});
}"""
"""Notes what is wrong for a moment: that facts are not there, or what they say then."""


def test_facts_do_not_vanish_until_those_of_a_new_step_have_come(own_viewer: Viewer, training: Training) -> None:
    training.steps(2)
    own_viewer.open("live", pin="0.0#0")
    facts = own_viewer.page.locator(".facts").first
    expect(facts).to_contain_text("mean")
    expect(own_viewer.connection).to_have_text("Live, 2 steps")
    own_viewer.page.evaluate(FLASHES, ".panel .chart:first-child .facts")
    for steps in (3, 4, 5):
        before = facts.inner_text()
        training.steps(1)
        expect(own_viewer.connection).to_have_text(f"Live, {steps} steps")
        expect(facts).not_to_have_text(before)
    assert own_viewer.page.evaluate("window.flashes") == []


def test_kept_tensors_of_a_growing_run_are_not_said_to_be_old_for_a_moment(
    own_viewer: Viewer, own_logdir: Path
) -> None:
    model = nn.Linear(4, 3)
    with watching(model, own_logdir, "keeping", keep=Keep("*", samples=2)) as watcher:
        train(model, [(torch.randn(5, 4),)] * 3, mean_square)
        own_viewer.open("keeping", view="tensors")
        step = own_viewer.page.get_by_role("combobox", name="Step", exact=True)
        expect(own_viewer.page.locator(".tensor-line b").first).not_to_have_text("–")
        own_viewer.page.evaluate(FLASHES, ".tensor-line")
        for last in (3, 4, 5):
            train(model, [(torch.randn(5, 4),)], mean_square)
            expect(step).to_have_value(str(last))
            expect(own_viewer.page.locator(".tensor-line-ends").first).to_contain_text(re.compile(f"{last}$"))
        assert own_viewer.page.evaluate("window.flashes") == []
        assert watcher is not None


def test_a_line_that_takes_longer_than_a_step_is_shown_while_a_run_grows(own_viewer: Viewer, own_logdir: Path) -> None:
    asked: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(route)

    own_viewer.page.route("**/api/tensor-line?*", hold)
    model = nn.Linear(4, 3)
    with watching(model, own_logdir, "slow-line", keep=Keep("*", samples=2)):
        train(model, [(torch.randn(5, 4),)] * 3, mean_square)
        own_viewer.open("slow-line", view="tensors")
        step = own_viewer.page.get_by_role("combobox", name="Step", exact=True)
        for last in (2, 3, 4):
            expect(step).to_have_value(str(last))
            train(model, [(torch.randn(5, 4),)], mean_square)
        expect(step).to_have_value("5")
        assert len(asked) == 1
        asked[0].continue_()
        expect(own_viewer.page.locator(".tensor-line").first).to_be_visible()
        expect_soon(lambda: check_asked_again(own_viewer, asked))
        asked[1].continue_()
        expect(own_viewer.page.locator(".tensor-line-ends").first).to_contain_text(re.compile("5$"))


def check_asked_again(viewer: Viewer, asked: list[Route]) -> None:
    viewer.page.wait_for_timeout(0)  # hears what was asked meanwhile
    assert len(asked) == 2


@pytest.mark.slow
def test_the_beginning_and_the_end_of_a_training_are_said(own_viewer: Viewer, training: Training) -> None:
    own_viewer.open("live")
    expect(own_viewer.page.get_by_text("No step recorded yet").first).to_be_visible()
    expect(own_viewer.page.get_by_text("Every step is recorded.")).to_be_visible()
    training.steps(1)
    expect(own_viewer.node("0#0")).to_be_visible()
    expect(own_viewer.readout).to_contain_text("step 0")
    expect(own_viewer.connection).to_have_text("Live, 1 step")
    training.watcher.close()
    expect(own_viewer.connection).to_have_text("Finished, 1 step")


def test_a_finished_run_is_not_called_live_while_answers_are_awaited(viewer: Viewer, digits: str) -> None:
    updates, scalars = hold(viewer, "updates"), hold(viewer, "scalars")
    viewer.open(digits)
    expect(viewer.page.get_by_label("Run", exact=True)).to_have_value(digits)
    expect(viewer.connection).to_have_text("Loading")
    updates()
    expect(viewer.connection).to_have_text(f"Finished, {STEPS} steps")
    scalars()


def hold(viewer: Viewer, name: str) -> Callable[[], None]:
    """No answer of this name comes until what is returned is called."""
    held: list[Route] = []
    is_free = False

    def answer(route: Route) -> None:
        if is_free:
            route.continue_()
        else:
            held.append(route)

    def release() -> None:
        nonlocal is_free
        is_free = True
        for route in held:
            route.continue_()

    viewer.page.route(f"**/api/{name}*", answer)
    return release


def update_without_gradients(model: nn.Module) -> None:
    """Update a model that is only called under `no_grad`, so often that this is said."""
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(MOST_UPDATES + 1):
        with torch.no_grad():
            model(torch.randn(2, 4))
        optimizer.step()


def test_an_empty_page_says_why_nothing_is_recorded_while_the_training_goes_on(
    own_viewer: Viewer, own_logdir: Path
) -> None:
    model = nn.Linear(4, 2).eval()
    watcher = watching(model, own_logdir, "silent")
    own_viewer.open("silent")
    notice = own_viewer.page.locator(".notice")
    expect(notice).to_contain_text("No step recorded yet")
    with pytest.warns(TorchgraphWarning, match="no step was recorded in the first"):
        update_without_gradients(model)
    expect(notice).to_contain_text("It was only called in eval mode or with gradients disabled.")
    expect(notice).to_contain_text("No step recorded yet")
    with pytest.warns(TorchgraphWarning, match="no step was recorded"):
        watcher.close()
    expect(notice).to_contain_text("No step was recorded")
    expect(own_viewer.page.locator(".sidebar, .panel-area, .rail, .zoom-buttons")).to_have_count(0)
    expect(own_viewer.page.get_by_text("yet", exact=False)).to_have_count(0)
    expect(notice).to_contain_text("call model.train() first")


@pytest.mark.slow
def test_a_folder_without_runs_says_so_until_there_is_one(own_viewer: Viewer, own_logdir: Path) -> None:
    own_viewer.open()
    expect(own_viewer.page.get_by_text(f"No run in the folder {own_logdir} yet")).to_be_visible()
    expect(own_viewer.page.get_by_text(f'watch(model, logdir="{own_logdir}")')).to_be_visible()
    expect(own_viewer.page.get_by_text(f"torchgraph demo --logdir {own_logdir}")).to_be_visible()
    expect(own_viewer.connection).to_have_text("Waiting for a run")
    training = Training(own_logdir)
    training.steps(2)
    expect(own_viewer.node("0#0")).to_be_visible()
    training.watcher.close()


@pytest.mark.slow
def test_a_server_that_is_gone_is_said_and_its_return_is_noticed_by_itself_or_at_once(
    own_viewer: Viewer, own_server: ServerProcess, training: Training
) -> None:
    training.steps(2)
    own_viewer.open("live", pin="0.0#0")
    expect(own_viewer.connection).to_have_text("Live, 2 steps")
    expect(own_viewer.node("0#0")).to_be_visible()
    own_server.stop()
    expect(own_viewer.connection).to_contain_text("The server does not answer. Trying again")
    ended = own_viewer.page.get_by_role("status").filter(has_text="A viewer ends with its training.")
    expect(ended).to_contain_text(f"torchgraph serve {own_server.logdir}")
    expect(own_viewer.node("0#0")).to_be_visible()
    training.steps(3)
    own_server.start()
    expect(own_viewer.connection).to_have_text("Live, 5 steps")
    expect(ended).to_have_count(0)
    own_viewer.page.route("**/api/**", lambda route: route.abort())  # a server would take long to begin again
    expect(own_viewer.connection).to_contain_text(re.compile("Trying again in [78] s"), timeout=40_000)
    own_viewer.page.unroute_all()
    with own_viewer.page.expect_request("**/api/**", timeout=4000):  # which is before the next try
        own_viewer.button("Retry now").click()
    expect(own_viewer.connection).to_have_text("Live, 5 steps")
    own_viewer.complaints.clear()  # refused connections are on the console


@pytest.mark.parametrize("path", ["runs", "updates"])
def test_a_server_that_refuses_is_quoted(viewer: Viewer, digits: str, path: str) -> None:
    refused = {"status": 401, "json": {"error": "Log in at the front desk."}}
    viewer.page.route(f"**/api/{path}*", lambda route: route.fulfill(**refused))
    viewer.open(digits, pin="0.classifier#0")
    expect(viewer.page.locator(".notice")).to_contain_text("Log in at the front desk.")
    expect(viewer.page.locator(".connection")).to_contain_text("Log in at the front desk. Trying again")
    expect(viewer.page.locator(".header .sr-only[role=status]")).to_have_text("Log in at the front desk.")
    expect(viewer.page.get_by_text("recorded yet")).to_have_count(0)
    viewer.page.unroute_all()
    expect(viewer.chart("classifier, output, value")).to_be_visible()
    viewer.complaints.clear()  # the refusals are on the console


@pytest.mark.slow
def test_a_run_that_is_deleted_is_said_to_be_gone_and_stays_on_show(
    own_viewer: Viewer, own_logdir: Path, training: Training
) -> None:
    training.steps(2)
    training.watcher.close()
    own_viewer.open("live")
    expect(own_viewer.connection).to_have_text("Finished, 2 steps")
    expect(own_viewer.node("0#0")).to_be_visible()
    shutil.rmtree(own_logdir / "live")
    expect(own_viewer.connection).to_have_text("Run not found")
    expect(own_viewer.node("0#0")).to_be_visible()
    expect(own_viewer.page.locator(".sidebar")).to_be_visible()
    own_viewer.complaints.clear()  # the answers that there is no such run are on the console


UNREADABLE = {
    "foreign": b"This is no record of ours, but a text about something else.\n" * 40,
    "empty": b"",
    "zeros": bytes(4096),
}


def test_a_run_that_has_lost_its_steps_shows_nothing_of_before(
    own_viewer: Viewer, own_logdir: Path, training: Training
) -> None:
    training.steps(2)
    own_viewer.open("live", pin="0.0#0")
    strip = own_viewer.chart("0, output, value")
    expect(strip.locator("canvas").first).to_be_visible()
    training.watcher.close()
    cut_before_frames(segment(own_logdir / "live"))
    expect(own_viewer.page.get_by_role("contentinfo", name="Step")).to_contain_text("No step recorded yet")
    strip = own_viewer.chart("0, output, value")
    expect(strip).to_contain_text("no step")
    expect(strip.locator("canvas").first).not_to_be_visible()


def cut_before_frames(file: Path) -> None:
    data = file.read_bytes()
    heads = {at: int.from_bytes(data[at + 8 : at + 12], "little") for at in records(data)}
    first = next(
        at for at, size in heads.items() if pb.Head.FromString(data[at + 24 : at + 24 + size]).HasField("frame")
    )
    os.truncate(file, first)


def test_runs_that_cannot_be_read_do_not_harm_the_others(
    own_viewer: Viewer, own_logdir: Path, training: Training
) -> None:
    training.steps(1)
    for name, content in UNREADABLE.items():
        folder = own_logdir / name / "plugins" / "torchgraph"
        folder.mkdir(parents=True)
        (folder / "000000.tgraph").write_bytes(content)
    own_viewer.open()
    expect(own_viewer.node("0#0")).to_be_visible()
    for name, content in UNREADABLE.items():
        own_viewer.choose("Run", f"{name} (damaged)" if content else name)
        told = "holds no record that can be read" if content else "No model in this run yet"
        expect(own_viewer.page.locator(".notice")).to_contain_text(told)
        own_viewer.choose("Run", "live")
        expect(own_viewer.node("0#0")).to_be_visible()


def test_damage_in_the_middle_of_a_run_is_noted(own_viewer: Viewer, own_logdir: Path, training: Training) -> None:
    training.steps(5)
    training.watcher.close()
    [segment] = own_logdir.rglob("*.tgraph")
    content = bytearray(segment.read_bytes())
    content[2000:2100] = bytes(100)
    segment.write_bytes(content)
    own_viewer.open("live")
    expect(own_viewer.node("0#0")).to_be_visible()
    own_viewer.page.get_by_text(re.compile(r"^\d+ messages?$")).click()
    expect(own_viewer.page.locator(".warnings")).to_contain_text("damaged")


@pytest.mark.slow
def test_the_demo_is_on_show_while_it_trains(new_context: NewContext, own_logdir: Path) -> None:
    command = [sys.executable, "-m", "torchgraph_explorer.cli", "demo", "--steps", "1000000", "--port", "0"]
    demo = subprocess.Popen([*command, "--logdir", own_logdir], stderr=subprocess.PIPE, text=True)
    try:
        assert demo.stderr is not None
        said = next(line for line in demo.stderr if "http://" in line)
        viewer = Viewer(new_context().new_page(), said.split()[-1])
        viewer.open()
        expect(viewer.crumbs).to_have_text(["DigitsNet"], timeout=60_000)  # beside a training, which takes a core
        shown = viewer.readout.inner_text()
        expect(viewer.readout).not_to_have_text(shown)
        assert viewer.complaints == []
    finally:
        demo.kill()
        demo.communicate()


def test_a_training_that_was_killed_is_not_called_live_when_the_page_is_opened_later(
    own_viewer: Viewer, own_logdir: Path
) -> None:
    write(own_logdir / "killed", GRAPH, SERIES, frame(0), frame(1))
    own_viewer.open("killed")
    expect(own_viewer.connection).to_have_text(re.compile(r"^No new steps for \d+ days, 2 steps$"))


def test_a_training_whose_process_is_gone_is_not_called_live(own_viewer: Viewer, own_logdir: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    session = replace(SESSION, host=host(), processes=own_processes(), pid=process.pid, created=time() - 30)
    steps = (replace(frame(step), time=time() - 20 + step) for step in range(2))
    write(own_logdir / "killed", GRAPH, SERIES, *steps, session=session)
    own_viewer.open("killed")
    expect(own_viewer.connection).to_have_text("Ended without closing, 2 steps")


def test_a_run_without_a_record_is_not_called_live(own_viewer: Viewer, own_logdir: Path) -> None:
    file = own_logdir / "killed" / "plugins" / "torchgraph" / "000000.tgraph"
    file.parent.mkdir(parents=True)
    file.touch()
    own_viewer.open("killed")
    expect(own_viewer.connection).to_have_text("Nothing recorded yet")
    file.write_bytes(b"This is no record. " * 9)
    expect(own_viewer.connection).to_have_text("Cannot be read", timeout=20_000)
