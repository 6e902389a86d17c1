"""Training with two processes: the same watched, one record of both, and nobody waits for us when one dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import warm
from tests.compatibility.distributed_pair import DIES, free_port
from tests.listening import assert_row
from tests.shared import FORKED
from torchgraph_explorer import open_run
from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import STATISTICS

pytestmark = [pytest.mark.slow, FORKED]  # all look at one launch

WAYS = {
    "ddp": "DDP",
    "ddp_inner": "DDP, the module inside it watched",
    "ddp_no_sync": "DDP with no_sync",
    "ddp_static_graph": "DDP with static_graph",
    "ddp_unused": "DDP with find_unused_parameters",
    "ddp_apart": 'DDP, recorded with ranks="all"',
    "fsdp": "FSDP2, fully_shard",
}
MERGED = [way for way in WAYS if way != "ddp_apart"]
MODULES = ["", "a", "a.0", "a.1", "a.2", "b", "head"]
PASSES = 5


def steps_of(way: str) -> list[int]:
    """One for each pass; or for two, of which the first one's gradients are held back."""
    return [0, 1, 2] if way == "ddp_no_sync" else [*range(PASSES)]


def first_pass(way: str, step: int) -> int:
    """The number of the first pass in a step."""
    return 2 * step if way == "ddp_no_sync" else step


WORKER = "tests.compatibility.distributed_worker"
PAIR = "tests.compatibility.distributed_pair"


