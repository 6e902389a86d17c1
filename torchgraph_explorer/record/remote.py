"""Runs at URLs, through fsspec: `s3://`, `gs://`, `memory://`.

Object stores cannot append. So a writer puts many small segments, each complete and never touched again; and a reader
keeps a copy on this machine, to which it adds what is new.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import Any

from torchgraph_explorer.errors import RecordError, TorchgraphError
from torchgraph_explorer.record.folder import (
    PLUGIN,
    TENSORS,
    ListedSegment,
    ReadAt,
    SegmentFile,
    segment_files,
    segment_number,
)
from torchgraph_explorer.record.format.places import Extent, Place
from torchgraph_explorer.record.outbox import Encoded
from torchgraph_explorer.record.segments import next_number

FLUSH_SECONDS = 10.0
"""Waiting records are written, as one segment, this long after the last segment."""

_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")
"""The various stores' names for the time of a file's last change."""


def is_url(path: str) -> bool:
    """Whether `path` is for fsspec rather than the file system of this machine."""
    return "://" in path


def require_store(url: str) -> None:
    """Refuse a URL that nothing here can read. The store itself is not asked.

    Raises:
        RecordError: As `list_remote_segments`.
    """
    _file_system(url)


class RemoteFolder:
    """The segments of a run folder at a URL, each copied to this machine as it appears.

    Attributes:
        odd: Nothing: stores have files alone.
    """

    odd: tuple[str, ...] = ()

    def __init__(self, url: str, *, part: str = "") -> None:
        self._url = url
        self._files, root = _file_system(url)
        self._root = str(PurePosixPath(root, *PLUGIN, part))
        self._copy = Path(tempfile.mkdtemp(prefix="torchgraph-"))
        weakref.finalize(self, shutil.rmtree, self._copy, ignore_errors=True)

    def files(self) -> list[SegmentFile]:
        """The segment files there are now, in order, as copies on this machine."""
        with _as_record_error(self._url):
            listed = _listing(self._files, self._root)
            for path, facts in listed.items():
                if segment_number(PurePosixPath(path).name) is not None:
                    self._fetch(path, int(facts["size"]))
        names = {PurePosixPath(path).name for path in listed}
        copies = segment_files(self._copy)
        for gone in (copy for copy in copies if copy.name not in names):
            gone.path.unlink()
        return [copy for copy in copies if copy.name in names]

    def of_tensors(self) -> RemoteFolder:
        """Where the segments of the run's kept tensors are."""
        return RemoteFolder(self._url, part=TENSORS)

    def _fetch(self, path: str, size: int) -> None:
        """Add the new bytes of a segment to its copy."""
        copy = self._copy / PurePosixPath(path).name
        have = copy.stat().st_size if copy.exists() else 0
        if size == have:
            return
        data = self._files.cat_file(path, start=0, end=size)
        if have and not data.startswith(copy.read_bytes()):  # another file has its name now
            copy.unlink()
            have = 0
        with copy.open("ab") as file:
            file.write(data[have:])


class RemoteSegments:
    """Segments of one session at a URL. Each `put` writes one."""

    def __init__(self, url: str, begin: Callable[[Place], bytes], *, limit: int, session: str, part: str = "") -> None:
        """Write to `url`, which is not accessed yet.

        Args:
            url: The run's URL.
            begin: Gives the beginning of the segment at a place.
            limit: Bytes that are written without waiting for `FLUSH_SECONDS`.
            session: Id of the session.
            part: The folder of these segments within that of the run's segments.
        """
        self._url, self._begin, self._limit, self._part = url, begin, limit, part
        self._store: tuple[Any, PurePosixPath] | None = None
        # Its hash, since ids may begin alike: the phases of a watch, which share a run, differ at their ends.
        self._session = sha256(session.encode()).hexdigest()[:12]
        self._number: int | None = None
        self._reached: Extent | None = None
        self._last_put = float("-inf")

    def is_due(self, size: int) -> bool:
        """True if the last segment was written long ago, or if enough waits."""
        return size >= self._limit or monotonic() - self._last_put >= FLUSH_SECONDS

    def put(self, waiting: deque[Encoded]) -> None:
        """Write a segment. Its name contains the session, since not every store can refuse to overwrite.

        Raises:
            Exception: Any error of the store.
        """
        files, folder = self._store = self._store or _open_store(self._url, self._part)
        if self._number is None:
            files.makedirs(str(folder), exist_ok=True)
            self._number = next_number(PurePosixPath(path).name for path in _listing(files, str(folder)))
        path = folder / f"{self._number:06d}-{self._session}.tgraph"
        part = self._reached.part + 1 if self._reached is not None else 0
        # Which session began the run is not known: two that begin at once do not see each other.
        data = bytearray(self._begin(Place(self._number, part, self._reached)))
        for piece in waiting:
            data += piece.data
            if piece.ending is not None:
                data += piece.ending(Extent(self._number, part, len(data)))
        files.pipe_file(str(path), bytes(data))
        self._reached = Extent(self._number, part, len(data))
        self._number += 1
        self._last_put = monotonic()
        waiting.clear()

    @property
    def reached(self) -> Extent | None:
        """What was written so far; None if nothing was."""
        return self._reached

    def close(self) -> None:
        """Do nothing, since no file stays open."""


