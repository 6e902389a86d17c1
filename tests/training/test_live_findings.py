"""What is said of a training while it goes on and at its end, and what a function of the user's may do about it."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from examples import my_rules
from tests import warm
from tests.held import children, held
from tests.processes import wait_for
from tests.shared import FORKED
from tests.tables import thinned
from torchgraph_explorer import Finding, OptionError, TorchgraphWarning, Watcher, open_run, watch
from torchgraph_explorer.training import finding_process, live_findings
from torchgraph_explorer.training.live_findings import LiveFindings

STEPS = 20


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process begins with the first step, and looks ten times a second."""
    monkeypatch.setattr(live_findings, "SECONDS_BEFORE", 0.0)
    monkeypatch.setattr(finding_process, "SECONDS_BETWEEN_LOOKS", 0.1)


class StopError(Exception):
    """Raised by the user's function."""


class Training:
    """A small network, in which a ReLU is dead from the first step if it is `broken`."""

    def __init__(self, *, broken: bool = True, goes_on: bool = False) -> None:
        self.goes_on = goes_on
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
        if broken:
            nn.init.constant_(self.model[0].bias, -100.0)  # type: ignore[arg-type]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.losses: list[float] = []

    def watch(self, folder: Path, **options: Any) -> Watcher:
        return watch(self.model, log_freq=1, backend="record", logdir=folder, optimizer=self.optimizer, **options)

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss = (self.output(torch.randn(32, 8)) - 1).square().mean()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def output(self, batch: Tensor) -> Tensor:
        while True:
            try:
                return self.model(batch)
            except StopError:
                if not self.goes_on:
                    raise

    def train(self, steps: int = STEPS) -> None:
        for _ in range(steps):
            self.step()

    def train_until(self, claim: Callable[[], bool]) -> None:
        """Train until it is so; a step now and then, so that the run grows."""

        def claims() -> bool:
            self.step()
            return claim()

        assert wait_for(claims, 40)

    @property
    def parameters(self) -> list[Tensor]:
        return [each.detach() for each in self.model.parameters()]


def found_in(watcher: Watcher) -> list[Finding]:
    assert watcher.run_dir is not None
    return list(open_run(watcher.run_dir).model().findings())


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.removeprefix("torchgraph: ") for line in capsys.readouterr().err.splitlines()]


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_what_is_told_while_training_is_what_is_found_afterwards(tmp_path: Path) -> None:
    told: list[Finding] = []
    training = Training()
    with training.watch(tmp_path, on_finding=told.append, verbose=False) as watcher:
        training.train_until(lambda: len(told) >= 2)
        before_the_end = len(told)
    assert before_the_end >= 2
    assert {one.key for one in told} == {one.key for one in found_in(watcher)}
    assert len({one.key for one in told}) == len(told)


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_each_kind_is_said_once_and_summed_up_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training = Training()
    heard: list[str] = []

    def is_said() -> bool:
        heard.extend(said(capsys))
        return any("error: dead-units" in one for one in heard)

    with training.watch(tmp_path) as watcher:
        training.train_until(is_said)
    assert heard[0] == f"recording to {watcher.run_dir}"
    assert re.match(r"error: dead-units at 1 output, since step 0: All of the outputs", heard[1])
    summary = said(capsys)
    assert summary[0].startswith("Sequential: 1 error")
    assert summary[1].startswith("  error: dead-units at 1 output, steps 0 to ")
    assert summary[-2] == f"  what to try: torchgraph check {watcher.run_dir}"
    assert summary[-1] == "  what it means: torchgraph explain dead-units"
    assert len(heard) + len(summary) <= 8


@pytest.mark.slow
def test_a_short_training_is_summed_up_without_another_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = children()
    training = Training()
    with training.watch(tmp_path):
        training.train()
        assert children() == before
    assert said(capsys)[1].startswith("Sequential: 1 error")


