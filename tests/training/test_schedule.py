"""Which steps are logged."""

from __future__ import annotations

from inspect import signature

import pytest

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
