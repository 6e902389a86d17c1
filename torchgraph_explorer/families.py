"""Families of module classes, and their colours. The table is `families.json`, which the viewer reads too."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TABLE: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Colours:
    """The colour of a family in the light and in the dark theme, as `#rrggbb`."""

    light: str
    dark: str


FAMILIES: dict[str, Colours] = {name: Colours(**colours) for name, colours in _TABLE["families"].items()}
"""The families, in the order in which legends list them."""

_RULES = [(re.compile(pattern, re.IGNORECASE | re.ASCII), family) for pattern, family in _TABLE["rules"]]
"""The first pattern that is found in a class's name gives its family."""


def family_of(class_name: str, *, has_inside: bool) -> str:
    """The family of a class. A class with an inside that is not of a more specific family is a container."""
    family = next((family for pattern, family in _RULES if pattern.search(class_name)), "other")
    return "container" if has_inside and family in ("other", "convolution", "linear") else family
