"""Segment files in a local folder, as their writer sees them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import FileIO
from itertools import count
from pathlib import Path

from torchgraph_explorer.record.beginnings import run_in
from torchgraph_explorer.record.folder import segment_number
from torchgraph_explorer.record.format.places import Extent, Place
from torchgraph_explorer.record.outbox import Encoded

_MOST = 10**9
"""Segments of a run. Files with larger numbers are not segments."""


class LocalSegments:
    """The segments of one session. What `put` has written is with the operating system.

    Each file is created exclusively, with the next free number, so that writers share a folder without locks. After a
    failed write the file is cut back to its last complete record; if that fails, the next file is begun.
    """

    def __init__(
        self,
        folder: Path,
        begin: Callable[[Place, bool], bytes],
        *,
        limit: int,
        when_gone: Callable[[int | None], None],
        when_cut: Callable[[Path, int, int], None],
        session: str = "",
    ) -> None:
        """Write to `folder`.

        Args:
            folder: That of the segments, as `folder.plugin_folder` gives it.
            begin: Gives the beginning of the segment at a place, with everything that later records depend on if its
                second argument is True.
            limit: Largest size of a segment, in bytes.
            when_gone: Called when the folder was deleted or moved away, with the first step that the new folder has;
                None if it gets none.
            when_cut: Called when somebody else has cut off a file that is written to, with its path, the bytes that are
                missing and the bytes that it had. The next file begins with everything that later records depend on.
            session: Id of the session, if its segments are to say which session began the run.
        """
        self._folder = folder
        self._begin, self._limit, self._when_gone, self._when_cut = begin, limit, when_gone, when_cut
        self._file: FileIO | None = None
        self._path = Path()
        self._place = Place(0, part=-1)
        self._session, self._run = session, ""
        self._first: tuple[Path, int, int] | None = None
        self._has_links = self._has_size = True
        self._size = 0
        self._is_torn = self._has_frames = False

    def is_due(self, _size: int) -> bool:
        """Always: records are written at once."""
        return True

    def put(self, waiting: deque[Encoded]) -> None:
        """Write what waits, in a new file if it would make the current one too large.

        Raises:
            OSError: The system refuses.
        """
        if self._file is not None and self._is_gone(self._file):
            first = next((piece.step for piece in waiting if piece.step is not None), None)
            if self._has_frames:
                self._when_gone(first)
            if first is None:  # no folder is made again for the end of a record alone
                waiting.clear()
                return
            self._renew(is_whole=True)
            self._has_frames = False
        elif self._file is not None and (missing := self._missing(self._file)):
            self._when_cut(self._path, missing, self._size)
            self._renew(is_whole=True, is_gone=False)
        while waiting:
            self._append(waiting[0])
            self._has_frames = self._has_frames or waiting[0].step is not None
            waiting.popleft()

    def close(self) -> None:
        """Close the current file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def reached(self) -> Extent | None:
        """What was written so far; None if nothing was."""
        return None if self._place.part < 0 else Extent(self._place.number, self._place.part, self._size)

    def _append(self, record: Encoded) -> None:
        data = record.data
        if self._file is None or self._is_torn or self._size + len(data) > self._limit:
            self._renew(is_whole=False)
        assert self._file is not None
        end = b""
        if record.ending is not None:
            end = record.ending(Extent(self._place.number, self._place.part, self._size + len(data)))
            data = b"".join((data, end))
        try:
            _write(self._file, data)
        except BaseException:
            self._cut(self._file)
            raise
        self._size += len(data)
        if end:
            self._repeat_in_first(end)

    def _repeat_in_first(self, end: bytes) -> None:
        """Append the end of the session to its first file, too, if that is as it was left."""
        if self._first is None or self._place.part == 0:
            return
        path, inode, size = self._first
        with suppress(OSError), FileIO(path, "r+") as file:  # the end is written; this only shows the loss of that
            facts = os.fstat(file.fileno())
            if (facts.st_ino, facts.st_size) == (inode, size):
                file.seek(size)
                _write(file, end)

    def _cut(self, file: FileIO) -> None:
        self._is_torn = True
        with suppress(OSError):  # then a reader passes over what is torn
            os.ftruncate(file.fileno(), self._size)
            file.seek(self._size)
            self._is_torn = False

    def _is_gone(self, file: FileIO) -> bool:
        """Whether the file is no longer where it was created, or no longer has a name."""
        try:
            self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            """The path does not show it; the open file may."""
        try:
            return self._has_links and os.fstat(file.fileno()).st_nlink == 0
        except OSError:  # unknown; the next write will show
            return False

    def _missing(self, file: FileIO) -> int:
        """Bytes that were written to the file, and that it no longer has."""
        try:
            return max(0, self._size - os.fstat(file.fileno()).st_size) if self._has_size and not self._is_torn else 0
        except OSError:  # unknown; the next write will show
            return 0

    def _renew(self, *, is_whole: bool, is_gone: bool | None = None) -> None:
        """Begin a new file. The old one stays open until then, since it shows whether the folder is gone.

        Args:
            is_whole: The file begins with everything that later records depend on.
            is_gone: The old one is no longer there; by default that is why a file is to be whole.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        number = next_number(file.name for file in self._folder.iterdir())
        while True:
            path = self._folder / f"{number:06d}.tgraph"
            try:
                file = FileIO(path, "x")
                break
            except FileExistsError:
                number += 1
        try:
            place = self._next_place(number, is_gone=is_whole if is_gone is None else is_gone)
            beginning = self._begin(place, is_whole)
            _write(file, beginning)
            facts = os.fstat(file.fileno())
        except BaseException:
            file.close()
            with suppress(OSError):  # or each further try would leave an empty file
                path.unlink()
            raise
        if self._file is not None and self._place.part == 0:
            self._first = self._path, os.fstat(self._file.fileno()).st_ino, self._size
        self.close()
        self._file, self._path, self._size, self._place = file, path, len(beginning), place
        self._has_links = facts.st_nlink > 0  # some file systems count none
        self._has_size = facts.st_size == len(beginning)  # or show it late
        self._is_torn = False

    def _next_place(self, number: int, *, is_gone: bool) -> Place:
        """The place of the next file; with `is_gone`, the one before is no longer there."""
        if self._session and (is_gone or self.reached is None):
            self._run = self._session if number == 0 else ""
            with suppress(Exception):  # what others have written must not keep this from being recorded
                self._run = self._run or run_in(self._folder, number)
        return Place(number, self._place.part + 1, None if is_gone else self.reached, self._run)


def next_number(names: Iterable[str]) -> int:
    """The number of the next segment, given the names of the files in the folder.

    The one after the highest; if there is none, since somebody has put a file there, the lowest that is free.
    """
    numbers = {number for name in names if (number := segment_number(name)) is not None}
    following = max(numbers, default=-1) + 1
    return following if following < _MOST else next(number for number in count() if number not in numbers)


def _write(file: FileIO, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) or 0 :]
