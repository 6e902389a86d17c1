"""Where NaN and infinity are: in which calls of a graph at each step, at which steps of a record, and where first."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.nonfinite import Flags
from torchgraph_explorer.record.origin import first_of
from torchgraph_explorer.schema import Frame, ModuleGraph, Node, Series
from torchgraph_wandb.strips import HAS_INFINITY, HAS_NAN

VALUE_NAN, VALUE_INFINITY, GRADIENT_NAN, GRADIENT_INFINITY, INSIDE = 1, 2, 4, 8, 16
"""Flags of a node at a step: what its values and its gradients hold, and that something inside holds any."""

OWN = VALUE_NAN | VALUE_INFINITY | GRADIENT_NAN | GRADIENT_INFINITY

SECONDS = 3.0
"""That a snapshot looks for NaN and infinity in steps which it does not show; the next one goes on."""

FRAMES_AT_ONCE = 128

Bits = npt.NDArray[np.uint8]
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Marks:
    """What is marked at each of `steps` steps.

    Attributes:
        calls: `[steps]` by index in `ModuleGraph.calls`.
        tensors: Likewise by (module, call, role, path), for inputs, outputs and attached tensors.
    """

    steps: int
    calls: Mapping[int, Bits]
    tensors: Mapping[tuple[str, int | None, str, str], Bits]

    def of(self, graph: ModuleGraph, node: Node) -> Bits:
        """The flags of a node."""
        nothing = np.zeros(self.steps, dtype=np.uint8)
        if node.call is not None:
            return self.calls.get(node.call, nothing)
        if node.inside is None or node.tensor is None:
            return nothing
        call = graph.calls[node.inside]
        return self.tensors.get((call.module, call.call, node.kind, node.tensor.path), nothing)


def marks(graph: ModuleGraph, series: Sequence[Series], flags: Bits) -> Marks:
    """What is marked in `graph` where `flags`, `[series, steps]` as `Strips` has them, say so."""
    steps = flags.shape[1]
    calls: dict[int, Bits] = {}
    tensors: dict[tuple[str, int | None, str, str], Bits] = {}
    numbers = _numbers(graph)
    for number in np.flatnonzero((flags & (HAS_NAN | HAS_INFINITY)).any(axis=1)).tolist():
        one = series[number]
        bits = _bits(flags[number], is_value=one.kind == "value")
        _add(tensors, (one.module, one.call, one.role, one.path), bits)
        for call in numbers.get((one.module, one.call), ()):
            _add(calls, call, bits if one.role != "attached" else _inside(bits))
            _mark_parents(calls, graph, call=call, bits=bits)
    return Marks(steps, calls, tensors)


def _numbers(graph: ModuleGraph) -> dict[tuple[str, int | None], list[int]]:
    """Which calls a series may be of: one, or with None all those of a module."""
    found: dict[tuple[str, int | None], list[int]] = {}
    for number, call in enumerate(graph.calls):
        found.setdefault((call.module, call.call), []).append(number)
        found.setdefault((call.module, None), []).append(number)
    return found


def _bits(flags: Bits, *, is_value: bool) -> Bits:
    own = flags & (HAS_NAN | HAS_INFINITY)
    return (own if is_value else own * 4).astype(np.uint8)


def _inside(bits: Bits) -> Bits:
    return np.where(bits > 0, INSIDE, 0).astype(np.uint8)


def _add(found: dict[Key, Bits], key: Key, bits: Bits) -> None:
    known = found.get(key)
    found[key] = bits if known is None else known | bits


def _mark_parents(calls: dict[int, Bits], graph: ModuleGraph, *, call: int, bits: Bits) -> None:
    around = graph.calls[call].parent
    while around is not None:
        _add(calls, around, _inside(bits))
        around = graph.calls[around].parent


@dataclass(frozen=True, slots=True)
class Searched:
    """How far a record was searched.

    Attributes:
        bad: Of each frame that was looked at, whether it holds NaN or infinity.
        last_step: Of the last of those; -1 without any.
    """

    bad: Flags
    last_step: int = -1

    @property
    def first(self) -> int | None:
        """The first frame that does; None while there is none."""
        return int(self.bad.argmax()) if self.bad.any() else None


NOTHING = Searched(np.zeros(0, dtype=np.bool_))


def search_on(model: ModelRecord, known: Searched, *, seconds: float = SECONDS) -> Searched:
    """`known` with the frames that have come since, as far as can be looked at in so many seconds.

    It is begun anew if the record is another one.
    """
    steps, bad = model.steps, known.bad
    if len(bad) > len(steps) or (len(bad) and int(steps[len(bad) - 1]) != known.last_step):
        bad = bad[:0]
    until = time.monotonic() + seconds
    while len(bad) < len(steps) and time.monotonic() < until:
        more = model.nonfinite(len(bad), min(len(bad) + FRAMES_AT_ONCE, len(steps)))
        bad = np.concatenate((bad, more))
    return Searched(bad, int(steps[len(bad) - 1]) if len(bad) else -1)


def origin(model: ModelRecord, frame: Frame, graph: ModuleGraph) -> Series | None:
    """Which of the series with NaN or infinity at `frame` comes first in the order of execution."""
    return first_of(model.nonfinite_series(frame), graph)
