"""Opens the live viewer of a watch, and prints where to find it."""

from __future__ import annotations

from collections.abc import Sequence

from torchgraph_explorer import timeouts
from torchgraph_explorer.browser import over_ssh
from torchgraph_explorer.console import info, reason
from torchgraph_explorer.errors import TorchgraphError
from torchgraph_explorer.sinks import Sink
from torchgraph_explorer.sinks.live_viewer import SECONDS_TO_START, ViewerProcess, is_served, start_viewer
from torchgraph_explorer.timeouts import NoThreadError, in_time
from torchgraph_explorer.training.first_step import Start
from torchgraph_explorer.training.options import Display
from torchgraph_explorer.training.watcher import LiveViewer, Watcher


def open_viewer(logdir: str, display: Display) -> LiveViewer | None:
    """Start the live viewer; None with a message if that fails. The training is recorded all the same."""
    is_known = is_served(logdir, host=display.host, port=display.port)
    try:
        viewer = in_time(
            lambda: start_viewer(logdir, host=display.host, port=display.port),
            seconds=SECONDS_TO_START + timeouts.SECONDS,
            too_late=lambda late: late.stop(),
        )
    except NoThreadError:  # then nothing is recorded either, and the writer says so
        return None
    except Exception as fault:
        why = fault if isinstance(fault, TorchgraphError) else f"{reason(fault)}."
        info(f"no live viewer: {why} The run is still recorded; see it with 'torchgraph serve {logdir}'.")
        return None
    if display.verbose and not is_known:
        _say_how_to_reach(viewer, display.port)
    return viewer


def _say_how_to_reach(viewer: ViewerProcess, asked: int) -> None:
    """Print what the address alone does not tell."""
    if asked not in (0, viewer.port):
        info(f"port {asked} is taken; the viewer listens on {viewer.port}")
    if viewer.is_exposed:
        info("Other machines can reach the viewer; whoever has the address with its token can see the runs.")
    elif tunnel := over_ssh(viewer.port):
        info(tunnel)


def introduce(watcher: Watcher, sinks: Sequence[Sink], begin: Start) -> None:
    """Print where the run is shown and recorded, and where its steps begin if it goes on."""
    if watcher.url is not None:
        info(f"watching {watcher.name} at {watcher.url}")
    if watcher.run_dir is not None:
        info(f"recording to {watcher.run_dir}")
    for sink in sinks:  # a sink may say where its panels are
        if introduction := getattr(sink, "introduction", None):
            info(introduction)
    if begin.message:
        info(begin.message)
