"""The folder of a run: which segment files it has, and reading them."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol, TypeAlias

from torchgraph_explorer.errors import RecordError

ReadAt: TypeAlias = Callable[[int, int], bytes]
"""`read(offset, size)`: that many bytes of a file, fewer at its end."""

_Key: TypeAlias = "tuple[int, int | str]"

PLUGIN = ("plugins", "torchgraph")
"""Where the segments are within a run folder."""

TENSORS = "tensors"
"""The folder, within that of the segments, of the segments that hold kept tensors."""

_SEGMENT_NAME = re.compile(r"([0-9]{6,9})(-\w+)?\.tgraph")
"""Nine digits are more segments than a disk holds, and fit everywhere that numbers are kept."""

_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""The errors of a path that is gone, and of a link that leads nowhere."""

_KERNELS = ("/proc", "/sys")
"""Where Linux shows its own state as folders: very many, most of them behind links, and no runs."""

_MOST_PATHS = 16
"""Paths by which one folder is listed at most: links that point at each other make ever more of them."""

_MOST_BARREN = 2000
"""Folders beyond a link that are looked into at most without a run among them: a link may lead to a whole disk."""


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
        """The file's name, which identifies the segment in its run."""
        return self.path.name


class ListedSegment(NamedTuple):
    """A segment that was found, on this machine or at a URL; `reading` opens it."""

    source: str
    size: int
    modified: float
    reading: Callable[[], AbstractContextManager[ReadAt]]


class Folder(Protocol):
    """Where the segments of a run are.

    Attributes:
        odd: What has the name of a segment and is no file, as of the latest listing: a sentence on each.
    """

    odd: tuple[str, ...]

    def files(self) -> list[SegmentFile]:
        """The segment files there are now, in order."""

    def of_tensors(self) -> Folder:
        """Where the segments of the run's kept tensors are."""


class LocalFolder:
    """The segments of a run folder on this machine."""

    def __init__(self, run_dir: Path, *, part: str = "") -> None:
        self._run_dir, self._path = run_dir, plugin_folder(run_dir, part)
        self._part = f"{part}/" if part else ""
        self.odd: tuple[str, ...] = ()

    def files(self) -> list[SegmentFile]:
        """The segment files there are now, in order; none if the folder is gone."""
        odd: list[Path] = []
        found = segment_files(self._path, odd)
        self.odd = tuple(f"segment {self._part}{path.name}: {_told_of_odd(path)}, and was skipped" for path in odd)
        return found

    def of_tensors(self) -> LocalFolder:
        """Where the segments of the run's kept tensors are."""
        return LocalFolder(self._run_dir, part=TENSORS)


def plugin_folder(run_dir: Path, part: str = "") -> Path:
    """The folder of a run's segments, as an absolute path: the process may change its working directory.

    That of the kept tensors is its `part` `TENSORS`.
    """
    return Path(os.path.abspath(run_dir), *PLUGIN, part)  # noqa: PTH100  (keeps a link's name)


def list_local_segments(logdir: Path) -> dict[str, list[ListedSegment]]:
    """The segments of every run in or below `logdir`, by the run's path from there (`.` for `logdir` itself).

    Links to folders are followed, as TensorBoard does, but not into a folder that they or `logdir` lie in, such as
    `/`, and only until `_MOST_BARREN` folders beyond them have shown no run.
    """
    found: dict[str, list[ListedSegment]] = {}
    for folder, names in _folders(logdir):
        if PLUGIN[0] in names and (segments := _listed_segments(Path(folder, *PLUGIN))):
            found[Path(folder).relative_to(logdir).as_posix()] = segments
            del names[PLUGIN[0]]
    return found


def closed_folder(logdir: Path) -> RecordError | None:
    """What to tell of a folder in or below `logdir` that the user may not look into; None if there is none."""
    closed: list[RecordError] = []
    for _ in _folders(logdir, closed):
        if closed:
            break
    return closed[0] if closed else None


