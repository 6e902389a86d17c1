"""Families of module classes; tests/contracts/families.json has the cases, for the viewer as well."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from torchgraph_explorer.families import FAMILIES, family_of

ROOT = Path(__file__).parents[1]
CONTRACT: dict[str, dict[str, str]] = json.loads(
    (ROOT / "tests" / "contracts" / "families.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    ("class_name", "has_inside", "family"),
    [
        pytest.param(name, where == "with an inside", family, id=f"{name} {where}")
        for where, cases in CONTRACT.items()
        for name, family in cases.items()
    ],
)
def test_a_class_is_of_the_family_that_its_name_says(class_name: str, has_inside: bool, family: str) -> None:
    assert family_of(class_name, has_inside=has_inside) == family


def test_the_viewers_style_sheet_has_the_colours_of_the_table() -> None:
    sheets = (ROOT / "torchgraph_explorer" / "web" / "src").rglob("*.css")
    colours: dict[str, list[str]] = {}
    for name, colour in re.findall(r"--family-(\w+): (#\w+);", "".join(sheet.read_text("utf-8") for sheet in sheets)):
        colours.setdefault(name, []).append(colour)
    assert colours == {name: [both.light, both.dark] for name, both in FAMILIES.items()}
