"""What all watches of one process share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torchgraph_explorer.training.watcher import Watcher


class Use(NamedTuple):
    """A model that is or was recorded to a run folder in this process.

    Attributes:
        run_dir: The folder, or URL.
        model: The model's name in it.
        is_open: It is still watched.
        has_steps: Steps of it were recorded.
    """

    run_dir: str
    model: str
    is_open: bool
    has_steps: bool


class Process:
    """The watches of this process, from the import of this module until the process ends, where `exit` closes them.

    Attributes:
        watchers: Every watcher that is open or has a viewer, the oldest first, each with whether to keep its viewer
            when the process ends.
    """

    def __init__(self) -> None:
        """Nothing is watched."""
        self.watchers: dict[Watcher, bool | None] = {}
        self._closed: dict[tuple[str, str], bool] = {}

    def add(self, watcher: Watcher, *, block: bool | None) -> None:
        """Keep `watcher`, and of those that are closed only where they recorded to."""
        for closed in [each for each in self.watchers if each.finished and each.viewer is None]:
            del self.watchers[closed]
            for run_dir, model, _, has_steps in _uses_of(closed):
                self._closed[run_dir, model] = has_steps or self._closed.get((run_dir, model), False)
        self.watchers[watcher] = block

    def open_watchers(self) -> tuple[Watcher, ...]:
        """The watchers that still watch, the oldest first."""
        return tuple(watcher for watcher in self.watchers if not watcher.finished)

    def uses(self) -> tuple[Use, ...]:
        """Where the watchers of this process record and have recorded to, the closed ones first."""
        past = (Use(run_dir, model, False, has_steps) for (run_dir, model), has_steps in self._closed.items())
        return (*past, *(use for watcher in self.watchers for use in _uses_of(watcher)))


def _uses_of(watcher: Watcher) -> tuple[Use, ...]:
    if watcher.run_dir is None:
        return ()
    return (Use(watcher.run_dir, watcher.name, not watcher.finished, watcher.has_steps),)


this_process = Process()
