"""The chart's data with what is computed from it."""

from __future__ import annotations

from dataclasses import dataclass

from torchgraph_wandb.chart_data import ChartData
from torchgraph_wandb.chart_text import GraphText, graph_text
from torchgraph_wandb.heat_strips import HeatStrips, heat_strips
from torchgraph_wandb.node_statistics import NodeStatistics, node_statistics


@dataclass(frozen=True, slots=True)
class ChartContents:
    """The chart's data and what is computed from it."""

    data: ChartData
    text: GraphText
    strips: HeatStrips
    statistics: NodeStatistics


def contents_of(data: ChartData) -> ChartContents:
    """Compute what the table needs."""
    strips = heat_strips(data.frames, data.series, reject=data.session.reject_outlier_proportion)
    return ChartContents(data, graph_text(data.graph), strips, node_statistics(data.series, strips))
