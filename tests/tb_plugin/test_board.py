"""The tab's routes in the real TensorBoard process, which cannot import torch."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from torch.utils.tensorboard import SummaryWriter

from tests.processes import wait_for
from tests.record.examples import GRAPH, SERIES, SESSION, frame, other_session, segment, write
from tests.tables import thinned
from tests.tb_plugin.board import FAST, LOADERS, SLOW, tensorboard
from tests.tb_plugin.runs import add_scalars, mark, record
from torchgraph_tensorboard.sink import mark_with

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("tab")]  # one process that has TensorBoard

RUNS = 200
LISTING_SECONDS = 0.2


@pytest.mark.parametrize("loader", thinned(LOADERS, 1))
def test_a_thousand_steps_are_all_there(loader: str, tmp_path: Path) -> None:
    record(tmp_path / "run", range(1000))
    mark(tmp_path / "run", SESSION)
    with tensorboard("--logdir", str(tmp_path), loader) as board:
        assert board.steps("run") == list(range(1000))
        assert [board.history_steps("run", series) for series in range(4)] == [1000] * 4


@pytest.mark.parametrize("loader", thinned(LOADERS, 0))
def test_scalars_and_the_tab_share_a_run(loader: str, tmp_path: Path) -> None:
    record(tmp_path / "a" / "run", (0, 1))
    with SummaryWriter(str(tmp_path / "a" / "run")) as writer:
        mark(tmp_path / "a" / "run", SESSION, writer)
        writer.add_scalar("loss", 0.5, 7)
    with tensorboard("--logdir", str(tmp_path), loader) as board:
        assert wait_for(lambda: board.scalars("a/run", "loss") == [7])
        assert list(board.runs()) == ["a/run"]
        assert "warning" not in board.said().lower()


def test_runs_of_any_backend_show_and_the_listing_is_quick(tmp_path: Path) -> None:
    for number in range(RUNS):
        add_scalars(tmp_path / f"scalars{number:03d}", [0])
    record(tmp_path / "standalone", (0, 1, 2))
    record(tmp_path / "damaged", (0, 1))
    segment(tmp_path / "damaged").write_bytes(b"\xff" * 5000)
    (tmp_path / "empty" / "plugins" / "torchgraph").mkdir(parents=True)
    segment(tmp_path / "empty").touch()
    (tmp_path / "foreign" / "plugins").mkdir(parents=True)
    (tmp_path / "foreign" / "plugins" / "torchgraph").write_text("not a folder")
    with tensorboard("--logdir", str(tmp_path)) as board:
        assert wait_for(lambda: len(board.json("runs")) == RUNS)
        assert min(seconds(board.is_active) for _ in range(20)) < LISTING_SECONDS, "others may have waited for a core"
        assert board.is_active()
        assert board.steps("standalone") == [0, 1, 2]
        errors = {name: run["error"] for name, run in board.runs().items()}
        assert "holds no record that can be read" in errors.pop("damaged")
        assert errors == {"standalone": None, "empty": None}
        assert "holds no record" in board.error("updates", run="damaged", model="net", epoch=-1, frames=0, series=0)
        assert board.scalars("scalars000", "loss") == [0]


def seconds(act: object) -> float:
    began = time.perf_counter()
    assert callable(act)
    act()
    return time.perf_counter() - began


def test_a_run_may_be_resumed_and_a_run_may_be_deleted(tmp_path: Path) -> None:
    write(tmp_path / "run", GRAPH, SERIES, *map(frame, range(10)))
    record(tmp_path / "gone", (0, 1))
    with tensorboard("--logdir", str(tmp_path)) as board:
        assert board.steps("run") == list(range(10))
        write(tmp_path / "run", GRAPH, SERIES, *map(frame, (8, 9, 10)), session=other_session("later"))
        assert board.steps("run") == list(range(11))
        shutil.rmtree(tmp_path / "gone")
        assert wait_for(lambda: set(board.runs()) == {"run"})
        assert board.error("updates", run="gone", model="net", epoch=-1, frames=0, series=0).startswith(
            "There is no run 'gone'"
        )
        record(tmp_path / "new", [5])
        assert wait_for(lambda: set(board.runs()) == {"run", "new"})


@pytest.mark.parametrize("order", ["theirs first", "ours first"])
def test_a_training_that_goes_on_writing_scalars_is_followed(order: str, tmp_path: Path) -> None:
    """Without the Rust server, TensorBoard follows only the last event file of a run."""
    if order == "ours first":
        mark(tmp_path / "run", SESSION)
    with SummaryWriter(str(tmp_path / "run")) as theirs:
        theirs.add_scalar("loss", 1.0, 0)
        theirs.flush()
        if order == "theirs first":
            mark(tmp_path / "run", SESSION)
        record(tmp_path / "run", [0])
        with tensorboard("--logdir", str(tmp_path), SLOW) as board:
            assert wait_for(lambda: board.scalars("run", "loss") == [0])
            theirs.add_scalar("loss", 0.5, 1)
            theirs.flush()
            assert wait_for(lambda: board.scalars("run", "loss") == [0, 1])
            assert board.is_active()


def test_groups_of_a_logdir_spec_are_named_as_tensorboard_names_them(tmp_path: Path) -> None:
    for group in ("old", "new"):
        record(tmp_path / group / "run", [0])
        mark(tmp_path / group / "run", SESSION)
    spec = f"old:{tmp_path / 'old'},new:{tmp_path / 'new'}"
    with tensorboard("--logdir_spec", spec) as board:
        assert wait_for(lambda: sorted(board.json("runs")) == ["new/run", "old/run"])
        assert sorted(board.runs()) == ["new/run", "old/run"]
        assert board.steps("old/run") == [0]


@pytest.mark.parametrize("loader", thinned(LOADERS, 1))
def test_a_marker_without_its_record_is_told(loader: str, tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path / "copied")) as writer:
        mark_with(writer)
    with tensorboard("--logdir", str(tmp_path), loader) as board:
        assert wait_for(lambda: "copied" in board.runs())
        assert "Copy the whole folder of the run" in board.runs()["copied"]["error"]


def test_nothing_outside_the_logdir_is_served(tmp_path: Path) -> None:
    record(tmp_path / "inside" / "run", [0])
    record(tmp_path / "outside", [0])
    with tensorboard("--logdir", str(tmp_path / "inside"), FAST) as board:
        ask = {"model": "net", "epoch": -1, "frames": 0, "series": 0}
        assert board.error("updates", run="../outside", **ask).startswith("There is no run '../outside'")


def test_a_logdir_without_runs_has_an_inactive_tab_that_says_so(tmp_path: Path) -> None:
    with tensorboard("--logdir", str(tmp_path)) as board:
        assert not board.is_active()
        assert board.api("runs") == {"logdir": str(tmp_path), "runs": []}


WRITE_TO_MEMORY = """
import sys; sys.path[:0] = [{root!r}]
import fsspec, pathlib
for file in pathlib.Path({source!r}).rglob("*.*"):
    if file.is_file():
        fsspec.filesystem("memory").pipe_file("/bucket/" + file.relative_to({source!r}).as_posix(), file.read_bytes())
