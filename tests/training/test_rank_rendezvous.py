"""The ranks of one machine agree on a run, each knows what is its own to do, and none waits for ever."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from torchgraph_explorer import watch
from torchgraph_explorer.capture.distributed import Rank, Sharding, this_rank
from torchgraph_explorer.errors import OptionError, TorchgraphWarning
from torchgraph_explorer.schema import Kind, Series
from torchgraph_explorer.sinks import resolve
from torchgraph_explorer.training import rank_parts, rank_rendezvous
from torchgraph_explorer.training.rank_rendezvous import agreed_location, agreed_step
from torchgraph_explorer.training.start import _of_rank

ONE_RANK = """
import os, sys
from torchgraph_explorer.training.rank_rendezvous import agreed_location
rank = int(sys.argv[1])
for time in ("first", "second"):
    run = f"{time} of {rank} at {os.environ['MASTER_PORT']}"
    place = agreed_location(None, lambda: ("runs", run), is_leader=not rank)
    print(*place, sep="/", flush=True)
sys.stdin.read()
"""
"""A process that is to agree on two runs, one after the other, and ends when its stdin does."""


def start_rank(number: int, folder: Path, *, port: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(folder), "MASTER_PORT": str(port)}
    command = [sys.executable, "-c", ONE_RANK, str(number)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def said(ranks: list[subprocess.Popen[str]]) -> list[tuple[str, str]]:
    """The runs that each agreed on; then all are ended."""
    lines = []
    for one in ranks:
        assert one.stdout is not None
        lines.append((one.stdout.readline().strip(), one.stdout.readline().strip()))
    for one in ranks:
        one.communicate()
    return lines


def test_what_ranks_told_each_other_is_removed_where_no_thread_starts_at_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")  # as Python 3.12 says

    monkeypatch.setattr(threading.Thread, "start", refuse)
    file = tmp_path / "told.json"
    file.touch()
    rank_rendezvous._remove(file)
    assert not file.exists()


@pytest.mark.slow
def test_the_ranks_of_one_launch_record_to_the_runs_of_the_first(tmp_path: Path) -> None:
    runs = said([start_rank(number, tmp_path, port=port) for port in (1, 2) for number in (2, 1, 0)])
    assert runs[:3] == [("runs/first of 0 at 1", "runs/second of 0 at 1")] * 3
    assert runs[3:] == [("runs/first of 0 at 2", "runs/second of 0 at 2")] * 3
    assert list(tmp_path.glob("*/*")) == []


TWO_LAUNCHES = """
import multiprocessing, os
from torchgraph_explorer.training.rank_rendezvous import agreed_location

def rank(number, run, together):
    _, found = agreed_location(None, lambda: ("runs", run), is_leader=not number)
    os.write(1, f"{found}\\n".encode())
    together.wait()

