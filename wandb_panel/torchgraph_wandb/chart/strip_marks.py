"""The marks of the strips of one column."""

from __future__ import annotations

from typing import Any

from torchgraph_wandb.chart.decoding import formatted_briefly
from torchgraph_wandb.chart.strip_layout import BOX, HEAT, LANE, RIM, STRIP_W, TITLE, heat_y, value_y
from torchgraph_wandb.chart.vega import Spec, colour, mark, text


def strip_marks(slot: int) -> list[Spec]:
    """The heat, frame, axis ends and steps of each strip."""
    strips, ticks = f"strips_{slot}", f"ticks_{slot}"
    box_y = f"datum.top + {TITLE} - scroll_{slot}"
    return [
        *_images(slot),
        *_lines(slot),
        mark(
            "rect",
            data=strips,
            name=f"strip_{slot}",
            listens=True,
            x="datum.x",
            y=box_y,
            width=STRIP_W,
            height={"value": BOX},
            fill={"value": "transparent"},
            stroke=colour("frame"),
            cursor={"value": "crosshair"},
        ),
        *_ends(slot),
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
            align="datum.align",
            size=9,
            ink="faint",
        ),
    ]


def _ends(slot: int) -> list[Spec]:
    """The values at the ends of the axis, and 0 where there is room for it."""
    place: Spec = {"x": "datum.x - 3", "align": {"value": "right"}, "size": 9, "ink": "faint"}
    strips = f"strips_{slot}"
    zero, room = value_y(slot, "0"), 9
    is_apart = f"abs({zero} - {heat_y(slot)}) > {room} && abs({zero} - {heat_y(slot)} - {HEAT}) > {room}"
    return [
        text(
            f"datum.has_axis ? {formatted_briefly('datum.axis_high')} : ''",
            data=strips,
            y=f"{heat_y(slot)} + 3",
            **place,
        ),
        text(
            f"datum.has_axis ? {formatted_briefly('datum.axis_low')} : ''",
            data=strips,
            y=f"{heat_y(slot)} + {HEAT - 3}",
            **place,
        ),
        text(f"datum.has_axis && {HAS_ZERO} && {is_apart} ? '0' : ''", data=strips, y=zero, **place),
    ]


HAS_ZERO = "datum.axis_low < 0 && datum.axis_high > 0"


def _lines(slot: int) -> list[Spec]:
    """Lines for zero, the step shown, and the step under the pointer."""
    strips, box_y = f"strips_{slot}", f"datum.top + {TITLE} - scroll_{slot}"

    def upright(step: str, ink: str, opacity: str) -> Spec:
        return mark(
            "rule",
            data=strips,
            x=f"datum.x + {STRIP_W}*({step} + 0.5)/max(1, step_count)",
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
        y=f"datum.has_axis && {HAS_ZERO} ? {value_y(slot, '0')} : 0",
        stroke=colour("soft"),
        strokeDash={"value": [2, 2]},
        opacity=f"datum.has_axis && {HAS_ZERO} ? 0.7 : 0",
    )
    return [
        zero,
        upright("shown", "accent", "chosen_step >= 0 ? 0.9 : 0"),
        upright("hover_step", "ink", "hover_step >= 0 ? 0.55 : 0"),
    ]


def _images(slot: int) -> list[Spec]:
    """The heat, placed where this run's axis lies on the axis of all runs, the rims and the lane."""
    own_top, own_bottom = value_y(slot, "datum.high"), value_y(slot, "datum.low")
    heat, lane = heat_y(slot), f"datum.top + {TITLE} - scroll_{slot}"
    return [
        _image(
            slot,
            "heat",
            y=f"datum.has_axis ? {own_top} : {heat}",
            height=f"datum.has_axis ? {own_bottom} - {own_top} : {HEAT}",
        ),
        _image(slot, "above", y=f"{heat} - {RIM}", height=f"{RIM}"),
        _image(slot, "below", y=f"{heat} + {HEAT}", height=f"{RIM}"),
        _image(slot, "lane", y=lane, height=f"{LANE}"),
    ]


def _image(slot: int, name: str, **place: Any) -> Spec:
    return mark(
        "image",
        data=f"strips_{slot}",
        image={"field": f"image_{name}"},
        x="datum.x",
        width=STRIP_W,
        aspect="false",
        smooth="false",
        **place,
    )
