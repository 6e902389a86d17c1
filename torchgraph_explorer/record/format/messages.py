"""Sessions, series and their ends as protobuf messages, and back. Graphs are in `graphs/encoding.py`."""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple, cast

from torchgraph_explorer.printable import LONGEST_TEXT, printable, printable_path
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.limits import NOTE_TEXT, moment
from torchgraph_explorer.record.steps.training import not_finite_message, not_finite_value
from torchgraph_explorer.schema import Finished, Kind, Noted, Role, Series, SeriesKey, Session

ROLES = MappingProxyType(
    {
        "input": pb.Series.INPUT,
        "output": pb.Series.OUTPUT,
        "param": pb.Series.PARAM,
        "attached": pb.Series.ATTACHED,
        "edge": pb.Series.EDGE,
    }
)
KINDS = MappingProxyType(
    {
        "value": pb.Series.VALUE,
        "grad_norm": pb.Series.GRAD_NORM,
        "grad": pb.Series.GRAD,
        "optimizer_grad": pb.Series.OPTIMIZER_GRAD,
        "update": pb.Series.UPDATE,
        "update_ratio": pb.Series.UPDATE_RATIO,
        "time": pb.Series.TIME,
        "memory": pb.Series.MEMORY,
    }
)
_MOST_SAMPLED = 2**63
"""No tensor has as many elements, so a larger `sample_n` means the same."""

ROLE_NAMES = MappingProxyType({number: name for name, number in ROLES.items()})
KIND_NAMES = MappingProxyType({number: name for name, number in KINDS.items()})


class SeriesValue(NamedTuple):
    """A series as a record defines it: its id in the session, its part, -1 without, and its key."""

    id: int
    part: int
    key: SeriesKey


def session_message(session: Session) -> pb.Session:
    """`session` as it stands in every segment."""
    return pb.Session(
        id=session.id,
        model=printable(session.model),
        class_name=printable(session.class_name),
        created=session.created,
        host=printable(session.host),
        pid=session.pid,
        versions={name: printable(version) for name, version in session.versions.items()},
        log=session.log,
        log_freq=printable(session.log_freq),
        sample_n=None if session.sample_n is None else min(session.sample_n, _MOST_SAMPLED),
        bins=session.bins,
        reject_outlier_proportion=float(session.reject_outlier_proportion),
        clock=None if session.clock is None else printable(session.clock),
        rank=session.rank,
        world_size=session.world_size,
        notes=(printable(note, most=LONGEST_TEXT, lines=True) for note in session.notes),
        processes=session.processes,
    )


def session_value(message: pb.Session) -> Session:
    """The session that `message` was made of.

    Raises:
        DamageError: Its `created` or `reject_outlier_proportion` is out of range.
    """
    share = message.reject_outlier_proportion
    if not 0 <= share <= 1:
        raise DamageError(f"reject_outlier_proportion is {share!r}, which is not a share")
    return Session(
        id=message.id,
        model=message.model,
        class_name=message.class_name,
        created=moment(message.created, "created"),
        host=message.host,
        pid=message.pid,
        versions=dict(message.versions),
        log=tuple(message.log),
        log_freq=message.log_freq,
        sample_n=message.sample_n if message.HasField("sample_n") else None,
        bins=message.bins,
        reject_outlier_proportion=share,
        clock=message.clock if message.HasField("clock") else None,
        rank=message.rank if message.HasField("rank") else None,
        world_size=max(message.world_size, 1),
        notes=tuple(message.notes),
        processes=message.processes,
    )


def series_message(series: tuple[Series, ...]) -> pb.SeriesAdded:
    """New series of a session."""
    return pb.SeriesAdded(
        series=[
            pb.Series(
                id=one.id,
                module=printable_path(one.module),
                call=one.call,
                role=ROLES[one.role],
                path=printable(one.path),
                kind=KINDS[one.kind],
                part=one.part,
            )
            for one in series
        ]
    )


def series_values(message: pb.SeriesAdded) -> tuple[list[SeriesValue], list[int]]:
    """The series that `message` was made of; and the ids of those of unknown roles or kinds, which are left out.

    A later release may know more roles and kinds.
    """
    known: list[SeriesValue] = []
    unknown: list[int] = []
    for one in message.series:
        role, kind = ROLE_NAMES.get(one.role), KIND_NAMES.get(one.kind)
        if role is None or kind is None:
            unknown.append(one.id)
            continue
        call = one.call if one.HasField("call") else None
        part = one.part if one.HasField("part") else -1
        known.append(SeriesValue(one.id, part, (one.module, call, cast("Role", role), one.path, cast("Kind", kind))))
    return known, unknown


def noted_message(noted: Noted) -> pb.Noted:
    """What is not recorded, as found."""
    return pb.Noted(time=noted.time, text=printable(noted.text, most=LONGEST_TEXT, lines=True))


def noted_value(message: pb.Noted) -> Noted:
    """The note that `message` was made of.

    Raises:
        DamageError: Its `time` is out of range, or its text is too long.
    """
    if len(message.text) > NOTE_TEXT:
        raise DamageError(f"a note has {len(message.text):,} characters")
    return Noted(moment(message.time, "time"), message.text)


def finished_message(finished: Finished) -> pb.Finished:
    """The orderly end of a session."""
    notes = (printable(note, most=LONGEST_TEXT, lines=True) for note in finished.notes)
    not_finite = not_finite_message(finished.not_finite)
    return pb.Finished(time=finished.time, notes=notes, steps=finished.steps, not_finite=not_finite)


def finished_value(message: pb.Finished) -> Finished:
    """The end that `message` was made of.

    Raises:
        DamageError: Its `time` is out of range.
    """
    steps = message.steps if message.HasField("steps") else None
    return Finished(moment(message.time, "time"), tuple(message.notes), steps, not_finite_value(message))
