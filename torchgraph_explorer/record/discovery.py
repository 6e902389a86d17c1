"""Finding runs, and opening the record of one."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from torchgraph_explorer.errors import NotFoundError, RecordError
from torchgraph_explorer.paths import checked_path
from torchgraph_explorer.record.beginnings import Beginning, beginning, models_of, strangers
from torchgraph_explorer.record.folder import (
    PLUGIN,
    Folder,
    ListedSegment,
    LocalFolder,
    closed_folder,
    list_local_segments,
    segment_files,
)
from torchgraph_explorer.record.remote import RemoteFolder, is_url, list_remote_segments
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.schema import Session

_SOON_SECONDS = 60.0
"""How long a run with empty files is taken as one that is about to begin."""

_NAMED = 8
"""Runs that an error names at most."""

OF_A_RUN = (
    "Pass the folder of a run as a str or Path, or its URL as a str: `watcher.run_dir`, which is None if nothing is "
    "recorded."
)
"""What to pass as the path of a run."""

OF_RUNS = "Pass the folder of runs as a str or Path, or its URL as a str."
"""What to pass as the path of a folder of runs."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run that was found, by the beginnings of its segments.

    Attributes:
        name: Path from the logdir, with `/`; `.` for the logdir itself.
        path: What `open_run` takes.
        models: Names of the watched models, first to last.
        first_write: When the first session began, in seconds since the epoch; 0 while there is none.
        last_write: When a file was last written, likewise.
        bytes: Size of the files.
        error: Why it cannot be opened; None if it can, or will soon.
    """

    name: str
    path: str
    models: tuple[str, ...]
    first_write: float
    last_write: float
    bytes: int
    error: str | None


def list_runs(logdir: str | os.PathLike[str]) -> list[RunInfo]:
    """List all runs in or below `logdir`, a folder or URL. The run that began last comes first.

    Only the beginnings of segments are read. If a run cannot be opened, its `error` says why.

    Raises:
        NotFoundError: There is no such folder.
        OptionError: `logdir` is no path.
        RecordError: It is a file, or may not be looked into; or a URL cannot be reached.

    Example:
        >>> [(run.name, run.models) for run in list_runs("runs")]
        [('example', ('DigitsNet',))]
    """
    place = checked_path(logdir, OF_RUNS)
    found = runs_below(place)
    if not found and not is_url(place):
        _require_folder(Path(place))
    return found


def runs_below(place: str) -> list[RunInfo]:
    """What `list_runs` gives; no runs where there is no folder yet."""
    found = [_info(name, _join(place, name), segments) for name, segments in _segments_below(place).items()]
    return sorted(found, key=lambda run: (-run.first_write, run.name))


class RunFolder(NamedTuple):
    """The folder of one run.

    Attributes:
        folder: Lists its segment files.
        name: The run's, in its logdir.
        path: The folder's path, or URL.
    """

    folder: Folder
    name: str
    path: str


def open_record(path: str | os.PathLike[str]) -> RunRecord:
    """The record of the run in `path`, which `find_run` describes.

    It may still be written: `RunRecord.refresh` reads on. Damage is skipped with a `TorchgraphWarning`.

    Raises:
        NotFoundError: There is nothing, or there are several runs to choose from.
        RecordError: It is not a run, or a newer release wrote it.
    """
    folder, name, found = find_run(path)
    return RunRecord(folder, name=name, path=found)


def find_run(path: str | os.PathLike[str]) -> RunFolder:
    """The folder of the run in `path`, a folder or URL, which may also be a logdir with exactly one run below it.

    Raises:
        NotFoundError: There is nothing, or there are several runs to choose from.
        OptionError: `path` is no path.
        RecordError: It is not a run.
    """
    place = checked_path(path, OF_A_RUN)
    folder = _folder(place)
    if folder.files():
        return RunFolder(folder, _last_part(place), place)
    runs = sorted(_segments_below(place))
    if not runs:
        raise _no_run(place)
    if len(runs) > 1:
        if not is_url(place):  # when they began stands in their files, and a store is slow to read
            runs = [run.name for run in runs_below(place)]
        raise NotFoundError(
            f"{place} holds {len(runs)} runs: {', '.join(runs[:_NAMED])}{', …' if len(runs) > _NAMED else ''}. "
            f"Name one of them, such as {_join(place, runs[-1 if is_url(place) else 0])}."
        )
    only = _join(place, runs[0])
    return RunFolder(_folder(only), runs[0], only)


def _folder(place: str) -> Folder:
    return RemoteFolder(place) if is_url(place) else LocalFolder(Path(place))


def _segments_below(place: str) -> dict[str, list[ListedSegment]]:
    return list_remote_segments(place) if is_url(place) else list_local_segments(Path(place))


def _join(place: str, run: str) -> str:
    if run == ".":
        return place
    return f"{place.rstrip('/')}/{run}" if is_url(place) else str(Path(place, run))


def _last_part(place: str) -> str:
    return PurePosixPath(place).name if is_url(place) else Path(place).resolve().name


def _info(name: str, path: str, segments: list[ListedSegment]) -> RunInfo:
    sessions: list[Session] = []
    error = None
    try:
        sessions = _sessions(segments)
    except RecordError as refusal:
        error = str(refusal)
    except Exception as fault:  # a fault of ours; it must not hide the other runs
        error = f"{path} cannot be read: {type(fault).__name__}: {fault}. Please report this."
    size = sum(segment.size for segment in segments)
    if not sessions and error is None:
        error = _nothing_in(path, segments)
    return RunInfo(
        name=name,
        path=path,
        models=models_of(sessions),
        first_write=min((session.created for session in sessions), default=0.0),
        last_write=max((segment.modified for segment in segments), default=0.0),
        bytes=size,
        error=error,
    )


def _nothing_in(path: str, segments: Sequence[ListedSegment]) -> str | None:
    """Why `segments` hold no session; None if one may be about to be written."""
    if any(segment.size for segment in segments):
        return f"{path} holds no record that can be read. Its files are damaged, or something else."
    if time.time() - max(segment.modified for segment in segments) < _SOON_SECONDS:
        return None
    return f"{path} holds no record: its files are empty. Their writer was interrupted; delete the folder."


def _sessions(segments: Sequence[ListedSegment]) -> list[Session]:
    """The sessions that wrote `segments`.

    At a URL each session writes thousands. Their file names tell the sessions apart, so one segment of each is read.

    Raises:
        RecordError: As `beginning`.
    """
    known, sessions = set[str](), dict[str, Beginning]()
    for segment in segments:
        writer = PurePosixPath(segment.source).stem.partition("-")[2]
        if writer in known:
            continue
        with segment.reading() as read:
            found = beginning(read, segment.size, segment.source)
        if found is not None:
            known |= {writer} if writer else set()
            sessions[PurePosixPath(segment.source).name] = found
    others = strangers([(name, found.segment) for name, found in sessions.items()])
    return [found.session for name, found in sessions.items() if name not in others]


def _require_folder(path: Path) -> None:
    if not path.exists():
        raise NotFoundError(f"{path} does not exist.{_beside(path)} {OF_RUNS}")
    if not path.is_dir():
        raise RecordError(f"{path} is a file, not a folder. {OF_RUNS}")
    if refused := closed_folder(path):
        raise refused


def _no_run(place: str) -> NotFoundError | RecordError:
    """The error for a path without a run."""
    if is_url(place):
        return RecordError(f"{place} is not a run: there is no {'/'.join(PLUGIN)}/*.tgraph. {_ADVICE}")
    path = Path(place)
    if not path.exists():
        return NotFoundError(f"{place} does not exist.{_beside(path)} {_ADVICE}")
    for parent in path.resolve().parents:
        if segment_files(parent.joinpath(*PLUGIN)):
            return RecordError(f"{place} is not a run, but a part of one. Open the run: open_run({str(parent)!r}).")
    if path.joinpath(*PLUGIN).is_dir():
        return RecordError(f"{place} holds no record yet. Open it again when its training has begun.")
    if refused := closed_folder(path):
        return refused
    what = "has no" if path.is_dir() else "is a file, not a folder with"
    return RecordError(f"{place} is not a run: it {what} {'/'.join(PLUGIN)}/*.tgraph. {_ADVICE}")


def _beside(missing: Path) -> str:
    """The question whether a folder beside the `missing` one, with nearly its name, was meant; empty without one."""
    try:
        names = os.listdir(missing.parent)  # noqa: PTH208  (names)
    except OSError:
        return ""
    others = [name for name in names if name != missing.name]  # a link to nothing has that name
    near = difflib.get_close_matches(missing.name, others, n=1)
    return f" Did you mean {missing.parent / near[0]}?" if near else ""


_ADVICE = "Pass the folder of a run, which is `watcher.run_dir`, or a folder with exactly one run."