def start(ways: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Both ranks, by torchrun, to their end."""
    torchrun = ["torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    return run(*torchrun, "--master-port", str(free_port()), "-m", WORKER, ways, str(folder), *options)


def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.run("-m", module, *arguments, env=environment())


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())}


def ranks(way: str, folder: Path) -> list[dict[str, Any]]:
    """What each rank says; under `error`, why it says nothing."""
    done = start(way, folder)
    return [_told(way, folder, rank, done.stderr) for rank in range(2)]


def _told(way: str, folder: Path, rank: int, error: str) -> dict[str, Any]:
    place = folder / f"{way}.{rank}.json"
    if not place.exists():
        return {"identical": False, "steps": [], "modules": [], "error": error[-3000:]}
    told: dict[str, Any] = json.loads(place.read_text())
    return told


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch that trained in all ways, one after the other, and once with a rank that was killed.

    Attributes:
        folder: Where it left what it tells.
        said: What both ranks said.
    """

    folder: Path
    said: str

    def told(self, way: str) -> list[dict[str, Any]]:
        """What each rank tells of one way."""
        return [_told(way, self.folder, rank, self.said) for rank in range(2)]

    def truth(self, way: str, step: int, name: str) -> list[np.ndarray[Any, Any]]:
        """A tensor as each rank saved it."""
        return [np.load(self.folder / f"{way}.{rank}.npz")[f"{step}.{name}"] for rank in range(2)]

    def names(self, way: str, beginning: str) -> list[str]:
        """The tensors that were saved."""
        return [name for name in np.load(self.folder / f"{way}.0.npz").files if name.startswith(beginning)]


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    folder = tmp_path_factory.mktemp("launch")
    done = run(PAIR, str(folder), ",".join(WAYS))
    return Launch(folder, done.stderr)


def rows(model: ModelRecord, module: str, kind: str, path: str) -> Iterator[tuple[dict[str, float], Histograms]]:
    """One series, step by step: of the first call in a step, or of a parameter."""
    [series] = [one for one in model.find(module, path=path) if one.kind == kind and one.call in (None, 0)]
    history = model.history(series)
    for at, values in enumerate(history.statistics.tolist()):
        yield dict(zip(STATISTICS, values, strict=True)), history.histograms.row(at)


@pytest.mark.parametrize("way", WAYS)
def test_every_rank_trains_the_same_watched_and_records_every_module(way: str, launched: Launch) -> None:
    told = launched.told(way)
    assert [each.get("error") for each in told] == [None, None]
    assert [each["identical"] for each in told] == [True, True]
    assert [each["steps"] for each in told] == [steps_of(way)] * 2
    assert [each["modules"] for each in told] == [MODULES] * 2


@pytest.mark.parametrize("way", MERGED)
def test_both_ranks_make_one_record(way: str, launched: Launch) -> None:
    first, second = launched.told(way)
    assert first["run_dir"] == second["run_dir"]
    model = open_run(first["run_dir"]).model()
    steps = steps_of(way)
    assert (model.steps.tolist(), model.ranks.tolist(), model.notes) == (steps, [2] * len(steps), ())
    assert (model.session.rank, model.session.world_size, len(model.sessions)) == (0, 2, 2)
    assert model.finished is not None
    assert launched.said.count(f"recording to {first['run_dir']}") == 1


@pytest.mark.parametrize("way", MERGED)
@pytest.mark.parametrize(
    ("name", "kind", "path"),
    [("input", "value", "input[0]"), ("output", "value", "output"), ("norms", "grad_norm", "output")],
)
def test_tensors_are_recorded_as_if_the_ranks_were_one(
    way: str, name: str, kind: str, path: str, launched: Launch
) -> None:
    model = open_run(launched.told(way)[0]["run_dir"]).model()
    for step, row in enumerate(rows(model, "", kind, path)):
        assert_row(row, np.concatenate(launched.truth(way, first_pass(way, step), name)), name=(way, step))


@pytest.mark.parametrize("way", [way for way in MERGED if way != "ddp_unused"])
@pytest.mark.parametrize("edge", ["a -> head", "b -> head"])
def test_the_gradient_along_a_skip_is_recorded_as_if_the_ranks_were_one(way: str, edge: str, launched: Launch) -> None:
    model = open_run(launched.told(way)[0]["run_dir"]).model()
    for step, row in enumerate(rows(model, "", "grad_norm", edge)):
        assert_row(row, np.concatenate(launched.truth(way, first_pass(way, step), "skip")), name=(way, step))


@pytest.mark.parametrize("way", ["ddp", "ddp_inner", "ddp_static_graph", "ddp_unused"])
def test_parameters_and_averaged_gradients_are_counted_once(way: str, launched: Launch) -> None:
    """The gradients are those after the all-reduce, which every rank finds alike."""
    model = open_run(launched.told(way)[0]["run_dir"]).model()
    for kind, step in (("value", 0), ("value", 4), ("grad", 4)):
        for name in launched.names(way, f"{step}.{kind}."):
            module, _, path = name.removeprefix(f"{step}.{kind}.").rpartition(".")
            first, second = launched.truth(way, step, name.removeprefix(f"{step}."))
            assert first.tobytes() == second.tobytes()
            assert_row(list(rows(model, module, kind, path))[-1 if step else 0], first, name=(way, name))


def test_gradients_that_are_held_back_are_in_those_of_their_update(launched: Launch) -> None:
    """The last pass has no update, so that its gradients stay those of each rank. The first rank's are recorded."""
    model = open_run(launched.told("ddp_no_sync")[0]["run_dir"]).model()
    for last_pass, row in zip((1, 3, 4), rows(model, "head", "grad", "weight"), strict=True):
        first, second = launched.truth("ddp_no_sync", last_pass, "grad.head.weight")
        assert (first.tobytes() == second.tobytes()) == (last_pass != 4)
        assert_row(row, first, name=last_pass)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("way", ["ddp", "ddp_inner", "ddp_unused", "fsdp"])
def test_each_rank_keeps_the_tensors_that_it_has(way: str, rank: int, launched: Launch) -> None:
    """Its own samples, and gradients of parameters as averaged."""
    model = open_run(launched.told(way)[0]["run_dir"]).model()
    assert model.kept.steps.tolist() == steps_of(way)
    kept = {(one.module, one.role, one.path): one for one in model.kept.series if one.kind == "value"}
    for step in steps_of(way):
        given = model.tensor(kept["", "input", "input[0]"], step, rank=rank)
        result = model.tensor(kept["", "output", "output"], step, rank=rank)
        np.testing.assert_array_equal(given.values, launched.truth(way, step, "input")[rank])
        np.testing.assert_array_equal(result.values, launched.truth(way, step, "output")[rank])
        assert result.gradient is not None
        norms = np.linalg.norm(result.gradient.values.astype(np.float64), axis=1)
        np.testing.assert_allclose(norms, launched.truth(way, step, "norms")[rank], rtol=1e-6)
        for gradient in launched.names(way, f"{step}.grad.") if way != "fsdp" else ():
            name = gradient.removeprefix(f"{step}.grad.")
            module, _, path = name.rpartition(".")
            parameter = model.tensor(kept[module, "param", path], step, rank=rank)
            assert parameter.gradient is not None
            for found, kind in ((parameter, "value"), (parameter.gradient, "grad")):
                np.testing.assert_array_equal(found.values, launched.truth(way, step, f"{kind}.{name}")[rank])


def test_the_first_rank_decides_which_steps_are_kept(launched: Launch) -> None:
    model = open_run(launched.told("ddp_static_graph")[0]["run_dir"]).model()
    assert model.kept.steps.tolist() == [2, 3]
    for step, reason in ((2, "before step 3: odd"), (3, "odd")):
        for rank in (0, 1):
            found = model.kept_at(step, rank=rank)
            assert (found.ranks, found.reasons) == ((0, 1), (reason,))


@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_the_ranks_have_the_same_dependency_graph(way: str, launched: Launch) -> None:
    model = open_run(launched.told(way)[0]["run_dir"]).model()
    first, second = (model.tensor_graph(4, rank=rank) for rank in (0, 1))
    assert first == second
    assert {node.key for node in first.nodes} >= {":input@0", "a@0", "b@0", "head@0", "head:param"}


@pytest.mark.parametrize("kind", ["value", "grad"])
def test_shards_are_put_together(kind: str, launched: Launch) -> None:
    model = open_run(launched.told("fsdp")[0]["run_dir"]).model()
    for name in launched.names("fsdp", f"0.{kind}."):
        module, _, path = name.removeprefix(f"0.{kind}.").rpartition(".")
        for step, row in enumerate(rows(model, module, kind, path)):
            shards = launched.truth("fsdp", step, f"{kind}.{module}.{path}")
            assert_row(row, np.concatenate([shard.reshape(-1) for shard in shards]), name=(name, step))


def test_ranks_can_be_kept_apart(launched: Launch) -> None:
    told = launched.told("ddp_apart")
    assert [each["name"] for each in told] == ["Model (rank 0)", "Model (rank 1)"]
    assert told[0]["run_dir"] == told[1]["run_dir"]
    run = open_run(told[0]["run_dir"])
    assert sorted(run.models) == ["Model (rank 0)", "Model (rank 1)"]
    for rank, name in enumerate(sorted(run.models)):
        model = run.model(name)
        for step, row in enumerate(rows(model, "", "value", "output")):
            assert_row(row, launched.truth("ddp_apart", step, "output")[rank])
        for step, row in enumerate(rows(model, "head", "grad", "weight")):
            assert_row(row, launched.truth("ddp_apart", step, "grad.head.weight")[rank])


def test_only_the_first_rank_serves_and_speaks(launched: Launch) -> None:
    assert [each["serves"] for each in launched.told("ddp_apart")] == [True, False]
    assert launched.said.count("torchgraph: watching ") == 1


def test_a_rank_that_is_killed_leaves_the_others_to_torch_and_a_record(launched: Launch) -> None:
    """Started without torchrun, which would kill the other rank itself."""
    assert json.loads((launched.folder / f"{DIES}.json").read_text()) == [1, -signal.SIGKILL]
    assert "Error" in (launched.folder / f"{DIES}.0.txt").read_text()
    model = open_run(launched.folder / DIES / "ddp").model()
    assert model.steps.tolist()[:2] == [0, 1]
    assert model.ranks.tolist()[:2] == [2, 2]
    assert model.finished is None
