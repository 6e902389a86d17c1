"""A model that is watched again, as by a cell of a notebook run again: the new watch takes over from the earlier."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from torchgraph_explorer.console import info
from torchgraph_explorer.training import exit
from torchgraph_explorer.training.watcher import Watcher


def earlier_watch(model: nn.Module, name: str) -> Watcher | None:
    """The open watch of the same model by the same name, however the model was and is wrapped."""
    named = [each for each in exit.open_watchers() if each.name == name]
    found = next((each for each in named if each.watches(model)), None)
    if found is None and named and hasattr(sys, "ps1"):
        gc.collect()  # an interactive session: a model that was replaced may lie in a cycle, and end its watch only now
    return found


@contextmanager
def taking_over(
    earlier: Watcher | None, run_dir: str | None, *, shares_viewer: bool, is_told: bool
) -> Iterator[int | None]:
    """End `earlier`, and give the step at which a watch that records to `run_dir` goes on; None where it does not.

    A viewer that both share stays, since `earlier` leaves it only when the block ends.
    """
    if earlier is None:
        yield None
        return
    if shares_viewer:
        earlier.finish()
    else:
        earlier.close()  # now, so that its port is free
    goes_on = earlier.run_dir == run_dir
    if is_told:
        where = f"goes on at step {earlier.step}" if goes_on else "begins in another run, at step 0"
        info(
            f"{earlier.name} was being watched: that watch is closed, and this one {where}. "
            f"To keep both, give them different names with name=."
        )
    yield earlier.step if goes_on else None
    earlier.close()
