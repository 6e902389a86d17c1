"""Begins a watch: decides where it is recorded to, opens the sinks and the viewer, and makes the watcher."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from torch import nn

from torchgraph_explorer import timeouts
from torchgraph_explorer.capture.distributed import Rank, Sharding, this_rank
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.errors import OptionError, TorchgraphError
from torchgraph_explorer.printable import printable
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.sinks import Backends, Sink, SinkContext, open_sink, resolve
from torchgraph_explorer.sinks.live_viewer import is_served
from torchgraph_explorer.training import exit
from torchgraph_explorer.training.destination import Wanted, find_location, leave_location
from torchgraph_explorer.training.first_step import Start, begin_in
from torchgraph_explorer.training.live_findings import LiveFindings
from torchgraph_explorer.training.on_finding import FindingInbox
from torchgraph_explorer.training.options import Display, Settings, Target, check, check_display, check_target
from torchgraph_explorer.training.rewatch import earlier_watch, taking_over
from torchgraph_explorer.training.run_choice import choose_location
from torchgraph_explorer.training.run_folder import check_logdir, run_of_wandb
from torchgraph_explorer.training.session import describe
from torchgraph_explorer.training.switched_off import ImportedAnew, SwitchedOff, is_imported_anew, is_switched_off
from torchgraph_explorer.training.viewer import introduce, open_viewer
from torchgraph_explorer.training.watcher import Watcher
from torchgraph_explorer.training.writer_thread import WAITING


@dataclass(frozen=True, slots=True)
class _Request:
    """What is to be watched, as far as it is known before a store is asked.

    Attributes:
        model: The model, as it was given.
        settings: What to record of it.
        target: Where to.
        display: How to show it.
        logdir: The folder of runs, checked.
        backends: What this rank writes to.
        wants_wandb: The W&B backend is among those of some rank.
        name: The model's name in the run.
        rank: Of this process, if there are several.
        sharding: How the parameters are divided among the ranks; None where each rank has a record of its own.
        earlier: The open watch of this model by this name, which the new one replaces.
    """

    model: nn.Module
    settings: Settings
    target: Target
    display: Display
    logdir: str
    backends: Backends
    wants_wandb: bool
    name: str
    rank: Rank | None
    sharding: Sharding | None
    earlier: Watcher | None


@dataclass(frozen=True, slots=True)
class _Destination:
    """The run that a model is recorded to.

    Attributes:
        context: What sinks have to know of it.
        is_named: The user named the run. Else it is a new one, or one of this process.
        seconds: How long its store may still be waited for.
    """

    context: SinkContext
    is_named: bool
    seconds: float


def start(model: nn.Module, settings: Settings, *, target: Target, display: Display) -> Watcher:
    """Watch `model`. See `watch`, which groups its parameters into these.

    Raises:
        OptionError: An argument is not one of those allowed.
        UnknownBackendError: No backend has that name.
    """
    check(model, settings)
    check_target(target)
    check_display(display)
    if is_switched_off():
        return SwitchedOff(model, _name(model, target.name, rank=None))
    if is_imported_anew():
        return ImportedAnew(model, _name(model, target.name, rank=None))
    request = _resolved(model, settings, target=target, display=display)
    destination = _find(request) if request.backends.record else None
    if destination is None:
        sinks_alone = Backends(record=False, viewer=False, sinks=request.backends.sinks)
        request = replace(request, backends=sinks_alone)
    context = destination.context if destination is not None else None
    inbox = FindingInbox(display.on_finding) if display.on_finding is not None else None
    with ExitStack() as if_it_fails:
        if context is not None:
            if_it_fails.callback(leave_location, context.run_dir)
        sinks = [*_sinks(request, context), *request.backends.sinks]
        looking = _live_findings(request, context, sinks, inbox=inbox) if context is not None else None
        if looking is not None:
            sinks.insert(1, looking)  # after the record, which it reads, and before services that are told of findings
        watcher, begin = _begun(request, destination, sinks, inbox=inbox)
        if_it_fails.pop_all()
    if looking is not None:
        looking.also_tell(watcher.flag_findings)
    exit.add(watcher, block=display.block_at_exit)
    for sink in sinks:  # a sink may have to close the watcher before its service ends
        if watched_by := getattr(sink, "watched_by", None):
            watched_by(watcher)
    if request.display.verbose:
        introduce(watcher, sinks, begin)
    _wait_for_the_store(watcher, destination.seconds if destination is not None else timeouts.SECONDS)
    return watcher


def _resolved(model: nn.Module, settings: Settings, *, target: Target, display: Display) -> _Request:
    """The request, with what depends on the rank and on other watches of this process."""
    logdir = check_logdir(target.logdir)
    also = ("tensorboard",) * (target.writer is not None) + ("wandb",) * (target.wandb_run is not None)
    backends = resolve(target.backend, also=also)
    wants_wandb = "wandb" in backends.libraries
    if not (backends.record or backends.sinks):
        settings = replace(settings, log=())  # nothing would read it; the watcher itself gives only the graph
    if settings.keep is not None and not _has_room_for_tensors(backends):
        warn(
            "keep= has no effect: tensors are kept in a run folder, and this backend= writes none. "
            "Add the backend 'record'."
        )
        settings = replace(settings, keep=None)
    rank = this_rank()
    if rank is not None:
        backends = _of_rank(backends, rank)
        display = replace(display, verbose=display.verbose and rank.is_leader)
    name = _name(model, target.name, rank=rank if settings.ranks == "all" else None)
    return _Request(
        model=model,
        settings=settings,
        target=target,
        display=display,
        logdir=logdir,
        backends=backends,
        wants_wandb=wants_wandb,
        name=name,
        rank=rank,
        sharding=Sharding(model) if rank is not None and settings.ranks == "merged" else None,
        earlier=earlier_watch(model, name),
    )


def _has_room_for_tensors(backends: Backends) -> bool:
    """Whether something takes kept tensors: the record, or a sink of the user's that has a method for it."""
    return backends.record or any(hasattr(sink, "keep") for sink in backends.sinks)


