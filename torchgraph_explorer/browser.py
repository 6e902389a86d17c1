"""Opens the user's browser, if that is another window."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import PurePath

IN_TERMINAL = frozenset({"elinks", "links", "lynx", "w3m", "www-browser"})
"""Browsers that would take the terminal, and cannot show the viewer."""


def browse(url: str) -> None:
    """Open `url` in a browser, if there is one with a window. Does not wait, as some browsers let their caller do."""
    try:
        command = getattr(webbrowser.get(), "name", "")  # those of some systems have none
    except webbrowser.Error:
        return
    if PurePath(command).name not in IN_TERMINAL:
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
