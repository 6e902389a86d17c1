"""Names of tensors: `layer1`, `layer1#2:output[0]`, `encoder:input`, `attention`, `input[0]`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol, TypeVar

from torchgraph_explorer.errors import NotFoundError, OptionError

NEAR = 4
"""How many names an unknown name is told of at most."""

_NAME = re.compile(r"(?P<module>.*?)(?:#(?P<call>\d+))?(?::(?P<role>input|output)(?P<path>.*))?", re.DOTALL)
_MODELS_OWN = re.compile(r"(input|output)((?:[\[.].*)?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor is in a forward pass.

    Attributes:
        module: Qualified name of the module; empty for the model itself.
        call: Which call of that module, from 0.
        role: `input`, `output` or `attached`.
        path: Of the tensor among those of its role: `input[0]`, `output['logits']`, or the name that was attached.
    """

    module: str
    call: int
    role: str
    path: str

    def name(self, calls: int) -> str:
        """Its name, for a module that has so many calls."""
        called = self.module if calls == 1 else f"{self.module}#{self.call}"
        if self.role == "attached":
            return f"{called}.{self.path}" if called else self.path
        if not called:
            return self.path
        return called if self.path == "output" else f"{called}:{self.path}"


class Named(Protocol):
    """Something at a place."""

    @property
    def place(self) -> Place:
        """Where it is."""

    @property
    def name(self) -> str:
        """Its name."""


T = TypeVar("T", bound=Named)


def find(name: object, known: Sequence[T]) -> T:
    """The one of `known` that `name` means.

    Raises:
        NotFoundError: It means none of them.
        OptionError: It is no text, or means several.
    """
    if not isinstance(name, str):
        raise OptionError(f"{name!r:.80} is not the name of a tensor. Pass a str, such as 'layer1' or 'input[0]'.")
    found = [one for one in known if one.name == name] or _matching(name, known)
    if len(found) == 1:
        return found[0]
    if found:
        raise OptionError(f"{name!r} is the name of {len(found)} tensors: {_listed([one.name for one in found])}.")
    names = [one.name for one in known]
    near = get_close_matches(name, names, NEAR, 0.3) or names[:NEAR]
    raise NotFoundError(f"This forward pass has no tensor {name!r}. It has {_listed(near)}.")


def _matching(name: str, known: Sequence[T]) -> list[T]:
    attached = [one for one in known if one.place.role == "attached" and name in _attached_names(one.place)]
    if attached:
        return attached
    if (own := _MODELS_OWN.fullmatch(name)) is not None and not any(one.place.module == name for one in known):
        module, call, role, path = "", None, own[1], own[2]
    else:
        match = _NAME.fullmatch(name)
        assert match is not None  # every part of the pattern may be empty
        module, call, role, path = match["module"], match["call"], match["role"] or "output", match["path"] or ""
    found = [one for one in known if one.place.module == module and one.place.role == role]
    if call is not None:
        found = [one for one in found if one.place.call == int(call)]
    exact = [one for one in found if one.place.path == role + path]
    return exact or [one for one in found if not path]


def _attached_names(place: Place) -> tuple[str, ...]:
    return (place.path, f"{place.module}.{place.path}", f"{place.module}#{place.call}.{place.path}")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:NEAR]))
    return shown + (f" and {len(names) - NEAR} more" if len(names) > NEAR else "")
