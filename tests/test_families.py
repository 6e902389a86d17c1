"""Which family a class is of; tests/contracts/families.json has the cases, for the viewer as well."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from torchgraph_explorer.families import FAMILIES, RULES, family_of

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "contracts" / "families.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['class_name']}, inside: {case['has_inside']}")
def test_a_class_is_of_the_family_that_the_contract_names(case: dict[str, Any]) -> None:
    assert family_of(case["class_name"], has_inside=case["has_inside"]) == case["family"]


def test_every_family_has_a_colour_in_each_theme() -> None:
    assert {family for family, _ in RULES} | {"other"} == set(FAMILIES)
    shown = [colour for one in FAMILIES.values() for colour in (one.light, one.dark)]
    assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in shown)
    assert len(set(shown)) == len(shown)
