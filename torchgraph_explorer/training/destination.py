"""Finds the place that a model is recorded to, without a store being touched from the user's thread."""

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
    leave,
    make_folder,
    name_by_chance,
    run_folder,
    run_of_writer,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is known of the place before any store is asked.

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
        place: The folder of runs, and the run.
        run_dir: The run's folder or URL.
        patience: Seconds that its store may still be waited for.
    """

    place: RunLocation
    run_dir: str
    patience: float


def find_place(choose: Callable[[], RunLocation], wanted: Wanted) -> Found | None:
    """The place that `choose` finds; None if there can be none, which is said.

    If the store does not answer in time, it is not asked for a name of the run; that is made by chance.

    Raises:
        OptionError: There can be no such run.
    """
    is_named = wanted.run is not None or wanted.writer is not None
    waits_for_another = wanted.rank is not None and not wanted.rank.is_leader  # which names the run
    began = monotonic()
    try:
        place, run_dir = in_time(
            lambda: _made(choose()),
            seconds=timeouts.SECONDS + (SECONDS_TO_WAIT if waits_for_another else 0.0),
            too_late=lambda late: None if is_named else leave(late[1]),
        )
    except NoAnswerError:
        return _unasked(wanted)
    except OSError as fault:
        _say_nowhere(wanted, fault)
        return None
    spent = 0.0 if waits_for_another else monotonic() - began
    return Found(place, run_dir, max(0.0, timeouts.SECONDS - spent))


def _made(place: RunLocation) -> tuple[RunLocation, str]:
    """`place`, and the run's folder, which is made.

    Raises:
        OptionError: There can be no such run.
        OSError: There is no working directory.
    """
    run_dir = run_folder(*place)
    if not is_url(run_dir):
        make_folder(run_dir)
        return place, run_dir
    try:
        check_url(run_dir)
    except RecordError as refusal:
        raise OptionError(str(refusal)) from refusal
    return place, run_dir


def _unasked(wanted: Wanted) -> Found | None:
    """A place that the store need not be asked for."""
    try:
        if wanted.writer is not None:
            place = run_of_writer(wanted.writer)
        else:
            place = wanted.logdir, name_by_chance() if wanted.run is None else check_run_name(wanted.run)
        return Found(place, run_folder(*place), 0.0)
    except OSError as fault:
        _say_nowhere(wanted, fault)
        return None


def _say_nowhere(wanted: Wanted, fault: OSError) -> None:
    """There is no working directory, and so no folder of runs."""
    warn(
        f"{wanted.model} is not recorded, since logdir={wanted.logdir!r} leads nowhere ({reason(fault)}). "
        f"Training goes on. Pass an absolute path as logdir=, or go to a folder that exists first."
    )


def leave_place(run_dir: str) -> None:
    """Remove the folder of a run that came to nothing, unless there is something in it."""
    with suppress(NoAnswerError):
        in_time(lambda: leave(run_dir), seconds=timeouts.SECONDS)
