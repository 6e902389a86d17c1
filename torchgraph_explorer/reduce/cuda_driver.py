"""The driver of Nvidia GPUs, for what torch has no function."""

from __future__ import annotations

import ctypes
import sys
from functools import cache


@cache
def driver() -> ctypes.CDLL | None:
    """Its library; None where there is none."""
    try:
        return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None
