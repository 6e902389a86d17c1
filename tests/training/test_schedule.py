"""Which steps are logged."""

from __future__ import annotations

from inspect import signature

import pytest
import torch
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.training.schedule import schedule, schedule_name


@pytest.mark.parametrize(
    ("log_freq", "logged"),
    [
        pytest.param(1, list(range(10)), id="every"),
        pytest.param(4, [0, 4, 8], id="each fourth"),
        pytest.param(lambda step: step in (2, 3), [2, 3], id="predicate"),
        pytest.param("log", list(range(10)), id="log, at first"),
    ],
)
def test_a_schedule_selects_its_steps(log_freq: object, logged: list[int]) -> None:
    wants = schedule(log_freq)  # type: ignore[arg-type]
    assert [step for step in range(10) if wants(step)] == logged


@pytest.mark.parametrize(
    ("log_freq", "logged"),
    [
        pytest.param(50, [0, 50, 100], id="each 50th"),
        pytest.param(signature(watch).parameters["log_freq"].default, [0, 1, 10, 25, 50, 100], id="the default"),
    ],
)
def test_the_default_alone_has_early_steps(log_freq: object, logged: list[int]) -> None:
    wants = schedule(log_freq)  # type: ignore[arg-type]
    assert [step for step in range(101) if wants(step)] == logged


@pytest.mark.parametrize(
    ("asked", "logged"),
    [
        pytest.param(range(38, 160), [38, 39, 48, 50, 63, 100, 150], id="found before its first pass"),
        pytest.param([0, *range(39, 160)], [0, 39, 40, 49, 50, 64, 100, 150], id="found after it"),
        pytest.param([0, 0, 0, *range(39, 60)], [0, 39, 40, 49, 50], id="asked for before"),
        pytest.param(range(0, 60, 2), [0, 2, 12, 50], id="two updates a pass"),
    ],
)
def test_early_steps_of_the_default_count_from_where_a_training_goes_on(asked: list[int], logged: list[int]) -> None:
    wants = schedule("auto")
    assert sorted({step for step in asked if wants(step)}) == logged


def test_a_training_that_goes_on_from_a_checkpoint_has_early_steps_by_default() -> None:
    model, heard = nn.Linear(3, 1), Listening()

    def train(optimizer: torch.optim.Optimizer, updates: int) -> None:
        for _ in range(updates):
            optimizer.zero_grad()
            model(torch.randn(4, 3)).square().mean().backward()
            optimizer.step()

    before = torch.optim.Adam(model.parameters())
    train(before, 38)
    after = torch.optim.Adam(model.parameters())
    after.load_state_dict(before.state_dict())
    del before
    with watch(model, backend=heard, verbose=False):
        train(after, 13)
    assert [one.step for one in heard.frames] == [38, 39, 48, 50]


@pytest.mark.slow
def test_log_is_ever_sparser() -> None:
    wants = schedule("log")
    logged = [step for step in range(1 << 20) if wants(step)]
    octaves = [sum(1 << i <= step < 2 << i for step in logged) for i in range(20)]
    assert octaves == [1, 2, 4, 8, 16, 32, *[32] * 14]


@pytest.mark.parametrize("wrong", [0, -5, 1.5, True, "often", None], ids=repr)
def test_what_is_no_schedule_is_refused_with_what_is(wrong: object) -> None:
    with pytest.raises(
        OptionError,
        match=r"log_freq=.* Pass a whole number of steps, 1 or more, 'auto', 'log', a PerLabel, or a function",
    ):
        schedule(wrong)  # type: ignore[arg-type]


def test_the_record_names_the_schedule() -> None:
    def now_and_then(step: int) -> bool:
        return step > 3

    assert [schedule_name(50), schedule_name("log"), schedule_name("auto")] == ["50", "log", "auto"]
    assert schedule_name(now_and_then).endswith("now_and_then")