def _open_store(url: str, part: str = "") -> tuple[Any, PurePosixPath]:
    """The file system of `url`, and the folder of the segments there."""
    from fsspec.core import url_to_fs

    files, root = url_to_fs(url)
    return files, PurePosixPath(str(root).rstrip("/"), *PLUGIN, part)


def check_url(url: str) -> None:
    """Refuse a URL that can never be written to. A store that does not answer, or refuses access, may do so later.

    Raises:
        RecordError: A library that it needs is not installed, or fsspec does not know its protocol.
    """
    try:
        _open_store(url)
    except (ImportError, ValueError) as error:
        raise _unknown(url, error) from error
    except Exception:  # the writer says so, and tries again
        return


def list_remote_segments(url: str) -> dict[str, list[ListedSegment]]:
    """The segments of every run at or below `url`, by the run's name, `.` for `url` itself."""
    files, root = _file_system(url)
    found: dict[str, list[ListedSegment]] = {}
    with _as_record_error(url):
        files.invalidate_cache()
        for path, facts in sorted(files.find(root, detail=True).items()):
            place = PurePosixPath(path)
            if segment_number(place.name) is not None and place.parts[-3:-1] == PLUGIN:
                run = place.parents[2].relative_to(PurePosixPath(root)).as_posix()
                found.setdefault(run, []).append(_listed(files, path, facts))
    return found


def _listed(files: Any, path: str, facts: dict[str, Any]) -> ListedSegment:
    modified = next((_seconds(facts[name]) for name in _TIMES if facts.get(name)), 0.0)
    size = int(facts["size"])
    return ListedSegment(files.unstrip_protocol(path), size, modified, partial(_reading, files, path, size=size))


@contextmanager
def _reading(files: Any, path: str, *, size: int) -> Iterator[ReadAt]:
    def read(offset: int, count: int) -> bytes:
        end = min(offset + count, size)  # some stores refuse a range that begins at the end
        with _as_record_error(path):
            return bytes(files.cat_file(path, start=offset, end=end)) if offset < end else b""

    yield read


def _seconds(when: datetime | float | str) -> float:
    if isinstance(when, str):
        when = datetime.fromisoformat(when.replace("Z", "+00:00"))
    return when.timestamp() if isinstance(when, datetime) else float(when)


def _listing(files: Any, folder: str) -> dict[str, dict[str, Any]]:
    """The files in `folder` by name, with what the store says of each; empty if there is no such folder."""
    files.invalidate_cache()
    try:
        return {facts["name"]: facts for facts in files.ls(folder, detail=True) if facts["type"] == "file"}
    except FileNotFoundError:
        return {}


def _file_system(url: str) -> tuple[Any, str]:
    """The file system of `url`, and the path there.

    Raises:
        RecordError: A library that it needs is not installed, fsspec does not know its protocol, or access is refused.
    """
    try:
        from fsspec.core import url_to_fs

        files, root = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise _unknown(url, error) from error
    except Exception as error:
        raise _refused(url, error) from error
    return files, str(root).rstrip("/")


@contextmanager
def _as_record_error(url: str) -> Iterator[None]:
    """Turn whatever a store raises into a `RecordError`: few of their errors are an OSError."""
    try:
        yield
    except TorchgraphError:
        raise
    except Exception as error:
        raise _refused(url, error) from error


def _unknown(url: str, error: Exception) -> RecordError:
    return RecordError(f"{url} cannot be opened: {error}. Install what is missing or use a local folder.")


def _refused(url: str, error: Exception) -> RecordError:
    return RecordError(f"{url} cannot be read: {error}. Check the address and your access, then try again.")
