"""The views that the server shows (a `server.own_views.OwnViews`)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchgraph_explorer.errors import NotFoundError, OptionError
from torchgraph_explorer.own_views.html import fault_page
from torchgraph_explorer.own_views.process import ViewError, ViewProcess
from torchgraph_explorer.server.own_views import ViewInfo

MOST_WAITING = 4
"""Pages that are drawn or waited for at a time; the server has 8 threads."""

FUNCTION = "view"
"""The function that is taken if none is named."""


class View:
    """One function of one file. For many threads."""

    def __init__(self, text: str) -> None:
        """The view that `text` names: `FILE.py`, or `FILE.py:FUNCTION`.

        Raises:
            NotFoundError: There is no such file.
        """
        path, colon, function = text.rpartition(":")
        file, self.function = (path, function) if colon and path.endswith(".py") else (text, FUNCTION)
        if not Path(file).is_file():
            raise NotFoundError(f"--view {text}: there is no file {file}.")
        self.file = str(Path(file).resolve())
        self.name = Path(file).stem if self.function == FUNCTION else self.function
        self._lock = threading.Lock()
        self._process: ViewProcess | None = None
        self._loaded = ""

    @property
    def version(self) -> str:
        """Another one whenever the file was changed."""
        try:
            found = Path(self.file).stat()
        except OSError:
            return "gone"
        return f"{found.st_mtime_ns}.{found.st_size}"

    def page(self, asked: Mapping[str, Any], *, seconds: float, is_fresh: bool) -> str:
        """The page for a selection; from a new process if the file was changed, or `is_fresh`.

        Raises:
            ViewError: There is none.
        """
        with self._lock:
            version = self.version
            if self._process is not None and (is_fresh or version != self._loaded or not self._process.is_running):
                self._end()
            if self._process is None:
                self._process, self._loaded = ViewProcess(self.file, self.function), version
            return self._process.page(asked, seconds)

    def close(self) -> None:
        """End its process, also while it draws."""
        process = self._process
        if process is not None:
            process.end()

    def _end(self) -> None:
        assert self._process is not None
        self._process.end()
        self._process = None


class Views:
    """All views of a server."""

    def __init__(self, texts: Sequence[str], *, seconds: float) -> None:
        """The views that `texts` name; each may take so many seconds to draw.

        Raises:
            NotFoundError: There is no such file.
            OptionError: Two views have the same name, or no time is allowed.
        """
        self._views = {view.name: view for view in map(View, texts)}
        self._seconds = seconds
        self._turns = threading.BoundedSemaphore(MOST_WAITING)
        if len(self._views) < len(texts):
            names = ", ".join(self._views)
            raise OptionError(
                f"{len(texts)} views have {len(self._views)} names ({names}). Rename a file or a function."
            )
        if not seconds > 0:
            raise OptionError(f"--view-seconds {seconds:g} allows no time. Pass a number above 0.")

    def infos(self) -> list[ViewInfo]:
        """Their names, in the order in which they were given, and the versions of their files."""
        return [ViewInfo(view.name, view.version) for view in self._views.values()]

    def page(self, name: str, asked: Mapping[str, Any], *, is_fresh: bool) -> str:
        """The page of the view called `name`; one that says what is wrong if it fails.

        Raises:
            NotFoundError: There is no such view.
        """
        if name not in self._views:
            raise NotFoundError(f"There is no view {name!r:.80}. Views are {', '.join(self._views)}.")
        theme = str(asked["theme"])
        if not self._turns.acquire(blocking=False):
            return fault_page(f"{MOST_WAITING} pages are being drawn already. Try again.", "", theme=theme)
        try:
            return self._views[name].page(asked, seconds=self._seconds, is_fresh=is_fresh)
        except ViewError as fault:
            return fault_page(str(fault), fault.traceback, theme=theme)
        finally:
            self._turns.release()

    def close(self) -> None:
        """End all processes."""
        for view in self._views.values():
            view.close()
