"""Where optimizers take turns, steps of each of them are logged, whatever the schedule selects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest
import torch
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.capture.optimizer_turns import MOST_ADDED, OptimizerTurns


def logged(steps: Iterable[str], *, every: int) -> list[int]:
    """The steps that are logged, of which each is made by the optimizers named by its letters, one after the other."""
    turns, found = OptimizerTurns(), []
    for step, optimizers in enumerate(steps):
        is_selected = step % every == 0
        is_logged = is_selected or turns.is_due
        turns.begin_step(is_selected=is_selected, is_logged=is_logged)
        for at, optimizer in enumerate(optimizers):
            turns.update([optimizer], is_another=at == 0)
        if is_logged:
            found.append(step)
    return found


@pytest.mark.parametrize(
    ("steps", "every", "expected"),
    [
        pytest.param("A" * 30, 10, [0, 10, 20], id="one optimizer"),
        pytest.param(["AB"] * 30, 10, [0, 10, 20], id="two in each update"),
        pytest.param("AB" * 21, 10, [0, 3, 10, 20, 21, 30, 40, 41], id="in turn"),
        pytest.param("AB" * 15, 7, [0, 3, 7, 14, 21, 28], id="in turn, and selected in turn"),
        pytest.param("ABC" * 14, 9, [0, 4, 5, 9, 18, 27, 28, 29, 36], id="three in turn"),
        pytest.param("AAAAAB" * 11, 12, [0, 11, 12, 24, 29, 36, 48, 53, 60], id="five of one for each of another"),
        pytest.param("A" * 15 + "B" * 15, 10, [0, 10, 20], id="one after the other"),
    ],
)
def test_each_optimizer_has_a_step_among_as_many_selected_ones_as_take_turns(
    steps: Iterable[str], every: int, expected: list[int]
) -> None:
    assert logged(steps, every=every) == expected


def test_few_steps_are_added_where_no_turn_can_be_foreseen() -> None:
    random = Random(0)
    found = logged([random.choice("ABCDEFGH") for _ in range(5_000)], every=100)
    assert len(found) <= 50 * (1 + MOST_ADDED)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)


def in_turn(log_freq: int | Callable[[int], bool]) -> list[int]:
    """The steps that are recorded of two parts that learn in turn, in 12 updates."""
    model, heard = Pair(), Listening()
    optimizers = [(part, torch.optim.SGD(part.parameters(), lr=0.1)) for part in (model.one, model.other)]
    with watch(model, backend=heard, log_freq=log_freq, verbose=False):
        for _ in range(6):
            for part, optimizer in optimizers:
                optimizer.zero_grad()
                part(torch.randn(3, 4)).square().mean().backward()
                optimizer.step()
    return [frame.step for frame in heard.frames]


def test_both_of_two_parts_that_learn_in_turn_are_recorded() -> None:
    assert in_turn(4) == [0, 3, 4, 8, 9]


def test_no_step_is_added_where_the_user_selects_each() -> None:
    assert in_turn(lambda step: step % 4 == 0) == [0, 4, 8]
