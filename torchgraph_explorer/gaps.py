"""Which logged steps are missing from a record."""

from __future__ import annotations

from dataclasses import dataclass

_MOST_GAPS = 8
"""Gaps that are listed one by one."""


@dataclass(slots=True)
class _Gap:
    """Consecutive logged steps that are not recorded."""

    first: int
    last: int
    count: int

    def __str__(self) -> str:
        return f"{self.first}" if self.count == 1 else f"{self.first} to {self.last}"


class Missing:
    """Counts the logged steps that are not recorded. A step that is recorded ends a gap."""

    def __init__(self) -> None:
        self._gaps: list[_Gap] = []
        self._is_open = False

    def __bool__(self) -> bool:
        return bool(self._gaps)

    def add(self, step: int) -> None:
        """`step` is not recorded."""
        if self._gaps and (self._is_open or len(self._gaps) == _MOST_GAPS):
            gap = self._gaps[-1]  # of many gaps, the last one includes all further ones
            gap.last, gap.count = step, gap.count + 1
        else:
            self._gaps.append(_Gap(step, step, 1))
        self._is_open = True

    def end(self) -> None:
        """The next step is recorded."""
        self._is_open = False

    def __str__(self) -> str:
        """`3 logged steps (10 to 30)`."""
        count = sum(gap.count for gap in self._gaps)
        return f"{count} logged step{'s' * (count != 1)} ({', '.join(map(str, self._gaps))})"
