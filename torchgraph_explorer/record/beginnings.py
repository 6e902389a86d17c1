"""The beginning of a segment file: whose it is, and which run it is of."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.folder import TENSORS, ReadAt, SegmentFile, reading, segment_files, segment_number
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.format.messages import session_value
from torchgraph_explorer.record.limits import BEGINNING_BYTES
from torchgraph_explorer.record.scan import Scanner, require_version
from torchgraph_explorer.schema import Session

_RECORDS = 3
"""Records to look at for a segment's session, which is written twice: one of them may be damaged."""

_TRIES, _SECONDS_BETWEEN = 20, 0.01
"""How often, and how long after the last time, the beginning of a file is looked for that was created just now."""


class Beginning(NamedTuple):
    """What a segment file says at its beginning.

    Attributes:
        session: Who writes it.
        segment: The message, as it was written.
    """

    session: Session
    segment: pb.Segment


def beginning(read: ReadAt, size: int, source: str) -> Beginning | None:
    """The beginning of a file of `size` bytes, which errors call `source`; None if it cannot be read, or not yet.

    Raises:
        RecordError: A newer release wrote it, or it cannot be read.
    """
    scanner, size = Scanner(source), min(size, BEGINNING_BYTES)
    for _ in range(_RECORDS):
        found = scanner.next(read, size)
        if found is not None and found.head is not None and found.head.HasField("segment"):
            require_version(found.head.segment.version, source)
            with suppress(DamageError):
                return Beginning(session_value(found.head.segment.session), found.head.segment)
    return None


def models_of(sessions: Iterable[Session]) -> tuple[str, ...]:
    """Names of the models that `sessions` are of: in the order in which they were watched, not in which they wrote.

    A model's evaluations come after its training, which began at the same time.
    """
    began: dict[str, tuple[float, bool]] = {}
    for session in sessions:
        this = (session.created, session.is_of_evaluations)
        began[session.model] = min(began.get(session.model, this), this)
    return tuple(sorted(began, key=began.__getitem__))


def strangers(files: Sequence[tuple[str, pb.Segment]]) -> dict[str, str]:
    """Which of `files`, by name and in order, do not belong in a run's folder, each with the reason in words.

    Of several runs, it is that of which it has most files; of equally many, that of the first one.
    """
    found = {
        name: f"it holds kept tensors, which belong in the folder {TENSORS}" for name, at in files if at.of_tensors
    }
    own = [(name, segment) for name, segment in files if name not in found]
    found |= _of_other_runs(own)
    return found | _replaced([(name, segment) for name, segment in own if name not in found])


def _of_other_runs(files: Sequence[tuple[str, pb.Segment]]) -> dict[str, str]:
    runs = {name: segment.run for name, segment in files if segment.run}
    if files and not files[0][1].run and (first := _run_of(files[0][1])):
        runs = {files[0][0]: first} | runs
    if len(set(runs.values())) <= 1:
        return {}
    [(run, _)] = Counter(runs.values()).most_common(1)
    one = next(name for name in runs if runs[name] == run)
    return {name: f"it is of another run than {one}" for name in runs if runs[name] != run}


def _replaced(files: Sequence[tuple[str, pb.Segment]]) -> dict[str, str]:
    """Those that lie where a file of another session was, which is not in the folder any more."""
    parts = {(segment.session.id, segment.part) for _, segment in files}
    sizes = Counter(segment.session.id for _, segment in files)
    names = {segment_number(name): (name, segment.session.id) for name, segment in files}
    found: dict[str, str] = {}
    for later, segment in files:
        writer = segment.session.id
        name, session = names.get(segment.before.number, ("", writer))
        is_gone = segment.HasField("before") and (writer, segment.before.part) not in parts
        if is_gone and session != writer and sizes[session] < sizes[writer]:  # else `later` may be the foreign one
            found[name] = f"it lies in the place of another file, which {later} continues"
    return found


def _run_of(segment: pb.Segment) -> str:
    """The run that a segment is of; empty if it does not say. The first one may be of a release that did not."""
    return segment.run or (segment.session.id if segment.number == 0 else "")


def run_in(folder: Path, below: int) -> str:
    """The run in `folder`, as segments with lower numbers than `below` say; empty if they do not."""
    for _ in range(_TRIES):
        files = [file for file in segment_files(folder) if file.number < below]
        if not files or (first := _first(files[:1])) is not None:
            break
        time.sleep(_SECONDS_BETWEEN)  # another writer has created it, and writes its beginning now
    else:
        first = _first(files[1:])
    return "" if not files or first is None else _run_of(first)


def _first(files: Iterable[SegmentFile]) -> pb.Segment | None:
    for file in files:
        with suppress(RecordError), reading(file.path) as read:
            found = beginning(read, file.size, str(file.path))
            if found is not None and not found.segment.of_tensors:  # else somebody has put it there
                return found.segment
    return None
