"""What a kind of finding means: an entry, and its text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torchgraph_explorer.findings.kinds.markdown import Block, Bullets, Line, Paragraph, Span, Table, lines_of

WORDS = "words"
"""The section that says what the words in the entries mean."""

WIDTH = 80
"""Columns of a line at most."""

_INDENT = "  "
_NO_BREAK = "\u00a0"
"""Stands before a percent sign while lines are broken."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an entry.

    Attributes:
        name: Its heading, such as `What to do`; empty for text that has none.
        blocks: Its text.
    """

    name: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a kind of finding means, when it is reported, when it may be wrong, and what to do. Print it to read it.

    Attributes:
        name: The kind; or the name of a section that entries refer to, such as `the-loss`.
        title: The kind; or the heading of that section.
        line: What the kind means, in one line; empty for a section.
        group: The kinds, or sections, among which it is documented.
        is_kind: Whether it is a kind of finding.
        parts: The text.
    """

    name: str
    title: str
    line: str
    group: str
    is_kind: bool
    parts: tuple[Part, ...]

    @property
    def leads_to(self) -> tuple[str, ...]:
        """The names of the other entries that its text links to, in their order."""
        links = [span.link for part in self.parts for block in part.blocks for line in lines_of(block) for span in line]
        return tuple(dict.fromkeys(link[1:] for link in links if link.startswith("#")))

    def __str__(self) -> str:
        """The entry as text of at most 80 columns."""
        return as_text(self)


def as_text(entry: Explanation, width: int = WIDTH) -> str:
    """`entry` in lines of at most `width` columns."""
    lines = _wrapped(f"{entry.title}: {entry.line}" if entry.line else entry.title, width)
    for part in entry.parts:
        lines += ["", *([part.name] if part.name else [])]
        for number, block in enumerate(part.blocks):
            lines += [*([""] if number else []), *_block(block, width)]
    further = [*entry.leads_to, *([WORDS] if entry.is_kind else [])]
    if further:
        lines += ["", "See also", *(f"{_INDENT}torchgraph explain {name}" for name in further)]
    return "\n".join(lines)


def _block(block: Block, width: int) -> Iterator[str]:
    match block:
        case Paragraph(line=line):
            yield from _wrapped(_plain(line), width, indent=_INDENT)
        case Bullets(items=items):
            for item in items:
                yield from _wrapped(_plain(item), width, first=f"{_INDENT}- ", indent=f"{_INDENT}  ")
        case Table(rows=rows):
            for first, *rest in rows[1:]:
                cells = f"{_plain(first)}: {'; '.join(map(_plain, rest))}"
                yield from _wrapped(cells, width, first=f"{_INDENT}- ", indent=f"{_INDENT}  ")


def _plain(line: Line) -> str:
    return "".join(map(_word, line))


def _word(span: Span) -> str:
    text = f"`{span.text}`" if span.style == "code" else span.text
    return f"{text} ({span.link})" if "://" in span.link else text


def _wrapped(text: str, width: int, *, indent: str = "", first: str | None = None) -> list[str]:
    lines = textwrap.wrap(
        text.replace(" %", f"{_NO_BREAK}%"),
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def as_list(entries: Iterable[Explanation], width: int = WIDTH) -> str:
    """A line for each kind below the name of its group, and the names of the sections that entries refer to."""
    entries = [*entries]
    kinds = [one for one in entries if one.is_kind]
    column = max(len(one.name) for one in kinds) + 2
    lines, group = _wrapped("All kinds of findings. To read what one means: torchgraph explain KIND", width), ""
    for one in kinds:
        lines += ["", one.group] if one.group != group else []
        group = one.group
        lines += _wrapped(one.line, width, first=f"{_INDENT}{one.name:<{column}}", indent=" " * (column + len(_INDENT)))
    sections = _wrapped(", ".join(one.name for one in entries if not one.is_kind), width, indent=_INDENT)
    return "\n".join([*lines, "", "What entries refer to, to be read in the same way", *sections])
