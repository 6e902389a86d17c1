"""What only the live training knew of a step: in the head of its frame, and in the index of frames.

Names, which seldom change, are apart from the numbers of each step, and are held once for all steps with the same ones.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any, NamedTuple, get_args

from google.protobuf.message import DecodeError

from torchgraph_explorer.printable import printable, printable_path
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError, inflated
from torchgraph_explorer.record.limits import SITUATION_BYTES, SITUATIONS_BYTES, TRAINING_BYTES
from torchgraph_explorer.schema import (
    EqualRows,
    NotFinite,
    NotFiniteOrigin,
    NumberAnswers,
    Operation,
    OperationKind,
    OriginKind,
    ParameterGroup,
    TokenAnswers,
    TrainingFacts,
    Units,
)

_PER_OUTPUT = 4
"""Whole numbers of each output: units, zero, steps, constant."""


_NUMBERS: dict[OperationKind, int] = {
    "view": 0,
    "attention": 3,
    "softmax": 0,
    "single": 1,
    "dropout": 1,
    "position": 0,
    "crosswise": 2,
    "shift": 0,
    "normalised": 4,
    "labels": 4,
    "several": 2,
    "second": 1,
    "copied": 2,
    "ahead": 1,
    "shared": 2,
    "cancelling": 4,
    "flat": 1,
    "over": 1,
    "divergence": 6,
    "weights": 10,
    "hidden": 4,
    "trailing": 4,
    "ends": 4,
    "across": 3,
    "twice": 4,
    "outside": 11,
    "two": 9,
    "sign": 8,
    "binary": 6,
    "unseen": 2,
    "clamp": 1,
    "direction": 2,
    "cleared": 2,
    "late": 2,
    "policy": 3,
    "standardised": 4,
    "part": 2,
    "made": 0,
}
"""How many numbers an operation has."""


def encode_training(head: pb.Frame, facts: TrainingFacts | None) -> None:
    """Write `facts` into the head of their frame."""
    if facts is None:
        return
    head.situation = _situation(
        facts.is_training,
        facts.other_mode,
        tuple(
            (one.optimizer, one.is_decoupled, one.parameters, one.betas or (), one.is_maximising)
            for one in facts.groups
        ),
        facts.leftover,
        facts.without_optimizer,
        facts.frozen_in_optimizer,
        facts.orphans,
        facts.without_gradient,
        facts.remade,
        facts.written,
        tuple((one.module, one.call) for one in facts.units),
        tuple(one.parameter for one in facts.equal_rows),
    )
    head.numbers.CopyFrom(
        pb.TrainingNumbers(
            batch_size=facts.batch_size,
            learning_rates=[_number(one.learning_rate) for one in facts.groups],
            weight_decays=[_number(one.weight_decay) for one in facts.groups],
            gradient_norm=facts.gradient_norm,
            clipped_norm=facts.clipped_norm,
            loss_scale=facts.loss_scale,
            skipped=facts.skipped,
            units=[number for one in facts.units for number in (one.units, one.zero, one.steps, one.constant)],
            spreads=[one.spread for one in facts.units],
            rows=[number for one in facts.equal_rows for number in (one.rows, one.equal)],
            not_finite=not_finite_message(facts.not_finite),
            operations=map(_operation_message, facts.operations),
            tokens=map(_tokens_message, facts.tokens),
            answers=_answers_message(facts.numbers),
            targets=facts.targets or (),
        )
    )


@lru_cache(maxsize=4)  # steps that look at units and those that do not take turns
def _situation(  # noqa: PLR0917  # one for each fact
    is_training: bool,
    other_mode: tuple[str, ...],
    groups: tuple[tuple[str, bool, tuple[str, ...], tuple[float, ...], bool], ...],
    leftover: tuple[str, ...] | None,
    without_optimizer: tuple[str, ...] | None,
    frozen_in_optimizer: tuple[str, ...] | None,
    orphans: tuple[tuple[int, ...], ...],
    without_gradient: tuple[str, ...] | None,
    remade: tuple[str, ...],
    written: tuple[str, ...],
    outputs: tuple[tuple[str, int], ...],
    equal_rows: tuple[str, ...],
) -> bytes:
    """The names of a step's facts, which are usually those of a step before: a serialized `Situation`, compressed."""
    situation = pb.Situation(
        in_eval_mode=not is_training,
        other_mode=_written(other_mode),
        groups=[
            pb.Situation.Group(
                optimizer=printable(optimizer),
                is_decoupled=is_decoupled,
                parameters=_written(names),
                betas=betas,
                is_maximising=is_maximising,
            )
            for optimizer, is_decoupled, names, betas, is_maximising in groups
        ],
        leftover=_names_message(leftover),
        without_optimizer=_names_message(without_optimizer),
        frozen_in_optimizer=_names_message(frozen_in_optimizer),
        orphans=[pb.Situation.Orphan(shape=shape) for shape in orphans],
        without_gradient=_names_message(without_gradient),
        remade=_written(remade),
        written=_written(written),
        outputs=[pb.Situation.Output(module=printable_path(module), call=call) for module, call in outputs],
        equal_rows=_written(equal_rows),
    )
    return zlib.compress(situation.SerializeToString())


