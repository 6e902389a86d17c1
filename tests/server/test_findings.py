"""`api/findings`: what the rules say, without making anybody wait for them."""

from __future__ import annotations

import random
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.record.examples import GRAPH, SERIES, SESSION, clean, write
from tests.record.fuzzing import BASES, sound_segments, within_bounds
from tests.record.mutations import mutated
from tests.server.asking import ask
from tests.server.pages import read_page
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.engine import judge
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import open_run
from torchgraph_explorer.server import findings
from torchgraph_explorer.server.export import export_page
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app

NET = {"run": "a", "model": "net"}
DEAD = Finding(
    kind="dead-units",
    severity="warning",
    module="relu",
    call=0,
    path="output",
    step=3,
    last_step=9,
    text="Text.",
    band=Band("zero_fraction", high=0.98),
)

Judge = Callable[[Evidence], tuple[Finding, ...]]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request waits for the rules, however slow the machine is."""
    monkeypatch.setattr(findings, "WAIT_SECONDS", 60.0)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Rules that end when the semaphore is released, and that nobody waits for."""
    turns = threading.Semaphore(0)
    monkeypatch.setattr(findings, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(findings, "judge", lambda evidence, **_: turns.acquire() and judge(evidence))
    yield turns
    turns.release(100)


def answer(served: App, **query: Any) -> dict[str, Any]:
    said: dict[str, Any] = ask(served, "/api/findings", {**NET, **query}).json
    return said


def completed(served: App) -> dict[str, Any]:
    """The answer once it is complete."""
    until = time.monotonic() + 60
    while not (said := answer(served))["is_complete"]:
        assert time.monotonic() < until
        time.sleep(0.01)
    return said


def finding_with(monkeypatch: pytest.MonkeyPatch, other: Judge) -> None:
    """Put `other` in the place of the rules."""
    monkeypatch.setattr(findings, "judge", lambda evidence, **_: other(evidence))


def test_it_tells_what_the_rules_found_and_which_steps_they_looked_at(tmp_path: Path) -> None:
    write(tmp_path / "a", GRAPH, SERIES, clean(0), clean(10, nan=2), clean(20))
    said = answer(app(Runs(tmp_path)))
    (found,) = said["findings"]
    assert (found["kind"], found["severity"], found["step"], found["id"], found["band"]) == (
        "nan",
        "error",
        10,
        0,
        None,
    )
    assert (said["is_same"], said["is_complete"], said["problem"], said["left_out"]) == (False, True, None, 0)
    assert (said["looked_at"], said["recorded"]) == ({"steps": 3, "first": 0, "last": 20}, 3)


def test_a_healthy_run_has_none_and_says_so(tmp_path: Path) -> None:
    write(tmp_path / "a", GRAPH, SERIES, clean(0), clean(10))
    said = answer(app(Runs(tmp_path)))
    assert (said["findings"], said["problem"], said["looked_at"]["steps"]) == ([], None, 2)


def test_a_fault_of_ours_is_told_and_the_next_request_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a", GRAPH, SERIES, clean(0))
    served, real = app(Runs(tmp_path)), findings._key

    def fail_in_a_thread(model: ModelRecord, epoch: int) -> findings.Key:
        if threading.current_thread().name.startswith("torchgraph findings"):
            raise KeyError("a graph")
        return real(model, epoch)

    with monkeypatch.context() as patch:
        patch.setattr(findings, "_key", fail_in_a_thread)
        assert "which is a fault of torchgraph_explorer: KeyError" in answer(served)["problem"]
    assert completed(served)["problem"] is None


def test_where_no_thread_can_be_started_a_later_request_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    write(tmp_path / "a", GRAPH, SERIES, clean(0))
    served = app(Runs(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert not answer(served)["is_complete"]
    assert completed(served)["problem"] is None


def test_a_band_is_told_in_the_units_of_the_strips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding_with(monkeypatch, lambda _: (DEAD,))
    write(tmp_path / "a", GRAPH, SERIES, clean(0))
    (found,) = answer(app(Runs(tmp_path)))["findings"]
    assert found["band"] == {"statistic": "zero_fraction", "kind": "value", "low": None, "high": 0.98}


def test_a_client_that_has_the_answer_gets_none(tmp_path: Path) -> None:
    write(tmp_path / "a", GRAPH, SERIES, clean(0, nan=1))
    served = app(Runs(tmp_path))
    version = answer(served)["version"]
    assert answer(served, version=version) == {"version": version, "is_same": True, "is_complete": True}
    assert not answer(app(Runs(tmp_path)), version=version)["is_same"]  # another server may number otherwise


def test_nobody_waits_for_the_rules(tmp_path: Path, held: threading.Semaphore) -> None:
    write(tmp_path / "a", GRAPH, SERIES, clean(0, nan=1))
    served = app(Runs(tmp_path))
    first = answer(served)
    assert (first["is_complete"], first["findings"], first["looked_at"]) == (False, [], None)
    assert ask(served, "/api/updates", {**NET, "epoch": -1, "frames": 0, "series": 0}).status == 200
    assert answer(served, version=first["version"])["is_complete"] is False
    held.release()
    assert [one["kind"] for one in completed(served)["findings"]] == ["nan"]


def test_of_a_growing_run_the_last_answer_is_given_until_the_next_is_there(
    tmp_path: Path, held: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "LEAST_PAUSE", 0.0)
    monkeypatch.setattr(findings, "PAUSE", 0.0)
    writer, served = RecordWriter(tmp_path / "a"), app(Runs(tmp_path))
    for record in (SESSION, GRAPH, SERIES, clean(0)):
        writer.write(record)
    answer(served)
    held.release()
    assert completed(served)["findings"] == []
    writer.write(clean(1, nan=1))
    writer.write(clean(2))
    before = answer(served)
    assert (before["is_complete"], before["looked_at"]["last"]) == (False, 0)
    held.release()
    after = completed(served)
    writer.close()
    assert ([one["step"] for one in after["findings"]], after["looked_at"]["last"]) == ([1], 2)
    assert after["version"] != before["version"]


def test_a_growing_run_is_not_judged_again_before_its_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    finding_with(monkeypatch, lambda evidence: asked.append(len(evidence)) or ())  # type: ignore[func-returns-value]
    monkeypatch.setattr(findings, "LEAST_PAUSE", 3600.0)
    writer, served = RecordWriter(tmp_path / "a"), app(Runs(tmp_path))
    for record in (SESSION, GRAPH, SERIES, clean(0)):
        writer.write(record)
    answer(served)
    for step in (1, 2, 3):
        writer.write(clean(step))
        assert not answer(served)["is_complete"]
    writer.close()
    assert asked == [1]


def test_one_model_is_judged_at_a_time(tmp_path: Path, held: threading.Semaphore) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, GRAPH, SERIES, clean(0))
    served = app(Runs(tmp_path))
    begun = [thread for thread in threading.enumerate() if thread.name.startswith("torchgraph findings")]
    assert begun == []
    for _ in range(3):
        answer(served)
        answer(served, run="b")
    begun = [thread for thread in threading.enumerate() if thread.name.startswith("torchgraph findings")]
    assert len(begun) == 2
    held.release()
    assert completed(served)["is_complete"]
    assert not answer(served, run="b")["is_complete"]


def test_a_fault_of_ours_is_told_and_does_not_look_like_health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_evidence: Evidence) -> tuple[Finding, ...]:
        raise IndexError("no such column")

    finding_with(monkeypatch, fail)
    write(tmp_path / "a", GRAPH, SERIES, clean(0))
    said = answer(app(Runs(tmp_path)))
    assert said["findings"] == []
    assert said["problem"].startswith("The rules could not be run, which is a fault of torchgraph_explorer: IndexError")


def test_no_more_findings_are_sent_than_can_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding_with(monkeypatch, lambda _: (DEAD,) * 1000)
    write(tmp_path / "a", GRAPH, SERIES, clean(0))
    said = answer(app(Runs(tmp_path)))
    assert (len(said["findings"]), said["left_out"]) == (findings.MOST_FINDINGS, 1000 - findings.MOST_FINDINGS)


def test_a_model_that_there_is_not_is_refused_with_words(tmp_path: Path) -> None:
    write(tmp_path / "a", GRAPH, SERIES, clean(0))
    refused = ask(app(Runs(tmp_path)), "/api/findings", {"run": "a", "model": "no"})
    assert (refused.status, refused.json) == (404, {"error": "Run 'a' has no model 'no'. Name one of: 'net'."})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_record_gives_findings_or_words(
    seed: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = random.Random(seed)
    for place, data in sound_segments(rng.choice(BASES), tmp_path_factory.mktemp("sound")):
        file = tmp_path / "bad" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(mutated(data, rng))
    served = app(Runs(tmp_path))
    with within_bounds(f"seed {seed}"), warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchgraphWarning)
        (listed,) = ask(served, "/api/runs").json["runs"]
        for model in listed["models"] or ["any"]:
            said = ask(served, "/api/findings", {"run": "bad", "model": model})
            assert said.status in (200, 404, 422)
            assert said.json["error"] if said.status != 200 else "findings" in said.json


@pytest.mark.slow
def test_a_page_has_them_and_the_steps_and_tensors_they_name(tmp_path: Path) -> None:
    write(tmp_path / "a", GRAPH, SERIES, *(clean(step, nan=float(step == 77)) for step in range(200)))
    page = read_page(export_page(open_run(tmp_path / "a"), steps=3, series=1))
    (found,) = page.model["findings"]["findings"]
    assert (found["kind"], found["step"], page.model["findings"]["looked_at"]["steps"]) == ("nan", 77, 200)
    assert page.steps == [0, 77, 199]
    assert (found["module"], found["call"], found["path"]) in [(key[0], key[1], key[3]) for key in page.keys]
