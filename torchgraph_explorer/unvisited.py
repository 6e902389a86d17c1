"""Takes plain objects from those that Python's garbage collector visits.

The collector visits everything there is when as much as a quarter of that is new, which takes 0.2 s beside torch and
more beside a large model. The graph of a large model has several objects for each call of a module: without this, the
first logged steps would wait for the collector several times.
"""

from __future__ import annotations

import ctypes
from gc import is_tracked
from typing import TypeVar

T = TypeVar("T")

_take = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("PyObject_GC_UnTrack", ctypes.pythonapi))


def unvisited(made: T) -> T:
    """`made`, which the collector does not visit from now on.

    It must be an object of ours that refers to plain values alone, or ends with the step and is part of no cycle then:
    it ends when nothing refers to it.
    """
    if is_tracked(made):
        _take(made)
    return made


class Unvisited:
    """The base of data classes of plain values, whose objects the collector does not visit."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """It refers to no object that refers to it."""
        _take(self)
