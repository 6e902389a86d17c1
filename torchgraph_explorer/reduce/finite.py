"""Calls `finite.c`, where it was built: it finds NaN and infinity in a few microseconds."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from torch import Tensor

from torchgraph_explorer.native import library_for_python
from torchgraph_explorer.reduce.row_buffer import BUILT, PARTS_OF_TENSORS, exchange

IsFinite: TypeAlias = "Callable[[Tensor, bool], bool | None]"
"""Whether all elements of a tensor are finite, minus infinity left aside if the second argument is set; None for a
tensor that is not ordinary, not in order in host memory, empty, or not of floating point."""


@cache
def is_finite() -> IsFinite | None:
    """The function; None where it was not built, and before torch 2.10."""
    library = library_for_python(BUILT / "finite.so")
    if library is None:
        return None
    make = library.torchgraph_finite_function
    make.argtypes, make.restype = (ctypes.py_object, ctypes.c_void_p), ctypes.py_object
    found: IsFinite | None = make(PARTS_OF_TENSORS, exchange())
    return found
