"""Text of a record, on a terminal."""

from __future__ import annotations

import sys


def shown(line: str) -> str:
    """`line` made safe for a terminal: a name in a record may contain control characters, or cannot be encoded."""
    safe = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)
    encoding = sys.stdout.encoding or "utf-8"
    return safe.encode(encoding, errors="backslashreplace").decode(encoding)
