"""The process that runs the rules beside a training. It has an interpreter of its own, and so never holds its lock."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from torchgraph_explorer.console import reason
from torchgraph_explorer.findings.own_rules import RuleAddress
from torchgraph_explorer.findings.process import FINISH
from torchgraph_explorer.record.remote import is_url

PROGRAM = """
import sys
sys.path.append(sys.argv.pop(1))
from torchgraph_explorer.findings.process import main
from torchgraph_explorer.run import open_run
main(open_run)
"""
"""It finds this package even if only the training's `sys.path` has it."""

PACKAGE_ROOT = Path(__file__).parent.parent.parent

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_BETWEEN_REMOTE_LOOKS = 15.0
"""Stores charge by the request, and records are uploaded every ten seconds."""

SECONDS_TO_END = 2.0


class FindingProcessError(Exception):
    """The process cannot be started. Not for users."""


class FindingProcess:
    """Looks at one model of a run, until `end`. For one thread."""

    def __init__(self, run_dir: str, model: str, rules: Sequence[RuleAddress]) -> None:
        """Begin to look at `model` of the run in `run_dir`, with `rules` of the user's.

        Raises:
            FindingProcessError: The system refuses it.
        """
        if not sys.executable:
            raise FindingProcessError("this Python is part of another program, and its own command is not known")
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(PACKAGE_ROOT)],
                stdin=subprocess.PIPE,  # when it closes, the child knows that this process has ended, however it ended
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
                start_new_session=True,  # Ctrl-C in the terminal is for the training
            )
        except (OSError, ValueError, subprocess.SubprocessError) as fault:
            raise FindingProcessError(reason(fault)) from fault
        asked = {
            "run": run_dir,
            "model": model,
            "rules": [tuple(one) for one in rules],
            "path": [one for one in sys.path if isinstance(one, str)] if rules else [],  # Python ignores others, too
            "seconds": SECONDS_BETWEEN_REMOTE_LOOKS if is_url(run_dir) else SECONDS_BETWEEN_LOOKS,
            "parent": os.getpid(),
        }
        self._ask(json.dumps(asked))
        self._listener = threading.Thread(target=self._listen, name="torchgraph-findings", daemon=True)
        try:
            self._listener.start()
        except RuntimeError as fault:
            self.end()
            raise FindingProcessError(reason(fault)) from fault

    def messages(self) -> list[dict[str, Any]]:
        """The messages of the process since the last call."""
        found = []
        with suppress(queue.Empty):
            while True:
                found.append(self._messages.get_nowait())
        return found

    def finish(self, seconds: float) -> list[dict[str, Any]]:
        """Have the process look once more; returns its last messages. Waits for them for at most so many seconds."""
        self._ask(FINISH)
        found: list[dict[str, Any]] = []
        until = monotonic() + seconds
        with suppress(queue.Empty):
            while not found or not found[-1].keys() & {"end", "ended"}:
                found.append(self._messages.get(timeout=max(0.0, until - monotonic())))
        return found

    def end(self) -> None:
        """End it. It only reads, so nothing is lost."""
        assert self._child.stdin is not None
        with suppress(OSError):
            self._child.stdin.close()
        self._child.terminate()  # workers that the training has forked may hold the other end of its stdin open
        try:
            self._child.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._child.kill()
            with suppress(subprocess.TimeoutExpired):  # the system keeps a process whose disk does not answer
                self._child.wait(SECONDS_TO_END)

    def _ask(self, line: str) -> None:
        assert self._child.stdin is not None
        with suppress(OSError):  # it is gone, which the listener notes
            self._child.stdin.write(line.encode() + b"\n")
            self._child.stdin.flush()

    def _listen(self) -> None:
        """In a thread of its own, which waits without the interpreter's lock."""
        assert self._child.stdout is not None
        with self._child.stdout as lines:
            for line in lines:
                with suppress(ValueError):
                    self._messages.put(json.loads(line))
        self._messages.put({"ended": self._child.wait()})
