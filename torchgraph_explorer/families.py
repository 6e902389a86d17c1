"""Families of module classes, by which nodes are coloured.

`families.json` has the rules and the colours. The viewer is built with the same file (web/src/graph/families.ts).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

_FILE: Final = MappingProxyType(json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Colours:
    """A family's colour, as `#rrggbb`, in the light theme and in the dark one."""

    light: str
    dark: str


FAMILIES: dict[str, Colours] = {family: Colours(**colours) for family, colours in _FILE["colours"].items()}
"""The colours of each family, in the order in which legends name them."""

RULES = tuple((rule["family"], re.compile(rule["pattern"], re.IGNORECASE | re.ASCII)) for rule in _FILE["rules"])
"""Families and patterns of class names. The first pattern that is found in a name gives its family."""

_MAY_HOLD_OTHERS = frozenset({"convolution", "linear"})


def family_of(class_name: str, *, has_inside: bool) -> str:
    """The family of a class.

    A call that has an inside is a container where no rule fits its class, or where that would be a single layer.
    """
    family = next((family for family, pattern in RULES if pattern.search(class_name)), None)
    if has_inside and (family is None or family in _MAY_HOLD_OTHERS):
        return "container"
    return family or "other"
