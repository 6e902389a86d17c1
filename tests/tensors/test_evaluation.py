"""Tensors of evaluations: passes without gradients, or in eval mode, which make no update."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import Keep, PerLabel, attach, open_run, watch
from torchgraph_explorer.run import Model, Run
from torchgraph_explorer.training.evaluation_turns import EvaluationTurns
from torchgraph_explorer.training.watcher import Watcher

KEEP = Keep("head", "loss", "target", samples=2)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).relu())


@contextmanager
def in_eval_mode(model: nn.Module) -> Iterator[None]:
    model.eval()
    yield
    model.train()


@contextmanager
def without_gradients(_model: nn.Module) -> Iterator[None]:
    with torch.no_grad():
        yield


WAYS = [pytest.param(in_eval_mode, id="eval mode"), pytest.param(without_gradients, id="no_grad")]


class Loop:
    """A training with evaluations, which remembers what was computed."""

    def __init__(self, folder: Path, **options: Any) -> None:
        torch.manual_seed(0)
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.options = {"log_freq": 1, "logdir": folder, "run": "run", "keep": KEEP, **options}
        self.computed: dict[tuple[int, str], tuple[Tensor, ...]] = {}
        self.watcher: Watcher

    def run(self, steps: int, evaluate: Callable[[Loop, int], None]) -> Run:
        with watch(self.model, backend="record", verbose=False, **self.options) as self.watcher:
            for step in range(steps):
                loss = self.passed(step, "train", batch=6)
                loss.mean().backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                evaluate(self, step)
        return open_run(str(self.watcher.run_dir))

    def passed(self, step: int, name: str, *, batch: int) -> Tensor:
        x, target = torch.randn(batch, 4), torch.randn(batch, 2)
        attach(target, name="target", kind="target")
        found = self.model(x)
        loss = (found - target).square().mean(1)
        attach(loss, name="loss", kind="loss")
        self.computed.setdefault((step, name), (found.detach(), target, loss.detach()))
        return loss


def kept(model: Model, step: int) -> tuple[np.ndarray[Any, Any], ...]:
    by_name = {(one.module or one.path): one for one in model.kept.series if one.kind == "value"}
    return tuple(model.tensor(by_name[name], step).values for name in ("head", "target", "loss"))


def labelled(way: Callable[[nn.Module], Any], *labels: str, passes: int = 1) -> Callable[[Loop, int], None]:
    def evaluate(loop: Loop, step: int) -> None:
        for label in labels:
            with way(loop.model):
                loop.watcher.label(label)
                loop.watcher.samples(["a"] * 9 + ["b"])
                for _ in range(passes):
                    with torch.no_grad():
                        loop.passed(step, label, batch=10)

    return evaluate


@pytest.mark.parametrize("way", WAYS)
def test_an_evaluation_keeps_what_it_computes_and_training_keeps_its_own(way: Any, tmp_path: Path) -> None:
    loop = Loop(tmp_path, phases=("train", "eval"))
    run = loop.run(3, labelled(way, "validation", passes=3))
    training, evaluation = run.model("Net"), run.model("Net (eval)")
    assert training.kept.labels == (None,) * 3
    assert evaluation.kept.labels == ("validation",) * 3
    assert evaluation.kept_at(2).tensors[0].categories == ("a", "b")
    for step in range(3):
        for found, expected in zip(kept(training, step), loop.computed[step, "train"], strict=True):
            np.testing.assert_array_equal(found, expected[[0, 3]])
        for found, expected in zip(kept(evaluation, step + 1), loop.computed[step, "validation"], strict=True):
            np.testing.assert_array_equal(found, expected[[0, 9]])
    assert [one.node_key for one in evaluation.tensor_graph(1).tensors if one.kind == "loss"] == ["loss"]


@pytest.mark.parametrize("way", WAYS)
def test_what_an_evaluation_says_is_not_said_of_training(way: Any, tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    with pytest.warns(UserWarning, match=r"evaluations are not recorded, .* To record them, pass phases="):
        run = loop.run(3, labelled(way, "validation"))
    assert run.models == ("Net",)
    assert run.model().labels == (None,) * 3
    for step in range(3):
        for found, expected in zip(kept(run.model(), step), loop.computed[step, "train"], strict=True):
            np.testing.assert_array_equal(found, expected[[0, 3]])


@pytest.mark.parametrize("way", WAYS)
def test_an_evaluation_is_kept_after_the_fact(way: Any, tmp_path: Path) -> None:
    def evaluate(loop: Loop, step: int) -> None:
        labelled(way, "validation")(loop, step)
        if step == 2:
            with way(loop.model):
                loop.watcher.keep("bad validation")

    loop = Loop(tmp_path, phases=("train", "eval"), keep=Keep("head", when="flagged", before=1))
    run = loop.run(5, evaluate)
    assert run.model("Net (eval)").kept.steps.tolist() == [2, 3]
    assert run.model("Net (eval)").kept_at(3).reasons == ("bad validation",)
    assert not len(run.model("Net").kept.steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "options", "expected"),
    [
        pytest.param(("one", "two"), {}, "one two one two one two", id="two labels"),
        pytest.param(("one", "two", "three"), {}, "one two three one two three", id="three labels"),
        pytest.param(("one", "two"), {"log_freq": PerLabel(every=2)}, "one two one two one two", id="a schedule"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*labels take turns")
def test_evaluations_at_one_step_take_turns(
    labels: tuple[str, ...], options: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    run = Loop(tmp_path, phases=("train", "eval"), **options).run(6, labelled(in_eval_mode, *labels, passes=2))
    assert " ".join(map(str, run.model("Net (eval)").kept.labels)) == expected


def test_an_evaluation_whose_turn_it_is_and_that_does_not_come_is_waited_for_once() -> None:
    turns, recorded = EvaluationTurns(), []
    for step, labels in enumerate([("a", "b"), ("a",), ("a",), ("a", "b"), ("b",)]):
        for label in labels:
            if turns.takes(step, label):
                turns.note(step, label)
                recorded.append((step, label))
    assert recorded == [(0, "a"), (2, "a"), (3, "a"), (4, "b")]


@pytest.mark.slow
def test_evaluations_have_a_quarter_of_the_space_and_a_resumed_run_counts_each_for_itself(tmp_path: Path) -> None:
    def sessions(count: int) -> Run:
        for _ in range(count):
            loop = Loop(tmp_path, phases=("train", "eval"), keep=Keep("head", megabytes=0.04))
            run = loop.run(16, labelled(in_eval_mode, "validation"))
        return run

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sessions(4)
    sizes = dict.fromkeys(run.models, 0)
    for file in Path(run.path, "plugins", "torchgraph", "tensors").glob("*.tgraph"):
        sizes["Net (eval)" if b"Net (eval)" in file.read_bytes() else "Net"] += file.stat().st_size
    assert 8_000 < sizes["Net (eval)"] <= 10_000
    assert 16_000 < sizes["Net"] <= 30_000
