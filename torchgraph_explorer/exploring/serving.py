"""Serves a source to pages, from this process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from torchgraph_explorer.browser import browse, over_ssh
from torchgraph_explorer.console import info
from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.exploring.desk import Desk
from torchgraph_explorer.exploring.source import Source
from torchgraph_explorer.record.discovery import RunInfo
from torchgraph_explorer.server.open_runs import OpenRun, Runs
from torchgraph_explorer.server.process import SECONDS_BETWEEN_SIGNALS, listen_with
from torchgraph_explorer.server.routes import app


class NoRuns:
    """No run is beside the model (a `server.open_runs.RunSource`)."""

    logdir = ""

    def list(self) -> Sequence[RunInfo]:
        """None."""
        return ()

    def open(self, name: str) -> OpenRun:
        """Raise a NotFoundError."""
        raise NotFoundError(f"There is no run {name!r:.80} here.")


class Page:
    """A source that is served until `close`.

    Attributes:
        url: Where to open it, with the token that changes need.
    """

    def __init__(self, source: Source, *, host: str, port: int, logdir: str | None) -> None:
        """Serve `source`, beside the runs in `logdir`.

        Raises:
            OptionError: There is no such address, or no port near is free.
        """
        self._has_ended = threading.Event()
        self._desk = Desk(source, folder=Path.cwd(), on_end=self._has_ended.set)
        runs = NoRuns() if logdir is None else Runs(logdir)
        try:
            self._server = listen_with(app(runs, self._desk), host=host, port=port, changes=True)
        except BaseException:
            self._desk.close()
            raise
        self.url = self._server.url
        self._server.start()

    def show(self, *, with_browser: bool = True) -> None:
        """Say where the page is, and open a browser if there is a terminal."""
        info(f"Explore the gradient flow at {self.url}")
        if not self._server.is_exposed and (tunnel := over_ssh(self._server.port)):
            info(tunnel)
        if with_browser and sys.stdout.isatty():
            browse(self.url)

    def wait(self) -> None:
        """Wait until a page ends the session, or Ctrl-C; then close."""
        info("Press Ctrl-C, or End in the page, to go on.")
        try:
            while not self._has_ended.wait(SECONDS_BETWEEN_SIGNALS):
                """On Windows, Ctrl-C is delivered only when a wait is over."""
        except KeyboardInterrupt:
            """The user has seen enough; the program goes on."""
        finally:
            self.close()

    def close(self) -> None:
        """Serve no more."""
        self._has_ended.set()
        self._desk.close()
        self._server.close()


def is_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return running is not None and hasattr(running, "kernel")
