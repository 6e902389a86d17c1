"""Replaces the watch of a model that is watched again, e.g. by running a notebook cell again."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from torchgraph_explorer.console import info
from torchgraph_explorer.training.process import this_process
from torchgraph_explorer.training.watcher import Watcher


def earlier_watch(model: nn.Module, name: str) -> Watcher | None:
    """The open watch of the same model by the same name, whatever the model was and is wrapped in."""
    named = [each for each in this_process.open_watchers() if each.name == name]
    found = next((each for each in named if each.watches(model)), None)
    if found is None and named and hasattr(sys, "ps1"):
        gc.collect()  # a prompt: a replaced model may be in a reference cycle, whose collection ends its watch
    return found


@contextmanager
def taking_over(
    earlier: Watcher | None, run_dir: str | None, *, shares_viewer: bool, announce: bool
) -> Iterator[int | None]:
    """End `earlier`; gives the step at which the new watch goes on, or None if it records to another run.

    A viewer that both share stays, since `earlier` releases it only when the block ends. With `announce`, print what
    happens.
    """
    if earlier is None:
        yield None
        return
    earlier.is_replaced = True
    if shares_viewer:
        earlier.finish()
    else:
        earlier.close()  # now, so that its port is free
    goes_on = earlier.run_dir == run_dir
    if announce:
        where = f"goes on at step {earlier.step}" if goes_on else "begins in another run"
        info(
            f"{earlier.name} was being watched: that watch is closed, and this one {where}. "
            f"To keep both, give them different names with name=."
        )
    try:
        yield earlier.step if goes_on else None
    finally:
        earlier.close()
