"""Reads the part of Markdown in which the kinds of findings are documented: paragraphs, lists and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Style: TypeAlias = Literal["", "code", "emphasis", "strong"]


@dataclass(frozen=True, slots=True)
class Span:
    """Some words of a line.

    Attributes:
        text: The words, without any markup.
        style: How they are set; empty for plain words.
        link: Where they lead, as it is written: `#the-loss`, `measuring.md` or an address on the web. Empty if nowhere.
    """

    text: str
    style: Style = ""
    link: str = ""


Line: TypeAlias = "tuple[Span, ...]"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    line: Line


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list. No item has a list of its own."""

    items: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table. The first row is the header."""

    rows: tuple[tuple[Line, ...], ...]


Block: TypeAlias = "Paragraph | Bullets | Table"

_BULLET = re.compile(r"^- ", re.MULTILINE)
_MARKED = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\[(?P<label>[^\]]+)\]\((?P<link>[^)\s]+)\)"
    r"|\*\*(?P<strong>[^*]+)\*\*"
    r"|\*(?P<emphasis>[^*\s][^*]*)\*"
)
_SET: tuple[Style, ...] = ("strong", "emphasis")


def lines_of(block: Block) -> Iterator[Line]:
    """All lines in `block`, in their order."""
    match block:
        case Paragraph(line=line):
            yield line
        case Bullets(items=items):
            yield from items
        case Table(rows=rows):
            yield from (cell for row in rows for cell in row)


def blocks_of(text: str) -> tuple[Block, ...]:
    """The blocks of `text`, which empty lines separate."""
    return tuple(_block(part.strip("\n")) for part in re.split(r"\n\s*\n", text) if part.strip())


def _block(text: str) -> Block:
    if text.startswith("|"):
        first, _, *rest = text.split("\n")  # the second line draws the rule below the header
        return Table(tuple(tuple(line_of(cell) for cell in row.strip("| ").split("|")) for row in (first, *rest)))
    if _BULLET.match(text):
        return Bullets(tuple(line_of(item) for item in _BULLET.split(text)[1:]))
    return Paragraph(line_of(text))


def line_of(text: str) -> Line:
    """The words of `text`, whose line breaks count as spaces."""
    return tuple(_spans(" ".join(text.split())))


def _spans(text: str, style: Style = "", link: str = "") -> Iterator[Span]:
    at = 0
    for found in _MARKED.finditer(text):
        if found.start() > at:
            yield Span(text[at : found.start()], style, link)
        if found["code"]:
            yield Span(found["code"], "code", link)
        elif found["link"]:
            yield from _spans(found["label"], style, found["link"])
        else:
            inner = next(one for one in _SET if found[one])
            yield from _spans(found[inner], inner, link)
        at = found.end()
    if at < len(text):
        yield Span(text[at:], style, link)
