"""What is said beside the graph: the legend, what one can do, where to drop a node, and that there is nothing yet."""

from __future__ import annotations

from torchgraph_wandb.chart.numbers import shown
from torchgraph_wandb.chart.parts import Spec, colour, group, mark, text
from torchgraph_wandb.chart.signals import DROP_ZONE, HINT, LEGEND


def legend() -> list[Spec]:
    """What the shades stand for, while nodes are coloured by a statistic."""
    is_there = "look > 0 && isValid(shades[0])"
    ramp = [
        mark(
            "rect",
            x=f"12 + {step}*12",
            y=f"stage_h - {LEGEND - 6}",
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
        y=f"stage_h - {LEGEND}",
        width={"value": 250},
        height={"value": LEGEND - 4},
        fill=colour("canvas"),
        opacity="look == 0 ? 0 : 0.88",
    )
    return [ground, *ramp, text(said, x={"value": 12}, y="stage_h - 14", size=10.5, fill=colour("soft"))]


def hint() -> list[Spec]:
    """What one can do, until something is pinned."""
    said = "click: open a module   ·   drag to the right, or +: its tensors over the steps   ·   wheel: zoom"
    is_there = "length(pins) == 0 && run_count > 0 && look == 0 && !is_dragging"
    ground = mark(
        "rect",
        x={"value": 0},
        y=f"stage_h - {HINT}",
        width="graph_w",
        height={"value": HINT},
        fill=colour("canvas"),
        opacity=f"{is_there} ? 0.88 : 0",
    )
    place: Spec = {"x": "graph_w/2", "y": f"stage_h - {HINT // 2}", "align": {"value": "center"}}
    return [ground, text(f"{is_there} ? '{said}' : ''", limit="graph_w - 12", size=10.5, ink="faint", **place)]


def drop_zone() -> Spec:
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
        text("'drop here'", x={"value": DROP_ZONE / 2}, y={"value": 26}, align={"value": "center"}, ink="accent"),
        x="drop_x",
        y={"value": 0},
        width=f"is_dragging && !slots ? {DROP_ZONE} : 0",
        height="is_dragging && !slots ? stage_h : 0",
    )


def nothing() -> Spec:
    """What is said while there is no data."""
    said = (
        "run_count == 0 ? 'Waiting for the first snapshot of a watched model' : "
        "length(data('here_nodes')) == 0 ? 'Nothing was called inside' : ''"
    )
    return text(said, x="graph_w/2", y="stage_h/2", align={"value": "center"}, size=13, ink="soft")
