"""A watched model may be as deep as an unwatched one."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.compatibility.case import module
from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.capture.recursion_room import LARGE, RecursionRoom


def itself() -> Any:
    def forward(self: Any, x: Tensor, levels: int) -> Tensor:
        return torch.tanh(self(x, levels - 1)) if levels else self.a(x)

    return module(forward, a=nn.Linear(2, 2))


def most_levels(model: Any) -> int:
    """How deep `model` may call itself, less what a test framework needs meanwhile."""
    works, fails = 1, 2000
    while fails - works > 1:
        levels = (works + fails) // 2
        try:
            model(torch.randn(2, 2), levels)
            works = levels
        except RecursionError:
            fails = levels
    return works - 2


@pytest.mark.parametrize("options", [{"log_freq": 1}, {"log_freq": 50}, {"compiled": "inline"}], ids=str)
def test_a_model_may_call_itself_as_deep_as_unwatched(options: dict[str, Any]) -> None:
    model, heard = itself(), Listening()
    levels = most_levels(model)
    with watch(model, backend=heard, verbose=False, **options):
        for _ in range(3):
            model(torch.randn(2, 2), levels).sum().backward()
    assert len(heard.graphs[0].calls) == levels + 2


def test_the_limit_is_as_before_once_no_model_is_watched() -> None:
    before, one, another = sys.getrecursionlimit(), nn.Linear(2, 2), nn.Linear(2, 2)
    with watch(one, backend="none", verbose=False):
        with watch(another, backend="none", verbose=False):
            pass
        assert sys.getrecursionlimit() > before
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("limit", [1500, LARGE])
def test_a_limit_of_the_users_stays(limit: int) -> None:
    before, room = sys.getrecursionlimit(), RecursionRoom()
    try:
        if limit == LARGE:
            sys.setrecursionlimit(limit)
        room.hold(room)
        sys.setrecursionlimit(limit)
        room.release(room)
        assert sys.getrecursionlimit() == limit
    finally:
        sys.setrecursionlimit(before)


def test_a_limit_that_is_too_low_where_it_is_released_is_put_back_later() -> None:
    def release_at(depth: int) -> None:
        if depth:
            release_at(depth - 1)
        else:
            room.release(room)

    before, room = sys.getrecursionlimit(), RecursionRoom()
    room.hold(room)
    release_at(before)
    assert sys.getrecursionlimit() > before
    room.release(room)
    assert sys.getrecursionlimit() == before
