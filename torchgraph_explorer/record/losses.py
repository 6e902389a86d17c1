"""What is missing in a run's folder: segments, and ends of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.folder import SegmentFile
from torchgraph_explorer.record.format.envelope import FILE_HEADER_SIZE
from torchgraph_explorer.record.format.places import Extent

SECONDS_TO_BE_SEEN = 60.0
"""What was written this long ago is seen on every machine: file systems of a network show it late."""

_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True)
class Written:
    """What was written of a session up to some moment, as the record says.

    Attributes:
        session: The session's id.
        extent: What was written.
        time: When, in seconds since the epoch.
        more: Bytes that are known to have been written after that.
    """

    session: str
    extent: Extent
    time: float
    more: int = 0


class Placed(NamedTuple):
    """A file, and what it says of its place.

    Attributes:
        file: The file.
        segment: What it says.
        end: Where its records end, or where the end of the session is among them. None if damage or records of others
            were found in it, which is told anyway.
    """

    file: SegmentFile
    segment: pb.Segment
    end: int | None


def losses(
    found: Sequence[Placed],
    ends: Sequence[Written],
    *,
    unknown: Iterable[SegmentFile],
    folder: str = "",
) -> tuple[str, ...]:
    """A sentence for each segment that is missing, not as long as it was left, or not where it was written.

    Args:
        found: The files, and what each says of its place.
        ends: What the ends of sessions say.
        unknown: Files that do not say whose they are. The damage of those that have records is told already.
        folder: Stands before the names of files.
    """
    parts: dict[str, dict[int, list[Placed]]] = {}
    for one in found:
        if one.segment.HasField("part"):
            parts.setdefault(one.segment.session.id, {}).setdefault(one.segment.part, []).append(one)
    before = [
        Written(segment.session.id, Extent.of(segment.before), segment.began)
        for _, segment, _ in found
        if segment.HasField("before")
    ]
    sizes = {file.name: file.size for file in unknown}
    long_ago = time.time() - SECONDS_TO_BE_SEEN
    told = (_told(one, parts.get(one.session, {}), sizes) for one in (*before, *ends) if one.time <= long_ago)
    sentences = (*_displaced(found), *(sentence for sentences in told for sentence in sentences))
    return tuple(dict.fromkeys(f"segment {folder}{sentence}" for sentence in sentences))


def _displaced(found: Sequence[Placed]) -> Iterator[str]:
    """On files that were copied, or have changed places, so that the order of names is not that of writing."""
    placed = [(file, segment.number) for file, segment, _ in found if segment.HasField("part")]
    placed.sort(key=lambda one: (one[0].number, one[0].name))
    order = [(number, file.name.lstrip(_DIGITS)) for file, number in placed]  # at a URL, sessions may share a number
    if all(one < other for one, other in pairwise(order)):
        return
    for file, number in placed:
        if file.number != number:
            yield (
                f"{file.name}: it was written as {number:06d}.tgraph. Where two segments have the same step, the wrong "
                f"one may be shown"
            )


def _told(written: Written, parts: Mapping[int, list[Placed]], unknown: Mapping[str, int]) -> Iterator[str]:
    number, part, left = written.extent
    files, size = parts.get(part, []), left + written.more
    largest = max(files, key=lambda one: one.file.size, default=None)
    if largest is not None:
        file, ends = largest.file, [one.end for one in files]
        if file.size < size:
            yield (
                f"{file.name}: {size - file.size:,} of the {size:,} bytes that were written are missing, and the "
                f"records in them"
            )
        elif largest.end is not None and left not in ends:
            yield (
                f"{file.name}: its records end at byte {largest.end:,}, and were left at byte {left:,}; some are lost, "
                f"or in it twice"
            )
        return
    name = f"{number:06d}{_ending(parts)}"
    if unknown.get(name, 0) not in (0, FILE_HEADER_SIZE):
        return
    gone = part - max((one for one in parts if one < part), default=-1)
    more = f", and so are {gone - 1:,} before it" if gone > 2 else ", and so is the one before it" if gone > 1 else ""
    yield f"{name} is {'empty' if name in unknown else 'missing'}{more}: what the session wrote there is lost"


def _ending(parts: Mapping[int, list[Placed]]) -> str:
    """What the names of the session's files have behind the number."""
    names = (one.file.name for files in parts.values() for one in files)
    return next((name.lstrip(_DIGITS) for name in names), ".tgraph")
