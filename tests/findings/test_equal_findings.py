"""Findings that say the same; tests/contracts/equal_findings.json has the cases, for the viewer as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torchgraph_explorer import Finding
from torchgraph_explorer.findings.equal import span, together
from torchgraph_explorer.findings.report import as_markdown, as_text

CASES = json.loads((Path(__file__).parents[1] / "contracts/equal_findings.json").read_text(encoding="utf-8"))


def findings_of(case: dict[str, Any]) -> list[Finding]:
    found: list[Finding] = []
    for one in case["findings"]:
        fields = {"kind": "unused-module", "step": 0, "text": "It is never called.", **one}
        found.append(Finding(**{**fields, "causes": tuple(found[at] for at in one.get("causes", []))}))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_those_that_say_the_same_of_neighbours_stand_together(case: dict[str, Any]) -> None:
    found = findings_of(case)
    numbers = {id(one): number for number, one in enumerate(found)}
    groups = [[numbers[id(one)] for one in some] for some in together(found) if not some[0].causes]
    assert groups == case["groups"]
    assert sorted(numbers[id(one)] for some in together(found) for one in some) == [*range(len(found))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_their_places_are_told_by_the_first_and_the_last(case: dict[str, Any]) -> None:
    names = [[case["findings"][at]["module"] for at in group] for group in case["groups"]]
    assert [span(some) if some[1:] else some[0] for some in names] == case["places"]


def unused(count: int) -> list[Finding]:
    modules = [f"blocks.{number}.fc" for number in range(count)]
    return [Finding(kind="k", step=0, module=one, text=f"`{one}` is idle.", advice="Call it.") for one in modules]


def test_the_text_has_them_once_with_the_names_of_all() -> None:
    assert as_text({"net": unused(3)}).splitlines() == [
        "model net",
        "  warning  k at blocks.0–2.fc (3 modules), step 0",
        "    `blocks.0.fc` is idle.",
        "    The same holds for `blocks.1.fc` and `blocks.2.fc`.",
        "    Try: Call it.",
    ]


def test_the_names_of_very_many_are_counted() -> None:
    assert "`blocks.12.fc` and 187 more modules." in as_text({"net": unused(200)})


def test_markdown_has_them_once_as_well() -> None:
    [line] = [line for line in as_markdown("run", {"net": unused(3)}).splitlines() if line.startswith("- ")]
    same = "The same holds for `blocks.1.fc` and `blocks.2.fc`."
    assert line == f"- **k** (warning) at blocks.0–2.fc (3 modules), step 0: `blocks.0.fc` is idle. {same} *Call it.*"
