"""Sizes of the x-ray, in pixels unless something else is said."""

from __future__ import annotations

BAR, NAMES, TICKS = 26, 16, 18
"""Heights of the bar, of the names of the runs, and of the steps below."""

BESIDE = 720
"""A panel as wide as this has the x-ray beside the graph; a smaller one has one of them at a time."""

LEAST_RUN, BETWEEN, RIGHT = 72, 10, 10
"""The least width of a run, the room between two, and the room right of the last one."""

LEAST_ROW, LARGEST_ROW, NAMED_ROW = 2, 26, 9
"""Heights of a row. Names are written in rows as high as the last one; of lower ones, of some."""

FOLDED_ROW, DEEP_ROW = 4, 9
"""Modules are folded so far that a row is as high as this; modules at a depth of 3 or more, so that it is named."""

MENU_ROW, MENU_W = 20, 178
RAMP = 10
"""Colours of the scale in the bar."""

MARK = 64
"""The mark of a finding, in square pixels."""
