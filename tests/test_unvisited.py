"""Plain objects of ours that Python's garbage collector does not visit."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
import torch
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.schema import Call, Edge, Module, Node, TensorInfo
from torchgraph_explorer.unvisited import Unvisited, unvisited

INFO = TensorInfo("input[0]", (2, 3), "float32", requires_grad=True)
VALUES = [
    INFO,
    Module("a", "ReLU", "torch.nn.ReLU", (), (), 0, 0, 0),
    Call("a", 0, None, (INFO,), ()),
    Node("call", None, call=0),
    Edge(0, 1, gradient=True),
]


class Held:
    """An object that can be referred to weakly."""


class Holder(Unvisited):
    """Holds one."""

    __slots__ = ("held",)

    def __init__(self, held: Held) -> None:
        self.held = held
        self.__post_init__()


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_the_collector_visits_no_part_of_a_graph(value: Unvisited) -> None:
    assert not gc.is_tracked(value)
    assert not gc.is_tracked(replace(value))  # type: ignore[type-var]  # each is a data class
    assert replace(value) == value  # type: ignore[type-var]


def test_what_is_not_visited_ends_with_the_last_reference_to_it() -> None:
    held = Held()
    end, holder = weakref.ref(held), Holder(held)
    del held
    assert not gc.is_tracked(holder)
    assert end() is not None
    del holder
    assert end() is None


@pytest.mark.parametrize("value", ["text", 1.5, None, (), frozenset(), Held], ids=repr)
def test_what_the_collector_never_visits_is_left_as_it_is(value: object) -> None:
    assert unvisited(value) is value


def test_a_traced_step_makes_few_objects_a_call_that_the_collector_visits() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(100)))
    data = torch.randn(2, 4)
    model(data)
    with watch(model, backend=Listening(), log_freq=1, verbose=False):
        gc.collect()
        before = len(gc.get_objects())
        loss = model(data).sum()
        more = len(gc.get_objects()) - before
        loss.backward()
    assert more < 14 * 301  # 12 a call, most of them torch's; 23 if the collector visits what is ours, too
