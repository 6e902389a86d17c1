"""The standalone server as a process, as a training starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from torchgraph_explorer.sinks.live_viewer import CHILD, PACKAGE_ROOT


class ServerProcess:
    """Serves a logdir until it is stopped; it can be started again at the same address."""

    def __init__(self, logdir: Path) -> None:
        self.logdir = logdir
        self.port = 0
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
        command = [sys.executable, "-c", CHILD, str(PACKAGE_ROOT), str(self.logdir), f"--port={self.port}"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        said = json.loads(self._process.stdout.readline())
        assert self.port in (0, said["port"]), f"port {self.port} was taken meanwhile: {said}"
        self.port = said["port"]

    def stop(self) -> None:
        """Kill it, as when a machine goes down."""
        self._process.kill()
        self._process.communicate()
