"""`watch`: what a user calls to watch a model."""

from __future__ import annotations

import os
import platform
import socket
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from torchgraph_explorer import timeouts
from torchgraph_explorer.capture.distributed import Rank, Sharding, this_rank
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.console import info, reason, warn
from torchgraph_explorer.errors import OptionError, TorchgraphError
from torchgraph_explorer.printable import printable
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import Session
from torchgraph_explorer.sinks import Backends, Sink, SinkContext, open_sink, resolve
from torchgraph_explorer.sinks.live_viewer import SECONDS_TO_START, is_served, start_viewer
from torchgraph_explorer.timeouts import NoThreadError, in_time
from torchgraph_explorer.training import exit
from torchgraph_explorer.training.destination import Wanted, find_place, leave_place
from torchgraph_explorer.training.first_step import Start, begin_in
from torchgraph_explorer.training.options import KINDS, check
from torchgraph_explorer.training.pipeline import Scaler, Settings, TimeLog
from torchgraph_explorer.training.process import Use, this_process
from torchgraph_explorer.training.rank_rendezvous import RunLocation, agreed_place
from torchgraph_explorer.training.rewatch import earlier_watch, taking_over
from torchgraph_explorer.training.run_folder import (
    check_logdir,
    check_run_name,
    is_by_time,
    new_run_name,
    run_folder,
    run_of_wandb,
    run_of_writer,
)
from torchgraph_explorer.training.schedule import Schedule, schedule_name
from torchgraph_explorer.training.torchexplorer import takes_old_parameters
from torchgraph_explorer.training.watcher import LiveViewer, Watcher
from torchgraph_explorer.training.writer_thread import WAITING
from torchgraph_explorer.version import __version__

LIGHTNING_EPOCHS: TimeLog = ("epoch", lambda module, _step: module.current_epoch)
"""For `time_log`: a LightningModule's epoch as the second time axis."""


