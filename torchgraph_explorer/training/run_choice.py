"""Chooses the run that a model is recorded to: one of this process, that of the other ranks, or a new one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchgraph_explorer.capture.distributed import Rank
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.training.process import Use, this_process
from torchgraph_explorer.training.rank_rendezvous import RunLocation, agreed_location
from torchgraph_explorer.training.run_folder import (
    check_run_name,
    is_by_time,
    new_run_name,
    run_folder,
    run_of_writer,
)
from torchgraph_explorer.training.watcher import Watcher


def choose_location(
    logdir: str, run: str | None, name: str, *, writer: Any, rank: Rank | None, earlier: Watcher | None
) -> RunLocation:
    """The folder of runs and the run to write to: as given, that of the writer, or that of the other ranks.

    If none is given, the run of `earlier`, which the new watch replaces, or that of other models of this process.

    Raises:
        OptionError: `run` is no name for a run, is taken, or was given with a writer.
    """
    if writer is not None and run is not None:
        raise OptionError(f"run={run!r} and writer= both name a run. Leave one out; the writer's folder is its run's.")
    if writer is not None:
        logdir, run = run_of_writer(writer)
    uses = [
        each for each in this_process.uses() if earlier is None or (each.run_dir, each.model) != (earlier.run_dir, name)
    ]
    if run is None:
        known = _run_to_continue(logdir, name, uses, earlier=earlier, alone=rank is None)
        if known is not None:
            return logdir, known
    given = None if run is None else (logdir, check_run_name(run))
    taken = {(each.run_dir, each.model) for each in uses if each.is_open}
    if given is not None and (run_folder(*given), name) in taken:
        raise OptionError(
            f"run={run!r} already has an open model named {name!r}. Pass another name=, or close its watcher first."
        )

    def choose() -> RunLocation:
        return logdir, new_run_name(logdir, taken={_below(logdir, each.run_dir) for each in uses})

    return (given or choose()) if rank is None else agreed_location(given, choose, is_leader=rank.is_leader)


def _run_to_continue(
    logdir: str, name: str, uses: Sequence[Use], *, earlier: Watcher | None, alone: bool
) -> str | None:
    """A run of `logdir` that this process has written to, and that has no other model of this name.

    In this order: the run of `earlier`; one of other open models; or, unless there are other ranks, the latest one
    without steps.
    """
    folders = dict.fromkeys(each.run_dir for each in uses)
    mixing = {each.run_dir for each in uses if each.model == name and (each.is_open or each.has_steps)}
    in_use = {each.run_dir for each in uses if each.is_open}
    empty = folders.keys() - in_use - {each.run_dir for each in uses if each.has_steps}
    own = [] if earlier is None or earlier.run_dir is None else [earlier.run_dir]
    shared = [folder for folder in folders if folder in in_use - mixing]
    unused = [folder for folder in reversed(folders) if folder in empty and is_by_time(Path(folder).name)]
    runs = (_below(logdir, folder) for folder in (*own, *shared, *(unused if alone else ())))
    return next((run for run in runs if run is not None), None)


def _below(logdir: str, folder: str) -> str | None:
    """The name of the run in `folder`, if that is below `logdir`."""
    if "://" in logdir:
        root = logdir.rstrip("/") + "/"
        return folder.removeprefix(root) if folder.startswith(root) else None
    path, root_path = Path(folder), Path(run_folder(logdir, "."))
    return path.relative_to(root_path).as_posix() if path.is_relative_to(root_path) else None
