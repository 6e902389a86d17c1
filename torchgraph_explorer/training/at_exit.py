"""Calls functions when this process ends, also if it was forked."""

from __future__ import annotations

import atexit
import multiprocessing
from collections.abc import Callable
from multiprocessing.util import Finalize


def at_exit(act: Callable[[], object]) -> None:
    """Call `act` when this process ends. It may be called twice."""
    atexit.register(act)
    in_child_at_exit(act)


def in_child_at_exit(act: Callable[[], object]) -> None:
    """Call `act` at the end of a child that `multiprocessing` has forked, which does not run `atexit`."""
    if multiprocessing.parent_process() is not None:
        Finalize(None, act, exitpriority=10)
