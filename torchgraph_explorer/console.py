"""Prints messages to stderr, where they do not mix with results and progress bars on stdout.

Everything that this package prints while a model trains is printed here. No function here raises, whatever `sys.stderr`
and `warnings.showwarning` are: training must not end because a message could not be shown. A KeyboardInterrupt is the
user's and passes.
"""

from __future__ import annotations

import sys
import warnings

from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.printable import LONGEST_TEXT, printable


def info(sentence: str) -> None:
    """Write a line to stderr, marked as ours."""
    line = f"torchgraph: {sentence}\n"
    try:
        try:
            sys.stderr.write(line)
        except UnicodeEncodeError:  # a stream of the user's that encodes fewer letters
            sys.stderr.write(line.encode("ascii", "backslashreplace").decode("ascii"))
        sys.stderr.flush()
    except Exception:  # closed, None, or an object of the user's that raises anything
        return


def warn(sentence: str) -> None:
    """Warn of what is not recorded. Where warnings are errors, or cannot be shown, print a line instead."""
    try:
        warnings.warn(sentence, TorchgraphWarning, stacklevel=3)
    except Exception:
        info(sentence)


def reason(fault: BaseException) -> str:
    """The type and message of `fault`; only its type if the message cannot be made."""
    try:
        return printable(f"{type(fault).__name__}: {fault}", most=LONGEST_TEXT, lines=True)
    except Exception:  # an exception of the user's, whose __str__ raises
        return type(fault).__name__
