"""The runs that TensorBoard's tab shows: those below all folders that TensorBoard was pointed at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from torchgraph_explorer.errors import NotFoundError, RecordError
from torchgraph_explorer.record.discovery import RunInfo, list_runs
from torchgraph_explorer.server.open_runs import OpenRun, Runs
from torchgraph_explorer.server.thinning import BinCache
from torchgraph_tensorboard.logdirs import Root


class LogdirRuns:
    """Does for several folders what `Runs` does for one.

    Attributes:
        logdir: What to call the place in a sentence.
    """

    def __init__(self, roots: Sequence[Root], listed: Callable[[], Sequence[RunInfo]]) -> None:
        """Serve what is below `roots`; `list` answers with `listed`, which looks from time to time."""
        self.logdir = ", ".join(root.path for root in roots)
        self.list = listed
        bins = BinCache()
        self._places = [(root, Runs(root.path, bins=bins)) for root in roots]

    def open(self, name: str) -> OpenRun:
        """The run that TensorBoard calls `name`, read up to what is there now.

        Raises:
            NotFoundError: There is none of that name.
            RecordError: It cannot be read.
        """
        for root, runs in self._places:
            below = root.below(name)
            try:
                if below is not None:
                    opened = runs.open(below)
                    opened.run.name = name
                    return opened
            except NotFoundError:
                continue
        raise NotFoundError(f"There is no run {name!r} here. See api/runs for those there are.")


def look(roots: Iterable[Root]) -> list[RunInfo]:
    """Every run that there is now, the latest begun first. A folder that cannot be reached is told as a run is."""
    found = [info for root in roots for info in _below(root)]
    return sorted(found, key=lambda run: (-run.first_write, run.name))


def _below(root: Root) -> list[RunInfo]:
    try:
        return [replace(info, name=root.name(info.name)) for info in list_runs(root.path)]
    except RecordError as refusal:
        return [RunInfo(root.name("."), root.path, (), 0.0, 0.0, 0, str(refusal))]
