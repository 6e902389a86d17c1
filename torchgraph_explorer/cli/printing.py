"""Text of a record, and warnings, on a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.printable import escaped

NARROWEST = 40
"""Columns of a line on a terminal at least."""

MOST_WARNINGS = 10
"""How many warnings are printed. A damaged run may have thousands."""


def shown(line: str) -> str:
    """`line` made safe for a terminal: a name in a record may contain control characters, or cannot be encoded."""
    encoding = sys.stdout.encoding or "utf-8"
    return escaped(line).encode(encoding, errors="backslashreplace").decode(encoding)


def print_text(text: str) -> None:
    """Print `text`. On a terminal, lines that do not fit are broken at words and keep their indentation.

    In a pipe or a file, lines stay whole, so that other programs can search in them.
    """
    columns = max(NARROWEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None
    for line in map(shown, text.split("\n")):
        print(line if columns is None else _fitted(line, columns))


def _fitted(line: str, columns: int) -> str:
    content = line.lstrip()
    indent = line[: len(line) - len(content)]
    broken = textwrap.wrap(
        content,
        columns,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return line if len(line) <= columns else "\n".join(broken)


@contextmanager
def short_warnings() -> Iterator[None]:
    """Within, a `TorchgraphWarning` is one line, as an error is: where our code raised it says nothing to users.

    After `MOST_WARNINGS` of them, the others are only counted, and their number is printed at the end.
    """
    before, printed = warnings.formatwarning, 0

    def short(message: Warning | str, category: type[Warning], *place: object) -> str:
        nonlocal printed
        if not issubclass(category, TorchgraphWarning):
            return before(message, category, *place)  # type: ignore[arg-type]
        printed += 1
        return f"{shown(f'torchgraph: warning: {message}')}\n" if printed <= MOST_WARNINGS else ""

    warnings.formatwarning = short  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.formatwarning = before
        if printed > MOST_WARNINGS:
            print(f"torchgraph: and {printed - MOST_WARNINGS} more warnings", file=sys.stderr)