@takes_old_parameters
def watch(
    model: nn.Module,
    log: str | Sequence[str] = KINDS,
    log_freq: int | str | Schedule = 50,
    *,
    backend: str | Sink | Sequence[str | Sink] = "standalone",
    bins: int = 64,
    sample_n: int | None = 16_384,
    reject_outlier_proportion: float = 0.1,
    time_log: TimeLog | None = None,
    phases: str | Sequence[str] = ("train",),
    optimizer: Optimizer | None = None,
    scaler: Scaler | None = None,
    ranks: str = "merged",
    compiled: str = "eager",
    name: str | None = None,
    logdir: str | os.PathLike[str] = "runs",
    run: str | Any = None,
    writer: Any = None,
    upload_record: bool = False,
    host: str = "127.0.0.1",
    port: int = 8080,
    verbose: bool = True,
    block_at_exit: bool | None = None,
) -> Watcher:
    """Record what goes on inside `model` while it trains, and show it.

    Training is not disturbed: losses, parameters, gradients and random numbers are those of the unwatched model. A
    step is a forward pass in training mode with gradients enabled, and the backward pass that belongs to it.

    A model that is being watched by the same name is watched anew: the earlier watch is closed, and unless another run
    is asked for, this one goes on in its run, at its step. The parameters of TorchExplorer's `watch` are taken, too.

    Args:
        model: Any `nn.Module`.
        log: What to record, of `io` (inputs and outputs of every module), `io_grad` (the l2 norms of their gradient,
            per sample), `params` (parameters) and `params_grad` (their `.grad`). An empty list records the graph.
        log_freq: Log every so many steps; or `"log"`, every step at first and then exponentially sparser; or a
            predicate of the step's number.
        backend: `"standalone"` (a run folder and a live viewer), `"record"` (a run folder only), `"tensorboard"` (a run
            folder that TensorBoard shows), `"wandb"` (a run folder, and panels in the active W&B run), `"none"`
            (nothing: the watcher has the module graph), any object with `write(record)` and `close()`, or a list of
            these.
        bins: RowBuffer of a drawn histogram, by default; it can be changed in the viewer.
        sample_n: About how many elements of a tensor to take statistics from; None for all. NaN and infinity are never
            missed.
        reject_outlier_proportion: Share of the most extreme elements that the drawn range leaves out, by default.
        time_log: A second time axis: its name and a function of the model and the step, e.g. `LIGHTNING_EPOCHS`.
        phases: `"train"`, or `("train", "eval")`: then the first of the other passes after each training step, as in
            an evaluation, is recorded too, under the model's name with `(eval)`. Sinks of your own get training alone.
        optimizer: Record what it makes of each gradient (`optimizer_grad`: after unscaling and clipping), each
            parameter's update, and the ratio of the update's l2 norm to the parameter's.
        scaler: The GradScaler in use. Gradients are recorded without its factor, which is recorded too.
        compiled: How to log a step of a model that `torch.compile` has compiled: `"eager"` runs that step as it was
            written, `"inline"` compiles operations into the model that show its tensors, so that it stays compiled.
            What is compiled for the other steps is the same as unwatched, with both. With torch's default backend, a
            step that is logged rounds differently from the compiled one and may draw other random numbers.
        ranks: Where several processes train the model: `"merged"` makes one record of them, as if the tensors were
            concatenated; with `"all"` each rank is a model of its own, `<name> (rank 0)` and so on.
        name: The model's name in the run; by default its class.
        logdir: Folder of runs, or a URL that fsspec knows. There records are put every ten seconds or so, and the last
            of them when the watcher is closed. Close it yourself then: some stores take nothing more from a process
            that is ending, and one that is killed puts nothing either.
        run: Name of the run. By default that of the other models watched in this process, else a new one. Or a W&B
            run, for the backend `"wandb"`, which is added; the run's folder is then called by its id.
        writer: A `torch.utils.tensorboard.SummaryWriter` that shares its run with this: its folder is the run's,
            whatever `logdir`, and the backend `"tensorboard"` is added.
        upload_record: With the backend `"wandb"`: keep the record with the W&B run too, as an artifact at the end.
        host: Address the viewer listens on.
        port: Its port; if taken, the next free one.
        verbose: Say where the viewer and the run are.
        block_at_exit: Keep the viewer until Ctrl-C when the script ends. By default in a terminal only, not under CI.

    Returns:
        The watcher, to be closed when done; that happens by itself at exit.

    Raises:
        OptionError: An argument is not one of those allowed.
        UnknownBackendError: No backend has that name.
    """
    kinds = (log,) if isinstance(log, str) else tuple(log)
    settings = Settings(
        log=kinds,
        log_freq=log_freq,
        bins=bins,
        sample_n=sample_n,
        reject_outlier_proportion=reject_outlier_proportion,
        time_log=time_log,
        phases=(phases,) if isinstance(phases, str) else tuple(phases),
        optimizer=optimizer,
        scaler=scaler,
        ranks=ranks,
        compiled=compiled,
    )
    check(model, settings)
    logdir = check_logdir(logdir)
    wandb_run = None if run is None or isinstance(run, str) else run
    also = ("tensorboard",) * (writer is not None) + ("wandb",) * (wandb_run is not None)
    backends = resolve(backend, also=also)
    if not (backends.record or backends.sinks):
        settings = replace(settings, log=())  # nobody would read it; the graph is all that the watcher itself gives
    wants_wandb = "wandb" in backends.libraries
    rank = this_rank()
    if rank is not None:
        backends, verbose = _of_rank(backends, rank), verbose and rank.is_leader
    name = _name(model, name, rank=rank if ranks == "all" else None)
    merged = rank if ranks == "merged" else None
    sharding = Sharding(model) if merged is not None else None
    earlier = earlier_watch(model, name)
    context, seconds, is_named = None, timeouts.SECONDS, False
    if backends.record:
        if wandb_run is not None or (run is None and writer is None and wants_wandb):
            run = run_of_wandb(wandb_run)
        is_named = run is not None or writer is not None
        choose = partial(_choose_place, logdir, run, name, writer=writer, rank=rank, earlier=earlier)
        found = find_place(choose, Wanted(logdir, run, name, writer=writer, rank=rank))
        if found is None:
            backends = Backends(record=False, viewer=False, sinks=backends.sinks)
        else:
            (logdir, run), folder, seconds = found
            context = SinkContext(
                folder, logdir, run, name, writer=writer, wandb_run=wandb_run, upload_record=upload_record
            )
    sinks = [*_sinks(backends, context), *backends.sinks]
    run_dir = context.run_dir if context else None
    shares_viewer = backends.viewer and is_served(logdir, host=host, port=port)
    is_told = rank is None or rank.is_leader
    with taking_over(earlier, run_dir, shares_viewer=shares_viewer, is_told=is_told) as step:
        viewer = _start_viewer(logdir, host, port, verbose=verbose) if backends.viewer else None
        begin = Start(step or 0)
        if step is None and context is not None:
            begin = begin_in(context, backends.libraries, rank, is_named=is_named, seconds=seconds)
        watcher = Watcher(
            model,
            settings,
            session=_session(model, settings, name, rank=merged, notes=begin.notes),
            sinks=sinks,
            more_sinks=lambda phase: _sinks(backends, _of_phase(context, phase)),
            run_dir=run_dir,
            viewer=viewer,
            shards=sharding.look if sharding is not None else None,
        )
        watcher.begin(begin)
    exit.add(watcher, block=block_at_exit)
    for sink in sinks:  # one may have to know its watcher, to be finished before something else ends
        if watched_by := getattr(sink, "watched_by", None):
            watched_by(watcher)
    if verbose:
        _introduce(watcher, sinks, begin)
    _wait_for_the_store(watcher, seconds)
    return watcher


