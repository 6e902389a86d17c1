"""Loads the libraries that the build has compiled and that call functions of Python."""

from __future__ import annotations

import ctypes
import sysconfig
from pathlib import Path


def library_for_python(file: Path) -> ctypes.PyDLL | None:
    """The library in `file`; None where it was not built, or where this Python has not the interface that it needs.

    Its functions are called with the interpreter locked, and may raise.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    try:
        return ctypes.PyDLL(str(file))
    except OSError:
        return None
