"""Graphs and series, on which frames depend, written so that no single damage loses them all.

A single flipped bit loses a record. So series are written in many small records, each of them twice, and graphs and
series are written again now and then. Thousands of series are written in fewer, larger records, since a reader spends
as much time on a record as on several series.
"""

from __future__ import annotations

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import enveloped
from torchgraph_explorer.record.format.messages import series_message
from torchgraph_explorer.record.graphs.encoding import encode_graph
from torchgraph_explorer.schema import ModuleGraph, Series

SERIES_AT_ONCE, MOST_SERIES_AT_ONCE = 8, 32
"""Series in a record, which then has about half a kilobyte; and at most, where there are very many: two kilobytes."""

RECORDS_AT_ONCE = 256
"""Records that series are written in before these become larger."""

_FIRST_GAP, _LAST_GAP = 8, 64
"""Bytes of frames, for each byte of definitions, until the definitions are written again: at first, and in the end."""


class Definitions:
    """The graphs and series of one session, as last written."""

    def __init__(self, mark: int) -> None:
        """None yet; each record will have the session's `mark`."""
        self._mark = mark
        self._series: list[bytes] = []
        self._graphs: dict[int, bytes] = {}
        self._since = 0
        self._gap = _FIRST_GAP

    def added(self, record: ModuleGraph | tuple[Series, ...]) -> bytes:
        """The bytes of `record`, twice."""
        if isinstance(record, ModuleGraph):
            graph, body = encode_graph(record)
            new = self._graphs[record.id] = enveloped(
                pb.Head(session=self._mark, graph=graph).SerializeToString(), body
            )
        else:
            new = self._in_parts(record)
            self._series.append(new)
        return 2 * new

    def whole(self) -> bytes:
        """All graphs and series so far, twice: for a segment that must be readable without the earlier ones."""
        return b"".join(2 * each for each in self._every())

    def due(self, size: int) -> bytes:
        """All graphs and series so far, if they are due again before a frame of `size` bytes; else nothing."""
        self._since += size
        every = self._every()
        if self._since < self._gap * sum(map(len, every)):
            return b""
        self._since, self._gap = 0, min(2 * self._gap, _LAST_GAP)
        return b"".join(every)

    def _every(self) -> tuple[bytes, ...]:
        return (*self._graphs.values(), *self._series)

    def _in_parts(self, series: tuple[Series, ...]) -> bytes:
        size = min(max(len(series) // RECORDS_AT_ONCE, SERIES_AT_ONCE), MOST_SERIES_AT_ONCE)
        parts = (series_message(series[at : at + size]) for at in range(0, len(series), size))
        return b"".join(enveloped(pb.Head(session=self._mark, series=part).SerializeToString()) for part in parts)
