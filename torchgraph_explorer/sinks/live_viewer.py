"""The live viewer of a training: a server in a process of its own, so that it never holds the training's GIL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypedDict

from torchgraph_explorer import timeouts
from torchgraph_explorer.console import reason
from torchgraph_explorer.errors import TorchgraphError
from torchgraph_explorer.timeouts import NoAnswerError, in_time

SECONDS_TO_START = 30.0
SECONDS_TO_END = 5.0

CHILD = """
import sys
sys.path.append(sys.argv.pop(1))
from torchgraph_explorer.server.process import main
main()
"""
"""The program of the server's process. It finds this package even if only the training's `sys.path` has it."""

PACKAGE_ROOT = Path(__file__).parent.parent.parent


class ViewerError(TorchgraphError):
    """The live viewer cannot be started."""


class _ServerReport(TypedDict, total=False):
    """What a server reports of itself when it starts."""

    url: str
    port: int
    is_exposed: bool
    error: str


@dataclass(slots=True)
class _Process:
    """A server's process, its report, and how many watchers show something in it."""

    child: subprocess.Popen[bytes]
    report: _ServerReport
    users: int = 0


@dataclass(frozen=True, slots=True)
class ViewerProcess:
    """One watcher's share in a server.

    Attributes:
        url: Where to open it.
        port: The port it listens on; the one asked for may have been taken.
        is_exposed: Other machines can reach it.
    """

    url: str
    port: int
    is_exposed: bool
    _process: _Process = field(repr=False)

    def stop(self) -> None:
        """End the server, unless another watcher still shows something in it."""
        _SERVERS.leave(self._process)

    def wait(self) -> None:
        """Return when the server has ended, or raise KeyboardInterrupt."""
        self._process.child.wait()


class _Servers:
    """The servers that this process has started; watchers of one logdir share one until the last has stopped it."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str, int], _Process] = {}
        self._lock = threading.RLock()  # a signal's handler may close a watcher while another one is closed

    def join(self, address: tuple[str, str, int]) -> _Process:
        """The server of a logdir, host and port asked for; a new one if none runs.

        Raises:
            ViewerError: It did not start.
        """
        with self._lock:
            process = self.find(address)
            if process is None:
                process = self._running[address] = _start(*address)
            process.users += 1
            return process

    def leave(self, process: _Process) -> None:
        """End a server if this was its last watcher."""
        with self._lock:
            process.users -= 1
            if process.users == 0:
                _end(process.child)

    def find(self, address: tuple[str, str, int]) -> _Process | None:
        """The server at `address`, if it runs."""
        process = self._running.get(address)
        return process if process is not None and process.child.poll() is None else None


_SERVERS = _Servers()


def start_viewer(logdir: str, *, host: str, port: int) -> ViewerProcess:
    """A server of `logdir`, shared with other watchers that asked for the same.

    Raises:
        ViewerError: It did not start; says why.
    """
    process = _SERVERS.join(_address(logdir, host, port))
    report = process.report
    return ViewerProcess(report["url"], report["port"], report["is_exposed"], process)


def is_served(logdir: str, *, host: str, port: int) -> bool:
    """Whether `start_viewer` would find a server that runs."""
    return _SERVERS.find(_address(logdir, host, port)) is not None


def _address(logdir: str, host: str, port: int) -> tuple[str, str, int]:
    return (logdir if "://" in logdir else os.path.abspath(logdir), host, port)  # noqa: PTH100  (keeps a link's name)


def _start(logdir: str, host: str, port: int) -> _Process:
    if not sys.executable:
        raise ViewerError("this Python is part of another program, and its own command is not known.")
    command = [sys.executable, "-c", CHILD, str(PACKAGE_ROOT), logdir, f"--host={host}", f"--port={port}"]
    with _errors() as errors:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # when it closes, the child knows that this process has ended, however it ended
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if errors is None else errors,
                start_new_session=True,  # Ctrl-C in the terminal is for the training, not for the viewer
            )
        except (OSError, ValueError, subprocess.SubprocessError) as fault:
            raise ViewerError(f"the server's process did not start: {reason(fault)}.") from fault
        report = _first_report(child)
        if "url" in report:
            return _Process(child, report)
        _end(child)
        raise ViewerError(f"the server did not start: {report.get('error') or _last_line(errors)}")


def _errors() -> AbstractContextManager[IO[bytes] | None]:
    """A file for the server's stderr; None where there is no temporary folder, or it does not answer."""
    try:
        return in_time(tempfile.TemporaryFile, seconds=timeouts.SECONDS, too_late=lambda file: file.close())
    except (OSError, NoAnswerError):
        return nullcontext()


def _first_report(child: subprocess.Popen[bytes]) -> _ServerReport:
    """The line that the child writes once it listens; empty if it ended without one, or took too long."""
    assert child.stdout is not None
    timer = threading.Timer(SECONDS_TO_START, child.kill)
    try:
        timer.start()
    except RuntimeError as fault:
        return {"error": f"nothing can wait for it ({reason(fault)})."}
    try:
        report: _ServerReport = json.loads(child.stdout.readline() or b"{}")
    except ValueError:
        return {"error": "its first line of output is not its address."}
    finally:
        timer.cancel()
    return report


def _last_line(errors: IO[bytes] | None) -> str:
    if errors is None:
        return "the reason is unknown, since there is no temporary folder for its errors."
    errors.seek(0)
    lines = errors.read().decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), f"it did not say why in {SECONDS_TO_START:.0f} s.")


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a server. It only reads, so nothing is lost."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    child.terminate()  # workers that the training has forked may hold the other end of its stdin open
    try:
        child.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        child.kill()
        with suppress(subprocess.TimeoutExpired):  # the system keeps a process whose disk does not answer
            child.wait(SECONDS_TO_END)
    child.stdout.close()
