"""Which modules of a model are recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate


@dataclass(frozen=True, slots=True)
class ModuleSelection:
    """The modules that patterns choose, with what is in them, and with the modules that they are in.

    A pattern is a qualified name in which `*` stands for any characters, also dots, `?` for one and `[ab]` for one of
    some. It chooses the modules of this name and all modules in them.

    Attributes:
        only: Choose these; None for all.
        without: But not these.
    """

    only: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        """Every module is chosen."""
        return self.only is None and not self.without

    def chosen(self, names: Iterable[str]) -> frozenset[str]:
        """Those of `names` that are recorded. The model itself, named "", always is."""
        only, without = _pattern(self.only), _pattern(self.without or None)
        found = {""}
        for name in names:
            if (only is None or only.match(name)) and not (without is not None and without.match(name)):
                parts = name.split(".")
                found.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
        return frozenset(found)

    def idle(self, names: Iterable[str]) -> list[str]:
        """The patterns that match none of `names`."""
        known = list(names)
        return [one for one in (*(self.only or ()), *self.without) if not any(map(_compiled([one]).match, known))]


def _pattern(patterns: Sequence[str] | None) -> re.Pattern[str] | None:
    return None if patterns is None else _compiled(patterns)


def _compiled(patterns: Sequence[str]) -> re.Pattern[str]:
    """What matches one of `patterns`, or something in it. Without any, it matches nothing."""
    return re.compile("|".join(translate(form) for one in patterns for form in (one, f"{one}.*")) or "(?!)")
