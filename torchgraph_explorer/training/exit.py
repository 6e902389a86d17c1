"""What is open when the process ends: it is flushed, and a viewer may be kept until Ctrl-C."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, NamedTuple

from torchgraph_explorer import timeouts
from torchgraph_explorer.console import info

if TYPE_CHECKING:
    from torchgraph_explorer.training.watcher import Watcher

_watchers: dict[Watcher, bool | None] = {}
"""Every watcher that is not closed, and whether to keep its viewer at exit. Process-wide, as exit is."""


_closed: dict[tuple[str, str], bool] = {}
"""Run folder and name of models whose watchers are closed, and whether steps of them were recorded."""


class Use(NamedTuple):
    """That a model is or was recorded to a run folder in this process.

    Attributes:
        run_dir: The folder, or URL.
        model: The model's name in it.
        is_open: It is still watched.
        has_steps: Steps of it were recorded.
    """

    run_dir: str
    model: str
    is_open: bool
    has_steps: bool


def add(watcher: Watcher, *, block: bool | None) -> None:
    """Close `watcher` at exit, and keep its viewer until Ctrl-C if `block`; None: if somebody is there to press it."""
    for closed in [each for each in _watchers if each.finished and each.viewer is None]:
        del _watchers[closed]
        for run_dir, model, _, has_steps in _uses_of(closed):
            _closed[run_dir, model] = has_steps or _closed.get((run_dir, model), False)
    _watchers[watcher] = block
    _register_in_child(close_all)


def open_watchers() -> tuple[Watcher, ...]:
    """Those that still watch, the oldest first."""
    return tuple(watcher for watcher in _watchers if not watcher.finished)


def uses() -> tuple[Use, ...]:
    """Where the watchers of this process record and have recorded to, the closed ones first."""
    past = (Use(run_dir, model, False, has_steps) for (run_dir, model), has_steps in _closed.items())
    return (*past, *(use for watcher in _watchers for use in _uses_of(watcher)))


def _uses_of(watcher: Watcher) -> tuple[Use, ...]:
    if watcher.run_dir is None:
        return ()
    return (Use(watcher.run_dir, watcher.name, not watcher.finished, watcher.has_steps),)


def register(act: Callable[[], object]) -> None:
    """Call `act` when this process ends, perhaps twice."""
    atexit.register(act)
    _register_in_child(act)


def _register_in_child(act: Callable[[], object]) -> None:
    """Call `act` also where `atexit` is passed over: children that `multiprocessing` has forked end without it."""
    if multiprocessing.parent_process() is not None:
        Finalize(None, act, exitpriority=10)


@atexit.register
def close_all() -> None:
    """Flush every watcher, keep the viewers that are to stay until Ctrl-C, and end them. May be called again."""
    until = timeouts.until_the_end()
    for watcher in _watchers:
        watcher.end()
    for watcher in _watchers:
        watcher.finish(until=until)
    for watcher, block in _watchers.items():
        if somebody_is_there() if block is None else block:
            _wait(watcher)
    for watcher in _watchers:
        watcher.close()


def somebody_is_there() -> bool:
    """The script runs in a terminal, in its foreground, neither under CI nor at an interactive prompt."""
    if os.environ.get("CI") or hasattr(sys, "ps1"):
        return False
    try:
        return sys.stdin.isatty() and sys.stderr.isatty() and _is_in_foreground()
    except Exception:  # a stream that is closed, None, or an object of the user's
        return False


def _is_in_foreground() -> bool:
    """Ctrl-C would come here: a shell's job in the background gets none."""
    return not hasattr(os, "tcgetpgrp") or os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


def _wait(watcher: Watcher) -> None:
    if watcher.viewer is None or os.getpid() != watcher.pid:
        return
    info(f"the training has ended; the viewer stays at {watcher.url} until you press Ctrl-C")
    try:
        watcher.viewer.wait()
    except KeyboardInterrupt:
        for each in _watchers:
            each.close()
