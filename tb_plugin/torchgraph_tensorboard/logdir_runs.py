"""The runs that TensorBoard's tab shows: those in all log directories that TensorBoard was started with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from torchgraph_explorer.errors import NotFoundError, RecordError
from torchgraph_explorer.record.cells.reading import CellCache
from torchgraph_explorer.record.discovery import RunInfo, runs_below
from torchgraph_explorer.server.open_runs import OpenRun, Runs
from torchgraph_explorer.server.thinning import BinCache
from torchgraph_tensorboard.logdirs import Logdir


class LogdirRuns:
    """The runs of several log directories, with the interface of `Runs`, which has one.

    Attributes:
        logdir: The log directories, for messages.
    """

    def __init__(self, logdirs: Sequence[Logdir], listed: Callable[[], Sequence[RunInfo]]) -> None:
        """Serve the runs below `logdirs`; `listed` returns the runs that were found last."""
        self.logdir = ", ".join(logdir.path for logdir in logdirs)
        self.list = listed
        bins, cells = BinCache(), CellCache()
        self._runs = [(logdir, Runs(logdir.path, bins=bins, cells=cells)) for logdir in logdirs]

    def open(self, name: str) -> OpenRun:
        """The run that TensorBoard names `name`, read up to its last complete step.

        Raises:
            NotFoundError: There is no run of that name.
            RecordError: The run cannot be read.
        """
        for logdir, runs in self._runs:
            below = logdir.below(name)
            try:
                if below is not None:
                    opened = runs.open(below)
                    opened.run.name = name
                    return opened
            except NotFoundError:
                continue
        raise NotFoundError(f"There is no run {name!r} here. See api/runs for the runs that there are.")


def find_runs(logdirs: Iterable[Logdir]) -> list[RunInfo]:
    """Every run there is now, the latest first. A log directory that cannot be read is a run with an error."""
    found = [info for logdir in logdirs for info in _below(logdir)]
    return sorted(found, key=lambda run: (-run.first_write, run.name))


def _below(logdir: Logdir) -> list[RunInfo]:
    try:
        return [replace(info, name=logdir.name(info.name)) for info in runs_below(logdir.path)]
    except RecordError as refusal:
        return [RunInfo(logdir.name("."), logdir.path, (), 0.0, 0.0, 0, str(refusal))]
