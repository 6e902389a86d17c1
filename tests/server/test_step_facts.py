"""What the routes tell of how steps ended, and the steps of one optimizer alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.record.examples import GRAPH, SERIES, clean, frame, write
from tests.server.asking import ask, unpack
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import StepFacts
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app

FIRST, SECOND = StepFacts("update", 1, 1, ("Adam",)), StepFacts("update", 200, 4, ("Adam #2",))
SKIPPED, UNKNOWN = StepFacts("skipped", 2, 2, ("Adam",)), None
OF_GAN = {"run": "gan", "model": "net"}
FROM_NOTHING = {**OF_GAN, "epoch": -1, "frames": 0, "series": 0}
LONG = 400


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> App:
    logdir = tmp_path_factory.mktemp("logdir")
    said = (FIRST, SECOND, SKIPPED, SECOND, UNKNOWN)
    write(logdir / "gan", GRAPH, SERIES, *(replace(frame(step), facts=facts) for step, facts in enumerate(said)))
    turns = (replace(frame(step, graph=None), facts=(FIRST, SECOND)[step % 2]) for step in range(LONG))
    write(logdir / "long", SERIES, *turns)
    bad = (clean(0), clean(1, nan=2), clean(2), clean(3, nan=1))
    write(logdir / "bad", GRAPH, SERIES, *(replace(one, facts=(FIRST, SECOND)[at % 2]) for at, one in enumerate(bad)))
    return app(Runs(logdir))


def test_updates_tell_how_each_step_ended(served: App) -> None:
    told = ask(served, "/api/updates", FROM_NOTHING).json
    kinds = {one.pop("kind"): one for one in told["kinds"]}
    frames = told["frames"]
    said = [None if kind is None else kinds[kind] for kind in frames["kind"]]
    update = {"end": "update", "optimizers": ["Adam #2"]}
    assert said == [
        *({"end": "update", "optimizers": ["Adam"]}, update),
        *({"end": "skipped", "optimizers": ["Adam"]}, update, None),
    ]
    assert frames["passes"] == [[1, 1], [200, 4], [2, 2], [200, 4], [0, 0]]
    assert told["optimizers"] == ["Adam", "Adam #2"]


@pytest.mark.parametrize(
    ("said", "choices"),
    [
        pytest.param([FIRST, FIRST, SKIPPED], [], id="one"),
        pytest.param([replace(FIRST, optimizers=("Muon", "AdamW"))], [], id="two that always go together"),
        pytest.param(
            [replace(FIRST, optimizers=("Muon", "AdamW")), FIRST], ["Adam", "AdamW", "Muon"], id="some together"
        ),
        pytest.param(
            [replace(FIRST, optimizers=("A", "B")), replace(FIRST, optimizers=("A",))], ["B"], id="one always"
        ),
        pytest.param([replace(SKIPPED, optimizers=()), FIRST], [], id="one that is not known"),
    ],
)
def test_optimizers_are_offered_that_made_some_of_the_steps(
    said: list[StepFacts], choices: list[str], tmp_path: Path
) -> None:
    write(tmp_path / "gan", GRAPH, SERIES, *(replace(frame(step), facts=facts) for step, facts in enumerate(said)))
    assert ask(app(Runs(tmp_path)), "/api/updates", FROM_NOTHING).json["optimizers"] == choices


def test_updates_can_be_had_of_the_steps_of_one_optimizer(served: App) -> None:
    told = ask(served, "/api/updates", {**FROM_NOTHING, "optimizer": "Adam #2"}).json
    assert (told["frames"]["step"], told["frames"]["passes"]) == ([1, 3], [[200, 4], [200, 4]])
    assert told["optimizers"] == ["Adam", "Adam #2"]
    known = {**OF_GAN, "epoch": told["epoch"], "frames": 1, "series": 4}
    assert ask(served, "/api/updates", {**known, "optimizer": "Adam #2"}).json["frames"]["step"] == [3]


@pytest.mark.parametrize("optimizer", ["SGD", "", "Adam #3"])
def test_an_optimizer_without_steps_has_none(optimizer: str, served: App) -> None:
    told = ask(served, "/api/updates", {**FROM_NOTHING, "optimizer": optimizer}).json
    assert (told["frames"]["step"], told["optimizers"]) == ([], ["Adam", "Adam #2"])


def history(served: App, **query: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return unpack(ask(served, "/api/history", {"run": "long", "model": "net", "series": "0", "from": 0, **query}).body)


def test_merged_steps_are_of_the_chosen_optimizer_only(served: App) -> None:
    meta, arrays = history(served, most=64, optimizer="Adam #2")
    _, every = history(served)
    assert (meta["frames"], meta["unit"]) == (LONG // 2, 8)
    assert arrays["0.merged"].tolist() == [4] * (LONG // 8)
    own = every["0.statistics"][1::2, 6].reshape(-1, 4)
    np.testing.assert_array_equal(arrays["0.lowest"][:, 6], own.min(axis=1))
    whole, _ = history(served, most=64)
    assert whole["frames"] == LONG
    assert history(served, most=64, optimizer="Adam #2")[1]["0.merged"].tolist() == arrays["0.merged"].tolist()


def xray(served: App, **query: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return unpack(ask(served, "/api/xray", {"run": "long", "model": "net", "most": 1024, **query}).body)


def test_the_xray_of_one_optimizer_is_not_that_of_another_with_as_many_steps(served: App) -> None:
    version = xray(served, optimizer="Adam")[0]["version"]
    assert xray(served, optimizer="Adam", version=version)[0]["is_same"]
    meta, arrays = xray(served, optimizer="Adam #2", version=version)
    assert (meta["is_same"], arrays["first"].tolist()) == (False, list(range(1, LONG, 2)))


@pytest.mark.parametrize(
    ("optimizer", "first"), [({}, 1), ({"optimizer": "Adam #2"}, 1), ({"optimizer": "Adam"}, None)]
)
def test_nan_is_told_of_the_steps_of_the_chosen_optimizer(
    optimizer: dict[str, str], first: int | None, served: App
) -> None:
    query = {"run": "bad", "model": "net", "epoch": -1, "frames": 0, **optimizer}
    told = ask(served, "/api/nonfinite", query).json
    assert (told["first"] and told["first"]["step"], told["is_complete"]) == (first, True)


def test_the_reader_and_the_routes_have_the_same_frames(served: App, tmp_path: Path) -> None:
    write(tmp_path / "gan", GRAPH, SERIES, replace(frame(0), facts=FIRST), replace(frame(1), facts=SECOND))
    one = open_run(tmp_path / "gan").model().updated_by("Adam #2")
    told = ask(app(Runs(tmp_path)), "/api/updates", {**FROM_NOTHING, "optimizer": "Adam #2"}).json
    assert told["frames"]["step"] == one.steps.tolist() == [1]
