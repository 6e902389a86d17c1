"""The marks of the graph: nodes, edges, and the list of parents."""

from __future__ import annotations

from torchgraph_wandb.chart.calls import boxes_behind, call_strips
from torchgraph_wandb.chart.legend import drop_zone, empty_message, hint, legend
from torchgraph_wandb.chart.module_list import module_list
from torchgraph_wandb.chart.signals import TRAIL
from torchgraph_wandb.chart.stubs import stub_marks
from torchgraph_wandb.chart.time_bar import time_bar
from torchgraph_wandb.chart.vega import Spec, colour, group, mark, shortened, text

SCALE = {
    "name": "shade",
    "type": "linear",
    "clamp": True,
    "domain": {
        "signal": "shades[0] < shades[1] ? shades : isValid(shades[0]) ? [shades[0] - 1, shades[0] + 1] : [0, 1]"
    },
    "range": {"signal": "paint.shades"},
}
"""Maps the logarithm of a statistic to a colour."""

LEFT, TOP = "(datum.cx - datum.w/2)", "(datum.cy - datum.h/2)"
PINNED = "paint.pins[datum.pin % length(paint.pins)]"


def stage() -> Spec:
    """The area on the left, with the graph."""
    return group(
        "stage",
        _edges(),
        *stub_marks(),
        *boxes_behind(),
        *_boxes(),
        *_texts(),
        call_strips(),
        *_pin_buttons(),
        *_badges(),
        *_trail(),
        *legend(),
        *hint(),
        *time_bar(),
        drop_zone(),
        empty_message(),
        module_list(),
        listens=True,
        x={"value": 0},
        y="top",
        width="graph_w",
        height="stage_h",
        fill=colour("canvas"),
    )


def _edges() -> Spec:
    return mark(
        "path",
        data="here_edges",
        path="datum.path",
        x="ox",
        y="oy",
        scaleX="zoom",
        scaleY="zoom",
        stroke="datum.ends != '' ? paint.accent : datum.carries == 'gradient' ? paint.edge : paint.edge_soft",
        strokeWidth="min(1.2, 0.2 + zoom)*(datum.ends == '' ? 1 : 1.5)",
        strokeDash="datum.carries == 'gradient' ? [] : [4, 3]",
    )


def _boxes() -> list[Spec]:
    """The nodes: red and hatched in every colouring if not finite, with a dashed rim if not recorded."""
    fill = (
        "datum.is_nonfinite ? paint.bad_soft : datum.is_missing ? paint.missing : "
        "isNumber(datum.shade) && !isNaN(datum.shade) ? scale('shade', datum.shade) : paint.paper"
    )
    stroke = (
        f"datum.key == found ? paint.accent : datum.pin >= 0 ? {PINNED} : datum.badge != '' ? paint.bad : "
        "hovered == datum.key ? paint.faint : datum.is_missing ? paint.missing_ink : paint.frame"
    )
    return [
        mark(
            "rect",
            name="node",
            listens=True,
            data="here_nodes",
            x=LEFT,
            y=TOP,
            width="datum.w",
            height="datum.h",
            cornerRadius="datum.key == datum.owner ? 4 : 12",
            fill=fill,
            stroke=stroke,
            strokeWidth=(
                "datum.key == found || datum.pin >= 0 ? 2.5 : datum.is_nonfinite ? 2 : datum.badge != '' ? 1.5 : 1"
            ),
            strokeDash="datum.is_missing && datum.badge == '' ? [3, 3] : []",
            cursor="datum.opens != '' ? 'pointer' : 'grab'",
        ),
        mark(
            "rule",
            data="hatching",
            x="datum.x1",
            y="datum.y1",
            x2="datum.x2",
            y2="datum.y2",
            stroke=colour("bad"),
            strokeWidth={"value": 2},
            opacity={"value": 0.4},
        ),
        mark(
            "rect",
            data="here_nodes",
            fill="paint.families[toNumber(datum.family)]",
            cornerRadius="2",
            x=LEFT,
            y=TOP,
            height="datum.h",
            width="datum.opens != '' || datum.key == datum.owner ? 4 : 0",
        ),
    ]


