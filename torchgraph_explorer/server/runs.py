"""The runs that a server has open."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path

from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.reader import Run
from torchgraph_explorer.record.remote import is_url
from torchgraph_explorer.record.runs import RunInfo, list_runs, open_run

MOST_OPEN = 32
"""Runs kept open; the one not asked for longest is closed when another is opened."""


class Runs:
    """The runs below one logdir, opened when they are first asked for. For many threads."""

    def __init__(self, logdir: str | os.PathLike[str]) -> None:
        """Serve what is below `logdir`, a folder or URL, now and later."""
        self.logdir = os.fspath(logdir)
        self._open: OrderedDict[str, Run] = OrderedDict()
        self._lock = threading.Lock()

    def list(self) -> list[RunInfo]:
        """Every run, the latest begun first."""
        return list_runs(self.logdir)

    def run(self, name: str) -> Run:
        """The run called `name`, read up to what is there now.

        Raises:
            NotFoundError: There is none of that name below the logdir.
            RecordError: It cannot be read.
        """
        place = self._place(name)
        with self._lock:
            run = self._open.pop(name, None)
            if run is None:
                run = open_run(place)
                while len(self._open) >= MOST_OPEN:
                    self._open.popitem(last=False)
            self._open[name] = run
        run.refresh()
        return run

    def model(self, run: str, model: str) -> ModelRecord:
        """A model of a run, read up to what is there now; see `run`."""
        return self.run(run).model(model)

    def _place(self, name: str) -> str:
        if is_url(self.logdir):
            if ".." in name.split("/") or "\0" in name:
                raise _no_such_run(name)
            return self.logdir if name == "." else f"{self.logdir.rstrip('/')}/{name}"
        try:
            root = Path(self.logdir).resolve()
            place = (root / name).resolve()
        except (OSError, ValueError):
            raise _no_such_run(name) from None
        if not place.is_relative_to(root) or not place.is_dir():
            raise _no_such_run(name)
        return str(place)


def _no_such_run(name: str) -> NotFoundError:
    return NotFoundError(f"There is no run {name!r} here. See api/runs for those there are.")
