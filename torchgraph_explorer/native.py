"""Loads the libraries that the build has compiled from the C files.

The build loads this file by its path, so it imports nothing of the package.
"""

from __future__ import annotations

import ctypes
import hashlib
import sysconfig
from functools import cache
from pathlib import Path

MADE_FROM = "made_from"
"""The file beside the libraries of a folder that holds the digest of what they were compiled from."""


def digest_of(folder: Path) -> str:
    """A digest of the C files in `folder`, and of the headers there and in the folder around it."""
    found = hashlib.sha256()
    for file in (*sorted(folder.glob("*.[ch]")), *sorted(folder.parent.glob("*.h"))):
        found.update(file.name.encode() + b"\0" + file.read_bytes().replace(b"\r\n", b"\n"))
    return found.hexdigest()


def require_current(built: Path) -> None:
    """Refuse libraries in `built` that are older than the C files beside it.

    They are called with what those files expect, and others would end the process. In a clone that was installed as
    editable, `git pull` changes the C files and not the libraries.

    Raises:
        OSError: They are.
    """
    if not _is_current(built):
        raise OSError(f"the libraries in {built} were compiled from other C files than those in {built.parent}")


@cache
def _is_current(built: Path) -> bool:
    noted = built / MADE_FROM
    return not noted.is_file() or noted.read_text() == digest_of(built.parent)


def library(file: Path) -> ctypes.CDLL | None:
    """The library in `file`, which calls no function of Python; None where it was not built, or from other C files."""
    try:
        require_current(file.parent)
        return ctypes.CDLL(str(file))
    except OSError:
        return None


def library_for_python(file: Path) -> ctypes.PyDLL | None:
    """The library in `file`, which calls functions of Python; None where this Python has not the interface it needs.

    It is also None where the library was not built, or was compiled from other C files. Its functions are called with
    the interpreter locked, and may raise.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    try:
        require_current(file.parent)
        return ctypes.PyDLL(str(file))
    except OSError:
        return None
