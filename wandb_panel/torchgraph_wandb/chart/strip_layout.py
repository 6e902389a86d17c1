"""The layout of a strip: a lane for NaN and infinity, a row above the axis, the axis, a row below it.

The values at the ends of the axis are to the left of a strip and the steps below it, so that no text covers the heat.
"""

from __future__ import annotations

SECTION, TITLE, GAP = 22, 17, 8
SIDE, MIDDLE = 6, 6
"""Margins beside the strips, and between the two of a tensor, in pixels."""

VALUES = 36
"""Width left of each strip, for the values at the ends of its axis."""

LANE, RIM, HEAT = 5, 4, 48
"""Heights of the lane, of each rim, and of the rows on the axis."""

STEPS = 14
"""Height below each strip, for the steps."""

BOX = LANE + 2 * RIM + HEAT
STRIP = BOX + STEPS

STRIP_W = f"((column_w - {2 * SIDE + MIDDLE + 2 * VALUES}) / 2)"


def strip_x(side: str) -> str:
    """Expression for the left end of a strip in its column; `side` is 0 for values and 1 for gradients."""
    return f"({SIDE + VALUES} + {side}*({STRIP_W} + {MIDDLE + VALUES}))"


def heat_y(slot: int) -> str:
    """Expression for the upper end of a strip's axis in its column."""
    return f"(datum.top + {TITLE + LANE + RIM} - scroll_{slot})"


def value_y(slot: int, value: str) -> str:
    """Expression for the place of a value on the axis that all runs share."""
    return f"({heat_y(slot)} + {HEAT}*(datum.axis_high - {value})/(datum.axis_high - datum.axis_low))"
