"""The heat of a strip, as images with one pixel for each step and row."""

from __future__ import annotations

from torchgraph_wandb.chart.decoding import flag_at
from torchgraph_wandb.chart.vega import Spec, formula
from torchgraph_wandb.heat_strips import HAS_INFINITY, HAS_NAN, INNER, ROWS
from torchgraph_wandb.text_encoding import ALPHABET, CODE_WIDTH, NOT_FINITE, NOT_RECORDED

IMAGES = {"heat": INNER, "above": 1, "below": 1, "lane": 2}
"""Rows of each image: on the axis, above and below it, and the lane for NaN and infinity."""


def strip_images() -> list[Spec]:
    """Adds the images to each strip, as fields `image_<name>`."""
    return [transform for name, rows in IMAGES.items() for transform in _image(name, rows)]


def _image(name: str, rows: int) -> list[Spec]:
    if name == "lane":
        colours, opacity = "(datum.$x + datum.$y) % 2 ? paint.bad : paint.bad_soft", f"{_IS_NONFINITE} ? 1 : 0"
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


_IS_NONFINITE = f"{flag_at('datum.flags', 'datum.$x')} & {HAS_NAN | HAS_INFINITY}"


def _cell(row: str, scale: str) -> str:
    """The colour of a cell. Cells that are not finite or not recorded have a pattern."""
    start = f"{CODE_WIDTH}*(datum.$x*{ROWS} + {row})"
    text = f"substring(datum.cells, {start}, {start} + {CODE_WIDTH})"
    first = f"indexof(alphabet, substring(datum.cells, {start}, {start} + 1))"
    return (
        f"{text} == '{_encoded(0)}' ? paint.paper : "
        f"{text} == '{_encoded(NOT_RECORDED)}' ? ((datum.$x + datum.$y) % 3 ? paint.missing : paint.missing_ink) : "
        f"{text} == '{_encoded(NOT_FINITE)}' ? ((datum.$x + datum.$y) % 2 ? paint.bad : paint.bad_soft) : "
        f"paint.{scale}[{first}]"
    )


def _encoded(code: int) -> str:
    return ALPHABET[code >> 6] + ALPHABET[code & 63]
