"""The bar below the graph: the step shown, and the steps that have NaN or infinity."""

from __future__ import annotations

from torchgraph_wandb.chart.signals import TIME
from torchgraph_wandb.chart.vega import Spec, colour, mark, text

TRACK = 6


def time_bar() -> list[Spec]:
    """A cell for each step shown: red and crossed with NaN or infinity, hollow if a step between has them."""
    middle = f"stage_h - {TIME / 2}"
    left = "time_x + datum.at*time_w/step_count"
    width = "max(1, time_w/step_count - 0.6)"
    is_there = "time_h ? 1 : 0"
    return [
        mark(
            "rect",
            x={"value": 0},
            y=f"stage_h - {TIME}",
            width="graph_w",
            height="time_h",
            fill=colour("bar"),
            stroke=colour("line"),
        ),
        text(
            "time_h ? 'step ' + format(toNumber(steps[shown]), ',') : ''",
            x={"value": 10},
            y=middle,
            size=10.5,
            fontWeight={"value": 600},
            fill="is_step_nonfinite ? paint.bad : paint.ink",
        ),
        mark(
            "rect",
            data="step_marks",
            x=left,
            y=f"{middle} - {TRACK / 2} - (datum.mark & 1 ? 3 : 0)",
            width=width,
            height=f"{TRACK} + (datum.mark & 1 ? 6 : 0)",
            fill="datum.mark & 1 ? paint.bad : paint.frame",
            stroke="datum.mark & 2 ? paint.bad : 'transparent'",
            opacity=is_there,
        ),
        text(
            "datum.mark & 1 && time_w/step_count > 7 ? '✕' : ''",
            data="step_marks",
            x=f"{left} + {width}/2",
            y=middle,
            size=9,
            ink="bad_ink",
            align={"value": "center"},
            opacity=is_there,
        ),
        mark(
            "rect",
            x="time_x + shown*time_w/max(1, step_count) - 1",
            y=f"stage_h - {TIME - 2}",
            width="max(3, time_w/max(1, step_count) + 1)",
            height={"value": TIME - 4},
            stroke=colour("accent"),
            strokeWidth={"value": 2},
            cornerRadius={"value": 2},
            opacity=is_there,
        ),
        mark(
            "rect",
            name="time",
            listens=True,
            x="time_x",
            y=f"stage_h - {TIME}",
            width="time_w",
            height="time_h",
            fill={"value": "transparent"},
            cursor={"value": "ew-resize"},
        ),
    ]
