"""`api/explanation`: what a kind of finding means, from a server and in an exported page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.findings.records import chain, module, recorded
from tests.server.asking import ask
from tests.server.pages import read_page
from torchgraph_explorer import Finding, open_run
from torchgraph_explorer.findings.kinds.entries import explanations
from torchgraph_explorer.server import explanations as answers
from torchgraph_explorer.server.export import export_page
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app


@pytest.fixture
def served(tmp_path: Path) -> App:
    return app(Runs(tmp_path))


def spans(answer: dict[str, Any]) -> Iterator[dict[str, str]]:
    for block in (block for part in answer["parts"] for block in part["blocks"]):
        cells = [cell for row in block.get("table", []) for cell in row]
        for line in (block.get("text", []), *block.get("list", []), *cells):
            yield from line


@pytest.mark.parametrize("name", sorted(explanations()))
def test_every_entry_is_answered_as_plain_values(name: str, served: App) -> None:
    answer = ask(served, "/api/explanation", {"kind": name}).json
    entry = explanations()[name]
    assert (answer["name"], answer["title"], answer["line"]) == (name, entry.title, entry.line)
    assert [part["name"] for part in answer["parts"]] == [part.name for part in entry.parts]
    assert [
        *{one["link"][1:] for one in spans(answer) if one.get("link", "").startswith("#")} - {*explanations()}
    ] == []
    assert {key for one in spans(answer) for key in one} <= {"text", "style", "link"}


def test_an_entry_has_lines_of_spans(served: App) -> None:
    answer = ask(served, "/api/explanation", {"kind": "dead-units"}).json
    reported = next(part for part in answer["parts"] if part["name"] == "When it is reported")
    paragraph, bullets = reported["blocks"]
    assert paragraph["text"][:2] == [{"text": "The output is that of a "}, {"text": "ReLU", "style": "code"}]
    assert {"text": "units", "link": "#units"} in bullets["list"][1]


@pytest.mark.parametrize("kind", ["loss-too-high", "", "<img src=x onerror=alert(1)>", "../../etc/passwd", "\x00"])
def test_a_kind_without_an_entry_is_not_found(kind: str, served: App) -> None:
    answer = ask(served, "/api/explanation", {"kind": kind})
    assert answer.status == 404
    assert answer.json["error"].startswith("There is no kind of finding")


def test_the_kind_has_to_be_given(served: App) -> None:
    assert ask(served, "/api/explanation").status == 400


def test_a_page_has_the_entries_of_its_findings_and_what_they_lead_to(tmp_path: Path) -> None:
    recorded(
        tmp_path,
        chain(module("drop_1", "Dropout", p="0.95")),
        [{("drop_1", "output", "output", "value"): [1.0, 2.0]}],
    )
    run = open_run(tmp_path)
    own = Finding(kind="loss-too-high", step=0, text="Text.")
    page = read_page(export_page(run, rules=[lambda _: [own]]))
    kinds = [one["kind"] for one in page.model["findings"]["findings"]]
    assert sorted(kinds) == ["dropout-extreme", "loss-too-high"]
    found = {one["name"]: one for one in page.meta["explanations"]}
    assert {"dropout-extreme", "words", "the-loss"} <= {*found}
    led_to = {one["link"][1:] for entry in found.values() for one in spans(entry) if one.get("link", "")[:1] == "#"}
    assert led_to - {*found} == set()
    assert found["dropout-extreme"] == answers.explanation_answer("dropout-extreme")
    assert len(found) < len(explanations()) / 2


def test_a_page_without_findings_has_no_entries() -> None:
    assert answers.page_explanations([]) == []


def test_a_page_is_exported_where_the_texts_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("torchgraph_explorer.findings.kinds.entries.SHIPPED", tmp_path)
    explanations.cache_clear()
    try:
        assert answers.page_explanations(["nan"]) == []
    finally:
        monkeypatch.undo()
        explanations.cache_clear()
