"""torch.compile where logged steps stay compiled: `watch(..., compiled="inline")`.

By bytes the same, with a backend that rounds as torch itself does. The logged steps have a compiled form of their own,
so graphs are not counted here but in `test_inline.py`; that none of them breaks where the unwatched one does not is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.compatibility.case import Table, Training, module
from tests.compatibility.cases import compiled
from tests.compatibility.cases.compiled import in_place, with_autograd, wrapped

case = Table("compiled, and logged compiled")

OPTIONS: dict[str, Any] = {**compiled.OPTIONS, "options": {"log_freq": 2, "compiled": "inline"}}


def _inline(*arguments: Any, late: bool = True, **options: Any) -> Training:
    training = compiled.compiled(*arguments, late=late, **options)
    training.counted = _reasons_to_break
    return training


def _reasons_to_break() -> list[str]:
    from torch._dynamo.utils import counters

    return sorted(counters["graph_break"])


@case("the whole model, fullgraph", **OPTIONS)
def _() -> Any:
    return _inline(compiled.net(), with_autograd)


@case("the whole model, compiled and not called before it is watched", **OPTIONS)
def _() -> Any:
    return _inline(compiled.net(), late=False)


@case("in place, fullgraph", **OPTIONS)
def _() -> Any:
    return _inline(compiled.net(), in_place)


@case("a larger module around it", **OPTIONS)
def _() -> Any:
    model = compiled.net()
    larger = module(lambda self, x: self.model(self.first(x)), first=nn.Linear(6, 6), model=model)
    return _inline(larger, watched=model)


@case("a part of the model", **OPTIONS)
def _() -> Any:
    return _inline(compiled.with_part(), compiled.part)


@case("a part of the model in place", **OPTIONS)
def _() -> Any:
    return _inline(compiled.with_part(), compiled.part_in_place)


@case("a model with a graph break", **OPTIONS)
def _() -> Any:
    return _inline(compiled.broken(), lambda model: wrapped(model, fullgraph=False))


@case("batches of varying length", **OPTIONS)
def _() -> Any:
    return _inline(compiled.net(), with_autograd, forward=lambda called, number: called(torch.randn(2 + number, 6)))


@case("evaluation between the steps", **OPTIONS)
def _() -> Any:
    return _inline(compiled.net(), forward=compiled.evaluating)


def twice(called: Any, _number: int) -> Any:
    """Two passes, one after the other."""
    return called(torch.randn(4, 6)) + called(torch.randn(4, 6))


@case(
    "two passes in an update",
    **OPTIONS,
    cannot={"P2": "If a step stays compiled, only its first pass is recorded."},
)
def _() -> Any:
    return _inline(compiled.net(), forward=twice)
