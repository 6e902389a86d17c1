"""The marks of the strips of one column."""

from __future__ import annotations

from typing import Any

from torchgraph_wandb.chart.decoding import formatted_briefly
from torchgraph_wandb.chart.strip_layout import BOX, HEAT, LANE, RIM, STRIP_W, StripArea
from torchgraph_wandb.chart.vega import Spec, colour, mark, text


def strip_marks(area: StripArea, *, axes: str = "") -> list[Spec]:
    """The heat, frame, axis ends and steps of each strip; `axes` are the data whose axis ends are written."""
    strips, ticks, box_y = f"strips_{area.name}", f"ticks_{area.name}", area.box_y
    return [
        *_images(area),
        *_lines(area),
        mark(
            "rect",
            data=strips,
            name=f"strip_{area.name}",
            listens=True,
            x="datum.x",
            y=box_y,
            width=STRIP_W,
            height={"value": BOX},
            fill={"value": "transparent"},
            stroke=colour("frame"),
            cursor={"value": "crosshair"},
        ),
        *_ends(area, axes or strips),
        mark(
            "rule",
            data=ticks,
            x="datum.tick_x",
            y=f"{box_y} + {BOX}",
            y2=f"{box_y} + {BOX + 3}",
            stroke=colour("control"),
        ),
        text(
            "datum.content",
            data=ticks,
            x="datum.label_x",
            y=f"{box_y} + {BOX + 8}",
            align={"value": "center"},
            size=9,
            ink="faint",
        ),
    ]


def _ends(area: StripArea, strips: str) -> list[Spec]:
    """The values at the ends of the axis, and 0 where there is room for it."""
    place: Spec = {"x": "datum.x - 3", "align": {"value": "right"}, "ink": "faint"}
    high, low = (f"(datum.has_axis ? {formatted_briefly(f'datum.axis_{end}')} : '')" for end in ("high", "low"))
    size = "datum.axis_low < 0 && datum.axis_low > -1e-9 ? 8 : 9"  # for −9.5e-16
    zero, room, heat_y = area.value_y("0"), 9, area.heat_y
    is_apart = f"abs({zero} - {heat_y}) > {room} && abs({zero} - {heat_y} - {HEAT}) > {room}"
    return [
        text(high, data=strips, y=f"{heat_y} + 3", size=9, **place),
        text(low, data=strips, y=f"{heat_y} + {HEAT - 3}", size=size, **place),
        text(f"datum.has_axis && {HAS_ZERO} && {is_apart} ? '0' : ''", data=strips, y=zero, size=9, **place),
    ]


HAS_ZERO = "datum.axis_low < 0 && datum.axis_high > 0"


def _lines(area: StripArea) -> list[Spec]:
    """Lines for zero, the step shown, and the step under the pointer."""
    strips, box_y = f"strips_{area.name}", area.box_y

    def upright(step: str, ink: str, opacity: str) -> Spec:
        return mark(
            "rule",
            data=strips,
            x=f"datum.x + {STRIP_W}*({step} + 0.5)/max(1, datum.count)",
            y=box_y,
            y2=f"{box_y} + {BOX}",
            stroke=colour(ink),
            opacity=opacity,
        )

    zero = mark(
        "rule",
        data=strips,
        x="datum.x",
        x2=f"datum.x + {STRIP_W}",
        y=f"datum.has_axis && {HAS_ZERO} ? {area.value_y('0')} : 0",
        stroke=colour("soft"),
        strokeDash={"value": [2, 2]},
        opacity=f"datum.has_axis && {HAS_ZERO} ? 0.7 : 0",
    )
    return [
        zero,
        upright(area.shown, "accent", "chosen_step >= 0 ? 0.9 : 0"),
        upright(
            "hover_step", "ink", "hover_step >= 0 && (strip_tip.run == '' || strip_tip.run == datum.run) ? 0.55 : 0"
        ),
    ]


def _images(area: StripArea) -> list[Spec]:
    """The heat, the rims and the lane."""
    heat = area.heat_y
    return [
        _image(area, "heat", y=heat, height=f"{HEAT}"),
        _image(area, "above", y=f"{heat} - {RIM}", height=f"{RIM}"),
        _image(area, "below", y=f"{heat} + {HEAT}", height=f"{RIM}"),
        _image(area, "lane", y=area.box_y, height=f"{LANE}"),
    ]


def _image(area: StripArea, name: str, **place: Any) -> Spec:
    return mark(
        "image",
        data=f"strips_{area.name}",
        image={"field": f"image_{name}"},
        x="datum.x",
        width=STRIP_W,
        aspect="false",
        smooth="false",
        **place,
    )
