"""Where this machine's Chrome or Chromium is. The Makefile asks with `python -m tests.chrome`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

UNPACKED = Path(sys.prefix) / "headless-shell/usr/lib/chromium/chromium-headless-shell"
"""Where `.ci/unpack-headless-shell` puts it. It has no windows to draw, and takes a fifth less of the processor."""

COMMANDS = (
    "chromium-headless-shell",  # the same
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
APPLICATIONS = (
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
)


def find_chrome() -> str | None:
    """The browser that `CHROME` names, or that `make` unpacked, or one on the path, or a Mac's application; or None."""
    named = os.environ.get("CHROME")
    if named:
        return shutil.which(named)
    installed = (shutil.which(command) for command in (str(UNPACKED), *COMMANDS))
    applications = (str(path) for path in APPLICATIONS if path.exists())
    return next(filter(None, (*installed, *applications)), None)


if __name__ == "__main__":
    found = find_chrome()
    if found is None:
        sys.exit("no Chrome or Chromium found: looked at $CHROME, and on the path for " + ", ".join(COMMANDS))
    print(found)
