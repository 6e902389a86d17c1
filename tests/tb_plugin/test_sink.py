"""watch(backend="tensorboard") and watch(writer=...): what is left for TensorBoard to find."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest
import torch
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from tests.record.examples import SESSION
from tests.stores import delete_folder
from tests.tb_plugin.runs import mark
from torchgraph_explorer import OptionError, TorchgraphWarning, open_run, watch
from torchgraph_explorer.record.format.envelope import VERSION
from torchgraph_tensorboard import sink
from torchgraph_tensorboard.metadata import marker_summary, parse_marker
from torchgraph_tensorboard.sink import EVENT_FILE


def markers(folder: Path) -> list[tuple[str, str]]:
    """The file and tag of every summary of ours in a run."""
    return [
        (file.name, value.tag)
        for file in sorted(folder.glob("*tfevents*"))
        for event in EventFileLoader(str(file)).Load()
        for value in event.summary.value
        if value.metadata.plugin_data.plugin_name == "torchgraph"
    ]


def train(**options: object) -> Path:
    model = nn.Linear(3, 2)
    with watch(model, log_freq=1, verbose=False, **options) as watcher:  # type: ignore[arg-type]
        for _ in range(3):
            model(torch.randn(4, 3)).sum().backward()
    assert watcher.run_dir is not None
    return Path(watcher.run_dir)


def test_the_backend_leaves_a_record_and_a_marker(tmp_path: Path) -> None:
    folder = train(backend="tensorboard", logdir=tmp_path, run="a/b")
    assert folder == tmp_path / "a/b"
    assert open_run(folder).model().steps.tolist() == [0, 1, 2]
    assert markers(folder) == [(EVENT_FILE, "torchgraph")]


def test_a_writer_shares_its_folder_and_its_event_file(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "mine")) as writer:
        folder = train(backend="record", writer=writer)
    assert folder == tmp_path / "mine"
    assert len(open_run(folder).model()) == 3
    [(file, tag)] = markers(folder)
    assert (file == EVENT_FILE, tag) == (False, "torchgraph")
    assert len(list(folder.glob("*tfevents*"))) == 1


def test_several_models_share_a_writers_run(tmp_path: Path) -> None:
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    with (
        SummaryWriter(str(tmp_path)) as writer,
        watch(one, name="one", backend="record", writer=writer, verbose=False) as first,
        watch(other, name="other", backend="record", writer=writer, verbose=False) as second,
    ):
        one(torch.ones(1, 3)).sum().backward()
        other(torch.ones(1, 3)).sum().backward()
    assert first.run_dir == second.run_dir
    assert open_run(tmp_path).models == ("one", "other")


def test_a_run_with_event_files_gets_no_further_one(tmp_path: Path) -> None:
    SummaryWriter(str(tmp_path)).close()
    mark(tmp_path, SESSION)
    assert markers(tmp_path) == []


def test_a_resumed_session_finds_its_marker(tmp_path: Path) -> None:
    mark(tmp_path, SESSION)
    before = (tmp_path / EVENT_FILE).read_bytes()
    mark(tmp_path, SESSION)
    assert (tmp_path / EVENT_FILE).read_bytes() == before


def test_a_run_at_a_url_is_marked_there() -> None:
    mark("memory://marked/run", SESSION)
    files = fsspec.filesystem("memory")
    assert files.ls("/marked/run", detail=False) == [f"/marked/run/{EVENT_FILE}"]
    files.store.clear()


@pytest.fixture
def _looked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "CHECK_SECONDS", 0.0)


@pytest.mark.usefixtures("_looked_for_at_once")
@pytest.mark.filterwarnings("ignore:.*was deleted or moved away:torchgraph_explorer.TorchgraphWarning")
@pytest.mark.parametrize("writes", [False, True], ids=["alone", "with a writer"])
def test_a_run_that_is_deleted_is_marked_again_with_its_record(writes: bool, tmp_path: Path) -> None:
    model, folder = nn.Linear(3, 2), tmp_path / "run"
    writer = SummaryWriter(str(folder)) if writes else None
    given = {"writer": writer} if writes else {"logdir": tmp_path, "run": "run"}
    with watch(model, log_freq=1, backend="tensorboard", verbose=False, **given) as watcher:
        model(torch.randn(4, 3)).sum().backward()
        model(torch.randn(4, 3)).sum().backward()
        delete_folder(folder)
        for _ in range(3):
            model(torch.randn(4, 3)).sum().backward()
    assert watcher.run_dir == str(folder)
    assert open_run(folder).model().steps.tolist()[-1] == 4
    assert markers(folder) == [(EVENT_FILE, "torchgraph")]
    if writer is not None:
        writer.close()


@pytest.mark.usefixtures("_looked_for_at_once")
def test_a_marker_that_could_not_be_put_is_put_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    whole, faults = sink.mark_folder, [OSError(28, "No space left on device")] * 2

    def mark_folder(run_dir: str) -> None:
        if faults:
            raise faults.pop()
        whole(run_dir)

    monkeypatch.setattr(sink, "mark_folder", mark_folder)
    assert markers(train(backend="tensorboard", logdir=tmp_path)) == [(EVENT_FILE, "torchgraph")]
    assert not [one for one in recwarn if issubclass(one.category, TorchgraphWarning)]


def test_a_run_that_tensorboard_will_not_find_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sink, "mark_folder", refuse)
    with pytest.warns(TorchgraphWarning, match="TensorBoardSink failed.* No space left on device"):
        train(backend="tensorboard", logdir=tmp_path)


def test_the_terminal_is_told_what_to_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch(nn.Linear(1, 1), backend="tensorboard", logdir=tmp_path, run="r").close()
    assert f"torchgraph: for TensorBoard: tensorboard --logdir {tmp_path}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"writer": "runs/mine"}, "has no log_dir. Pass a torch.utils.tensorboard", id="a path"),
        pytest.param({"writer": SimpleNamespace(log_dir="x")}, "is not a SummaryWriter", id="something else"),
        pytest.param({"writer": SimpleNamespace(log_dir="x"), "run": "y"}, "both name a run", id="two names"),
    ],
)
def test_a_writer_that_is_none_is_told(options: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=message):
        watch(nn.Linear(1, 1), backend="record", logdir=tmp_path, **options)  # type: ignore[arg-type]


def test_without_tensorboard_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith("tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(OptionError, match=r'pip install "tensorboard>='):
        watch(nn.Linear(1, 1), backend="tensorboard", logdir=tmp_path, run="r")
    assert list(tmp_path.iterdir()) == []


def test_a_marker_says_what_was_written() -> None:
    [value] = marker_summary().value
    marker = parse_marker(value.metadata.plugin_data.content, "run")
    assert (marker.version, marker.folder) == (VERSION, "plugins/torchgraph")
