"""`watch`: what a user calls to watch a model."""

from __future__ import annotations

import os
import platform
import socket
import time
import uuid
from collections.abc import Sequence

import torch
from torch import nn

from torchgraph_explorer import at_exit
from torchgraph_explorer.errors import OptionError, TorchgraphError
from torchgraph_explorer.records import Session
from torchgraph_explorer.run_names import check_run_name, new_run_name, run_folder
from torchgraph_explorer.say import say
from torchgraph_explorer.schedule import Schedule, schedule, schedule_name
from torchgraph_explorer.sinks import Sink, resolve
from torchgraph_explorer.sinks.record import RecordSink
from torchgraph_explorer.sinks.standalone import start_viewer
from torchgraph_explorer.version import __version__
from torchgraph_explorer.watcher import Settings, TimeLog, Viewer, Watcher

KINDS = ("io", "io_grad", "params", "params_grad")

LIGHTNING_EPOCHS: TimeLog = ("epoch", lambda module, _step: module.current_epoch)
"""For `time_log`: a LightningModule's epoch as the second time axis."""


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
    name: str | None = None,
    logdir: str | os.PathLike[str] = "runs",
    run: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    verbose: bool = True,
    block_at_exit: bool | None = None,
    disable_inplace: object = None,
    ignore_io_grad_classes: object = None,
    delay_log_multi_backward: object = None,
) -> Watcher:
    """Record what goes on inside `model` while it trains, and show it.

    Training is not disturbed: losses, parameters, gradients and random numbers are those of the unwatched model. A
    step is a forward pass in training mode with gradients enabled, and the backward pass that belongs to it.

    Args:
        model: Any `nn.Module`.
        log: What to record, of `io` (inputs and outputs of every module), `io_grad` (the l2 norms of their gradient,
            per sample), `params` (parameters) and `params_grad` (their `.grad`). An empty list records the graph.
        log_freq: Log every so many steps; or `"log"`, every step at first and then exponentially sparser; or a
            predicate of the step's number.
        backend: `"standalone"` (a run folder and a live viewer), `"record"` (a run folder only), any object with
            `write(record)` and `close()`, or a list of these.
        bins: Rows of a drawn histogram, by default; it can be changed in the viewer.
        sample_n: Elements of a tensor to take statistics from; None for all. NaN and infinity are never missed.
        reject_outlier_proportion: Share of the most extreme elements that the drawn range leaves out, by default.
        time_log: A second time axis: its name and a function of the model and the step, e.g. `LIGHTNING_EPOCHS`.
        name: The model's name in the run; by default its class.
        logdir: Folder of runs.
        run: Name of the run. By default that of the other models watched in this process, else a new one.
        host: Address the viewer listens on.
        port: Its port; if taken, the next free one.
        verbose: Say where the viewer and the run are.
        block_at_exit: Keep the viewer until Ctrl-C when the script ends. By default in a terminal only, not under CI.
        disable_inplace: Not needed any more; so are the next two. Accepted for code that used TorchExplorer.
        ignore_io_grad_classes: See above.
        delay_log_multi_backward: See above.

    Returns:
        The watcher, to be closed when done; that happens by itself at exit.

    Raises:
        OptionError: An argument is not one of those allowed.
        UnknownBackendError: No backend has that name.
    """
    kinds = (log,) if isinstance(log, str) else tuple(log)
    settings = Settings(kinds, log_freq, bins, sample_n, reject_outlier_proportion, time_log)
    check(model, settings)
    _say_not_needed(
        disable_inplace=disable_inplace,
        ignore_io_grad_classes=ignore_io_grad_classes,
        delay_log_multi_backward=delay_log_multi_backward,
    )
    backends = resolve(backend)
    logdir, name = os.fspath(logdir), name if name is not None else type(model).__name__
    sinks, run_dir = list(backends.sinks), None
    if backends.record:
        run_dir = run_folder(logdir, _choose_run(logdir, run, name))
        sinks.insert(0, RecordSink(run_dir))
    viewer = _start_viewer(logdir, host, port) if backends.viewer else None
    session = _session(model, settings, name)
    watcher = Watcher(model, settings, session=session, sinks=sinks, run_dir=run_dir, viewer=viewer)
    at_exit.add(watcher, block=block_at_exit)
    if verbose:
        _introduce(watcher)
    return watcher


