"""The runs that a server has open."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from torchgraph_explorer.errors import NotFoundError, TorchgraphError
from torchgraph_explorer.findings.own_rules import OwnRule
from torchgraph_explorer.paths import checked_path
from torchgraph_explorer.record.cells.reading import CellCache
from torchgraph_explorer.record.discovery import OF_RUNS, RunInfo, runs_below
from torchgraph_explorer.record.folder import LocalFolder, leads_in_a_circle
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.remote import RemoteFolder, is_url
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.server.comparison import Comparisons
from torchgraph_explorer.server.findings import Findings
from torchgraph_explorer.server.nonfinite import NonFinite
from torchgraph_explorer.server.thinning import BinCache
from torchgraph_explorer.server.xray import CellReaders

MOST_OPEN = 32
"""Runs that are kept open; the least recently used is closed when another is opened."""

REMOTE_SECONDS = 5.0
"""A run at a URL is refreshed after this long: a viewer asks every second, and stores charge by the request."""

LISTING_SHARE = 0.1
"""The largest share of the time in which runs at a URL are listed, which reads the beginning of each."""

EPOCHS = 2**16
"""Epochs for which one opening of a run has room."""


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that is open.

    Attributes:
        run: The reader.
        opening: A number that differs each time the run is opened. The reader numbers frames and series, so another
            reader, also one in a server that was restarted, may number them differently.
        bins: Keeps the merged bins of its series.
        nonfinite: Where there is NaN or infinity.
        findings: What the rules say of its models.
        cells: Keeps the cells of its models that were computed.
        comparisons: How its models differ from those of other runs.
    """

    run: RunRecord
    bins: BinCache = field(default_factory=BinCache)
    nonfinite: NonFinite = field(default_factory=NonFinite)
    findings: Findings = field(default_factory=Findings)
    cells: CellReaders = field(default_factory=CellReaders)
    comparisons: Comparisons = field(default_factory=Comparisons)
    opening: int = field(default_factory=lambda: secrets.randbelow(2**32) * EPOCHS)

    def epoch(self, model: ModelRecord) -> int:
        """The model's epoch as clients know it: different for each opening."""
        return self.opening + model.epoch


class RunSource(Protocol):
    """Where the app gets its runs from.

    Attributes:
        logdir: The folder or folders, for messages.
    """

    logdir: str

    def list(self) -> Sequence[RunInfo]:
        """Every run, the latest begun first."""

    def open(self, name: str) -> OpenRun:
        """The run called `name`, refreshed.

        Raises:
            NotFoundError: `list` has no such run.
        """


@dataclass(slots=True)
class _Slot:
    """Room for one open run; the lock is held while it is opened, which can take seconds."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    opened: OpenRun | None = None
    refreshed: float = 0.0


class Runs:
    """The runs below one logdir, opened when they are first asked for. For many threads."""

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        *,
        bins: BinCache | None = None,
        cells: CellCache | None = None,
        rules: Sequence[OwnRule] = (),
    ) -> None:
        """Serve what is below `logdir`, a folder or URL, now and later.

        All its runs share `bins`, and `cells` for their x-rays. They are also judged by the user's own `rules`.
        """
        self.logdir, self._rules = checked_path(logdir, OF_RUNS), rules
        self._bins = bins if bins is not None else BinCache()
        self._cells = cells if cells is not None else CellCache()
        self._turn, self._comparisons = threading.Lock(), Comparisons()
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._lock = threading.Lock()
        self._listing = threading.Lock()
        self._listed, self._list_again_at = list[RunInfo](), float("-inf")

    def list(self) -> list[RunInfo]:
        """Every run, the latest begun first. Those at a URL are not listed each time, see `LISTING_SHARE`."""
        if not is_url(self.logdir):
            return runs_below(self.logdir)
        with self._listing:
            if (began := time.monotonic()) >= self._list_again_at:
                self._listed = runs_below(self.logdir)
                ended = time.monotonic()
                self._list_again_at = ended + (ended - began) / LISTING_SHARE
            return self._listed

    def open(self, name: str) -> OpenRun:
        """The run called `name`, refreshed.

        Raises:
            NotFoundError: `list` has no run of that name.
            RecordError: It cannot be read.
        """
        slot = self._slot(name)
        try:
            return self._opened(name, slot)
        except NotFoundError:
            self._forget(name, slot)  # a later run with this name is another one
            raise

    def _opened(self, name: str, slot: _Slot) -> OpenRun:
        place = _place(self.logdir, name)
        with slot.lock:
            if slot.opened is None:
                findings = Findings(self._turn, self._rules)
                slot.opened = OpenRun(
                    _open(place, name),
                    self._bins,
                    findings=findings,
                    cells=CellReaders(self._cells),
                    comparisons=self._comparisons,
                )
            opened = slot.opened
        self._refresh(slot, opened.run)
        if not opened.run.models:  # its files are gone
            raise _no_such_run(name)
        return opened

    def _slot(self, name: str) -> _Slot:
        with self._lock:
            slot = self._slots.pop(name, None) or _Slot()
            self._slots[name] = slot
            while len(self._slots) > MOST_OPEN:
                self._slots.popitem(last=False)
            return slot

    def _refresh(self, slot: _Slot, run: RunRecord) -> None:
        now = time.monotonic()
        if not is_url(self.logdir) or now - slot.refreshed >= REMOTE_SECONDS:
            slot.refreshed = now  # before refreshing, so that other threads do not refresh as well
            try:
                run.refresh()
            except TorchgraphError:
                slot.refreshed = -REMOTE_SECONDS
                raise

    def _forget(self, name: str, slot: _Slot) -> None:
        with self._lock:
            if self._slots.get(name) is slot:
                del self._slots[name]


def _open(place: str, name: str) -> RunRecord:
    folder = RemoteFolder(place) if is_url(place) else LocalFolder(Path(place))
    if not folder.files() and not folder.odd:
        raise _no_such_run(name)
    return RunRecord(folder, name=name, path=place)


def _place(logdir: str, name: str) -> str:
    """The path of the run called `name`. Names that `list` cannot give are refused."""
    if is_url(logdir):
        if name != "." and not all(part.strip(".") and "\0" not in part for part in name.split("/")):
            raise _no_such_run(name)
        return logdir if name == "." else f"{logdir.rstrip('/')}/{name}"
    try:
        root = Path(logdir).resolve()
        is_one = _is_below(root, name) and (root / name).is_dir() and not leads_in_a_circle(root, name)
    except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, a circle of links
        raise _no_such_run(name) from None
    if not is_one:
        raise _no_such_run(name)
    return str(root / name)


def _is_below(root: Path, name: str) -> bool:
    """Whether `name` is a normal path in or below `root`, without `..`. It may lead through links."""
    place = Path(os.path.normpath(root / name))  # not resolved: links are followed on purpose
    return place.is_relative_to(root) and place.relative_to(root).as_posix() == name


def _no_such_run(name: str) -> NotFoundError:
    return NotFoundError(f"There is no run {name[:80]!r} here. See api/runs for the runs that there are.")
