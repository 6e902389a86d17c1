"""Weights & Biases: the custom chart, the panel with the exported page, reports, and the record as an artifact.

`watch(model, backend="wandb")` uses it. `wandb` is imported only here, and only by what talks to it. It does not import
torch. Names are resolved when they are first used.

Imported by `cli`. `sinks` and `record` find it by the name of its backend, and of its URLs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchgraph_wandb.chart.spec import chart_spec as chart_spec
    from torchgraph_wandb.presets import publish_chart as publish_chart
    from torchgraph_wandb.records_online import fetch_record as fetch_record
    from torchgraph_wandb.records_online import upload_record as upload_record
    from torchgraph_wandb.reports import wandb_report as wandb_report

_HOMES = {
    "chart_spec": "chart.spec",
    "fetch_record": "records_online",
    "publish_chart": "presets",
    "upload_record": "records_online",
    "wandb_report": "reports",
}
"""Where each public name lives, below this package."""

__all__ = sorted(_HOMES)  # noqa: PLE0605  # the table's keys are names


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