LABEL_CHARACTER = 7.6
"""About the width of a character of a node's name, in pixels."""

_DETAIL = "datum.is_missing ? 'not recorded' : datum.is_statistic_nonfinite ? 'not finite' : datum.detail"
_VALUE = (
    "colour_by == 0 || datum.statistics == '' ? datum.shape : datum.is_missing || datum.is_statistic_nonfinite ? '' : "
    "format(datum.statistic, '.2~g')"
)


def _texts() -> list[Spec]:
    """The text on nodes. On a hatched node, each character is outlined in the colour of the node."""
    is_call = "datum.key == datum.owner"
    lines = (
        (
            shortened("datum.label", "datum.w/zoom - 14", LABEL_CHARACTER),
            "ink",
            "11.5 * zoom",
            f"{is_call} ? datum.middle - 8*zoom : datum.middle",
        ),
        (f"{is_call} ? ({_DETAIL}) : ''", "soft", "10 * zoom", "datum.middle + 9*zoom"),
        (f"{is_call} ? {_VALUE} : ''", "soft", "9.5 * zoom", "datum.middle + 9*zoom"),
    )
    found = []
    for number, (content, ink, size, y) in enumerate(lines):
        place: Spec = {"x": f"{LEFT} + 10*zoom", "limit": "datum.w - 14*zoom"}
        if number == len(lines) - 1:
            place = {"x": "datum.cx + datum.w/2 - 7*zoom", "align": {"value": "right"}}
        weight: Spec = {"fontWeight": {"value": 600}} if number == 0 else {}
        rim: Spec = {"stroke": colour("bad_soft"), "strokeWidth": {"value": 4}}
        found += [text(content, data="nonfinite_nodes", size=size, ink="bad_soft", y=y, **place, **weight, **rim)]
        found += [text(content, data="here_nodes", size=size, ink=ink, y=y, **place, **weight)]
    return found


def _badges() -> list[Spec]:
    """Badges on the upper edge of nodes that have NaN or infinity, themselves or inside."""
    scale = "clamp(zoom, 0.65, 1.15)"
    left, top = f"{LEFT} + 8*zoom", f"{TOP} - 9*{scale}"
    return [
        mark(
            "rect",
            data="badges",
            x=left,
            y=top,
            width=f"datum.badge_w*{scale}",
            height=f"13*{scale}",
            cornerRadius={"value": 3},
            fill="datum.is_nonfinite ? paint.bad : paint.paper",
            stroke=colour("bad"),
        ),
        text(
            "datum.badge",
            data="badges",
            size=f"9.5*{scale}",
            x=f"{left} + datum.badge_w/2*{scale}",
            y=f"{top} + 6.5*{scale}",
            align={"value": "center"},
            fill="datum.is_nonfinite ? paint.bad_ink : paint.bad",
            fontWeight={"value": 700},
        ),
    ]


def _pin_buttons() -> list[Spec]:
    """The button in the upper right corner of each node: opens a column for it, or closes it."""
    has = "datum.key == datum.owner || datum.only != ''"
    place: Spec = {"x": "datum.cx + datum.w/2 - 9*zoom", "y": "datum.cy - datum.h/2 + 10*zoom"}
    return [
        mark(
            "symbol",
            name="pin",
            listens=True,
            data="here_nodes",
            size=f"{has} ? 130*zoom*zoom : 0",
            fill=f"datum.pin >= 0 ? {PINNED} : paint.paper",
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
            fill="datum.pin >= 0 ? paint.paper : paint.soft",
            **place,
        ),
    ]


def _trail() -> list[Spec]:
    """The list of parents of the inside shown; a click goes back to one."""
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
            fill="datum.is_nonfinite ? paint.bad : datum.target == here ? paint.ink : paint.accent",
            fontWeight="datum.target == here ? 600 : 400",
            cursor={"value": "pointer"},
        ),
    ]
