"""The whole specification of the chart."""

from __future__ import annotations

from torchgraph_wandb.chart.columns import column, column_data, column_signals
from torchgraph_wandb.chart.data import datasets
from torchgraph_wandb.chart.graph import SCALE, stage
from torchgraph_wandb.chart.overlays import ghost, tip_signals, toolbar, tooltip
from torchgraph_wandb.chart.parts import COLOURS, Spec, group
from torchgraph_wandb.chart.signals import SLOTS, signals
from torchgraph_wandb.chart.strip_tips import hovering


def chart_spec() -> Spec:
    """The specification, for Vega 5 and 6. W&B sets its size and fills its data."""
    return {
        "$schema": "https://vega.github.io/schema/vega/v5.json",
        "description": "The modules of a watched model, and the histograms of their tensors over the steps",
        "background": COLOURS["paper"],
        "padding": 0,
        "width": 1000,
        "height": 560,
        "signals": [
            *signals(),
            *(one for slot in range(SLOTS) for one in column_signals(slot)),
            *hovering(SLOTS),
            *tip_signals(),
        ],
        "data": [*datasets(), *(one for slot in range(SLOTS) for one in column_data(slot))],
        "scales": [SCALE],
        "marks": [_panel()],
    }


def _panel() -> Spec:
    """Everything, clipped: W&B has the view fit the panel, and would shrink it for what sticks out."""
    marks = [stage(), *(column(slot) for slot in range(SLOTS)), toolbar(), ghost(), tooltip()]
    return group("panel", *marks, x="0", y="0", width="width", height="height")