def _find(request: _Request) -> _Destination | None:
    """Where to record; None if the system has no folder for it, with a warning."""
    target, name, rank = request.target, request.name, request.rank
    run, writer = target.run, target.writer
    if target.wandb_run is not None or (run is None and writer is None and request.wants_wandb):
        run = run_of_wandb(target.wandb_run)
    choose = partial(choose_location, request.logdir, run, name, writer=writer, rank=rank, earlier=request.earlier)
    found = find_location(choose, Wanted(request.logdir, run, name, writer=writer, rank=rank))
    if found is None:
        return None
    (logdir, run_name), folder, seconds = found
    context = SinkContext(
        folder,
        logdir,
        run_name,
        name,
        writer=writer,
        wandb_run=target.wandb_run,
        upload_record=target.upload_record,
        tensor_megabytes=keep.wandb_megabytes if (keep := request.settings.keep) is not None else 0.0,
    )
    return _Destination(context, is_named=run is not None or writer is not None, seconds=seconds)


def _live_findings(
    request: _Request, context: SinkContext, sinks: Sequence[Sink], *, inbox: FindingInbox | None
) -> LiveFindings | None:
    """What looks for findings while the model trains; None where nobody is told of them, or another rank does it."""
    if request.rank is not None and request.rank.number > 0:
        return None
    tell = [sink.found for sink in sinks if hasattr(sink, "found")] + ([inbox.put] if inbox is not None else [])
    says = request.display.verbose and inbox is None
    keep = request.settings.keep
    rules = request.display.rules
    if not (tell or says or rules or (keep is not None and keep.is_flagged)):
        return None
    record = next((sink.write for sink in sinks if isinstance(sink, RecordWriter)), None)
    return LiveFindings(context.run_dir, context.model_name, rules=rules, tell=tell, says=says, record=record)


