"""The colours of the chart, light and dark, which are those of the viewer.

W&B does not tell a specification which theme it uses. So the chart draws its own background, and the theme is a setting
of the panel and a button.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from torchgraph_explorer.families import FAMILIES
from torchgraph_explorer.xray.colours import STOPS
from torchgraph_wandb.chart.vega import Spec, derived, listed, on, quoted, state
from torchgraph_wandb.text_encoding import ALPHABET, SHARE_STEPS, TOP

LIGHT: dict[str, str] = {
    "paper": "#ffffff",
    "bar": "#f7f8fa",
    "canvas": "#f5f6f8",
    "line": "#e1e4ea",
    "frame": "#c6cbd5",
    "control": "#8a92a0",
    "ink": "#1a1f2b",
    "soft": "#4a5364",
    "faint": "#656e7e",
    "accent": "#2458d3",
    "glow": "#e7edfc",
    "bad": "#c81414",
    "bad_ink": "#ffffff",
    "bad_soft": "#fde7e6",
    "warn": "#8a5a00",
    "warn_soft": "#fdf3dc",
    "warn_mark": "#d9820f",
    "loss": "#2458d3",
    "zero": "#9aa0a8",  # no colour of the x-ray is grey
    "missing": "#e3e6ec",
    "missing_ink": "#a9b1bf",
    "edge": "#7d8798",
    "edge_soft": "#b4bbc7",
    "tip": "#1a1f2b",
    "tip_ink": "#ffffff",
}
DARK: dict[str, str] = {
    "paper": "#171b23",
    "bar": "#1c212b",
    "canvas": "#0f1218",
    "line": "#2a303d",
    "frame": "#3c4454",
    "control": "#6f7889",
    "ink": "#e7eaf0",
    "soft": "#b3bbc9",
    "faint": "#8f98a8",
    "accent": "#7ca3ff",
    "glow": "#1f2b49",
    "bad": "#ff6258",
    "bad_ink": "#2a0503",
    "bad_soft": "#47191a",
    "warn": "#e6b450",
    "warn_soft": "#33290f",
    "warn_mark": "#f0a83c",
    "loss": "#7ca3ff",
    "zero": "#9aa0a8",
    "missing": "#2b313d",
    "missing_ink": "#545e70",
    "edge": "#8f98a8",
    "edge_soft": "#566074",
    "tip": "#e7eaf0",
    "tip_ink": "#171b23",
}

HEAT = (
    ("#e6edfb", "#bcd0f5", "#6f97e6", "#2f5fc8", "#12317d"),
    ("#1f2c4a", "#27427c", "#345aa8", "#7ba6f2", "#e2ecff"),
)
RIM = (
    ("#fdeed9", "#f9d8a6", "#eda94f", "#d07a1b", "#8f4800"),
    ("#38291a", "#5a411e", "#8f6226", "#d18f35", "#ffd591"),
)
"""The colour ramps of a strip, from few values to all, light and dark. `RIM` is for values beyond the axis."""

FEWEST = 1 / 256
"""Up to this share of a step's values, a row has the first colour. Each doubling from there is the same distance."""


def by_character(ends: Sequence[str]) -> tuple[str, ...]:
    """A colour for each character that the code of a share may begin with."""
    shares = (2.0 ** (((first << 6) + 32 - TOP) / SHARE_STEPS) for first in range(len(ALPHABET)))
    return tuple(_between(ends, 1 - math.log(share) / math.log(FEWEST)) for share in shares)


def _between(ends: Sequence[str], place: float) -> str:
    """The colour at `place`, from 0 to 1, of the ramp through `ends`."""
    along = min(max(place, 0.0), 1.0) * (len(ends) - 1)
    at = min(int(along), len(ends) - 2)
    low, high = ([int(colour[n : n + 2], 16) for n in (1, 3, 5)] for colour in ends[at : at + 2])
    mixed = (round(a + (b - a) * (along - at)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


XRAY_SHADES = 48
"""Colours of the x-ray's ramp."""


def xray_ramp() -> tuple[str, ...]:
    """The colours of the x-ray, the same in both themes, as in the viewer."""
    ends = [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in STOPS]
    return tuple(_between(ends, at / (XRAY_SHADES - 1)) for at in range(XRAY_SHADES))


LISTS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "heat": (by_character(HEAT[0]), by_character(HEAT[1])),
    "rim": (by_character(RIM[0]), by_character(RIM[1])),
    "shades": (("#eaf0fd", "#bcd0f5", "#7fa5ec"), ("#1d2a45", "#27427c", "#3f6cc0")),
    "xray": (xray_ramp(), xray_ramp()),
    "pins": (
        ("#d9480f", "#1971c2", "#2b8a3e", "#9c36b5", "#b08400", "#0b8599", "#d6336c", "#5f5bd0"),
        ("#ff8a4c", "#5aaef5", "#5fce7a", "#d98bef", "#e0bb3c", "#3ec6d8", "#ff7aa8", "#a39cff"),
    ),
    # As `table.FAMILY_NAMES`.
    "families": (
        (*(colours.light for colours in FAMILIES.values()), "#9aa3b2"),
        (*(colours.dark for colours in FAMILIES.values()), "#6f7889"),
    ),
}
"""Lists of colours, light and dark; ramps go from little to much."""

SETTING = "${string:theme:light}"
"""The panel's setting, which W&B fills in."""


def theme_signals() -> list[Spec]:
    """The current theme and its colours."""
    turned = on("@theme:click", "theme == 'dark' ? 'light' : 'dark'")
    light, dark = (
        _object(colours, {name: both[number] for name, both in LISTS.items()})
        for number, colours in enumerate((LIGHT, DARK))
    )
    return [
        state("theme", f"{quoted(SETTING)} == 'dark' ? 'dark' : 'light'", turned),
        derived("colours", f"theme == 'dark' ? {dark} : {light}"),
        derived(
            "paint",
            "merge(colours, error_count ? {worst: colours.bad, worst_soft: colours.bad_soft} : "
            "warning_count ? {worst: colours.warn, worst_soft: colours.warn_soft} : "
            "{worst: colours.accent, worst_soft: colours.glow})",
        ),
    ]


def _object(colours: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> str:
    parts = [f"{name}: {quoted(value)}" for name, value in colours.items()]
    return "{" + ", ".join([*parts, *(f"{name}: {listed(values)}" for name, values in lists.items())]) + "}"
