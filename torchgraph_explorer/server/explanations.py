"""`api/explanation`: what a kind of finding means. See http_api.md."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from torchgraph_explorer.errors import NotFoundError, TorchgraphError
from torchgraph_explorer.findings.kinds.entries import explain
from torchgraph_explorer.findings.kinds.explanation import WORDS, Explanation
from torchgraph_explorer.findings.kinds.markdown import Block, Bullets, Line, Paragraph, Table

Json = dict[str, Any]


def explanation_answer(name: str) -> Json:
    """The entry of a kind, or of a section that entries refer to, as plain values without markup.

    Raises:
        NotFoundError: There is none of this name.
    """
    return _plain(explain(name))


def page_explanations(kinds: Iterable[str]) -> list[Json]:
    """The entries of `kinds`, and all that can be reached from them by links. A kind without an entry has none here."""
    found: dict[str, Json] = {}
    waiting = list(dict.fromkeys(kinds))
    with suppress(TorchgraphError):  # the package lacks the texts; the rest of the page is worth having
        while waiting:
            with suppress(NotFoundError):
                entry = explain(waiting.pop())
                found[entry.name] = _plain(entry)
                waiting += {*entry.leads_to, WORDS} - {*found, *waiting}
    return sorted(found.values(), key=lambda one: str(one["name"]))


def _plain(entry: Explanation) -> Json:
    return {
        "name": entry.name,
        "title": entry.title,
        "line": entry.line,
        "is_kind": entry.is_kind,
        "parts": [{"name": part.name, "blocks": [_block(block) for block in part.blocks]} for part in entry.parts],
    }


def _block(block: Block) -> Json:
    match block:
        case Paragraph(line=line):
            return {"text": _line(line)}
        case Bullets(items=items):
            return {"list": [_line(item) for item in items]}
        case Table(rows=rows):
            return {"table": [[_line(cell) for cell in row] for row in rows]}


def _line(line: Line) -> list[Json]:
    """The spans of a line, each without what is empty."""
    named = ({"text": span.text, "style": span.style, "link": span.link} for span in line)
    return [{name: value for name, value in one.items() if value} for one in named]
