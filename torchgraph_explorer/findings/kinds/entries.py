"""The entries of docs/finding-kinds.md, one for each kind of finding, and one for each section that these refer to.

A wheel has the two pages in the folder `pages` here; everywhere else they are read from `docs`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from torchgraph_explorer.errors import NotFoundError, TorchgraphError
from torchgraph_explorer.findings.kinds.explanation import WORDS, Explanation, Part
from torchgraph_explorer.findings.kinds.markdown import blocks_of, line_of, lines_of

PAGES = ("finding-kinds.md", "findings.md")
"""The pages of `docs` that are read: the entries, and the overview with a line for each."""

SHIPPED = Path(__file__).parent / "pages"
"""Where the pages are in a wheel, which has no folder `docs`."""

_HEADING = re.compile(r"^(##|###) (.+)$", re.MULTILINE)
_PART = re.compile(r"^\*\*([^*]+)\.\*\*", re.MULTILINE)
_LISTED = re.compile(r"^- \[([\w-]+)\]\(finding-kinds\.md#\1\): (.+)$", re.MULTILINE)

MOST_NEAR = 3
"""Names that are offered for one that does not exist."""

_QUOTED = 80
"""Characters of a wrong name that a message repeats at most."""


def explain(kind: str) -> Explanation:
    """What a kind of finding means, when it is reported, when it may be wrong, and what to do.

    Args:
        kind: As in `Finding.kind`, such as `dead-units`; or the name of a section to which entries refer.

    Raises:
        NotFoundError: There is no such kind. A kind of your own rules has no entry.

    Example:
        >>> print(explain("dead-units"))
        dead-units: A ReLU, or many of its units, give only zeros.
        ...
    """
    name = "-".join(str(kind).lower().replace("_", " ").split())
    if name not in explanations():
        raise NotFoundError(_missing(str(kind), name))
    return explanations()[name]


def _missing(kind: str, name: str) -> str:
    *others, last = nearest(name[:_QUOTED]) or [""]
    near = f"{', '.join(others)} or {last}" if others else last
    hint = f" Did you mean {near}?" if near else ""
    return (
        f"There is no kind of finding {kind[:_QUOTED]!r}.{hint} `torchgraph explain` lists all kinds. "
        f"Kinds of rules of your own have no entry."
    )


def nearest(name: str) -> list[str]:
    """The names of entries that `name` may have been meant for: spelt alike, or else with a word of it.

    If no name has a word of it, the entries are named whose lines have one.
    """
    words = set(name.split("-"))
    alike = difflib.get_close_matches(name, explanations(), n=MOST_NEAR)
    named = [one for one in explanations() if words.intersection(one.split("-"))]
    told = [one.name for one in explanations().values() if words.intersection(re.findall(r"\w+", one.line.lower()))]
    return (alike or named or told)[:MOST_NEAR]


@lru_cache(maxsize=1)
def explanations() -> dict[str, Explanation]:
    """All entries by name, in the order of the page.

    Raises:
        TorchgraphError: The pages are missing.
    """
    page, overview = (_read(name) for name in PAGES)
    lines = {kind: "".join(span.text for span in line_of(line)) for kind, line in _LISTED.findall(overview)}
    return {one.name: one for one in _entries(page, lines)}


def _read(name: str) -> str:
    folder = SHIPPED if SHIPPED.is_dir() else Path(__file__).parents[3] / "docs"
    try:
        return (folder / name).read_text(encoding="utf-8")
    except OSError as fault:
        raise TorchgraphError(
            f"What findings mean cannot be read: {folder / name} is missing ({fault.strerror}). "
            f"Install the package again, as a wheel or from a whole clone."
        ) from fault


def _entries(page: str, lines: dict[str, str]) -> Iterator[Explanation]:
    group, of_group = "", ""
    _, *pieces = _HEADING.split(page)
    for level, title, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        parts = tuple(_parts(text))
        if level == "##":
            group, of_group = title, text
            if _name_of(title) == WORDS:
                yield Explanation(WORDS, title, "", group, is_kind=False, parts=parts)
            continue
        is_kind = any(part.name == "What it means" for part in parts)
        entry = Explanation(_name_of(title), title, lines.get(title, ""), group, is_kind=is_kind, parts=parts)
        yield _with_group(entry, of_group) if is_kind else entry


def _with_group(entry: Explanation, text: str) -> Explanation:
    """`entry` with what is said of all kinds of its group, and with a line in any case."""
    shared = (Part(entry.group, blocks_of(text)),) if text.strip() else ()
    line = entry.line or "".join(span.text for span in next(lines_of(entry.parts[0].blocks[0])))
    return replace(entry, line=line, parts=(*entry.parts, *shared))


def _name_of(heading: str) -> str:
    """The anchor that GitHub and Sphinx give to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _parts(text: str) -> Iterator[Part]:
    first, *pieces = _PART.split(text)
    if first.strip():
        yield Part("", blocks_of(first))
    for name, part in zip(pieces[::2], pieces[1::2], strict=True):
        yield Part(name, blocks_of(part))