def _written(names: Iterable[str]) -> list[str]:
    return [printable_path(name) for name in names]


def _names_message(names: Sequence[str] | None) -> pb.Situation.Names | None:
    return None if names is None else pb.Situation.Names(name=_written(names))


def not_finite_message(one: NotFinite | None) -> pb.TrainingNumbers.NotFinite | None:
    """What was not finite, as a message; None for nothing."""
    if one is None:
        return None
    message = pb.TrainingNumbers.NotFinite(step=one.step, what=printable_path(one.what))
    if one.origin is not None:
        message.origin.MergeFrom(
            pb.TrainingNumbers.NotFinite.Origin(
                kind=one.origin.kind, name=_written(one.origin.names), count=one.origin.count, total=one.origin.total
            )
        )
    return message


def _operation_message(one: Operation) -> pb.TrainingNumbers.Operation:
    return pb.TrainingNumbers.Operation(
        kind=one.kind,
        module=printable_path(one.module),
        call=one.call,
        numbers=one.numbers,
        before=one.before,
        after=one.after,
    )


def _tokens_message(one: TokenAnswers) -> pb.TrainingNumbers.TokenAnswers:
    return pb.TrainingNumbers.TokenAnswers(**{**asdict(one), "path": printable_path(one.path)})


def _answers_message(one: NumberAnswers | None) -> pb.TrainingNumbers.NumberAnswers | None:
    return None if one is None else pb.TrainingNumbers.NumberAnswers(**asdict(one))


def _number(value: float | None) -> float:
    return math.nan if value is None else value


class _Stored(NamedTuple):
    """The facts of one frame.

    Attributes:
        situation: Number of the situation.
        numbers: A serialized `TrainingNumbers`.
    """

    situation: int
    numbers: bytes


class TrainingTable:
    """What was known of the frames of a model, numbered from 0. Only grows, up to a bound."""

    def __init__(self) -> None:
        self._stored: list[_Stored] = []
        self._situations: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._decoded: dict[int, pb.Situation | None] = {}
        self._room, self._room_decoded = TRAINING_BYTES, SITUATIONS_BYTES

    def entry(self, head: pb.Frame) -> int:
        """The number of what is known of a frame; -1 if nothing is, or if there is no room for more."""
        if not head.situation or not head.HasField("numbers"):
            return -1
        numbers = head.numbers.SerializeToString()
        situation = self._numbers.get(head.situation)
        size = len(numbers) + (len(head.situation) if situation is None else 0)
        if size > self._room:
            return -1
        self._room -= size
        if situation is None:
            situation = self._numbers[head.situation] = len(self._situations)
            self._situations.append(head.situation)
        self._stored.append(_Stored(situation, numbers))
        return len(self._stored) - 1

    def facts(self, entry: int) -> TrainingFacts | None:
        """The facts with this number; None if there are none, or if they cannot be right."""
        if entry < 0:
            return None
        stored = self._stored[entry]
        situation = self._situation(stored.situation)
        if situation is None:
            return None
        try:
            numbers = pb.TrainingNumbers.FromString(stored.numbers)
        except DecodeError:
            return None
        return _facts(situation, numbers)

    def _situation(self, number: int) -> pb.Situation | None:
        if number not in self._decoded:
            self._decoded[number] = self._decode(self._situations[number])
        return self._decoded[number]

    def _decode(self, data: bytes) -> pb.Situation | None:
        try:
            content = inflated(data, min(SITUATION_BYTES, self._room_decoded))
            self._room_decoded -= len(content)
            return pb.Situation.FromString(content)
        except (DamageError, DecodeError):
            return None


