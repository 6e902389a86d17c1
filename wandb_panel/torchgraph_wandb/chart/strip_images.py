"""The heat of a strip, as images with one pixel for each step and row."""

from __future__ import annotations

from torchgraph_wandb.chart.decoding import flag_at
from torchgraph_wandb.chart.strip_layout import HEAT
from torchgraph_wandb.chart.vega import Spec, formula
from torchgraph_wandb.heat_strips import HAS_INFINITY, HAS_NAN, INNER, ROWS
from torchgraph_wandb.text_encoding import ALPHABET, CODE_WIDTH, NOT_FINITE, NOT_RECORDED

IMAGES = {"heat": INNER, "above": 1, "below": 1, "lane": 2}
"""Rows of each image: on the axis, above and below it, and the lane for NaN and infinity."""


def strip_images() -> list[Spec]:
    """Adds the images to each strip, as fields `image_<name>`."""
    return [*_rim_rows(), *(transform for name, rows in IMAGES.items() for transform in _image(name, rows))]


def _image(name: str, rows: int) -> list[Spec]:
    height = str(rows)
    if name == "lane":
        colours, opacity = "(datum.$x + datum.$y) % 2 ? paint.bad : paint.bad_soft", f"{_IS_NONFINITE} ? 1 : 0"
    else:
        colours, opacity = _cell({"heat": _HEAT_ROW}.get(name, f"datum.{name}_row"), _RAMPS[name]), "1"
    if name == "heat":
        height, opacity = f"datum.is_own_axis ? {rows} : {HEAT}", f"datum.is_own_axis || ({_IS_IN_SIGHT}) ? 1 : 0"
    return [
        formula(f"grid_{name}", f"{{width: datum.count, height: {height}, values: []}}"),
        {
            "type": "heatmap",
            "field": f"grid_{name}",
            "as": f"image_{name}",
            "color": {"expr": colours},
            "opacity": {"expr": opacity},
        },
    ]


_RAMPS = {"heat": "heat", "above": "rim", "below": "rim"}

_VALUE = f"(datum.axis_high - (datum.$y + 0.5)/{HEAT}*(datum.axis_high - datum.axis_low))"
"""The value at a row of an image on the axis that several runs share."""

_IS_IN_SIGHT = f"{_VALUE} < datum.high && {_VALUE} > datum.low"


def _row_of(value: str) -> str:
    """The row, of the run's own, that has this value."""
    return f"clamp(1 + floor({INNER}*(datum.high - {value})/(datum.high - datum.low)), 0, {ROWS - 1})"


_HEAT_ROW = f"(datum.is_own_axis ? datum.$y + 1 : {_row_of(_VALUE)})"


def _rim_rows() -> list[Spec]:
    """The rows beyond the axis. Of a run whose own axis goes further, what it has at the end of the shared one."""
    is_within = "datum.is_own_axis || datum.high <= datum.axis_high", "datum.is_own_axis || datum.low >= datum.axis_low"
    return [
        formula("above_row", f"{is_within[0]} ? 0 : {_row_of('datum.axis_high')}"),
        formula("below_row", f"{is_within[1]} ? {ROWS - 1} : {_row_of('datum.axis_low')}"),
    ]


_IS_NONFINITE = f"{flag_at('datum.flags', 'datum.$x')} & {HAS_NAN | HAS_INFINITY}"


def _cell(row: str, scale: str) -> str:
    """The colour of a cell. Cells that are not finite or not recorded have a pattern."""
    start = f"{CODE_WIDTH}*(datum.$x*{ROWS} + {row})"
    text = f"substring(datum.cells, {start}, {start} + {CODE_WIDTH})"
    down = f"(datum.is_own_axis ? datum.$y : floor(datum.$y/{HEAT // INNER}))"
    place = f"indexof('{_encoded(0)}{_encoded(NOT_RECORDED)}{_encoded(NOT_FINITE)}', {text})"
    patterns = (
        "paint.paper",
        f"((datum.$x + {down}) % 3 ? paint.missing : paint.missing_ink)",
        f"((datum.$x + {down}) % 2 ? paint.bad : paint.bad_soft)",
    )
    first = f"indexof(alphabet, substring(datum.cells, {start}, {start} + 1))"
    return f"[{', '.join(patterns)}][{place}/2] || paint.{scale}[{first}]"


def _encoded(code: int) -> str:
    return ALPHABET[code >> 6] + ALPHABET[code & 63]
