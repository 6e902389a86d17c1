"""Objects that a logged step makes do not grow old in Python's garbage collector."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest
import torch
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.capture.young_garbage import MOST_YOUNG

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="From Python 3.14 on, the collector searches everything bit by bit."
)

CALLS, STEPS = 200, 40
"""In a step of so many calls, the youngest objects are searched several times, and older ones at half of the steps."""


class Ring:
    """Garbage that only the collector ends: it refers to itself."""

    def __init__(self) -> None:
        self.ring = self


def garbage() -> weakref.ref[Ring]:
    return weakref.ref(Ring())


@pytest.fixture
def collector() -> Iterator[None]:
    """The collector comes by itself at no moment of a test that makes few objects."""
    was_enabled, thresholds = gc.isenabled(), gc.get_threshold()
    gc.collect()
    yield
    gc.set_threshold(*thresholds)
    (gc.enable if was_enabled else gc.disable)()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize(
    ("is_enabled", "log_freq", "young", "is_left"),
    [
        pytest.param(True, 1, 0, False, id="enabled"),
        pytest.param(False, 1, 0, True, id="switched off by the program"),
        pytest.param(True, 2, 0, True, id="a step that is not logged"),
        pytest.param(True, 1, MOST_YOUNG, True, id="so many objects that the program would wait"),
    ],
)
def test_young_garbage_is_collected_before_a_logged_step(
    is_enabled: bool, log_freq: int, young: int, is_left: bool
) -> None:
    model = nn.Linear(2, 2)
    gc.set_threshold(10_000_000)
    (gc.enable if is_enabled else gc.disable)()
    with watch(model, log_freq=log_freq, backend=Listening(), verbose=False):
        model(torch.ones(1, 2)).sum().backward()
        ring = garbage()
        others: list[list[int]] = [[] for _ in range(young)]
        model(torch.ones(1, 2)).sum().backward()
        assert (ring() is not None, len(others)) == (is_left, young)


@pytest.mark.usefixtures("collector")
def test_few_objects_of_a_step_are_there_when_older_ones_are_searched() -> None:
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(CALLS)))
    older: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start" and info["generation"] > 0:
            older.append(len(gc.get_objects(0)) + len(gc.get_objects(1)))

    gc.set_threshold(700, 10, 10)
    with watch(model, log_freq=1, backend=Listening(), verbose=False):
        model(torch.ones(1, 2)).sum().backward()
        gc.callbacks.append(note)
        for _ in range(STEPS):
            model(torch.ones(1, 2)).sum().backward()
        gc.callbacks.remove(note)
    assert median(older) < 2 * CALLS
