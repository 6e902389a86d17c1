"""Segment files in a local folder, as their writer sees them."""

from __future__ import annotations

from collections.abc import Callable
from io import FileIO
from pathlib import Path

from torchgraph_explorer.record.folder import plugin_folder, segment_files


class LocalSegments:
    """The segments of one session. What `append` was given is with the operating system when it returns.

    Each file is created anew, under the next free number, and by nobody else; so writers share a folder without locks.
    """

    def __init__(self, run_dir: Path, begin: Callable[[int], bytes], *, limit: int) -> None:
        self._folder = plugin_folder(run_dir)
        self._begin, self._limit = begin, limit
        self._file: FileIO | None = None
        self._size = 0

    def append(self, data: bytes) -> None:
        """Write `data`, in a new file if it would make the present one too large.

        Raises:
            OSError: The system refuses. What then is torn is left behind: the next record begins a new file.
        """
        if self._file is None or self._size + len(data) > self._limit:
            self.close()
            self._file = self._create()
        self._write(self._file, data)

    def close(self) -> None:
        """Close the present file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _create(self) -> FileIO:
        self._folder.mkdir(parents=True, exist_ok=True)
        number = max((file.number + 1 for file in segment_files(self._folder)), default=0)
        while True:
            try:
                file = FileIO(self._folder / f"{number:06d}.tgraph", "x")
            except FileExistsError:
                number += 1
                continue
            self._size = 0
            self._write(file, self._begin(number))
            return file

    def _write(self, file: FileIO, data: bytes) -> None:
        try:
            self._put(file, data)
        except OSError:
            file.close()
            self._file = None
            raise
        self._size += len(data)

    def _put(self, file: FileIO, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) or 0 :]