def setup(*_args: object, **_kwargs: object) -> None:
    """Nothing to set up. TorchExplorer needed this call before `wandb.init()`; it is kept so that old code runs."""
    say("setup() is not needed any more.")


def check(model: object, settings: Settings) -> None:
    """Raise an OptionError that says what is wrong with an argument of `watch`, if anything is."""
    if not isinstance(model, nn.Module):
        raise OptionError(f"watch() was given {type(model).__name__}. Pass the torch.nn.Module that is trained.")
    if wrong := [kind for kind in settings.log if kind not in KINDS]:
        raise OptionError(f"log={wrong!r} is nothing that can be recorded. Choose from {', '.join(KINDS)}, as a list.")
    schedule(settings.log_freq)
    _check_whole("bins", settings.bins, least=2)
    if settings.sample_n is not None:
        _check_whole("sample_n", settings.sample_n, least=1)
    if not 0 <= settings.reject_outlier_proportion < 1:
        raise OptionError(
            f"reject_outlier_proportion={settings.reject_outlier_proportion!r} is no share. "
            f"Pass a number from 0 to below 1."
        )
    if settings.time_log is not None:
        _check_time_log(settings.time_log)


def _check_whole(option: str, value: object, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"{option}={value!r} is no number of elements or rows. Pass a whole number from {least}.")


def _check_time_log(time_log: object) -> None:
    match time_log:
        case (str(), read) if callable(read):
            return
    raise OptionError(
        f"time_log={time_log!r} is no time axis. Pass its name and a function of the model and the step: "
        f"time_log=('epoch', lambda model, step: epoch)."
    )


def _say_not_needed(**options: object) -> None:
    given = [option for option, value in options.items() if value is not None]
    if given:
        say(f"{', '.join(given)}: not needed any more and without effect; you can leave it out.")


def _choose_run(logdir: str, run: str | None, name: str) -> str:
    """The run to write to: the one asked for, that of the models watched already, or a new one."""
    open_here = [each for each in at_exit.open_watchers() if each.run_dir is not None]
    if run is not None:
        run = check_run_name(run)
        if any(each.run_dir == run_folder(logdir, run) and each.name == name for each in open_here):
            raise OptionError(
                f"run={run!r} already has an open model named {name!r}. Pass another name=, or close its watcher first."
            )
        return run
    models: dict[str, set[str]] = {}
    for each in open_here:
        models.setdefault(str(each.run_dir), set()).add(each.name)
    for folder, names in models.items():
        if name not in names and folder == run_folder(logdir, shared := _below(logdir, folder)):
            return shared
    return new_run_name(logdir, taken=[_below(logdir, folder) for folder in models])


def _below(logdir: str, folder: str) -> str:
    return os.path.relpath(folder, logdir) if "://" not in logdir else folder.removeprefix(logdir.rstrip("/") + "/")


def _start_viewer(logdir: str, host: str, port: int) -> Viewer | None:
    """The live viewer; None if it cannot be started, which is no reason not to train and record."""
    try:
        return start_viewer(logdir, host=host, port=port)
    except TorchgraphError as fault:
        say(f"no live viewer: {fault} The run is recorded all the same; see it with 'torchgraph serve {logdir}'.")
        return None


def _introduce(watcher: Watcher) -> None:
    if watcher.url is not None:
        say(f"watching {watcher.name} at {watcher.url}")
    if watcher.run_dir is not None:
        say(f"recording to {watcher.run_dir}")


def _session(model: nn.Module, settings: Settings, name: str) -> Session:
    return Session(
        id=uuid.uuid4().hex,
        model=name,
        class_name=type(model).__name__,
        created=time.time(),
        host=socket.gethostname(),
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
    )
