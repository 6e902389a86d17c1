"""The marks of the graph: nodes, edges, the way up, the legend, the list of modules."""

from __future__ import annotations

from torchgraph_wandb.chart.numbers import shown
from torchgraph_wandb.chart.parts import COLOURS, SHADES, Spec, colour, group, mark, text
from torchgraph_wandb.chart.signals import DROP_ZONE, LIST_ROW, TOOLBAR

SCALE = {
    "name": "shade",
    "type": "linear",
    "clamp": True,
    "domain": {
        "signal": "shades[0] < shades[1] ? shades : isValid(shades[0]) ? [shades[0] - 1, shades[0] + 1] : [0, 1]"
    },
    "range": list(SHADES),
}
"""From the logarithm of a statistic to a colour."""


def stage() -> Spec:
    """The area on the left."""
    return group(
        "stage",
        mark(
            "path",
            data="here_edges",
            path="datum.path",
            x="ox",
            y="oy",
            scaleX="zoom",
            scaleY="zoom",
            stroke="datum.carries == 'gradient' ? '#7d8798' : '#b4bbc7'",
            strokeWidth="1.2",
            strokeDash="datum.carries == 'gradient' ? [] : [4, 3]",
        ),
        *_nodes(),
        *_trail(),
        *_legend(),
        _drop_zone(),
        _nothing(),
        _list(),
        listens=True,
        x={"value": 0},
        y={"value": TOOLBAR},
        width="graph_w",
        height="stage_h",
        fill=colour("canvas"),
    )


def _nodes() -> list[Spec]:
    left, top = "datum.cx - datum.w/2", "datum.cy - datum.h/2"
    pinned = "datum.pin >= 0 ? pin_colours[datum.pin % length(pin_colours)]"
    band: Spec = {
        "x": left,
        "y": top,
        "height": "datum.h",
        "width": "datum.opens != '' || datum.key == datum.owner ? 4 : 0",
    }
    ink = colour("soft")
    return [
        mark(
            "rect",
            name="node",
            listens=True,
            data="here_nodes",
            x=left,
            y=top,
            width="datum.w",
            height="datum.h",
            cornerRadius="datum.key == datum.owner ? 4 : 12",
            fill=f"isNumber(datum.shade) && !isNaN(datum.shade) ? scale('shade', datum.shade) : '{COLOURS['paper']}'",
            stroke=f"datum.key == found ? '#2458d3' : {pinned} : hovered == datum.key ? '#656e7e' : '#c6cbd5'",
            strokeWidth="datum.key == found || datum.pin >= 0 ? 2.5 : 1",
            cursor="datum.opens != '' ? 'pointer' : 'grab'",
        ),
        mark("rect", data="here_nodes", fill="datum.colour", cornerRadius="2", **band),
        text(
            "datum.label",
            data="here_nodes",
            size="11.5 * zoom",
            x=f"{left} + 10*zoom",
            y="datum.key == datum.owner ? datum.cy - 8*zoom : datum.cy",
            limit="datum.w - 14*zoom",
            fontWeight={"value": 600},
        ),
        text(
            "datum.key == datum.owner ? datum.detail : ''",
            data="here_nodes",
            size="10 * zoom",
            x=f"{left} + 10*zoom",
            y="datum.cy + 9*zoom",
            fill=ink,
        ),
        text(
            "datum.key == datum.owner ? datum.shape : ''",
            data="here_nodes",
            size="9.5 * zoom",
            x="datum.cx + datum.w/2 - 7*zoom",
            y="datum.cy + 9*zoom",
            align={"value": "right"},
            fill=colour("faint"),
        ),
        *_pin_buttons(),
    ]


def _pin_buttons() -> list[Spec]:
    """In the upper right corner of each node: a column for it."""
    has = "datum.key == datum.owner || datum.only != ''"
    place: Spec = {"x": "datum.cx + datum.w/2 - 9*zoom", "y": "datum.cy - datum.h/2 + 10*zoom"}
    return [
        mark(
            "symbol",
            name="pin",
            listens=True,
            data="here_nodes",
            size=f"{has} ? 130*zoom*zoom : 0",
            fill="datum.pin >= 0 ? pin_colours[datum.pin % length(pin_colours)] : '#ffffff'",
            stroke=colour("frame"),
            opacity=f"{has} ? 1 : 0",
            cursor={"value": "pointer"},
            **place,
        ),
        text(
            f"{has} ? (datum.pin >= 0 ? '−' : '+') : ''",
            data="here_nodes",
            size="11 * zoom",
            align={"value": "center"},
            fill="datum.pin >= 0 ? '#ffffff' : '#4a5364'",
            **place,
        ),
    ]


