"""The heat of a strip, as images of a pixel for each step and row."""

from __future__ import annotations

from torchgraph_wandb.chart.decoding import flag
from torchgraph_wandb.chart.vega import Spec, formula
from torchgraph_wandb.heat_strips import HAS_INFINITY, HAS_NAN, INNER, ROWS
from torchgraph_wandb.text_encoding import ALPHABET, CODE_LETTERS, NOT_FINITE, NOT_RECORDED

IMAGES = {"heat": INNER, "above": 1, "below": 1, "lane": 2}
"""Rows of each image: what lies on the axis, above and below it, and the lane for NaN and infinity."""


def strip_images() -> list[Spec]:
    """Gives each strip its images, by their names."""
    return [transform for name, rows in IMAGES.items() for transform in _image(name, rows)]


def _image(name: str, rows: int) -> list[Spec]:
    if name == "lane":
        colours, opacity = "(datum.$x + datum.$y) % 2 ? paint.bad : paint.bad_soft", f"{_IS_BAD} ? 1 : 0"
    else:
        first = {"heat": "datum.$y + 1", "above": "0", "below": f"{ROWS - 1}"}[name]
        colours, opacity = _cell(first, "heat" if name == "heat" else "rim"), "1"
    return [
        formula(f"grid_{name}", f"{{width: step_count, height: {rows}, values: []}}"),
        {
            "type": "heatmap",
            "field": f"grid_{name}",
            "as": f"image_{name}",
            "color": {"expr": colours},
            "opacity": {"expr": opacity},
        },
    ]


_IS_BAD = f"{flag('datum.flags', 'datum.$x')} & {HAS_NAN | HAS_INFINITY}"


def _cell(row: str, scale: str) -> str:
    """The colour of a cell. What is not finite, and what was not recorded, have a pattern."""
    start = f"{CODE_LETTERS}*(datum.$x*{ROWS} + {row})"
    letters = f"substring(datum.cells, {start}, {start} + {CODE_LETTERS})"
    first = f"indexof(letters, substring(datum.cells, {start}, {start} + 1))"
    return (
        f"{letters} == '{_letters(0)}' ? paint.paper : "
        f"{letters} == '{_letters(NOT_RECORDED)}' ? ((datum.$x + datum.$y) % 3 ? paint.missing : paint.missing_ink) : "
        f"{letters} == '{_letters(NOT_FINITE)}' ? ((datum.$x + datum.$y) % 2 ? paint.bad : paint.bad_soft) : "
        f"paint.{scale}[{first}]"
    )


def _letters(code: int) -> str:
    return ALPHABET[code >> 6] + ALPHABET[code & 63]
