"""A model that has been watched ends when the program lets go of it, without Python's garbage collector."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import Keep, attach, watch


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    train(Net())  # the first optimizer has torch import its compiler, which keeps this frame in a cycle
    was_enabled = gc.isenabled()
    gc.disable()
    yield
    if was_enabled:
        gc.enable()


class Net(nn.Module):
    """A layer that is called twice, and one whose input is attached."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(self.first(x).relu())
        attach(x, self, "hidden")
        result: Tensor = self.last(x)
        return result


def train(model: nn.Module) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()


def train_by_passes(model: nn.Module) -> None:
    for _ in range(3):
        model(torch.ones(2, 3)).sum().backward()


def train_and_evaluate(model: nn.Module) -> None:
    train(model)
    model.eval()
    with torch.no_grad():
        model(torch.ones(2, 3))
    model.train()
    train(model)


Train = Callable[[nn.Module], None]

WAYS: dict[str, tuple[Train, dict[str, Any]]] = {
    "defaults": (train, {}),
    "every second step": (train, {"log_freq": 2}),
    "no optimizer": (train_by_passes, {}),
    "tensors kept whole": (train, {"keep": Keep("*", ":input", "*.weight")}),
    "costs of calls": (train, {"log": ["io", "params", "params_grad", "io_grad", "cost"]}),
    "evaluations": (train_and_evaluate, {"phases": ("train", "eval")}),
}


@pytest.mark.parametrize(("train", "options"), WAYS.values(), ids=list(WAYS))
def test_a_watched_model_ends_when_it_is_let_go_of(train: Train, options: dict[str, Any], tmp_path: Path) -> None:
    model = Net()
    with watch(model, **{"log_freq": 1, "backend": "record", "logdir": tmp_path, "verbose": False, **options}):
        train(model)
    left = weakref.ref(model)
    del model
    assert left() is None


def test_a_step_that_is_over_holds_no_module(tmp_path: Path) -> None:
    model = Net()
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, verbose=False):
        train(model)
        removed = weakref.ref(model.last)
        model.last = nn.Linear(3, 1)
        train(model)
        assert removed() is None


def test_an_update_that_fails_keeps_nothing_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    def update(model: nn.Module) -> tuple[weakref.ref[Tensor], weakref.ref[torch.optim.Optimizer]]:
        batch, optimizer = torch.ones(2, 3), torch.optim.SGD(model.parameters(), lr=0.1)
        model(batch).sum().backward()
        with monkeypatch.context() as patch, suppress(RuntimeError):
            patch.setattr(sys.modules["torch.optim.sgd"], "sgd", fail)
            optimizer.step()
        return weakref.ref(batch), weakref.ref(optimizer)

    model = Net()
    with watch(model, log_freq=10, backend=Listening(), verbose=False):
        batch, optimizer = update(model)
        gc.collect()  # an exception and the frames that it has left are a cycle
        assert batch() is None
        assert optimizer() is None
        train(model)
