"""The beginning of a segment file: whose it is, and which run it is of."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.folder import ReadAt, SegmentFile, reading, segment_files
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


class FirstRun:
    """Which run the first segments of a folder are of: those of another one were put there later.

    Attributes:
        run: Id of the session that began the run; empty while it is not known.
        name: The file that says so.
    """

    def __init__(self) -> None:
        self.run = self.name = ""
        self._has_begun = False

    def is_other(self, segment: pb.Segment, name: str) -> bool:
        """Whether the next file, called `name`, is of another run than the files before it."""
        if not self.run:
            self.run, self.name = segment.run if self._has_begun else _run_of(segment), name
        self._has_begun = True
        return bool(self.run and segment.run) and segment.run != self.run


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
            if (found := beginning(read, file.size, str(file.path))) is not None:
                return found.segment
    return None
