"""Checks paths that users pass."""

from __future__ import annotations

import os

from torchgraph_explorer.errors import OptionError


def checked_path(given: object, advice: str, *, option: str = "", kind: str = "path") -> str:
    """`given`, the path of a file or folder, or a URL, with the home folder for a `~` at its beginning.

    Args:
        given: A str or a path object.
        advice: What the message says to pass instead.
        option: The parameter that it was passed as, such as `logdir=`, for the message.
        kind: What it should be, for the message.

    Raises:
        OptionError: It is no path.
    """
    path = os.fspath(given) if isinstance(given, (str, os.PathLike)) else None
    if not isinstance(path, str) or not path or "\0" in path:
        raise OptionError(f"{option}{given!r:.100} is not a {kind}. {advice}")
    return os.path.expanduser(path)  # noqa: PTH111  (a URL is no path)
