"""What is refused, and how."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from torch import nn

from tests.compatibility.test_sink_faults import wandb_run
from tests.stores import gated_folder
from torchgraph_explorer import OptionError, watch
from torchgraph_explorer.errors import NotFoundError
from torchgraph_wandb.panels import chart_key
from torchgraph_wandb.record_artifact import RunPath, run_path
from torchgraph_wandb.sink import PresetPublisher
from torchgraph_wandb.snapshots import SnapshotMaker

pytestmark = pytest.mark.slow


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"is not a W&B run\. Pass what wandb\.init"):
        watch(nn.Linear(2, 2), backend="wandb", run=42, logdir=tmp_path, verbose=False)


def test_a_finished_run_is_refused(tmp_path: Path) -> None:
    run = SimpleNamespace(id="1a2b", log=print, finish=print, _is_finished=True)
    with pytest.raises(OptionError, match="The W&B run 1a2b is finished"):
        watch(nn.Linear(2, 2), run=run, backend="record", logdir=tmp_path, verbose=False)


@pytest.mark.parametrize(
    "text",
    [
        "e/p/r",
        "wandb://e/p/r",
        "https://wandb.ai/e/p/runs/r",
        "https://wandb.ai/e/p/runs/r?nw=nwuser",
        "https://wandb.ai/e/p/runs/r/overview",
        "http://127.0.0.1:8080/e/p/runs/r/logs#L10",
        "wandb://e/p/runs/r/",
    ],
)
def test_a_run_is_named_in_several_ways(text: str) -> None:
    assert run_path(text) == RunPath("e", "p", "r")


@pytest.mark.parametrize("text", ["", "wandb://e/p", "e/p/r/s"])
def test_what_names_no_run_is_refused(text: str) -> None:
    with pytest.raises(NotFoundError, match=r"names no W&B run\. Write entity/project/run-id"):
        run_path(text)


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("Net", "torchgraph/Net"),
        ("Net (eval)", "torchgraph/Net_eval"),
        ("a.b/c", "torchgraph/a_b_c-af69662c"),
        ("…", "torchgraph/model-5111434a"),
    ],
)
def test_a_models_name_becomes_a_key_that_wandb_leaves_alone(model: str, key: str) -> None:
    assert chart_key(model) == key


def test_a_snapshot_that_cannot_be_made_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    maker = SnapshotMaker(str(tmp_path / "nowhere"), "Net")
    maker.begin(page=False)
    folder = maker._folder
    assert maker.take(patience=30.0) is None
    assert "does not exist" in maker.fault
    assert not maker.is_busy
    assert not folder.exists()


def test_a_snapshot_is_made_in_rows_once_it_has_failed(recorded_run: Path) -> None:
    maker = SnapshotMaker(str(recorded_run), "no such model")
    maker.begin(page=False)
    maker.take(patience=30.0)
    again = SnapshotMaker(str(recorded_run), "Sequential")
    again._engine = maker._engine
    assert again._engine == "rows"
    again.begin(page=False)
    snapshot = again.take(patience=30.0)
    assert snapshot is not None
    assert snapshot.page is None
    assert snapshot.rows[0][0] == "summary"


def test_the_time_that_a_snapshot_waits_to_be_taken_is_not_what_it_took(recorded_run: Path) -> None:
    maker = SnapshotMaker(str(recorded_run), "Sequential")
    began = time.monotonic()
    maker.begin(page=False)
    assert maker._child is not None
    maker._child.wait(30.0)
    ended = time.monotonic() - began
    time.sleep(1.0)
    snapshot = maker.take()
    assert snapshot is not None
    assert 0 < snapshot.seconds < ended + 0.5


def test_a_snapshot_that_is_not_waited_for_leaves_no_process(recorded_run: Path) -> None:
    maker = SnapshotMaker(str(recorded_run), "Sequential")
    maker.begin(page=True)
    child = maker._child
    assert maker.take() is None
    maker.stop()
    assert child is not None
    assert child.poll() is not None
    assert not maker.is_busy


@pytest.mark.parametrize(
    "fault", [OSError(24, "Too many open files"), FileNotFoundError(2, "No usable temporary directory")]
)
def test_a_snapshot_that_the_system_refuses_is_tried_again_later(
    fault: OSError, recorded_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise fault

    maker = SnapshotMaker(str(recorded_run), "Sequential")
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.mkdtemp", refuse)
        maker.try_to_begin(page=False)
    assert (maker.is_busy, str(fault) in maker.fault) == (False, True)
    maker.try_to_begin(page=False)
    assert maker.take(patience=60.0) is not None


def test_a_home_that_hangs_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    with gated_folder(str(tmp_path / "home")) as gate:
        gate.close()
        began = time.monotonic()
        run = wandb_run()
        run.entity = "ent"
        preset = PresetPublisher(run)
        assert time.monotonic() - began < 4.5
        assert preset.chart is None
        gate.open()
        preset.wait(60)
    assert gate.threads == {"torchgraph-wandb"}
