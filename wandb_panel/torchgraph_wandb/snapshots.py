"""Snapshots of a run that is being written, each made by a short-lived process of its own.

Graphviz holds the GIL while it works, and may crash the process it runs in. So the training's process neither reads the
record back, nor draws the graph, nor writes the page.
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
"""How long a snapshot may take."""

SECONDS_TO_KILL = 5.0
"""How long the system may take to end its process."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is logged at one moment.

    Attributes:
        rows: The rows of the chart's table.
        page: The exported page; None if it was not requested or could not be made.
        seconds: How long it took to make, not counting the time until it was taken.
    """

    rows: list[tuple[str, str]]
    page: str | None
    seconds: float


class SnapshotMaker:
    """Makes snapshots of one model of a run, one at a time.

    Attributes:
        fault: Why the latest attempt failed, in one line; empty if it succeeded.
    """

    def __init__(self, run_dir: str, model: str, *, tensor_megabytes: float = 0.0) -> None:
        self._run_dir, self._model, self._tensor_megabytes = run_dir, model, tensor_megabytes
        self._engine = "graphviz"
        self._child: subprocess.Popen[bytes] | None = None
        self._folder = Path()
        self._searched = b""
        self._began = self._began_at = 0.0
        self.fault = ""

    @property
    def is_busy(self) -> bool:
        """Whether a snapshot is being made or waits to be taken."""
        return self._child is not None

    def begin(self, *, page: bool, low_priority: bool = False) -> None:
        """Begin a snapshot of what is recorded now; with `low_priority`, in the time that the training leaves."""
        assert self._child is None, "one at a time"
        self._folder = Path(tempfile.mkdtemp(prefix="torchgraph-"))
        self._began, self._began_at = time.monotonic(), time.time()
        (self._folder / SEARCHED).write_bytes(self._searched)
        command = [sys.executable, "-m", "torchgraph_wandb.snapshot_process", self._run_dir, self._model]
        command += [
            str(self._folder),
            "--engine",
            self._engine,
            *(["--page"] if page else []),
            *(["--tensors", str(self._tensor_megabytes)] if page and self._tensor_megabytes else []),
            *(["--low-priority"] if low_priority else []),
        ]
        # The script may have found our packages on a path that the child would not search.
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

    def try_to_begin(self, *, page: bool, low_priority: bool = False) -> None:
        """Like `begin`, but if the system refuses a folder or a process, the reason becomes `fault`."""
        try:
            self.begin(page=page, low_priority=low_priority)
        except OSError as fault:
            self.fault = reason(fault)

    def take(self, *, patience: float | None = None) -> Snapshot | None:
        """The snapshot if it is ready; None if it is not, or if it failed.

        With `patience`, wait for it so many seconds, then end it and take the files that are complete.
        """
        if self._child is None or not self._has_ended(patience):
            return None
        failed = self._child.returncode != 0
        self._child = None
        try:
            self.fault = self._error() if failed else ""
            return self._read()
        except (OSError, ValueError):
            self._engine = "rows"  # most likely Graphviz ended it
            return None
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def stop(self) -> None:
        """End the snapshot that is being made."""
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
            except subprocess.TimeoutExpired:  # a process whose disk does not answer cannot be ended
                return True
        return True

    def _read(self) -> Snapshot:
        rows = [(part, packed) for part, packed in json.loads((self._folder / TABLE).read_text(encoding="utf-8"))]
        page = self._folder / PAGE
        text = page.read_text(encoding="utf-8") if page.is_file() else None
        self._searched = (self._folder / SEARCHED).read_bytes()
        ended = max(file.stat().st_mtime for file in self._folder.iterdir())
        return Snapshot(rows, text, max(0.0, ended - self._began_at))

    def _error(self) -> str:
        lines = (self._folder / "errors").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "its process ended without a message"