def _trail() -> list[Spec]:
    """The insides on the way here; a click leads back."""
    return [
        mark(
            "rect",
            data="trail",
            x={"value": 6},
            y="4 + datum.at*17",
            width="length(datum.title)*6.6 + 14 + datum.at*8",
            height={"value": 17},
            fill=colour("canvas"),
            opacity={"value": 0.85},
        ),
        text(
            "(datum.at ? '└ ' : '') + datum.title",
            data="trail",
            name="trail_step",
            x="10 + datum.at*8",
            y="13 + datum.at*17",
            fill=f"datum.target == here ? '{COLOURS['ink']}' : '{COLOURS['accent']}'",
            fontWeight="datum.target == here ? 600 : 400",
            cursor={"value": "pointer"},
        ),
    ]


def _legend() -> list[Spec]:
    """What the shades stand for, while nodes are coloured by a statistic."""
    is_there = "look > 0 && isValid(shades[0])"
    ramp = [
        mark(
            "rect",
            x=f"12 + {step}*12",
            y="stage_h - 34",
            width={"value": 12},
            height={"value": 8},
            fill=f"scale('shade', shades[0] + (shades[1]-shades[0])*{step}/9)",
            opacity=f"{is_there} ? 1 : 0",
        )
        for step in range(10)
    ]
    low, high = shown("exp(shades[0])"), shown("exp(shades[1])")
    said = f"look == 0 ? '' : look_names[look] + ({is_there} ? ': ' + {low} + ' to ' + {high} : ': none here')"
    ground = mark(
        "rect",
        x={"value": 6},
        y="stage_h - 40",
        width={"value": 250},
        height={"value": 36},
        fill=colour("canvas"),
        opacity="look == 0 ? 0 : 0.88",
    )
    return [ground, *ramp, text(said, x={"value": 12}, y="stage_h - 14", size=10.5, fill=colour("soft"))]


def _drop_zone() -> Spec:
    """Where a node can be dropped while nothing is pinned."""
    return group(
        "drop_zone",
        mark(
            "rect",
            x={"value": 6},
            y={"value": 6},
            width=f"{DROP_ZONE} - 12",
            height="stage_h - 12",
            cornerRadius={"value": 8},
            fill=colour("glow"),
            stroke=colour("accent"),
            strokeDash={"value": [5, 4]},
            opacity={"value": 0.9},
        ),
        text("'drop here'", x={"value": DROP_ZONE / 2}, y="stage_h/2", align={"value": "center"}, ink="accent"),
        x="drop_x",
        y={"value": 0},
        width=f"is_dragging && !slots ? {DROP_ZONE} : 0",
        height="is_dragging && !slots ? stage_h : 0",
    )


def _nothing() -> Spec:
    """What is said while there is no data."""
    said = (
        "run_count == 0 ? 'Waiting for the first snapshot of a watched model' : "
        "length(data('here_nodes')) == 0 ? 'Nothing was called inside' : ''"
    )
    return text(said, x="graph_w/2", y="stage_h/2", align={"value": "center"}, size=13, ink="soft")


def _list() -> Spec:
    """All modules, to jump to; typing narrows them."""
    row = f"32 + (datum.place - list_top - 1)*{LIST_ROW}"
    typed = "query == '' ? 'type to search ' + length(data('modules')) + ' calls' : query + '▏'"
    return group(
        "list",
        mark(
            "rect",
            x={"value": 6},
            y={"value": 6},
            width="list_w - 12",
            height={"value": 20},
            stroke=colour("accent"),
            cornerRadius={"value": 3},
        ),
        text(typed, x={"value": 12}, y={"value": 16}, fill="query == '' ? '#656e7e' : '#1a1f2b'"),
        mark(
            "rect",
            name="list_row",
            listens=True,
            data="listed",
            x={"value": 6},
            y=row,
            width="list_w - 12",
            height={"value": LIST_ROW},
            fill="datum.inside == here ? '#f1f5fd' : '#ffffff'",
            cursor={"value": "pointer"},
        ),
        mark(
            "rect",
            data="listed",
            x={"value": 6},
            y=f"{row} + 3",
            width={"value": 3},
            height={"value": LIST_ROW - 6},
            fill="datum.colour",
        ),
        text("datum.title", data="listed", x={"value": 14}, y=f"{row} + {LIST_ROW // 2}", limit="list_w*0.62"),
        text(
            "datum.detail",
            data="listed",
            x="list_w - 12",
            y=f"{row} + {LIST_ROW // 2}",
            align={"value": "right"},
            limit="list_w*0.32",
            size=10,
            ink="faint",
        ),
        listens=True,
        x={"value": 0},
        y={"value": 0},
        width="list_open ? list_w : 0",
        height="list_open ? stage_h : 0",
        fill=colour("paper"),
        stroke=colour("frame"),
    )