def _facts(situation: pb.Situation, numbers: pb.TrainingNumbers) -> TrainingFacts | None:
    groups, outputs, parameters = len(situation.groups), len(situation.outputs), len(situation.equal_rows)
    if not (
        len(numbers.learning_rates) == len(numbers.weight_decays) == groups
        and len(numbers.units) == _PER_OUTPUT * outputs
        and len(numbers.spreads) == outputs
        and len(numbers.rows) == 2 * parameters
    ):
        return None
    return TrainingFacts(
        batch_size=_optional(numbers, "batch_size"),
        is_training=not situation.in_eval_mode,
        other_mode=tuple(situation.other_mode),
        groups=tuple(
            ParameterGroup(
                one.optimizer,
                _known(rate),
                _known(decay),
                one.is_decoupled,
                tuple(one.parameters),
                _betas(one),
                one.is_maximising,
            )
            for one, rate, decay in zip(situation.groups, numbers.learning_rates, numbers.weight_decays, strict=True)
        ),
        leftover=_names(situation, "leftover"),
        without_optimizer=_names(situation, "without_optimizer"),
        frozen_in_optimizer=_names(situation, "frozen_in_optimizer"),
        orphans=tuple(tuple(one.shape) for one in situation.orphans),
        without_gradient=_names(situation, "without_gradient"),
        remade=tuple(situation.remade),
        written=tuple(situation.written),
        gradient_norm=_optional(numbers, "gradient_norm"),
        clipped_norm=_optional(numbers, "clipped_norm"),
        loss_scale=_optional(numbers, "loss_scale"),
        skipped=numbers.skipped,
        units=tuple(
            _units(one, numbers.units[_PER_OUTPUT * at : _PER_OUTPUT * (at + 1)], numbers.spreads[at])
            for at, one in enumerate(situation.outputs)
        ),
        equal_rows=tuple(
            EqualRows(name, *numbers.rows[2 * at : 2 * at + 2]) for at, name in enumerate(situation.equal_rows)
        ),
        not_finite=not_finite_value(numbers),
        operations=tuple(made for one in numbers.operations if (made := _operation(one)) is not None),
        tokens=tuple(
            TokenAnswers(one.path, one.positions, one.following, one.same, one.padding) for one in numbers.tokens
        ),
        numbers=_answers(numbers.answers) if numbers.HasField("answers") else None,
        targets=(numbers.targets[0], numbers.targets[1]) if len(numbers.targets) == 2 else None,
    )


def _operation(one: pb.TrainingNumbers.Operation) -> Operation | None:
    """None if it is of a kind that a newer version writes, or lacks numbers."""
    kind = next((kind for kind in get_args(OperationKind) if kind == one.kind), None)
    if kind is None or len(one.numbers) < _NUMBERS[kind]:
        return None
    return Operation(kind, one.module, one.call, tuple(one.numbers), tuple(one.before), tuple(one.after))


def _answers(one: pb.TrainingNumbers.NumberAnswers) -> NumberAnswers:
    return NumberAnswers(one.samples, one.outputs, one.drops, one.below, one.above, one.spread, one.bend, one.rising)


def not_finite_value(holder: pb.TrainingNumbers | pb.Finished) -> NotFinite | None:
    """What was not finite, as the message `holder` has it; None if it has nothing."""
    one = holder.not_finite
    if not holder.HasField("not_finite"):
        return None
    return NotFinite(one.step, one.what, _origin(one.origin) if one.HasField("origin") else None)


def _origin(one: pb.TrainingNumbers.NotFinite.Origin) -> NotFiniteOrigin | None:
    """The origin in `message`; None if it is of a kind that a newer version writes."""
    kind = next((kind for kind in get_args(OriginKind) if kind == one.kind), None)
    return None if kind is None else NotFiniteOrigin(kind, tuple(one.name), one.count, one.total)


def _units(of: pb.Situation.Output, counts: Sequence[int], spread: float) -> Units:
    units, zero, steps, constant = counts
    return Units(of.module, of.call, units, zero, steps, constant, spread)


def _betas(group: pb.Situation.Group) -> tuple[float, float] | None:
    return (group.betas[0], group.betas[1]) if len(group.betas) == 2 else None


def _names(situation: pb.Situation, field: str) -> tuple[str, ...] | None:
    return tuple(getattr(situation, field).name) if situation.HasField(field) else None


def _optional(numbers: pb.TrainingNumbers, field: str) -> Any:
    return getattr(numbers, field) if numbers.HasField(field) else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
