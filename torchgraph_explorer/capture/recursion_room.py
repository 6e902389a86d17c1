"""Room on Python's stack for the frames that hooks add."""

from __future__ import annotations

import sys

from torchgraph_explorer import interrupts

LARGE = 100_000
"""A limit on recursion beyond this one is as good as none: a program meets the end of its stack's memory before."""


class RecursionRoom:
    """Python's limit on recursion, higher while a model is watched.

    Torch calls a module that has hooks by one more function of its own, also one that only the model itself has. So of
    a module that calls itself, or of modules deep within others, fewer levels would fit below the limit than unwatched.
    """

    def __init__(self) -> None:
        """Leave Python's recursion limit as the user has set it."""
        self._holders: set[int] = set()
        self._lock = interrupts.lock()
        self._before = self._ours = 0

    def hold(self, holder: object) -> None:
        """Make room until `release` is called with the same object."""
        with self._lock:
            self._holders.add(id(holder))
            before = sys.getrecursionlimit()
            if not self._ours and before < LARGE:
                self._before, self._ours = before, before + before // 2 + 200
                sys.setrecursionlimit(self._ours)

    def release(self, holder: object) -> None:
        """`holder` does not need it any more. May be called again, and for one that never did."""
        with self._lock:
            self._holders.discard(id(holder))
            if not self._holders and self._ours:
                self._put_back()

    def release_all(self) -> None:
        """Give the user's limit back, even if somebody still needs ours."""
        with self._lock:
            self._holders.clear()
            if self._ours:
                self._put_back()

    def _put_back(self) -> None:
        if sys.getrecursionlimit() == self._ours:  # otherwise the user has set another one since
            try:
                sys.setrecursionlimit(self._before)
            except RecursionError:  # this is called from deeper than that: the next time, then
                return
        self._ours = 0
