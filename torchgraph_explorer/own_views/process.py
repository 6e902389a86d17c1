"""A view's process, from the server's side: started when it is needed, ended when it takes too long."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from torchgraph_explorer.console import reason
from torchgraph_explorer.errors import TorchgraphError

PROGRAM = """
import sys
sys.path.append(sys.argv.pop(1))
from torchgraph_explorer.own_views.child import main
main()
"""
"""It finds this package even if only the server's `sys.path` has it."""

PACKAGE_ROOT = Path(__file__).parent.parent.parent

SECONDS_TO_END = 2.0


class ViewError(TorchgraphError):
    """A view has no page to show. Its text is a sentence.

    Attributes:
        traceback: What the view raised, as text; empty if it raised nothing.
    """

    def __init__(self, sentence: str, traceback: str = "") -> None:
        """Say `sentence`."""
        super().__init__(sentence)
        self.traceback = traceback


class ViewProcess:
    """Runs one function of a file, until `end`. For one thread at a time."""

    def __init__(self, file: str, function: str) -> None:
        """Start to load `function` of the Python file `file`.

        Raises:
            ViewError: The system refuses another process.
        """
        self._name = f"{Path(file).name}:{function}"
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(PACKAGE_ROOT)],
                stdin=subprocess.PIPE,  # when it closes, the child knows that this process has ended
                stdout=subprocess.PIPE,
                start_new_session=True,  # it is ended with all processes that it started
            )
        except (OSError, ValueError, subprocess.SubprocessError) as fault:
            raise ViewError(f"The view's process cannot be started ({reason(fault)}).") from fault
        self._send({"file": file, "function": function})
        threading.Thread(target=self._listen, name="torchgraph-view", daemon=True).start()
        self._is_ready = False

    def page(self, asked: Mapping[str, Any], seconds: float) -> str:
        """The page for a selection. Loading the file counts, if that is not done yet.

        Raises:
            ViewError: The view raised something, or took longer than `seconds`; in the latter case its process is
                ended, and so it is if the file cannot be loaded.
        """
        until = monotonic() + seconds
        if not self._is_ready:
            self._receive(until, seconds, "loading")
            self._is_ready = True
        self._send(asked)
        page: str = self._receive(until, seconds, "drawing")["page"]
        return page

    def end(self) -> None:
        """End it at once."""
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(self._child.pid, signal.SIGKILL)
            else:
                self._child.kill()
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(SECONDS_TO_END)
        assert self._child.stdin is not None
        with suppress(OSError):
            self._child.stdin.close()

    @property
    def is_running(self) -> bool:
        """Whether it can be asked."""
        return self._child.poll() is None

    def _receive(self, until: float, seconds: float, what: str) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=max(0.0, until - monotonic()))
        except queue.Empty:
            self.end()
            raise ViewError(
                f"{self._name} was ended: {what} took longer than {seconds:g} seconds. Draw less, or allow more with "
                f"--view-seconds."
            ) from None
        if not line:
            raise ViewError(f"{self._name} ended its process{_how(self._child)}.")
        message: dict[str, Any] = json.loads(line)
        if "fault" in message:
            raise ViewError(f"{self._name} failed.", message["fault"])
        return message

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        with suppress(OSError):  # it is gone, which `_receive` notices
            self._child.stdin.write(json.dumps(message).encode() + b"\n")
            self._child.stdin.flush()

    def _listen(self) -> None:
        assert self._child.stdout is not None
        with self._child.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(b"")


def _how(child: subprocess.Popen[bytes]) -> str:
    """How a process ended, in words; empty if that is not known yet."""
    with suppress(subprocess.TimeoutExpired):
        status = child.wait(SECONDS_TO_END)
        return f" by signal {-status}" if status < 0 else f" with status {status}"
    return ""
