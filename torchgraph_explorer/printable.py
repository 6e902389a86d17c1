"""Names as text that every terminal, page and file can hold.

A name may be any Python string: with lone surrogates, which UTF-8 cannot encode, with control characters, or a megabyte
long. The record makes every name printable when it writes it.
"""

from __future__ import annotations

import re
from hashlib import sha256

LONGEST = 1_000
"""The most characters of a name that are kept."""

LONGEST_TEXT = 10_000
"""The most characters of a sentence, or of a module's `extra_repr`, that are kept."""

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_REVERSING = "\u202a-\u202e\u2066-\u2069"
_NAME = re.compile(f"[{_CONTROLS}\t\n\u2028\u2029{_REVERSING}\ud800-\udfff]")
_LINES = re.compile(f"[{_CONTROLS}{_REVERSING}\ud800-\udfff]")


def escaped(text: str) -> str:
    """`text` on one line of a terminal, whatever it contains: line feeds and control characters are escaped."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def printable(name: str, *, most: int = LONGEST, lines: bool = False) -> str:
    """`name` itself if it is printable and has at most `most` characters; `lines` allows line feeds and tabs.

    Otherwise unprintable characters are escaped, the rest is cut off, and a hash of the whole name is added. So two
    different names stay different, and the same name always gives the same text.
    """
    unprintable = _LINES if lines else _NAME
    if len(name) <= most and not unprintable.search(name):
        return name
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    escaped = unprintable.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), name[:most])
    return f"{escaped[:most]}~{mark}"


def printable_path(name: str) -> str:
    """`printable` for each part of the qualified name of a module, so that it still names a submodule."""
    if len(name) <= LONGEST and not _NAME.search(name):
        return name
    return ".".join(map(printable, name.split(".")))