@pytest.mark.slow
@pytest.mark.parametrize("begin", [0.0, 60.0], ids=["in another process", "at the end"])
def test_nothing_is_said_of_a_healthy_training(
    begin: float, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_findings, "SECONDS_BEFORE", begin)
    training = Training(broken=False)
    with training.watch(tmp_path) as watcher:
        training.train()
    assert said(capsys) == [f"recording to {watcher.run_dir}"]


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        pytest.param({"verbose": False}, {}, id="quiet"),
        pytest.param({"backend": "none"}, {}, id="nothing is recorded"),
        pytest.param({}, {"TORCHGRAPH": "off"}, id="switched off"),
        pytest.param({}, {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, id="another rank"),
    ],
)
def test_where_nobody_is_told_nothing_is_looked_for(
    options: dict[str, Any], environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("it is looked for")

    monkeypatch.setattr(LiveFindings, "__init__", refused)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with watch(nn.Linear(2, 2), **{"backend": "record", "logdir": tmp_path, "run": "a", **options}) as watcher:
        model = watcher._model() if environment.get("TORCHGRAPH") != "off" else None
        assert model is None or isinstance(model, nn.Linear)


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_a_function_that_raises_ends_the_training_and_leaves_it_clean(tmp_path: Path) -> None:
    training, threads = Training(), []
    before = held(training.model, optimizer=training.optimizer)

    def stop(finding: Finding) -> None:
        threads.append(threading.get_ident())
        raise StopError(finding.kind)

    with pytest.raises(StopError, match=r"^dead-units$"), training.watch(tmp_path, on_finding=stop) as watcher:  # noqa: PT012
        while True:
            training.step()
            time.sleep(0.01)  # so that the thread that writes keeps up on a busy machine
    assert threads == [threading.get_ident()]
    after = held(training.model, optimizer=training.optimizer)  # a thread of an earlier test may have ended meanwhile
    assert [what for what, count in after.items() if count > before[what]] == []
    assert watcher.run_dir is not None
    model = open_run(watcher.run_dir).model()
    assert model.steps.tolist() == list(range(len(training.losses)))
    assert model.finished is not None
    training.step()


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("raises", [False, True], ids=["a function", "a loop that goes on after its exception"])
def test_training_is_bit_for_bit_undisturbed(tmp_path: Path, *, raises: bool) -> None:
    told: list[str] = []

    def tell(finding: Finding) -> None:
        told.append(finding.kind)
        if raises:
            raise StopError

    plain, watched = Training(), Training(goes_on=True)
    before = torch.get_rng_state()
    with watched.watch(tmp_path, rules=my_rules.RULES, on_finding=tell, verbose=False) as watcher:
        watched.train_until(lambda: len(told) > 0)
        watched.train(5)
        assert watcher.step == len(watched.losses)
    after = torch.get_rng_state()
    torch.set_rng_state(before)
    plain.train(len(watched.losses))
    assert watched.losses == plain.losses
    assert all(map(torch.equal, watched.parameters, plain.parameters))
    assert torch.equal(after, torch.get_rng_state())


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_own_rules_run_while_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])  # a Path, which Python ignores there
    told: list[Finding] = []
    training = Training(broken=False)
    with training.watch(tmp_path, rules=my_rules.RULES, on_finding=told.append, verbose=False) as watcher:
        watcher.log({"loss": 100.0})
        training.train_until(lambda: bool(told))
        assert [one.kind for one in told] == ["loss-too-high"]
        assert [one.kind for one in found_in(watcher)] == ["loss-too-high"], "it is recorded before the end"
    assert len(told) == 1
    [recorded] = found_in(watcher)
    assert (recorded.key, recorded.step, recorded.text) == (told[0].key, told[0].step, told[0].text)