def leads_in_a_circle(root: Path, name: str) -> bool:
    """Whether the folder `name`, from `root`, is reached through itself, or `root` through it: listing skips it."""
    parts = PurePosixPath(name).parts
    keys = [*_above(root), *(_key(root.joinpath(*parts[:count])) for count in range(len(parts) + 1))]
    return len(set(keys)) < len(keys)


class _Found(NamedTuple):
    """A folder to look into.

    Attributes:
        path: The folder's path.
        above: The folders that it lies in, by the way that led to it.
        link: The first link on that way; empty if there is none.
    """

    path: str
    above: tuple[_Key, ...]
    link: str


def _folders(root: Path, closed: list[RecordError] | None = None) -> Iterator[tuple[str, dict[str, bool]]]:
    """Every folder in or below `root`, with the names of its folders and whether each is a link.

    Those that may not be looked into are skipped; `closed`, if given, gets what to tell of each.

    The caller removes names to skip them, which says that it has found a run. Links are followed last, so that a folder
    is found by its own name first.
    """
    waiting: deque[_Found] = deque([_Found(os.fspath(root), _above(root), "")])
    visits: dict[_Key, int] = {}
    barren: dict[str, int] = {}
    skipped = _devices_of_the_kernel() - {_device(root)}
    while waiting:
        path, above, link = waiting.popleft()
        if barren.get(link, 0) >= _MOST_BARREN:
            continue
        try:
            key = _key(path)
            names = {} if key[0] in skipped else _folders_in(path)
        except OSError as error:  # it has gone meanwhile, or may not be looked into
            if closed is not None and isinstance(error, PermissionError):
                closed.append(unreadable(Path(path), error))
            continue
        visits[key] = visits.get(key, 0) + 1
        if key in above or visits[key] > _MOST_PATHS:
            continue
        count = len(names)
        yield path, names
        if link:
            barren[link] = barren.get(link, 0) + 1 if len(names) == count else 0
        for name, is_link in names.items():
            child = os.path.join(path, name)  # noqa: PTH118  (there may be very many)
            found = _Found(child, (*above, key), link or (child if is_link else ""))
            waiting.append(found) if is_link else waiting.appendleft(found)


def _devices_of_the_kernel() -> set[int | None]:
    """The devices of its own folders, where they are not ordinary ones."""
    return {_device(folder) for folder in _KERNELS} - {_device("/")}


def _device(folder: str | Path) -> int | None:
    try:
        return _key(folder)[0]
    except OSError:
        return None


def _above(root: Path) -> tuple[_Key, ...]:
    """The folders that `root` lies in, as far as they may be looked at."""
    keys: list[_Key] = []
    for folder in Path(os.path.realpath(root)).parents:
        with suppress(OSError):
            keys.append(_key(folder))
    return tuple(keys)


def _folders_in(folder: str) -> dict[str, bool]:
    """The names of the folders in `folder`, and whether they are links to folders."""
    with os.scandir(folder) as entries:
        return {entry.name: entry.is_symlink() for entry in entries if _is_folder(entry)}


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _key(folder: str | Path) -> _Key:
    """Identifies a folder, whichever path leads to it."""
    facts = os.stat(folder)  # noqa: PTH116  (a path that os.walk found)
    return facts.st_dev, facts.st_ino or os.path.realpath(folder)  # some file systems number nothing


def _listed_segments(folder: Path) -> list[ListedSegment]:
    """The segments in `folder`; if it has none that can be listed, one that raises the reason when it is read."""
    odd: list[Path] = []
    try:
        found = [_listed(file) for file in segment_files(folder, odd)]
    except RecordError as refusal:
        return [_refused(folder, refusal)]
    if found or not odd:
        return found
    what = f"{min(odd).name}: {_told_of_odd(min(odd))}"
    return [_refused(folder, RecordError(f"{folder} holds no record that can be read: {what}."))]