"""

ONLY_TENSORBOARD_READS = """
from tensorboard.compat.tensorflow_stub.io import gfile
class Shelf(gfile.LocalFileSystem):
    pass
for name in ("exists", "read", "glob", "isdir", "listdir", "stat"):
    def at_home(self, path, *rest, _act=getattr(gfile.LocalFileSystem, name), **options):
        path = path.decode() if isinstance(path, bytes) else path
        return _act(self, path.replace("shelf://", "/", 1), *rest, **options)
    setattr(Shelf, name, at_home)
gfile.register_filesystem("shelf", Shelf())
"""


@pytest.mark.parametrize(
    ("logdir", "before"),
    [
        pytest.param("memory://bucket", WRITE_TO_MEMORY, id="what fsspec reads"),
        pytest.param("shelf:/{source}", ONLY_TENSORBOARD_READS, id="what only TensorBoard reads"),
    ],
)
def test_a_logdir_that_tensorboard_can_read_the_tab_can_read(logdir: str, before: str, tmp_path: Path) -> None:
    record(tmp_path / "deep" / "run", (0, 3))
    mark(tmp_path / "deep" / "run", SESSION)
    root = str(Path(__file__).parents[2])
    before = before.format(root=root, source=str(tmp_path)) if "{root" in before else before
    with tensorboard("--logdir", logdir.format(source=tmp_path), before=before) as board:
        assert wait_for(lambda: list(board.runs()) == ["deep/run"])
        assert board.runs()["deep/run"]["error"] is None
        assert board.steps("deep/run") == [0, 3]
        assert board.history_steps("deep/run", 0) == 2
