"""Finds the first step of a watch whose run may have steps of an earlier session."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from torchgraph_explorer.capture.distributed import Rank
from torchgraph_explorer.console import reason
from torchgraph_explorer.record.earlier import Earlier, look_back
from torchgraph_explorer.record.remote import is_url
from torchgraph_explorer.sinks import Resumed, SinkContext, resumed_run
from torchgraph_explorer.training.rank_rendezvous import agreed_step
from torchgraph_explorer.training.run_folder import is_of_wandb


@dataclass(frozen=True, slots=True)
class Start:
    """Where the steps of a watch begin.

    Attributes:
        step: The first.
        is_certain: It is that one, whatever the states of optimizers say.
        recorded: One more than the highest step of the model in the run.
        message: What to print about it; may be empty.
        notes: What to note about it in the record.
    """

    step: int = 0
    is_certain: bool = False
    recorded: int = 0
    message: str = ""
    notes: tuple[str, ...] = ()


def begin_in(
    context: SinkContext, backends: Sequence[str], rank: Rank | None, *, is_named: bool, seconds: float
) -> Start:
    """Where to begin in the run of `context`: at 0, or where its earlier steps end if one of `backends` resumes it.

    Ranks begin where the first one of their machine does. Returns within so many seconds, or when that rank has written
    down its step. A store at a URL is searched only if the run `is_named`; otherwise the run is new.
    """
    agrees = rank is not None and is_of_wandb(context.run)
    if agrees and rank is not None and not rank.is_leader:
        return Start(agreed_step(0, is_leader=False))
    found = Start() if is_url(context.run_dir) and not is_named else _start(context, backends, seconds)
    if agrees:
        agreed_step(found.step, is_leader=True)
    return found


def _start(context: SinkContext, backends: Sequence[str], seconds: float) -> Start:
    found = _Search()
    searching = threading.Thread(
        target=_search, args=(found, context, backends), name="torchgraph-continuing", daemon=True
    )
    try:
        searching.start()
    except RuntimeError:  # no thread can be started, so nothing will be recorded either
        return Start()
    searching.join(seconds)
    return _decided(found, seconds=seconds, is_complete=not searching.is_alive())


@dataclass(slots=True)
class _Search:
    """What the other thread has found so far."""

    resumed: Resumed | None = None
    earlier: Earlier = field(default_factory=Earlier)
    fault: str = ""


def _search(found: _Search, context: SinkContext, backends: Sequence[str]) -> None:
    try:
        found.resumed = resumed_run(context, backends)
        for found.earlier in look_back(context.run_dir, context.model_name):
            pass
    except Exception as fault:  # a store or service may raise anything, and training begins all the same
        found.fault = reason(fault)


def _decided(found: _Search, *, seconds: float, is_complete: bool) -> Start:
    earlier, notes = found.earlier, []
    if found.fault or not is_complete:
        why = found.fault or f"there was no answer within {seconds:g} s"
        notes.append(f"Not all earlier steps of this run could be looked for ({why}).")
    if found.resumed is None:
        return Start(0, recorded=earlier.reached, notes=tuple(notes))
    counted = found.resumed.steps or 0
    first = max(earlier.steps, counted)
    if counted > earlier.steps:
        notes.append(_note_of_steps_elsewhere(earlier.steps, first))
    return Start(first, recorded=earlier.reached, message=_message(found.resumed, earlier, first), notes=tuple(notes))


def _message(resumed: Resumed, earlier: Earlier, first: int) -> str:
    if not first and not resumed.is_certain:
        return ""
    source = "its record" if earlier.steps == first else f"the count in {resumed.place}"
    how = f"go on at {first}, where {source} ends" if first else "begin at 0, since no earlier one is known here"
    return (
        f"{resumed.place} resumes this run: its steps {how}. If the model was loaded from a checkpoint of another "
        f"step, set watcher.step."
    )


def _note_of_steps_elsewhere(first: int, end: int) -> str:
    which = f"Step {first} was" if end - first == 1 else f"Steps {first} to {end - 1} were"
    return f"{which} recorded elsewhere. The record there has them; this one lacks them."


def recorded_again(step: int, recorded: int) -> str:
    """The warning when `step` is recorded in a run that has steps below `recorded`, and `watcher.step` was not set."""
    return (
        f"Step {step} is recorded again: this run already has steps up to {recorded - 1} of an earlier session. They "
        f"are replaced one by one, so the run has steps of both sessions until then. If this training continues that "
        f"session, set watcher.step = {recorded} after watch(). If it is another training, give it another run=."
    )