def _name(model: nn.Module, name: object, *, rank: Rank | None) -> str:
    """The model's name in the run, that of one rank where each has its own.

    Raises:
        OptionError: It is no str.
    """
    if name is not None and not isinstance(name, str):
        raise OptionError(f"name={name!r} is no name for a model. Pass a str, or leave it out for the model's class.")
    name = printable(name if name is not None else type(unwrapped(model)).__name__)
    return name if rank is None else f"{name} (rank {rank.number})"


def _of_rank(backends: Backends, rank: Rank) -> Backends:
    """What of `backends` is for one rank: all record, the first of each machine shows, the first of all goes to W&B."""
    opened = tuple(each for each in backends.libraries if rank.number == 0 or (rank.is_leader and each != "wandb"))
    return replace(backends, viewer=backends.viewer and rank.is_leader, libraries=opened)


def _of_phase(context: SinkContext | None, model_name: str) -> SinkContext | None:
    """As `context`, for another phase of the model. The record is uploaded once for all, when training has ended."""
    return None if context is None else replace(context, model_name=model_name, upload_record=False)


def _sinks(backends: Backends, context: SinkContext | None) -> list[Sink]:
    """Opens what one phase of the model is written to, apart from the user's own sinks."""
    if context is None:
        return []
    opened = (_opened(each, context) for each in backends.libraries)
    return [RecordWriter(context.run_dir), *(sink for sink in opened if sink is not None)]


def _opened(backend: str, context: SinkContext) -> Sink | None:
    """The sink of a backend; None if the system does not let it be opened, which is said."""
    try:
        return open_sink(backend, context)
    except TorchgraphError:
        leave_place(context.run_dir)
        raise
    except Exception as fault:
        warn(f"backend={backend!r} cannot be opened ({reason(fault)}). Training goes on, and is recorded.")
        return None


