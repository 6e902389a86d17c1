"""What a segment says of its place in the record, by which what is missing and what is foreign is noticed.

Each segment of a session says which part of it the file is, and how the file of the part before was left. Each record
has a mark of its session. So a reader can tell that a file is missing or was cut off, also where the cut is between two
records, and that records are another session's.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from torchgraph_explorer.record import record_pb2 as pb


class Extent(NamedTuple):
    """How much of a session was written up to some moment.

    Attributes:
        number: Of its latest file, in the folder.
        part: Of that file, among those of the session there.
        size: Bytes of that file.
    """

    number: int
    part: int
    size: int

    @classmethod
    def of(cls, message: pb.Extent) -> Extent:
        """What `message` was made of."""
        return cls(message.number, message.part, message.size)

    def message(self) -> pb.Extent:
        """The message that is written."""
        return pb.Extent(number=self.number, part=self.part, size=self.size)


class Place(NamedTuple):
    """The place of a segment that is begun.

    Attributes:
        number: As in `Extent`.
        part: Likewise.
        before: The part before, as it was left; None without, or if it is known to be gone.
        run: Id of the session that began the run; empty if it is not known.
    """

    number: int
    part: int = 0
    before: Extent | None = None
    run: str = ""


def mark_of(session: str) -> int:
    """What every record of the session with this id has in its head."""
    return crc32(session.encode())
