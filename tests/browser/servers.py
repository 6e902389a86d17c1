"""The standalone server as a process, as a training starts it."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests import warm
from tests.processes import wait_for
from torchgraph_explorer.sinks.live_viewer import CHILD, PACKAGE_ROOT

MODULES = ("torchgraph_explorer.server.process",)

HELD = "import os; os.dup2(os.pipe()[0], 0)"
"""It ends when its standard input does, which nobody closes here."""


class ServerProcess:
    """Serves a logdir until it is stopped; it can be started again at the same address."""

    def __init__(self, logdir: Path, *, before: str = "") -> None:
        """`before` runs first in the process."""
        self.logdir, self._program = logdir, "\n".join((HELD, before, CHILD))
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        """Of the viewer."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Listen on the port of before; at first on any that is free."""
        arguments = ["-c", self._program, str(PACKAGE_ROOT), str(self.logdir), f"--port={self.port}"]
        with ExitStack() as starting:
            log = Path(starting.enter_context(tempfile.NamedTemporaryFile()).name)
            self.pid = starting.enter_context(warm.started(*arguments, modules=MODULES, log=str(log)))
            assert wait_for(lambda: "\n" in log.read_text())
            said = json.loads(log.read_text())
            assert self.port in (0, said["port"]), f"port {self.port} was taken meanwhile: {said}"
            self.port = said["port"]
            self._running = starting.pop_all()

    def stop(self) -> None:
        """Kill it, as when a machine goes down."""
        self._running.close()
