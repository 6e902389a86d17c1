"""Whether a file that grows is still the one that was read: it may have been written over in its place."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from torchgraph_explorer.record.folder import ReadAt, SegmentFile, reading

_BEGINNING, _END = 1 << 10, 1 << 6


class Seen(NamedTuple):
    """A file that only grows, up to `stop`, by the checks of its beginning and of its end there."""

    stop: int = 0
    beginning: int = 0
    end: int = 0

    @classmethod
    def of(cls, read: ReadAt, stop: int) -> Seen:
        """What is remembered of the first `stop` bytes of the file as it is now."""
        first = max(stop - _END, 0)
        return cls(stop, crc32(read(0, min(_BEGINNING, stop))), crc32(read(first, stop - first)))

    def is_still_in(self, read: ReadAt) -> bool:
        """Whether the file begins as it did."""
        return self == Seen.of(read, self.stop)


def is_filled(now: SegmentFile, before: SegmentFile) -> bool:
    """Whether something was written to a file that was listed as `before`, and has not grown.

    File systems of a network, and programs that copy, may show the size of a file before they show what is in it.
    """
    return now.size == before.size and now.modified != before.modified


def continues(now: SegmentFile | None, before: SegmentFile, *, least: int, seen: Seen) -> bool:
    """Whether a file as it is listed `now` is the one that was listed `before`, has `least` bytes, and was `seen`."""
    if now is None or now.inode != before.inode or now.size < least:
        return False
    if (now.size, now.modified) == (before.size, before.modified):
        return True
    with reading(now.path) as read:
        return seen.is_still_in(read)
