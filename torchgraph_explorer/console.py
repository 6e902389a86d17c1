"""Prints messages to stderr, where they do not mix with results and progress bars on stdout.

Everything that this package prints while a model trains is printed here. No function here raises, whatever `sys.stderr`
and `warnings.showwarning` are: training must not end because a message could not be shown. A KeyboardInterrupt is the
user's and passes.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.printable import LONGEST_TEXT, escaped, printable


def info(sentence: str) -> None:
    """Write a line to stderr, marked as ours. A name in it, as of a folder, may contain control characters."""
    line = f"torchgraph: {escaped(sentence)}\n"
    try:
        try:
            sys.stderr.write(line)
        except UnicodeEncodeError:  # a stream of the user's that encodes fewer letters
            sys.stderr.write(line.encode("ascii", "backslashreplace").decode("ascii"))
        sys.stderr.flush()
    except Exception:  # closed, None, or an object of the user's that raises anything
        return


NOT_THE_USERS = frozenset(
    ("torchgraph_explorer", "torchgraph_tensorboard", "torchgraph_wandb", "torch", "threading", "contextlib", "weakref")
)
"""Packages whose lines say nothing to whoever reads a warning."""


def warn(sentence: str) -> None:
    """Warn of what is not recorded, at the line of the user's code that led here if there is one.

    Where warnings are errors, or cannot be shown, print a line instead.
    """
    try:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not _is_the_users(frame):
            frame = frame.f_back
        if frame is None:  # in a thread of ours, whose line says nothing either
            frame_globals, file, line = globals(), "torchgraph", 0
        else:
            frame_globals, file, line = frame.f_globals, frame.f_code.co_filename, frame.f_lineno
        registry: Any = frame_globals.setdefault("__warningregistry__", {})  # as `warnings.warn` does
        warnings.warn_explicit(sentence, TorchgraphWarning, file, line, frame_globals.get("__name__"), registry)
    except Exception:
        info(sentence)


MOST_WARNINGS = 100
"""How many sentences `warn_once` shows."""

warned: set[str] = set()
"""Those that it has shown."""


def warn_once(sentence: str) -> None:
    """Warn of a fault that no watcher could take, once in this process: it may come with each call of a hook."""
    if sentence not in warned and len(warned) < MOST_WARNINGS:
        warned.add(sentence)
        warn(sentence)


def _is_the_users(frame: FrameType) -> bool:
    """Whether it runs code that a reader knows; what torch generates is in no module."""
    name = frame.f_globals.get("__name__")
    return isinstance(name, str) and name.partition(".")[0] not in NOT_THE_USERS


def reason(fault: BaseException) -> str:
    """The type and message of `fault`; only its type if the message cannot be made."""
    try:
        return printable(f"{type(fault).__name__}: {fault}", most=LONGEST_TEXT, lines=True)
    except Exception:  # an exception of the user's, whose __str__ raises
        return type(fault).__name__
