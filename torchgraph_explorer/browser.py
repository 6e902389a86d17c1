"""Opens the user's browser, if it has a window of its own; or says how to reach this machine from the user's."""

from __future__ import annotations

import os
import socket
import threading
import webbrowser
from pathlib import PurePath

IN_TERMINAL = frozenset({"elinks", "links", "lynx", "w3m", "www-browser"})
"""Browsers that run in the terminal, and cannot show the viewer."""


def browse(url: str) -> None:
    """Open `url` in a browser with a window, if there is one. Returns at once; some browsers block their caller."""
    try:
        command = getattr(webbrowser.get(), "name", "")  # on some systems it has no name
    except webbrowser.Error:
        return
    if PurePath(command).name not in IN_TERMINAL:
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def over_ssh(port: int) -> str | None:
    """How the machine that the user sits at reaches `port` of this one, if this process was started over ssh."""
    if "SSH_CONNECTION" not in os.environ or os.environ.get("TERM_PROGRAM") == "vscode":  # that one forwards by itself
        return None
    return f"On your own machine, first run: ssh -L {port}:localhost:{port} {socket.gethostname()}"
