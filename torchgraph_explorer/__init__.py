"""Watch a PyTorch model train, and look inside it.

    from torchgraph_explorer import watch

    watch(model)          # then train, and open http://localhost:8080

Names are resolved when they are first used, so that reading a run never imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from torchgraph_explorer.version import __version__

if TYPE_CHECKING:
    from torchgraph_explorer.comparison.models import Comparison as Comparison
    from torchgraph_explorer.errors import NotFoundError as NotFoundError
    from torchgraph_explorer.errors import OptionError as OptionError
    from torchgraph_explorer.errors import RecordError as RecordError
    from torchgraph_explorer.errors import TorchgraphError as TorchgraphError
    from torchgraph_explorer.errors import TorchgraphWarning as TorchgraphWarning
    from torchgraph_explorer.errors import UnknownBackendError as UnknownBackendError
    from torchgraph_explorer.exploring.start import explore as explore
    from torchgraph_explorer.finding import Finding as Finding
    from torchgraph_explorer.findings.kinds.entries import explain as explain
    from torchgraph_explorer.histogram import Histograms as Histograms
    from torchgraph_explorer.histogram import quantiles as quantiles
    from torchgraph_explorer.own_views.selection import ViewSelection as ViewSelection
    from torchgraph_explorer.per_label import PerLabel as PerLabel
    from torchgraph_explorer.record.discovery import list_runs as list_runs
    from torchgraph_explorer.run import compare as compare
    from torchgraph_explorer.run import open_run as open_run
    from torchgraph_explorer.run import spread as spread
    from torchgraph_explorer.schema import STATISTICS as STATISTICS
    from torchgraph_explorer.server.export import export_page as export_page
    from torchgraph_explorer.tensors.keep import Keep as Keep
    from torchgraph_explorer.training.attach import attach as attach
    from torchgraph_explorer.training.torchexplorer import StructureWrapper as StructureWrapper
    from torchgraph_explorer.training.torchexplorer import setup as setup
    from torchgraph_explorer.training.watch import LIGHTNING_EPOCHS as LIGHTNING_EPOCHS
    from torchgraph_explorer.training.watch import watch as watch
    from torchgraph_explorer.training.watcher import Watcher as Watcher

_HOMES = {
    "Comparison": "comparison.models",
    "Finding": "finding",
    "Keep": "tensors.keep",
    "LIGHTNING_EPOCHS": "training.watch",
    "STATISTICS": "schema",
    "Histograms": "histogram",
    "NotFoundError": "errors",
    "OptionError": "errors",
    "PerLabel": "per_label",
    "RecordError": "errors",
    "StructureWrapper": "training.torchexplorer",
    "TorchgraphError": "errors",
    "TorchgraphWarning": "errors",
    "UnknownBackendError": "errors",
    "ViewSelection": "own_views.selection",
    "Watcher": "training.watcher",
    "attach": "training.attach",
    "compare": "run",
    "explain": "findings.kinds.entries",
    "explore": "exploring.start",
    "export_page": "server.export",
    "list_runs": "record.discovery",
    "open_run": "run",
    "quantiles": "histogram",
    "setup": "training.torchexplorer",
    "spread": "run",
    "watch": "training.watch",
}
"""Where each public name lives, below this package. No module may have the name of one of them: it would hide it."""

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604  # the table's keys are names


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