def _begun(
    request: _Request, destination: _Destination | None, sinks: Sequence[Sink], *, inbox: FindingInbox | None
) -> tuple[Watcher, Start]:
    """The watcher, and where its steps begin. Ends the earlier watch of the same model."""
    display, context = request.display, destination.context if destination is not None else None
    run_dir, logdir = (context.run_dir, context.logdir) if context is not None else (None, request.logdir)
    shows = request.backends.viewer
    shares_viewer = shows and is_served(logdir, host=display.host, port=display.port)
    is_leader = request.rank is None or request.rank.is_leader
    with (
        taking_over(request.earlier, run_dir, shares_viewer=shares_viewer, announce=is_leader) as step,
        ExitStack() as if_it_fails,
    ):
        viewer = open_viewer(logdir, display) if shows else None
        if viewer is not None:
            if_it_fails.callback(viewer.stop)
        begin = Start(step or 0, is_certain=step is not None)
        if step is None and destination is not None:
            begin = begin_in(
                destination.context,
                request.backends.libraries,
                request.rank,
                is_named=destination.is_named,
                seconds=destination.seconds,
            )
        merged = request.rank if request.settings.ranks == "merged" else None
        watcher = Watcher(
            request.model,
            request.settings,
            session=describe(request.model, request.settings, request.name, rank=merged, notes=begin.notes),
            sinks=sinks,
            more_sinks=lambda phase: _sinks(request, _of_phase(context, phase)),
            run_dir=run_dir,
            viewer=viewer,
            shards=request.sharding.look if request.sharding is not None else None,
            inbox=inbox,
        )
        watcher.begin(begin)
        if_it_fails.pop_all()
    return watcher, begin


def _name(model: nn.Module, name: object, *, rank: Rank | None) -> str:
    """The model's name in the run; with `rank`, that of one rank.

    Raises:
        OptionError: `name` is not a str, or empty.
    """
    if name is not None and not (isinstance(name, str) and name):
        raise OptionError(
            f"name={name!r} is not a name for a model. Pass a str, or leave name= out to use the model's class."
        )
    name = printable(name if name is not None else type(unwrapped(model)).__name__)
    return name if rank is None else f"{name} (rank {rank.number})"


def _of_rank(backends: Backends, rank: Rank) -> Backends:
    """The backends of one rank: all record, the first of each machine has a viewer, and rank 0 logs to W&B."""
    opened = tuple(each for each in backends.libraries if rank.number == 0 or (rank.is_leader and each != "wandb"))
    return replace(backends, viewer=backends.viewer and rank.is_leader, libraries=opened)


def _of_phase(context: SinkContext | None, model_name: str) -> SinkContext | None:
    """`context` for another phase of the model. The record is uploaded once, for all phases."""
    return None if context is None else replace(context, model_name=model_name, upload_record=False)


def _sinks(request: _Request, context: SinkContext | None) -> list[Sink]:
    """Open the sinks for one phase of the model, except the user's own."""
    if context is None:
        return []
    opened = (_opened(each, context) for each in request.backends.libraries)
    return [RecordWriter(context.run_dir), *(sink for sink in opened if sink is not None)]


def _opened(backend: str, context: SinkContext) -> Sink | None:
    """The sink of a backend; None with a warning if it cannot be opened."""
    try:
        return open_sink(backend, context)
    except TorchgraphError:
        raise
    except Exception as fault:
        warn(f"backend={backend!r} cannot be opened ({reason(fault)}). Training goes on, and is recorded.")
        return None


def _wait_for_the_store(watcher: Watcher, seconds: float) -> None:
    """Wait until all sinks have begun, or for so many seconds, with a warning."""
    if not watcher.has_begun(time.monotonic() + seconds):
        warn(
            f"{watcher.run_dir or 'A sink'} has not answered within {timeouts.SECONDS:g} s. Training goes on. "
            f"{watcher.name} is recorded when it answers; until then {WAITING} logged steps wait in memory, and "
            f"further ones are dropped."
        )
