"""Skips series that a session has written again, without reading every record of them."""

from __future__ import annotations

from bisect import bisect_right

from torchgraph_explorer.record.folder import ReadAt

MOST_BYTES = 1 << 24
"""Records that are remembered, of one session. Later ones are read each time."""


class KnownSeries:
    """The records of series that a session has written so far, byte by byte, in the order of the first time.

    A session writes them again and again, all of them and in this order, so that damage loses none. In a long run of a
    large model, these copies are far more records than there are frames.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._starts: list[int] = []
        self._place: dict[bytes, int] = {}

    def add(self, record: bytes) -> None:
        """Remember a record, from the header to the next record."""
        if record not in self._place and len(self._bytes) + len(record) <= MOST_BYTES:
            self._place[record] = len(self._bytes)
            self._starts.append(len(self._bytes))
            self._bytes += record

    def repeated(self, read: ReadAt, offset: int, record: bytes) -> int:
        """Bytes of whole known records at `offset` of a file, where `record` begins; 0 if that one is not known."""
        place = self._place.get(record)
        if place is None:
            return 0
        known = self._bytes[place:]
        found = read(offset, len(known))
        if found == known:
            return len(known)
        return self._whole(place, _common(known, found)) - place

    def _whole(self, place: int, size: int) -> int:
        """Where the last whole record ends of `size` bytes from `place` on."""
        ends = [*self._starts[1:], len(self._bytes)]
        at = bisect_right(ends, place + size)
        return max(place, ends[at - 1]) if at else place


def _common(one: bytes | bytearray, other: bytes) -> int:
    """How many bytes of both are equal, from the first on."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
