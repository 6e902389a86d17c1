"""The end of the process: what is open is written to its end, and a viewer may stay until Ctrl-C."""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING

from torchgraph_explorer import timeouts
from torchgraph_explorer.console import info
from torchgraph_explorer.training.at_exit import in_child_at_exit
from torchgraph_explorer.training.process import this_process

if TYPE_CHECKING:
    from torchgraph_explorer.training.watcher import Watcher


def add(watcher: Watcher, *, block: bool | None) -> None:
    """Close `watcher` at exit, and keep its viewer until Ctrl-C if `block`; None: if the script is interactive."""
    this_process.add(watcher, block=block)
    in_child_at_exit(close_all)


@atexit.register
def close_all() -> None:
    """Finish every watcher, keep viewers that stay until Ctrl-C, and close all. May be called again."""
    until = timeouts.until_the_end()
    error = getattr(sys, "last_value", None)  # what has ended the process, if it was not caught
    for watcher in tuple(this_process.watchers):  # a user's `on_finding` may add one
        if isinstance(error, Exception):
            watcher.flag_exception(error)
        watcher.end()
    for watcher in tuple(this_process.watchers):
        watcher.finish(until=until)
    for watcher, block in tuple(this_process.watchers.items()):
        if is_interactive() if block is None else block:
            _wait(watcher)
    for watcher in tuple(this_process.watchers):
        watcher.close()


def is_interactive() -> bool:
    """Whether the script runs in the foreground of a terminal, where Ctrl-C works; not under CI, nor at a prompt."""
    if os.environ.get("CI") or hasattr(sys, "ps1"):
        return False
    try:
        return sys.stdin.isatty() and sys.stderr.isatty() and _is_in_foreground()
    except Exception:  # a stream that is closed, None, or an object of the user's
        return False


def _is_in_foreground() -> bool:
    """Whether Ctrl-C reaches this process: a shell's background job does not get it."""
    return not hasattr(os, "tcgetpgrp") or os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


def _wait(watcher: Watcher) -> None:
    if watcher.viewer is None or os.getpid() != watcher.pid:
        return
    info(f"the training has ended; the viewer stays at {watcher.url} until you press Ctrl-C")
    try:
        watcher.viewer.wait()
    except KeyboardInterrupt:
        for each in tuple(this_process.watchers):
            each.close()
