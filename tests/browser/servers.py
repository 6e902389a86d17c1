"""The standalone server as a process, as a training starts it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests import warm
from tests.processes import wait_for
from torchgraph_explorer.sinks.live_viewer import CHILD, PACKAGE_ROOT


class ServerProcess:
    """Serves a logdir until it is stopped; it can be started again at the same address."""

    def __init__(self, logdir: Path) -> None:
        self.logdir, self.port = logdir, 0
        self.start()

    @property
    def url(self) -> str:
        """Of the viewer."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def start(self) -> None:
        """Listen on the port of before; at first on any that is free."""
        command = [sys.executable, "-c", CHILD, *self._arguments()]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._take(json.loads(self._process.stdout.readline()))

    def _arguments(self) -> list[str]:
        return [str(PACKAGE_ROOT), str(self.logdir), f"--port={self.port}"]

    def _take(self, said: dict[str, int]) -> None:
        assert self.port in (0, said["port"]), f"port {self.port} was taken meanwhile: {said}"
        self.port = said["port"]

    def stop(self) -> None:
        """Kill it, as when a machine goes down."""
        self._process.kill()
        self._process.communicate()


HELD = "import os; os.dup2(os.pipe()[0], 0)"
"""A server ends when its standard input does, which nobody closes here."""


class ForkedServer(ServerProcess):
    """The same, forked from a process that has imported it. To start one anew takes as long as to open its page."""

    def __init__(self, logdir: Path, *, before: str = "") -> None:
        """`before` runs first in the process."""
        self._program = "\n".join((HELD, before, CHILD))
        super().__init__(logdir)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._number

    def start(self) -> None:
        """Listen on the port of before; at first on any that is free."""
        modules = ("torchgraph_explorer.server.process",)
        with ExitStack() as starting:
            log = Path(starting.enter_context(tempfile.NamedTemporaryFile()).name)
            process = warm.started("-c", self._program, *self._arguments(), modules=modules, log=str(log))
            self._number = starting.enter_context(process)
            assert wait_for(lambda: "\n" in log.read_text())
            self._take(json.loads(log.read_text()))
            self._running = starting.pop_all()

    def stop(self) -> None:
        """Kill it."""
        self._running.close()
