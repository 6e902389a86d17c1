"""How steps ended, and which passes belonged to them: in the head of a frame, and in the index of frames."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import NamedTuple, cast

import numpy as np

from torchgraph_explorer.printable import printable
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.limits import OPTIMIZER_NAME, OPTIMIZERS, PASSES, STEP_KINDS
from torchgraph_explorer.schema import StepEnd, StepFacts

_ENDS = MappingProxyType(
    {
        "update": pb.Frame.UPDATE,
        "skipped": pb.Frame.SKIPPED,
        "pass": pb.Frame.PASS,
        "mark": pb.Frame.MARK,
        "unfinished": pb.Frame.UNFINISHED,
    }
)
_NAME = 200
"""Characters of an optimizer's name that are written."""

_DIGITS = 18
"""The most digits of the number in an optimizer's name that is not ours."""

_END_NAMES = MappingProxyType({number: name for name, number in _ENDS.items()})


class StepKind(NamedTuple):
    """What many steps of a model have in common.

    Attributes:
        end: As `StepFacts.end`.
        optimizers: As `StepFacts.optimizers`.
    """

    end: StepEnd
    optimizers: tuple[str, ...]


def encode_facts(head: pb.Frame, facts: StepFacts | None) -> None:
    """Write `facts` into the head of their frame."""
    if facts is None:
        return
    head.end = _ENDS[facts.end]
    head.passes, head.recorded_passes = facts.passes, facts.recorded_passes
    head.optimizers.extend(printable(name, most=_NAME) for name in facts.optimizers[:OPTIMIZERS])


def in_order(optimizers: Iterable[str]) -> tuple[str, ...]:
    """Each of the names once, by class and number: `Adam`, `Adam #2`, `Adam #10`, `SGD`."""

    def place(name: str) -> tuple[str, int, str]:
        of_class, _, number = name.partition(" #")
        return of_class, int(number) if number.isdecimal() and number.isascii() and len(number) < _DIGITS else 1, name

    return tuple(sorted(set(optimizers), key=place))


class StepKinds:
    """The kinds of a model's steps, numbered from 0.

    Attributes:
        kinds: By number. Only grows.
    """

    def __init__(self) -> None:
        self.kinds: list[StepKind] = []
        self._numbers: dict[StepKind, int] = {}

    def entry(self, head: pb.Frame) -> tuple[int, int, int]:
        """The number of a frame's kind, and its `passes` and `recorded_passes`.

        -1, 0 and 0 if they are not known, by this release, or cannot be right.
        """
        number = self._number(head) if _is_plausible(head) else -1
        return (-1, 0, 0) if number < 0 else (number, head.passes, head.recorded_passes)

    def facts(self, entry: np.void) -> StepFacts | None:
        """The facts of a frame that is an entry of `steps.index.FRAME`; None if they are not known."""
        if entry["kind"] < 0:
            return None
        kind = self.kinds[entry["kind"]]
        return StepFacts(kind.end, int(entry["passes"]), int(entry["recorded_passes"]), kind.optimizers)

    def of_optimizer(self, optimizer: str) -> list[int]:
        """The numbers of the kinds whose optimizers include `optimizer`."""
        return [number for number, kind in enumerate(self.kinds) if optimizer in kind.optimizers]

    def _number(self, head: pb.Frame) -> int:
        kind = StepKind(cast("StepEnd", _END_NAMES[head.end]), tuple(head.optimizers))
        known = self._numbers.get(kind)
        if known is None and len(self.kinds) < STEP_KINDS:
            known = self._numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
        return -1 if known is None else known


def _is_plausible(head: pb.Frame) -> bool:
    return (
        head.end in _END_NAMES
        and head.recorded_passes <= head.passes <= PASSES
        and len(head.optimizers) <= OPTIMIZERS
        and all(0 < len(name) <= OPTIMIZER_NAME for name in head.optimizers)
    )
