"""A block of logged scalars and notes, as a record: docs/format.md, Body of a block of scalars."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.printable import LONGEST_TEXT, printable
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.limits import LAST_STEP, LOGGED_AT_ONCE, moment
from torchgraph_explorer.schema import Logged, StepNote

COLUMNS = (("steps", "<i8"), ("times", "<f8"), ("values", "<f8"), ("name", "<u4"))
"""The blocks of the body, in order, with the type of their entries."""

VALUE_BYTES = 28
"""How many bytes a value takes in all blocks."""


def encode_logged(logged: Logged) -> tuple[pb.Logged, bytes]:
    """The head and the body of the record."""
    body = b"".join(getattr(logged, name).astype(kind).tobytes() for name, kind in COLUMNS)
    notes = (
        pb.StepNote(step=note.step, time=note.time, text=printable(note.text, most=LONGEST_TEXT, lines=True))
        for note in logged.notes
    )
    names, labels = map(printable, logged.names), (printable(label or "") for label in logged.labels)
    return pb.Logged(names=names, labels=labels, values=len(logged.values), check=crc32(body), notes=notes), body


def decode_logged(head: pb.Logged, body: bytes) -> Logged:
    """What the record holds.

    Raises:
        DamageError: The body does not have its check, or something in it is out of range.
    """
    if crc32(body) != head.check:
        raise DamageError("its check is wrong")
    columns: dict[str, npt.NDArray[np.generic]] = {}
    offset = 0
    for name, kind in COLUMNS:
        columns[name] = np.frombuffer(body, kind, head.values, offset)
        offset += columns[name].nbytes
    if len(head.labels) not in {0, len(head.names)}:
        raise DamageError(f"it has {len(head.labels)} labels for {len(head.names)} scalars")
    labels, notes = tuple(label or None for label in head.labels), tuple(map(_note, head.notes))
    logged = Logged(names=tuple(head.names), labels=labels, notes=notes, **columns)  # type: ignore[arg-type]
    _require_in_range(logged)
    return logged


def body_bytes(head: pb.Logged) -> int:
    """The size that the body must have.

    Raises:
        DamageError: The record has more values than one may.
    """
    if head.values > LOGGED_AT_ONCE:
        raise DamageError(f"it has {head.values:,} values, more than a record may")
    return VALUE_BYTES * int(head.values)


def _require_in_range(logged: Logged) -> None:
    steps, times = logged.steps, logged.times
    if len(logged.name) and int(logged.name.max()) >= len(logged.names):
        raise DamageError("a value is of a scalar without a name")
    if len(steps) and not 0 <= int(steps.min()) <= int(steps.max()) <= LAST_STEP:
        raise DamageError("a step is out of range")
    for time in (times.min(initial=0.0), times.max(initial=0.0)):  # NaN if any is
        moment(float(time), "time")


def _note(message: pb.StepNote) -> StepNote:
    if message.step > LAST_STEP:
        raise DamageError(f"step is {message.step}")
    return StepNote(message.step, moment(message.time, "time"), message.text)