context = multiprocessing.get_context("fork")
for run in ("first", "second"):
    together = context.Barrier(2)
    ranks = [context.Process(target=rank, args=(number, run, together)) for number in range(2)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
"""


@pytest.mark.slow
def test_ranks_that_were_forked_leave_no_note_to_the_next_launch(tmp_path: Path) -> None:
    command, environment = [sys.executable, "-c", TWO_LAUNCHES], {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["first"] * 2 + ["second"] * 2
    assert list(tmp_path.glob("torchgraph-*/*")) == []


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody waits for long, and notes are left in a folder of the test's own."""
    monkeypatch.setattr(rank_rendezvous, "SECONDS_TO_WAIT", 0.1)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_a_rank_goes_its_own_way_where_the_first_one_does_not_come(quick: Path) -> None:
    with pytest.warns(TorchgraphWarning, match=r"did not begin to watch within 0.1 s.*name the run with run="):
        assert agreed_location(None, lambda: ("runs", "mine"), is_leader=False) == ("runs", "mine")
    assert len(list(quick.glob("*/*.json"))) == 1  # for others that were left alone too


def test_a_run_that_was_named_is_taken(quick: Path) -> None:
    for is_leader in (False, True):
        assert agreed_location(("runs", "named"), lambda: ("runs", "chosen"), is_leader=is_leader) == ("runs", "named")


@pytest.mark.usefixtures("quick")
def test_a_place_that_is_not_needed_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [("runs", "chosen")]
    for _ in range(2):
        monkeypatch.setattr(rank_rendezvous, "agreement_numbers", itertools.count())  # of another process of the launch
        assert agreed_location(None, places.pop, is_leader=True) == ("runs", "chosen")


@pytest.mark.usefixtures("quick")
def test_ranks_begin_where_the_first_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_leader, own in ((True, 20), (False, 0)):
        monkeypatch.setattr(rank_rendezvous, "agreement_numbers", itertools.count())  # of another process of the launch
        assert agreed_step(own, is_leader=is_leader) == 20


def test_ranks_that_cannot_leave_notes_go_their_own_ways(quick: Path) -> None:
    quick.joinpath(f"torchgraph-{os.getuid()}").write_text("not a folder")
    with pytest.warns(TorchgraphWarning, match=r"cannot agree on a run"):
        assert agreed_location(None, lambda: ("runs", "mine"), is_leader=True) == ("runs", "mine")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"RANK": "0", "WORLD_SIZE": "1"}, None, id="alone"),
        pytest.param({"RANK": "x", "WORLD_SIZE": "?"}, None, id="nonsense"),
        pytest.param({"LOCAL_RANK": "1", "WORLD_SIZE": "2"}, None, id="not told yet"),
        pytest.param({"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0"}, Rank(0, 4, True), id="first"),
        pytest.param({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}, Rank(3, 4, False), id="second of a machine"),
        pytest.param({"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0"}, Rank(2, 4, True), id="first of a machine"),
        pytest.param({"RANK": "1", "WORLD_SIZE": "2"}, Rank(1, 2, False), id="without a local rank"),
    ],
)
def test_a_process_knows_its_rank(told: dict[str, str], expected: Rank | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert this_rank() == expected


@pytest.mark.parametrize(
    ("rank", "viewer", "opened"),
    [
        pytest.param(Rank(0, 4, True), True, ("tensorboard", "wandb"), id="first"),
        pytest.param(Rank(1, 4, False), False, (), id="another"),
        pytest.param(Rank(2, 4, True), True, ("tensorboard",), id="first of another machine"),
    ],
)
def test_all_ranks_record_and_only_the_first_shows(rank: Rank, viewer: bool, opened: tuple[str, ...]) -> None:
    mine = _of_rank(resolve(["standalone", "tensorboard", "wandb"]), rank)
    assert (mine.record, mine.viewer, mine.libraries) == (True, viewer, opened)


def test_a_way_to_record_ranks_that_there_is_not_is_refused() -> None:
    with pytest.raises(
        OptionError, match=r"ranks='each' is not a way to record several ranks. Pass 'merged', .* or 'all'"
    ):
        watch(nn.Linear(1, 1), ranks="each")


def part_of(model: nn.Module, path: str, count: int, kind: Kind = "value") -> int | None:
    return rank_parts.part_of(Series(0, "", None, "param", path, kind), count, Sharding(model).look())


def test_whole_parameters_are_the_same_on_every_rank() -> None:
    model = nn.Linear(4, 2)
    assert (part_of(model, "weight", 8), part_of(model, "bias", 2), part_of(model, "bias", 1, "update_ratio")) == (
        0,
    ) * 3
    assert part_of(model, "weight", 3) is None
    assert rank_parts.part_of(Series(0, "", 0, "output", "output", "value"), 8, Sharding(model).look()) is None


def test_a_lazy_parameter_and_a_model_that_is_gone_are_no_obstacle() -> None:
    assert part_of(nn.LazyLinear(3), "weight", 3) is None
    sharding = Sharding(torch.nn.Linear(2, 2))
    assert rank_parts.part_of(Series(0, "", None, "param", "weight", "value"), 4, sharding.look()) == 0


def sharded(placements: str, here: tuple[int, ...] | None, mesh: tuple[int, ...]) -> nn.Module:
    """A module whose weight says, letter by letter, how it lies on the mesh: replicated, sharded or partial."""
    model = nn.Linear(4, 2, bias=False)
    kinds = {"r": (True, False), "s": (False, False), "p": (False, True)}
    placed = [
        SimpleNamespace(is_replicate=partial(bool, kinds[at][0]), is_partial=partial(bool, kinds[at][1]))
        for at in placements
    ]
    model.weight.placements = placed  # type: ignore[attr-defined]
    model.weight.device_mesh = SimpleNamespace(get_coordinate=lambda: here, shape=mesh)  # type: ignore[attr-defined]
    return model


@pytest.mark.parametrize(
    ("placements", "here", "mesh", "expected"),
    [
        pytest.param("s", (3,), (4,), 3, id="shards"),
        pytest.param("r", (3,), (4,), 0, id="replicas"),
        pytest.param("rs", (1, 2), (2, 4), 2, id="shards with replicas"),
        pytest.param("ss", (1, 2), (2, 4), 6, id="shards of shards"),
        pytest.param("p", (1,), (2,), None, id="sums"),
        pytest.param("s", None, (2,), None, id="not on the mesh"),
    ],
)
def test_ranks_with_the_same_shard_have_the_same_part(
    placements: str, here: tuple[int, ...] | None, mesh: tuple[int, ...], expected: int | None
) -> None:
    assert part_of(sharded(placements, here, mesh), "weight", 2) == expected
    assert part_of(sharded(placements, here, mesh), "weight", 8) == 0, "gathered for a while"