def _refused(folder: Path, refusal: RecordError) -> ListedSegment:
    return ListedSegment(str(folder), 0, 0.0, partial(_refusing, refusal))


@contextmanager
def _refusing(refusal: RecordError) -> Iterator[ReadAt]:
    raise refusal
    yield


def _listed(file: SegmentFile) -> ListedSegment:
    return ListedSegment(str(file.path), file.size, file.modified, partial(reading, file.path))


def segment_files(folder: Path, odd: list[Path] | None = None) -> list[SegmentFile]:
    """The segment files in `folder`, by number. Other files and folders are ignored.

    `odd`, if given, gets what has the name of a segment and is no file.
    """
    try:
        paths = [path for path in folder.iterdir() if segment_number(path.name) is not None]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder, error) from error
    found: list[SegmentFile] = []
    for path in paths:
        file = _segment_file(path)
        if file is not None:
            found.append(file)
        elif odd is not None and os.path.lexists(path):
            odd.append(path)
    return sorted(found, key=lambda file: (file.number, file.name))


def _told_of_odd(path: Path) -> str:
    """What is at `path`, where a file is expected."""
    if path.is_dir():
        return "it is a folder, no file"
    if path.is_symlink() and not _exists(path):
        return f"it is a link to {str(path.readlink())!r}, which is not there"
    return "it is not a file, but a pipe, a socket or a device"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a link to itself
        return False


def segment_number(name: str) -> int | None:
    """The number of the segment with this file name; None if the name is not a segment's."""
    match = _SEGMENT_NAME.fullmatch(name)
    return int(match[1]) if match else None


@contextmanager
def reading(path: Path) -> Iterator[ReadAt]:
    """A function that reads from `path`, until the block ends.

    Raises:
        RecordError: The file cannot be read, or no longer.
    """
    try:
        with open(path, "rb", buffering=0, opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RecordError(f"{path} is no longer a file. Remove it, then open the run again.")

            yield _LocalFile(file)
    except OSError as error:
        raise unreadable(path, error) from error


class _LocalFile:
    """Reads from an open file: a `ReadAt` that knows the holes of the file."""

    def __init__(self, file: FileIO) -> None:
        self._file = file

    def __call__(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size) or b""

    def after_hole(self, offset: int) -> int:
        """Where the hole ends that `offset` is in, or the file if it ends with it; `offset` if it is in none."""
        if not hasattr(os, "SEEK_DATA"):  # Windows
            return offset
        try:
            return os.lseek(self._file.fileno(), offset, os.SEEK_DATA)
        except OSError as error:  # there is no more data, or the file system cannot tell
            return os.fstat(self._file.fileno()).st_size if error.errno == errno.ENXIO else offset


def after_hole(read: ReadAt, offset: int) -> int:
    """The first place from `offset` on that may hold anything but zeros, as far as that is known without reading.

    A file can be said to be terabytes of zeros and take no room on the disk.
    """
    return max(offset, read.after_hole(offset)) if isinstance(read, _LocalFile) else offset


def unreadable(path: Path, error: OSError) -> RecordError:
    """What to tell the user when the system refuses."""
    return RecordError(
        f"{path} cannot be read: {error.strerror or error}. "
        f"Check that the run is still there and that you may read it, then open it again."
    )


def _open_at_once(path: str, flags: int) -> int:
    """Do not wait on opening: someone may have put a named pipe in the file's place."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has neither


def _segment_file(path: Path) -> SegmentFile | None:
    """The file at `path` as it is now; None if it is gone, or is a folder, a pipe or another thing than a file."""
    try:
        facts = path.stat()
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return None
        raise unreadable(path, error) from error
    number = segment_number(path.name)
    if number is None or not stat.S_ISREG(facts.st_mode):
        return None
    return SegmentFile(number, path, facts.st_size, facts.st_mtime, facts.st_ino)
