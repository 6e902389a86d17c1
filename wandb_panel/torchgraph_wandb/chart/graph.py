"""The marks of the graph: nodes, edges, the way up."""

from __future__ import annotations

from torchgraph_wandb.chart.finder import module_list
from torchgraph_wandb.chart.notes import drop_zone, hint, legend, nothing
from torchgraph_wandb.chart.parts import COLOURS, SHADES, Spec, colour, group, mark, text
from torchgraph_wandb.chart.signals import TOOLBAR, TRAIL

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
            strokeWidth="min(1.2, 0.2 + zoom)",
            strokeDash="datum.carries == 'gradient' ? [] : [4, 3]",
        ),
        *_nodes(),
        *_trail(),
        *legend(),
        *hint(),
        drop_zone(),
        nothing(),
        module_list(),
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
            x={"value": 0},
            y={"value": 0},
            width="graph_w",
            height={"value": TRAIL},
            fill=colour("canvas"),
            opacity={"value": 0.88},
        ),
        text(
            "datum.at ? '▸' : ''",
            data="trail",
            x="trail_left + datum.end - datum.room",
            y={"value": TRAIL / 2 + 1},
            ink="faint",
        ),
        text(
            "datum.title",
            data="trail",
            name="trail_step",
            x="10 + trail_left + datum.end - datum.room",
            y={"value": TRAIL / 2 + 1},
            fill=f"datum.target == here ? '{COLOURS['ink']}' : '{COLOURS['accent']}'",
            fontWeight="datum.target == here ? 600 : 400",
            cursor={"value": "pointer"},
        ),
    ]
