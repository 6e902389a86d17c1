"""The complete specification of the chart."""

from __future__ import annotations

from torchgraph_wandb.chart.calls import call_signals
from torchgraph_wandb.chart.columns import axes, column, column_data, column_signals, owners
from torchgraph_wandb.chart.comparison import AREA, comparison, comparison_data, comparison_signals
from torchgraph_wandb.chart.datasets import datasets
from torchgraph_wandb.chart.findings_list import finding_data, finding_signals, findings_list
from torchgraph_wandb.chart.graph import SCALE, stage
from torchgraph_wandb.chart.overlays import (
    banners,
    colour_menu,
    drag_label,
    tip_signals,
    toolbar,
    toolbar_signals,
    tooltip,
)
from torchgraph_wandb.chart.signals import SLOTS, signals
from torchgraph_wandb.chart.strip_layout import column_area
from torchgraph_wandb.chart.strip_tooltips import hovering
from torchgraph_wandb.chart.stubs import stub_signals
from torchgraph_wandb.chart.themes import theme_signals
from torchgraph_wandb.chart.vega import Spec, colour, group
from torchgraph_wandb.chart.xray.data import xray_data
from torchgraph_wandb.chart.xray.marks import xray
from torchgraph_wandb.chart.xray.signals import xray_signals


def chart_spec() -> Spec:
    """The specification, for Vega 5 and 6. W&B sets its size and fills in its data."""
    return {
        "$schema": "https://vega.github.io/schema/vega/v5.json",
        "description": "The modules of a watched model, and the histograms of their tensors over the steps",
        "background": colour("paper"),
        "padding": 0,
        "width": 1000,
        "height": 560,
        "signals": [
            *theme_signals(),
            *signals(),
            *(one for slot in range(SLOTS) for one in column_signals(slot)),
            owners(SLOTS),
            *comparison_signals(),
            *call_signals(),
            *stub_signals(),
            *xray_signals(),
            *finding_signals(),
            *hovering([*map(column_area, range(SLOTS)), AREA]),
            *toolbar_signals(),
            *tip_signals(),
        ],
        "data": [
            *datasets(),
            axes(),
            *(one for slot in range(SLOTS) for one in column_data(slot)),
            *comparison_data(),
            *finding_data(),
            *xray_data(),
        ],
        "scales": [SCALE],
        "marks": [_panel()],
    }


def _panel() -> Spec:
    """Everything, clipped: W&B fits the view into the panel, and would shrink it if a mark stuck out."""
    columns = [column(slot) for slot in range(SLOTS)]
    marks = [
        stage(),
        *columns,
        comparison(),
        xray(),
        findings_list(),
        toolbar(),
        *banners(),
        colour_menu(),
        drag_label(),
        tooltip(),
    ]
    return group("panel", *marks, x="0", y="0", width="width", height="height")
