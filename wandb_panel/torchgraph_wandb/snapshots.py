"""Snapshots of a run that is being written, each made by a short-lived process of its own.

Reading back the record, drawing the graph and writing the page cost the training neither its GIL nor its life:
Graphviz holds the former while it works, and may end the process that it is in.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from torchgraph_explorer.console import reason
from torchgraph_wandb.snapshot_process import PAGE, SEARCHED, TABLE

SECONDS = 120.0
"""That a snapshot may take."""

SECONDS_TO_KILL = 5.0
"""That the system may take to end one."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is to be logged.

    Attributes:
        rows: Of the chart's table.
        page: The exported page; None if it was not asked for, or could not be made.
        seconds: How long it took to make, however much later it was taken.
    """

    rows: list[tuple[str, str]]
    page: str | None
    seconds: float


class Maker:
    """Makes snapshots of one model of a run, one at a time.

    Attributes:
        fault: Why the latest attempt failed, in a line; empty if it did not.
    """

    def __init__(self, run_dir: str, model: str) -> None:
        self._run_dir, self._model = run_dir, model
        self._way = "graphviz"
        self._child: subprocess.Popen[bytes] | None = None
        self._folder = Path()
        self._searched = b""
        self._began = self._began_at = 0.0
        self.fault = ""

    @property
    def is_busy(self) -> bool:
        """A snapshot is being made, or waits to be taken."""
        return self._child is not None

    def begin(self, *, page: bool, aside: bool = False) -> None:
        """Begin to make one, of what is recorded now; with `aside`, in the time that the training leaves."""
        assert self._child is None, "one at a time"
        self._folder = Path(tempfile.mkdtemp(prefix="torchgraph-"))
        self._began, self._began_at = time.monotonic(), time.time()
        (self._folder / SEARCHED).write_bytes(self._searched)
        command = [sys.executable, "-m", "torchgraph_wandb.snapshot_process", self._run_dir, self._model]
        command += [
            str(self._folder),
            "--way",
            self._way,
            *(["--page"] if page else []),
            *(["--aside"] if aside else []),
        ]
        # A script may have found the packages by a path that the child would not look in.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            with (self._folder / "errors").open("wb") as errors:
                self._child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    env=environment,
                    start_new_session=True,  # Ctrl-C in the terminal is for the training
                )
        except OSError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def try_to_begin(self, *, page: bool, aside: bool = False) -> None:
        """As `begin`; where the system refuses a folder or a process, that is the latest `fault`."""
        try:
            self.begin(page=page, aside=aside)
        except OSError as fault:
            self.fault = reason(fault)

    def take(self, *, patience: float | None = None) -> Snapshot | None:
        """The snapshot, if it is ready; None while it is not, and when it failed.

        With `patience`, in seconds, it is waited for; what it lacks then, it lacks.
        """
        if self._child is None or not self._has_ended(patience):
            return None
        failed = self._child.returncode != 0
        self._child = None
        try:
            self.fault = self._last_words() if failed else ""
            return self._read()
        except (OSError, ValueError):
            self._way = "rows"  # Graphviz is what most likely ended it
            return None
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def stop(self) -> None:
        """Give up on the one that is being made."""
        if self._child is not None:
            self._child.kill()
            self.take(patience=0.0)

    def _has_ended(self, patience: float | None) -> bool:
        assert self._child is not None
        try:
            self._child.wait(patience or 0.0)
        except subprocess.TimeoutExpired:
            if patience is None and time.monotonic() - self._began < SECONDS:
                return False
            self._child.kill()
            try:
                self._child.wait(SECONDS_TO_KILL)
            except subprocess.TimeoutExpired:  # the system keeps a process whose disk does not answer
                return True
        return True

    def _read(self) -> Snapshot:
        rows = [(part, packed) for part, packed in json.loads((self._folder / TABLE).read_text(encoding="utf-8"))]
        page = self._folder / PAGE
        text = page.read_text(encoding="utf-8") if page.is_file() else None
        self._searched = (self._folder / SEARCHED).read_bytes()
        ended = max(file.stat().st_mtime for file in self._folder.iterdir())
        return Snapshot(rows, text, max(0.0, ended - self._began_at))

    def _last_words(self) -> str:
        said = (self._folder / "errors").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return said[-1] if said else "it ended without a word"