@pytest.mark.slow
def test_what_own_rules_find_stays_with_a_quiet_run(tmp_path: Path) -> None:
    def mine(model: Any) -> Iterator[Finding]:
        yield Finding(kind="mine", severity="info", module="0", step=len(model), text="Mine.")

    training = Training(broken=False)
    with training.watch(tmp_path, rules=[mine], verbose=False) as watcher:
        training.train()
    assert [(one.kind, one.severity, one.module, one.step) for one in found_in(watcher)] == [
        ("mine", "info", "0", STEPS)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "begin", thinned([pytest.param(0.0, id="beside another process"), pytest.param(60.0, id="at the end")], 0)
)
def test_a_rule_that_cannot_be_sent_runs_at_the_end(
    begin: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_findings, "SECONDS_BEFORE", begin)
    told: list[Finding] = []

    def mine(model: Any) -> Iterator[Finding]:
        yield Finding(kind="mine", step=len(model), text=f"process {os.getpid()}")

    training = Training(broken=False)
    with training.watch(tmp_path, rules=[mine], on_finding=told.append, verbose=False) as watcher:
        training.train()
    assert [(one.kind, one.step, one.text) for one in told] == [("mine", STEPS, f"process {os.getpid()}")]
    assert [one.text for one in found_in(watcher)] == [told[0].text]


@pytest.mark.slow
def test_a_function_that_raises_at_the_end_is_told(tmp_path: Path) -> None:
    def stop(_finding: Finding) -> None:
        raise StopError("too late")

    training = Training()
    watcher = training.watch(tmp_path, on_finding=stop)
    training.train()
    with pytest.warns(TorchgraphWarning, match=r"on_finding raised for 'dead-units' at the end .*too late"):
        watcher.close()


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(
            (sys, "executable", "/nowhere/python"), "its process cannot be started: FileNotFoundError", id="no Python"
        ),
        pytest.param((sys, "executable", ""), "this Python is part of another program", id="embedded"),
        pytest.param(
            (finding_process, "PROGRAM", "raise SystemExit(3)"), "its process has ended with status 3", id="it ends"
        ),
    ],
)
def test_a_process_that_fails_is_warned_of_once_and_training_goes_on(
    changed: tuple[Any, str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*changed)
    training, before = Training(), children()
    with pytest.warns(TorchgraphWarning) as warned, training.watch(tmp_path) as watcher:  # noqa: PT031
        training.train_until(lambda: len(warned) > 0)
        training.train()
    assert [expected in str(one.message) for one in warned] == [True]
    assert len(open_run(str(watcher.run_dir)).model()) == len(training.losses)
    assert children() == before


KILLED = """
import pathlib, sys, time, torch
from torchgraph_explorer import watch
from torchgraph_explorer.training import live_findings
live_findings.SECONDS_BEFORE = 0
model = torch.nn.Linear(2, 2)
watch(model, log_freq=1, backend="record", logdir=sys.argv[1], on_finding=print)
for step in range(3):
    model(torch.ones(1, 2)).sum().backward()
    time.sleep(0.5)
pathlib.Path(sys.argv[1], "ready").touch()
time.sleep(60)
"""


@pytest.mark.slow
@FORKED
def test_the_process_ends_with_a_training_that_is_killed(tmp_path: Path) -> None:
    with warm.started("-c", KILLED, str(tmp_path)) as training:
        assert wait_for((tmp_path / "ready").exists)
        assert wait_for(lambda: len(processes_of(training)) == 1)
        [looking] = processes_of(training)
        os.kill(training, signal.SIGKILL)
        assert wait_for(lambda: not Path(f"/proc/{looking}").exists() or is_zombie(looking))


def processes_of(parent: int) -> Sequence[int]:
    return [int(one) for one in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()] or [
        int(one) for task in Path(f"/proc/{parent}/task").glob("*/children") for one in task.read_text().split()
    ]


def is_zombie(process: int) -> bool:
    return ") Z " in Path(f"/proc/{process}/stat").read_text()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"rules": [3]}, r"rules= is \[3\]\. Pass a list of functions", id="rules"),
        pytest.param({"rules": max}, r"rules= is <built-in function max>\. Pass a list", id="a function"),
        pytest.param({"on_finding": "stop"}, "on_finding='stop' is not a function", id="on_finding"),
    ],
)
def test_what_is_no_rule_or_function_is_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(OptionError, match=expected):
        watch(nn.Linear(2, 2), backend="none", **options)
