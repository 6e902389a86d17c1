"""Finds the folder that a model is recorded to, without using a store in the training's thread."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

from torchgraph_explorer import timeouts
from torchgraph_explorer.capture.distributed import Rank
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.errors import OptionError, RecordError
from torchgraph_explorer.record.remote import check_url, is_url
from torchgraph_explorer.timeouts import NoAnswerError, in_time
from torchgraph_explorer.training.rank_rendezvous import SECONDS_TO_WAIT, RunLocation
from torchgraph_explorer.training.run_folder import (
    check_run_name,
    make_folder,
    random_name,
    remove_if_empty,
    run_folder,
    run_of_writer,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is known of the folder before a store is used.

    Attributes:
        logdir: As given to `watch`.
        run: As given, or that of the W&B run.
        model: The model's name in the run.
        writer: As given.
        rank: Of this process, if there are several.
    """

    logdir: str
    run: str | None
    model: str
    writer: Any
    rank: Rank | None


class Found(NamedTuple):
    """Where a model is recorded.

    Attributes:
        location: The folder of runs, and the run.
        run_dir: The run's folder or URL.
        seconds: How long its store may still be waited for.
    """

    location: RunLocation
    run_dir: str
    seconds: float


def find_location(choose: Callable[[], RunLocation], wanted: Wanted) -> Found | None:
    """The folder that `choose` finds; None with a warning if there can be none.

    If the store does not answer in time, the run gets a random name.

    Raises:
        OptionError: There can be no such run.
    """
    is_named = wanted.run is not None or wanted.writer is not None
    waits_for_another = wanted.rank is not None and not wanted.rank.is_leader  # and that one names the run
    began = monotonic()
    try:
        location, run_dir = in_time(
            lambda: _made(choose()),
            seconds=timeouts.SECONDS + (SECONDS_TO_WAIT if waits_for_another else 0.0),
            too_late=lambda late: None if is_named else remove_if_empty(late[1]),
        )
    except NoAnswerError:
        return _without_store(wanted)
    except OSError as fault:
        _warn_no_folder(wanted, fault)
        return None
    spent = 0.0 if waits_for_another else monotonic() - began
    return Found(location, run_dir, max(0.0, timeouts.SECONDS - spent))


def _made(location: RunLocation) -> tuple[RunLocation, str]:
    """Make the run's folder; returns `location` and the folder.

    Raises:
        OptionError: There can be no such run.
        OSError: There is no working directory.
    """
    run_dir = run_folder(*location)
    if not is_url(run_dir):
        make_folder(run_dir)
        return location, run_dir
    try:
        check_url(run_dir)
    except RecordError as refusal:
        raise OptionError(str(refusal)) from refusal
    return location, run_dir


def _without_store(wanted: Wanted) -> Found | None:
    """A folder whose name needs no answer of the store."""
    try:
        if wanted.writer is not None:
            location = run_of_writer(wanted.writer)
        else:
            location = wanted.logdir, random_name() if wanted.run is None else check_run_name(wanted.run)
        return Found(location, run_folder(*location), 0.0)
    except OSError as fault:
        _warn_no_folder(wanted, fault)
        return None


def _warn_no_folder(wanted: Wanted, fault: OSError) -> None:
    """Warn that there is no folder of runs, since there is no working directory."""
    warn(
        f"{wanted.model} is not recorded, since logdir={wanted.logdir!r} leads nowhere ({reason(fault)}). "
        f"Training goes on. Pass an absolute path as logdir=, or go to a folder that exists first."
    )


def leave_location(run_dir: str) -> None:
    """Remove the folder of a run that was not begun, unless there is something in it."""
    with suppress(NoAnswerError):
        in_time(lambda: remove_if_empty(run_dir), seconds=timeouts.SECONDS)
