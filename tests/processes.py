"""Processes of a test: started as a user starts them, asked over HTTP, and ended for sure."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

SECONDS = 60.0


@contextmanager
def python(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A Python process with its standard streams as pipes, of a group of its own."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    process = subprocess.Popen([sys.executable, *arguments], text=True, start_new_session=True, **streams)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def torchgraph(*arguments: str) -> list[str]:
    """What to give `python` to run the command line."""
    return ["-c", "import sys; from torchgraph_explorer.cli import main; sys.exit(main())", *arguments]


def fetch(url: str) -> Any:
    """The JSON at `url`."""
    with urlopen(url, timeout=10) as answer:
        return json.load(answer)


def answers(url: str) -> bool:
    """A server of ours is there."""
    try:
        return bool(fetch(f"{url}api/health")["product"] == "torchgraph_explorer")
    except (URLError, OSError):
        return False


def wait_for(claim: Callable[[], bool], seconds: float = SECONDS) -> bool:
    """Whether `claim` becomes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if claim():
            return True
        time.sleep(0.05)
    return claim()


@contextmanager
def taken_port(host: str = "127.0.0.1") -> Iterator[int]:
    """A port on which somebody else listens."""
    with socket.create_server((host, 0)) as other:
        yield int(other.getsockname()[1])
