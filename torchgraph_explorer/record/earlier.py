"""Up to which step earlier sessions recorded a model: read from the heads of records, the latest segment first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from torchgraph_explorer.record.folder import ReadAt, plugin_folder, reading, segment_files
from torchgraph_explorer.record.ownership import Owner
from torchgraph_explorer.record.remote import is_url, list_remote_segments
from torchgraph_explorer.record.scan import Scanner

READ_WHOLE = 16 << 20
"""Segments of up to this many bytes are read at once, which is faster at a URL."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier sessions recorded of a model.

    Attributes:
        steps: Where the latest of them ended: the step that would have come next; 0 without any.
        reached: One more than the highest step that is recorded.
    """

    steps: int = 0
    reached: int = 0


def look_back(run_dir: str, model: str) -> Iterator[Earlier]:
    """What is recorded of `model` in the folder or at the URL `run_dir`; the last value that is given is complete.

    Damage is skipped.

    Raises:
        RecordError: Something cannot be read, or a newer release wrote it.
    """
    latest, steps, reached = None, 0, 0
    for source, size, opened in reversed(_segments(run_dir)):
        with opened as read:
            ended = _end(source, size, read if size > READ_WHOLE else _in_memory(read(0, size)), model=model)
        if ended is None or not max(ended.recorded, ended.counted):
            continue
        latest = latest or ended.session
        if ended.session == latest:
            steps = max(steps, ended.recorded, ended.counted)
        reached = max(reached, ended.recorded)
        yield Earlier(steps, reached)


def _segments(run_dir: str) -> list[tuple[str, int, AbstractContextManager[ReadAt]]]:
    """Name, size and how to read each segment, by number."""
    if is_url(run_dir):
        return [(piece.source, piece.size, piece.reading()) for piece in list_remote_segments(run_dir).get(".", [])]
    return [(str(file.path), file.size, reading(file.path)) for file in segment_files(plugin_folder(Path(run_dir)))]


def _in_memory(data: bytes) -> ReadAt:
    def read(offset: int, size: int) -> bytes:
        return data[offset : offset + size]

    return read


class _End(NamedTuple):
    """A segment's session, one more than its highest step, and the steps that its `Finished` counts."""

    session: str
    recorded: int
    counted: int


def _end(source: str, size: int, read: ReadAt, *, model: str) -> _End | None:
    """Where the segment ends; None if it is not of `model`."""
    owner, recorded, counted = Owner(), 0, 0
    scanner = Scanner(source)
    while (found := scanner.next(read, size)) is not None:
        head = found.head
        if head is None:
            continue
        if head.HasField("segment"):
            owner.begin(head.segment)
            if owner.session is not None and owner.session.model != model:
                return None
        elif not owner.owns(head):
            continue
        elif head.HasField("frame"):
            recorded = max(recorded, head.frame.step + 1)
        elif head.HasField("finished"):
            counted = head.finished.steps
    return None if owner.session is None else _End(owner.session.id, recorded, counted)
