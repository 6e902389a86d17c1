"""Segment files in a local folder, as their writer sees them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import FileIO
from pathlib import Path

from torchgraph_explorer.record.folder import segment_number
from torchgraph_explorer.record.outbox import Encoded

_MOST = 10**9
"""Segments of a run. Files with larger numbers are not segments."""


class LocalSegments:
    """The segments of one session. What `put` has written is with the operating system.

    Each file is created exclusively, with the next free number, so that writers share a folder without locks. After a
    failed write the file is cut back to its last complete record; if that fails, the next file is begun.
    """

    def __init__(
        self, folder: Path, begin: Callable[[int, bool], bytes], *, limit: int, when_gone: Callable[[int | None], None]
    ) -> None:
        """Write to `folder`.

        Args:
            folder: That of the segments, as `folder.plugin_folder` gives it.
            begin: Gives the beginning of the segment with a number, with everything that later records depend on if
                its second argument is True.
            limit: Largest size of a segment, in bytes.
            when_gone: Called when the folder was deleted or moved away, with the first step that the new folder has;
                None if it gets none.
        """
        self._folder = folder
        self._begin, self._limit, self._when_gone = begin, limit, when_gone
        self._file: FileIO | None = None
        self._path = Path()
        self._has_links = True
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
        while waiting:
            self._append(waiting[0].data)
            self._has_frames = self._has_frames or waiting[0].step is not None
            waiting.popleft()

    def close(self) -> None:
        """Close the current file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, data: bytes | memoryview) -> None:
        if self._file is None or self._is_torn or self._size + len(data) > self._limit:
            self._renew(is_whole=False)
        assert self._file is not None
        try:
            _write(self._file, data)
        except BaseException:
            self._cut(self._file)
            raise
        self._size += len(data)

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
            return self._has_links and os.fstat(file.fileno()).st_nlink == 0
        except FileNotFoundError:
            return True
        except OSError:  # unknown; the next write will show
            return False

    def _renew(self, *, is_whole: bool) -> None:
        """Begin a new file. The old one stays open until then, since it shows whether the folder is gone."""
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
            beginning = self._begin(number, is_whole)
            _write(file, beginning)
            has_links = os.fstat(file.fileno()).st_nlink > 0  # some file systems count none
        except BaseException:
            file.close()
            with suppress(OSError):  # or each further try would leave an empty file
                path.unlink()
            raise
        self.close()
        self._file, self._path, self._size = file, path, len(beginning)
        self._has_links, self._is_torn = has_links, False


def next_number(names: Iterable[str]) -> int:
    """The number of the next segment, given the names of the files in the folder."""
    numbers = (segment_number(name) for name in names)
    return max((number + 1 for number in numbers if number is not None and number < _MOST), default=0)


def _write(file: FileIO, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) or 0 :]
