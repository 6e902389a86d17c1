"""Runs whose marker TensorBoard has, but whose folder is missing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record.discovery import RunInfo
from torchgraph_tensorboard.metadata import PLUGIN_NAME, parse_marker

log = logging.getLogger(__name__)


def markers_without_folder(provider: Any, known: Iterable[str]) -> Iterator[RunInfo]:
    """A run with an error for each marker in TensorBoard's data `provider` whose run is not among `known`.

    This happens when a user copies the event files to another machine without the run's folder.
    """
    found = _marked(provider)
    for run in sorted(set(found) - set(known)):
        [series, *_] = found[run].values()
        yield RunInfo(run, run, (), series.max_wall_time, series.max_wall_time, 0, _error(series.plugin_content, run))


def _marked(provider: Any) -> Mapping[str, Mapping[str, Any]]:
    """The marker's series in each run that TensorBoard knows, by run."""
    from tensorboard.context import RequestContext

    try:
        found: Mapping[str, Mapping[str, Any]] = provider.list_tensors(
            RequestContext(), experiment_id="", plugin_name=PLUGIN_NAME
        )
    except Exception:  # each provider has its own; nothing is loaded yet, or the logdir is gone
        log.debug("torchgraph: TensorBoard does not say which runs have a marker", exc_info=True)
        return {}
    return {run: series for run, series in found.items() if series}


def _error(content: bytes, run: str) -> str:
    try:
        folder = parse_marker(content, run).folder
    except RecordError as refusal:
        return str(refusal)
    return (
        f"TensorBoard's event file of {run} says that torchgraph_explorer recorded here, and there is no {folder} "
        f"beside it. Copy the whole folder of the run, not the event file alone. If the run was deleted, TensorBoard "
        f"forgets it when it is restarted."
    )
