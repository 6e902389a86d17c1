"""The folder of a run: which segment files it has, and reading them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from torchgraph_explorer.errors import RecordError

ReadAt: TypeAlias = Callable[[int, int], bytes]
"""`read(offset, size)`: that many bytes of a file, fewer at its end."""

PLUGIN = ("plugins", "torchgraph")
"""Where the segments are within a run folder."""

_SEGMENT_NAME = re.compile(r"(\d{6,})(-\w+)?\.tgraph")


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment file as it was when the folder was listed.

    Attributes:
        number: Of the segment within the run.
        path: Where it is on this machine.
        size: Bytes.
        modified: When it was last written, in seconds since the epoch.
        inode: Tells whether it is still the same file.
    """

    number: int
    path: Path
    size: int
    modified: float
    inode: int

    @property
    def name(self) -> str:
        """Of the file, which tells segments of a run apart."""
        return self.path.name


class Piece(NamedTuple):
    """A segment that was come across, here or elsewhere; `reading` opens it."""

    source: str
    size: int
    modified: float
    reading: Callable[[], AbstractContextManager[ReadAt]]


class Folder(Protocol):
    """Where the segments of a run are."""

    def files(self) -> list[SegmentFile]:
        """The segment files there are now, in order."""


class LocalFolder:
    """The segments of a run folder on this machine."""

    def __init__(self, run_dir: Path) -> None:
        self._path = plugin_folder(run_dir)

    def files(self) -> list[SegmentFile]:
        """The segment files there are now, in order; none if the folder is gone."""
        return segment_files(self._path)


def plugin_folder(run_dir: Path) -> Path:
    """Where the segments of a run are, also after the process has gone to another working directory."""
    return Path(os.path.abspath(run_dir), *PLUGIN)  # noqa: PTH100  (keeps a link's name)


def local_pieces(logdir: Path) -> dict[str, list[Piece]]:
    """The segments of every run in or below `logdir`, by the run's path from there (`.` for `logdir` itself)."""
    found: dict[str, list[Piece]] = {}
    for folder, names, _ in os.walk(logdir):
        if PLUGIN[0] in names and (pieces := _pieces(Path(folder, *PLUGIN))):
            found[Path(folder).relative_to(logdir).as_posix()] = pieces
            names.remove(PLUGIN[0])
    return found


def _pieces(folder: Path) -> list[Piece]:
    """The segments in `folder`; if it may not be looked into, one that says so when it is read."""
    try:
        return [_piece(file) for file in segment_files(folder)]
    except RecordError as refusal:
        return [Piece(str(folder), 0, 0.0, partial(_refusing, refusal))]


@contextmanager
def _refusing(refusal: RecordError) -> Iterator[ReadAt]:
    raise refusal
    yield


def _piece(file: SegmentFile) -> Piece:
    return Piece(str(file.path), file.size, file.modified, partial(reading, file.path))


def segment_files(folder: Path) -> list[SegmentFile]:
    """The segment files in `folder`, by number; files with other names are left alone."""
    try:
        found = [_segment_file(path) for path in folder.iterdir() if segment_number(path.name) is not None]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder, error) from error
    return sorted(found, key=lambda file: (file.number, file.name))


def segment_number(name: str) -> int | None:
    """The number of the segment that has this file name; None when it is not a segment's."""
    match = _SEGMENT_NAME.fullmatch(name)
    return int(match[1]) if match else None


@contextmanager
def reading(path: Path) -> Iterator[ReadAt]:
    """Read from `path` at will until the block ends.

    Raises:
        RecordError: The file cannot be read, or no longer.
    """
    try:
        with path.open("rb", buffering=0) as file:

            def read(offset: int, size: int) -> bytes:
                file.seek(offset)
                return file.read(size) or b""

            yield read
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> RecordError:
    """What to tell the user when the system refuses."""
    return RecordError(
        f"{path} cannot be read: {error.strerror or error}. "
        f"Check that the run is still there and that you may read it, then open it again."
    )


def _segment_file(path: Path) -> SegmentFile:
    facts = path.stat()
    number = segment_number(path.name)
    assert number is not None
    return SegmentFile(number, path, facts.st_size, facts.st_mtime, facts.st_ino)
