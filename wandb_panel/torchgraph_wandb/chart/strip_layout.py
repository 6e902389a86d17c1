"""The layout of a strip: a lane for NaN and infinity, a row above the axis, the axis, a row below it.

The values at the ends of the axis are to the left of a strip and the steps below it, so that no text covers the heat.
"""

from __future__ import annotations

from dataclasses import dataclass

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

COLUMN_STRIP_W = f"((column_w - {2 * SIDE + MIDDLE + 2 * VALUES}) / 2)"


def strip_x(side: str) -> str:
    """Expression for the left end of a strip in its column; `side` is 0 for values and 1 for gradients."""
    return f"({SIDE + VALUES} + {side}*({COLUMN_STRIP_W} + {MIDDLE + VALUES}))"


STRIP_W = "datum.w"
"""Expression for the width of a strip."""


@dataclass(frozen=True, slots=True)
class StripArea:
    """An area with strips in it: the column of a pinned call, or the comparison of runs.

    Attributes:
        name: Ends the names of its datasets, marks and signals.
        left: Expression for its left end in the panel.
        shown: Expression for the index of the step shown, of the run that a strip is of.
    """

    name: str
    left: str
    shown: str

    @property
    def box_y(self) -> str:
        """Expression for the upper end of a strip."""
        return f"(datum.top + {TITLE} - scroll_{self.name})"

    @property
    def heat_y(self) -> str:
        """Expression for the upper end of a strip's axis."""
        return f"(datum.top + {TITLE + LANE + RIM} - scroll_{self.name})"

    def value_y(self, value: str) -> str:
        """Expression for the place of a value on the axis that all runs share."""
        return f"({self.heat_y} + {HEAT}*(datum.axis_high - {value})/(datum.axis_high - datum.axis_low))"


def column_area(slot: int) -> StripArea:
    """The column of a pinned call."""
    return StripArea(str(slot), f"graph_w + {slot}*column_w", "shown")
