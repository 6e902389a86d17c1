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
    return [*_spans(), *_rim_rows(), *(transform for name, rows in IMAGES.items() for transform in _image(name, rows))]


def _image(name: str, rows: int) -> list[Spec]:
    height = str(rows)
    if name == "lane":
        colours, opacity = "(datum.$x + datum.$y) % 2 ? paint.bad : paint.bad_soft", f"{_IS_NONFINITE} ? 1 : 0"
    else:
        colours, opacity = _cell({"heat": _HEAT_ROW}.get(name, f"datum.{name}_row"), _RAMPS[name]), "1"
    if name == "heat":
        height, opacity = (
            f"datum.is_own_axis ? {rows} : {HEAT}",
            f"datum.is_own_axis || {is_in_sight('datum.$y')} ? 1 : 0",
        )
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


def row_of(value: str, *, strip: str = "datum", first: int = 0, last: int = ROWS - 1) -> str:
    """The row, of the run's own, that has this value."""
    return f"clamp(1 + floor(({strip}.high - {value})/{strip}.row_span), {first}, {last})"


def is_in_sight(pixel: str, *, strip: str = "datum") -> str:
    """Whether any of the run's own rows lies at a pixel of the axis that several runs share."""
    upper = f"({strip}.axis_high - ({pixel})*{strip}.pixel_span)"
    return f"({upper} - {strip}.pixel_span < {strip}.high && {upper} > {strip}.low)"


def shared_row(pixel: str, *, strip: str = "datum") -> str:
    """The run's own row that is drawn at such a pixel.

    A pixel can be higher than many of the run's own rows, if its values are much smaller than those of another run.
    It shows the row of zero if that is among them: of all values, zeros are most often all in one row.
    """
    middle = f"{strip}.axis_high - ({pixel} + 0.5)*{strip}.pixel_span"
    return row_of(f"({pixel} == {strip}.zero_pixel ? 0 : {middle})", strip=strip, first=1, last=INNER)


def _spans() -> list[Spec]:
    """What a pixel of the shared axis spans, and a row of the run's own; and the pixel of zero, -1 without one."""
    has_zero = "datum.low <= 0 && datum.high >= 0"
    return [
        formula("pixel_span", f"(datum.axis_high - datum.axis_low)/{HEAT}"),
        formula("row_span", f"(datum.high - datum.low)/{INNER}"),
        formula("zero_pixel", f"{has_zero} ? clamp(floor(datum.axis_high/datum.pixel_span), 0, {HEAT - 1}) : -1"),
    ]


_HEAT_ROW = f"(datum.is_own_axis ? datum.$y + 1 : {shared_row('datum.$y')})"


def _rim_rows() -> list[Spec]:
    """The rows beyond the axis. Of a run whose own axis goes further, what it has at the end of the shared one."""
    is_within = "datum.is_own_axis || datum.high <= datum.axis_high", "datum.is_own_axis || datum.low >= datum.axis_low"
    return [
        formula("above_row", f"{is_within[0]} ? 0 : {row_of('datum.axis_high')}"),
        formula("below_row", f"{is_within[1]} ? {ROWS - 1} : {row_of('datum.axis_low')}"),
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
    first = f"indexof(alphabet, datum.cells[{start}])"
    return f"[{', '.join(patterns)}][{place}/2] || paint.{scale}[{first}]"


def _encoded(code: int) -> str:
    return ALPHABET[code >> 6] + ALPHABET[code & 63]
