"""Calls `kept.c`, where it was built: it copies kept tensors without a step through Python for each."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from torch import Tensor

from torchgraph_explorer.native import library_for_python
from torchgraph_explorer.reduce.neurons import Samples
from torchgraph_explorer.reduce.room import Room
from torchgraph_explorer.reduce.row_buffer import BUILT, OF_TENSORS, PARTS_OF_TENSORS, exchange, library

IS_KEPT, IS_WHOLE, COMES_AGAIN, IS_GRADIENT = 1, 2, 4, 8
"""What is known of a series: its tensors are kept; whole; may come again unchanged; are gradients."""


class Taking(NamedTuple):
    """What copies the tensors of one step.

    Attributes:
        take: Copies a tensor of the series with this key; False if that is left to Python.
        take_measured: Like `take`, to be called right after `tensors.c` was asked to measure that tensor.
        measure: Makes statistics of neurons that were left for later, in any thread, after the last `take`.
    """

    take: Callable[[Any, Tensor], bool]
    take_measured: Callable[[Any, Tensor], bool]
    measure: Callable[[], None]


def taking(  # noqa: PLR0917  # in the order in which kept.c has them
    room: Room,
    dim: int,
    is_flagged: bool,
    plans: dict[Any, int],
    latest: dict[int, Any],
    taken: dict[Any, Any],
    unnamed: dict[Any, None],
    numbers: dict[int, Samples],
) -> Taking | None:
    """What copies tensors into `room`, and notes the copies in these; None where it was not built."""
    begin = _functions()
    if begin is None:
        return None
    return Taking(*begin(room.address, dim, is_flagged, plans, latest, taken, unnamed, numbers, room.current, room))


@cache
def _functions() -> Callable[..., list[Any]] | None:
    of_python, of_tensors = library_for_python(BUILT / "kept.so"), library_for_python(BUILT / OF_TENSORS)
    if of_python is None or of_tensors is None:
        return None
    of_tensors.torchgraph_measured.restype = ctypes.c_void_p
    make = of_python.torchgraph_kept_functions
    make.argtypes, make.restype = (ctypes.py_object, *[ctypes.c_void_p] * 3), ctypes.py_object
    keep = ctypes.cast(library().torchgraph_keep_samples, ctypes.c_void_p)
    parts, measured = (*PARTS_OF_TENSORS, "dtype", "shape", "_version"), of_tensors.torchgraph_measured()
    found: Callable[..., list[Any]] | None = make(parts, exchange(), keep, measured)
    return found
