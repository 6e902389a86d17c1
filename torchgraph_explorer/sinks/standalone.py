"""The live viewer of a training: a server in a process of its own, so that it never has the training's GIL."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field

from torchgraph_explorer.errors import TorchgraphError

SECONDS_TO_START = 30.0
SECONDS_TO_END = 5.0


class ViewerError(TorchgraphError):
    """The live viewer cannot be started."""


@dataclass(slots=True)
class _Process:
    """A server process, and how many watchers show something in it."""

    child: subprocess.Popen[bytes]
    url: str
    port: int
    users: int = 0


@dataclass(frozen=True, slots=True)
class Viewer:
    """One watcher's share in a server process."""

    url: str
    port: int
    _place: tuple[str, str, int] = field(repr=False)

    def stop(self) -> None:
        """End the server, unless another watcher still shows something in it."""
        _release(self._place)

    def wait(self) -> None:
        """Come back when the server has ended, or with a KeyboardInterrupt."""
        process = _running.get(self._place)
        if process is not None:
            process.child.wait()


_running: dict[tuple[str, str, int], _Process] = {}
"""The servers of this process, by logdir, host and port asked for: watchers of one logdir share one."""

_lock = threading.Lock()


def start_viewer(logdir: str, *, host: str, port: int) -> Viewer:
    """A server of `logdir`, shared with other watchers that asked for the same.

    Raises:
        ViewerError: It did not start; says why.
    """
    place = (logdir, host, port)
    with _lock:
        process = _running.get(place)
        if process is None or process.child.poll() is not None:
            process = _running[place] = _start(logdir, host, port)
        process.users += 1
    return Viewer(process.url, process.port, place)


def _release(place: tuple[str, str, int]) -> None:
    with _lock:
        process = _running.get(place)
        if process is None:
            return
        process.users -= 1
        if process.users <= 0:
            del _running[place]
            _end(process.child)


def _start(logdir: str, host: str, port: int) -> _Process:
    command = [sys.executable, "-m", "torchgraph_explorer.server", logdir, "--host", host, "--port", str(port)]
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # its end tells the child that we are gone, however we went
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C in the terminal is for the training, not for the viewer
        )
        said = _first_line(child)
        if "url" in said:
            return _Process(child, str(said["url"]), int(str(said["port"])))
        _end(child)
        errors.seek(0)
        reason = said.get("error") or errors.read().decode(errors="replace").strip().splitlines()[-1:] or "no reason"
        raise ViewerError(f"the server did not start: {reason if isinstance(reason, str) else ''.join(reason)}")


def _first_line(child: subprocess.Popen[bytes]) -> dict[str, object]:
    """What the child says once it listens; empty if it ended without a word, or took too long."""
    assert child.stdout is not None
    timer = threading.Timer(SECONDS_TO_START, child.kill)
    timer.start()
    try:
        line = child.stdout.readline()
    finally:
        timer.cancel()
    said: dict[str, object] = json.loads(line) if line.strip() else {}
    return said


def _end(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.close()
    try:
        child.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stdout.close()
