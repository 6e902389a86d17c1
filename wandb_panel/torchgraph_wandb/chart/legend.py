"""Text on the graph: the legend, a hint on how to use the chart, the drop zone, and the message without data."""

from __future__ import annotations

from torchgraph_wandb.chart.decoding import formatted
from torchgraph_wandb.chart.signals import DROP_ZONE, LEGEND
from torchgraph_wandb.chart.themes import FEWEST
from torchgraph_wandb.chart.vega import Spec, colour, group, mark, text


def legend() -> list[Spec]:
    """The legend of the colours of nodes and strips."""
    ground = mark(
        "rect",
        x={"value": 6},
        y="stage_h - time_h - legend_h",
        width="min(graph_w - 12, 268)",
        height="legend_h",
        fill=colour("canvas"),
        opacity="legend_lines ? 0.9 : 0",
    )
    return [ground, *_shades(), *_kinds(), *_heat()]


def _line(number: str) -> str:
    """The place of a line of the legend; the lowest line is 0."""
    return f"(stage_h - time_h - 2 - {LEGEND}*(0.5 + ({number})))"


def _shades() -> list[Spec]:
    """The statistic that nodes are coloured by."""
    y = _line("(has_kinds ? 1 : 0) + (has_heat ? 1 : 0)")
    is_there = "has_shades && isValid(shades[0])"
    ramp = [
        mark(
            "rect",
            x=f"12 + {step}*8",
            y=f"{y} - 5",
            width={"value": 8},
            height={"value": 10},
            fill=f"scale('shade', shades[0] + (shades[1]-shades[0])*{step}/7)",
            opacity=f"{is_there} ? 1 : 0",
        )
        for step in range(8)
    ]
    low, high = formatted("exp(shades[0])"), formatted("exp(shades[1])")
    content = f"!has_shades ? '' : colour_names[colour_by] + ({is_there} ? ': ' + {low} + ' to ' + {high} : ': none')"
    return [*ramp, text(content, x=f"{is_there} ? 82 : 12", y=y, size=10.5, ink="soft", limit="graph_w - 92")]


def _kinds() -> list[Spec]:
    """Zero, not finite and not recorded, which look the same on nodes and in strips."""
    y = _line("has_heat ? 1 : 0")
    is_there = "has_kinds ? 1 : 0"
    found: list[Spec] = []
    for content, x, fill, stroke in (
        ("zero", 12, "paper", "frame"),
        ("NaN, ∞", 66, "bad_soft", "bad"),
        ("not recorded", 134, "missing", "missing_ink"),
    ):
        dash: Spec = {"strokeDash": {"value": [2, 2]}} if fill == "missing" else {}
        found += [
            mark(
                "rect",
                x={"value": x},
                y=f"{y} - 5",
                width={"value": 16},
                height={"value": 10},
                fill=colour(fill),
                stroke=colour(stroke),
                opacity=is_there,
                **dash,
            ),
            text(content=f"'{content}'", x={"value": x + 21}, y=y, size=10, ink="soft", opacity=is_there),
        ]
    hatch = [
        mark(
            "rule",
            x={"value": 66 + 2 + 5 * line},
            x2={"value": 66 + 7 + 5 * line},
            y=f"{y} + 5",
            y2=f"{y} - 5",
            stroke=colour("bad"),
            strokeWidth={"value": 1.5},
            opacity=is_there,
        )
        for line in range(2)
    ]
    return [*found, *hatch]


def _heat() -> list[Spec]:
    """The colours of strips by the share of the values that are in a row; the same for all steps, tensors and runs."""
    y = _line("0")
    is_there = "has_heat ? 1 : 0"
    cells = [_cell(12 + 8 * at, f"paint.heat[{42 + 3 * at}]", y=y, is_there=is_there) for at in range(8)]
    beyond = [_cell(182 + 8 * at, f"paint.rim[{48 + 7 * at}]", y=y, is_there=is_there) for at in range(3)]
    place: Spec = {"y": y, "size": 10, "ink": "soft", "opacity": is_there}
    least = f"'{FEWEST * 100:.1f}–100% of values'"
    return [*cells, *beyond, text(least, x={"value": 81}, **place), text("'beyond'", x={"value": 211}, **place)]


def _cell(x: int, fill: str, *, y: str, is_there: str) -> Spec:
    place: Spec = {"x": {"value": x}, "y": f"{y} - 5", "width": {"value": 8}, "height": {"value": 10}}
    return mark("rect", fill=fill, opacity=is_there, **place)


def hint() -> list[Spec]:
    """A hint on how to use the chart, until a module is pinned."""
    long = "click: open a module   ·   drag to the right, or +: its tensors over the steps   ·   wheel: zoom"
    short = "click: open   ·   drag to the right, or +: tensors   ·   wheel: zoom"
    is_there = "hint_h > 0 && !is_dragging"
    ground = mark(
        "rect",
        x={"value": 0},
        y="stage_h - time_h - hint_h",
        width="graph_w",
        height="hint_h",
        fill=colour("canvas"),
        opacity=f"{is_there} ? 0.88 : 0",
    )
    place: Spec = {"x": "graph_w/2", "y": "stage_h - time_h - hint_h/2", "align": {"value": "center"}}
    return [
        ground,
        text(
            f"!({is_there}) ? '' : graph_w > 560 ? '{long}' : '{short}'",
            limit="graph_w - 12",
            size=10.5,
            ink="faint",
            **place,
        ),
    ]


def drop_zone() -> Spec:
    """The area where a node can be dropped while no module is pinned."""
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
        width=f"is_dragging && !right_w ? {DROP_ZONE} : 0",
        height="is_dragging && !right_w ? stage_h : 0",
    )


def empty_message() -> Spec:
    """The message while there is no data."""
    content = (
        "run_count == 0 ? 'Waiting for the first snapshot of a watched model' : "
        "length(data('here_nodes')) == 0 ? 'Nothing was called inside' : ''"
    )
    return text(content, x="graph_w/2", y="stage_h/2", align={"value": "center"}, size=13, ink="soft")