def _choose_place(
    logdir: str, run: str | None, name: str, *, writer: Any, rank: Rank | None, earlier: Watcher | None
) -> RunLocation:
    """The folder of runs and the run to write to: the writer's, if there is one, or that of the other ranks.

    If neither is given, that of `earlier`, which the new watch takes over from, or of other models of this process.
    """
    if writer is not None and run is not None:
        raise OptionError(f"run={run!r} and writer= both name a run. Leave one out; the writer's folder is its run's.")
    if writer is not None:
        logdir, run = run_of_writer(writer)
    uses = [
        each for each in this_process.uses() if earlier is None or (each.run_dir, each.model) != (earlier.run_dir, name)
    ]
    if run is None:
        known = _run_to_go_on_in(logdir, name, uses, earlier=earlier, alone=rank is None)
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

    return (given or choose()) if rank is None else agreed_place(given, choose, is_leader=rank.is_leader)


def _run_to_go_on_in(
    logdir: str, name: str, uses: Sequence[Use], *, earlier: Watcher | None, alone: bool
) -> str | None:
    """A run of `logdir` that this process writes to, which takes a model of this name without mixing it with another.

    That of `earlier`; that of other models; or, unless there are other ranks, the last one that nothing came to.
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
    """The run that has this folder, if it is one of `logdir`."""
    if "://" in logdir:
        root = logdir.rstrip("/") + "/"
        return folder.removeprefix(root) if folder.startswith(root) else None
    path, root_path = Path(folder), Path(run_folder(logdir, "."))
    return path.relative_to(root_path).as_posix() if path.is_relative_to(root_path) else None


def _start_viewer(logdir: str, host: str, port: int, *, verbose: bool) -> LiveViewer | None:
    """The live viewer; None if it cannot be started, which is no reason not to train and record."""
    try:
        viewer = in_time(
            lambda: start_viewer(logdir, host=host, port=port),
            seconds=SECONDS_TO_START + timeouts.SECONDS,
            too_late=lambda late: late.stop(),
        )
    except NoThreadError:  # without which nothing is recorded either, as is said when that begins
        return None
    except Exception as fault:
        why = fault if isinstance(fault, TorchgraphError) else f"{reason(fault)}."
        info(f"no live viewer: {why} The run is recorded all the same; see it with 'torchgraph serve {logdir}'.")
        return None
    if verbose and port not in (0, viewer.port):
        info(f"port {port} is taken; the viewer listens on {viewer.port}")
    if verbose and viewer.is_exposed:
        info("Other machines can reach it; whoever has the address with its token can see the runs.")
    return viewer


def _wait_for_the_store(watcher: Watcher, seconds: float) -> None:
    """Come back when the record has begun, or after so many seconds, which is said."""
    if not watcher.has_begun(time.monotonic() + seconds):
        warn(
            f"{watcher.run_dir or 'A sink'} has not answered within {timeouts.SECONDS:g} s. Training goes on. "
            f"{watcher.name} is recorded when it answers; until then {WAITING} logged steps wait in memory, and "
            f"further ones are dropped."
        )


def _introduce(watcher: Watcher, sinks: Sequence[Sink], begin: Start) -> None:
    if watcher.url is not None:
        info(f"watching {watcher.name} at {watcher.url}")
    if watcher.run_dir is not None:
        info(f"recording to {watcher.run_dir}")
    for sink in sinks:  # one may have something to say of where it is seen
        if introduction := getattr(sink, "introduction", None):
            info(introduction)
    if begin.told:
        info(begin.told)


def _session(model: nn.Module, settings: Settings, name: str, *, rank: Rank | None, notes: tuple[str, ...]) -> Session:
    return Session(
        id=uuid.uuid4().hex,
        model=name,
        class_name=type(unwrapped(model)).__name__,
        created=time.time(),
        host=_host(),
        pid=os.getpid(),
        versions={
            "torchgraph_explorer": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        log=settings.log,
        log_freq=schedule_name(settings.log_freq),
        sample_n=settings.sample_n,
        bins=settings.bins,
        reject_outlier_proportion=settings.reject_outlier_proportion,
        clock=settings.time_log[0] if settings.time_log else None,
        rank=rank.number if rank is not None else None,
        world_size=rank.world_size if rank is not None else 1,
        notes=notes,
    )


def _host() -> str:
    try:
        return socket.gethostname()
    except (OSError, UnicodeError):
        return "unknown"
