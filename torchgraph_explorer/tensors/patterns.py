"""The language of names: globs over the qualified names of modules, parameters and attached tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from torchgraph_explorer.errors import OptionError

ROLES = ("input", "output", "param")
"""What may stand after the colon of a pattern."""

NEAR = 4
"""How many names an unmatched pattern is told of at most."""

_ATTACHED_NAME = re.compile(r"(.*?)(?: #\d+)?(?:[\[.].*)?", re.DOTALL)
"""The name that was given to `attach`, at the beginning of an attached tensor's path."""


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor of a module, as patterns see it.

    Attributes:
        module: Qualified name of the module.
        role: `input`, `output`, `param`, `attached` or `edge`.
        path: Of the tensor among those of its role, as in `schema.TensorInfo`.
    """

    module: str
    role: str
    path: str

    @property
    def names(self) -> tuple[str, ...]:
        """What a pattern without a role is compared with: `encoder` is what module `encoder` returns."""
        if self.role == "param":
            return (self._qualified(self.path),)
        if self.role == "attached":
            match = _ATTACHED_NAME.fullmatch(self.path)
            names = dict.fromkeys((self.path, match[1] if match else self.path))
            return (*names, *(self._qualified(name) for name in names if self.module))
        return (self.module,) if self.role == "output" else ()

    @property
    def pattern(self) -> str:
        """The shortest pattern that selects it."""
        return f"{self.module}:{self.role}" if self.role == "input" or not self.module else self.names[0]

    def _qualified(self, name: str) -> str:
        return f"{self.module}.{name}" if self.module else name


@dataclass(frozen=True, slots=True)
class Pattern:
    """A glob, for tensors of one role if `role` is given.

    Attributes:
        text: As it was written.
        glob: The part before the colon.
        role: The part after it; None without.
    """

    text: str
    glob: str
    role: str | None

    def matches(self, place: Place) -> bool:
        """Whether it selects the tensor at `place`."""
        if self.role is not None:
            return self.role == place.role and fnmatchcase(place.module, self.glob)
        return any(fnmatchcase(name, self.glob) for name in place.names)


def parsed(text: object) -> Pattern:
    """The pattern that `text` is.

    Raises:
        OptionError: It is none.
    """
    if not isinstance(text, str) or not text:
        raise OptionError(
            f"Keep({text!r}) names no tensor. Pass the name of a module, of a parameter or of an attached tensor, as a "
            f"str that may contain * and ?: 'head', 'encoder.*', 'head:input', '*.weight', ':output'."
        )
    glob, colon, role = text.rpartition(":")
    if not colon:
        return Pattern(text, text, None)
    if role not in ROLES or ":" in glob:
        raise OptionError(
            f"Keep({text!r}): after the colon, one of {', '.join(ROLES)} is allowed, as in '{glob or 'head'}:input'. "
            f"Write ? for a colon in the name of a module."
        )
    return Pattern(text, glob, role)


def nearest(pattern: Pattern, places: Iterable[Place]) -> list[str]:
    """Patterns that select tensors among `places`, those most like `pattern` first. None selects an edge."""
    known = list(dict.fromkeys(place.pattern for place in places if place.role in ROLES or place.names))
    return get_close_matches(pattern.text, known, NEAR, 0.3) or known[:NEAR]
