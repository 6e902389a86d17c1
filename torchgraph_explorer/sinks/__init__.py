"""The table of backends, and what a sink is.

A sink writes a session's records somewhere. All its calls come from the writer's thread. Libraries of a backend are
imported only when it is chosen. Torch is not imported.

Imported by `torchgraph_tensorboard`, `torchgraph_wandb`, `training`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from torchgraph_explorer.errors import OptionError, UnknownBackendError
from torchgraph_explorer.schema import Record


@runtime_checkable
class Sink(Protocol):
    """Where the records of one session go. All calls come from one thread, which is not the training's.

    A sink that raises is closed and gets no more records, which is said once: only the sink itself can know whether
    what it was given is half written. One whose store may be away for a while keeps the records itself and raises
    nothing, as the run's own record does. A sink that does not come back holds up the others.

    A method `when_idle()`, if there is one, is called now and then while nothing comes.
    """

    def write(self, record: Record) -> None:
        """Take the next record: a `Session` first, `Finished` last."""

    def close(self) -> None:
        """No more records will come."""


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What a sink of `OPENED` is told of the session it is for.

    Attributes:
        run_dir: The run's folder or URL, which a record is written to.
        logdir: The folder of runs it lies in.
        run: The run's name, its path below `logdir`.
        model_name: The model's name in the run.
        writer: The SummaryWriter given to `watch`, or None.
        wandb_run: The W&B run given to `watch`, or None.
        upload_record: The record is to be kept with the W&B run, too.
    """

    run_dir: str
    logdir: str
    run: str
    model_name: str
    writer: Any = None
    wandb_run: Any = None
    upload_record: bool = False


@dataclass(frozen=True, slots=True)
class Resumed:
    """What the service of a backend tells about a run that it resumes.

    Attributes:
        place: The service's name.
        steps: How many steps of the model were recorded; None if the service does not know.
        is_certain: Whether there was an earlier session. If False, the run resumes one only if there was one.
    """

    place: str
    steps: int | None
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class Backends:
    """What a choice of backends comes to.

    Attributes:
        record: A run folder is written.
        viewer: A server shows it while it is written.
        sinks: The user's own.
        opened: Names of `OPENED`.
    """

    record: bool
    viewer: bool
    sinks: tuple[Sink, ...] = ()
    opened: tuple[str, ...] = ()


OPENED: dict[str, str] = {
    "tensorboard": "torchgraph_tensorboard.sink:open_sink",
    "wandb": "torchgraph_wandb.sink:open_sink",
}
"""Backends with a library of their own: where the function is that makes a sink from a `SinkContext`.

It is imported when it is asked for. The extra of this package that brings the library has the backend's name.
"""

RESUMED: dict[str, str] = {"wandb": "torchgraph_wandb.resuming:resumed"}
"""Backends whose service can resume a run: the function that returns a `Resumed` or None.

Its arguments are the service's run and the model's name.
"""

BACKENDS = {
    "standalone": Backends(record=True, viewer=True),
    "record": Backends(record=True, viewer=False),
    "none": Backends(record=False, viewer=False),
    **{name: Backends(record=True, viewer=False, opened=(name,)) for name in OPENED},
}
"""What each name means."""


def resolve(backend: str | Sink | Sequence[str | Sink], *, also: Sequence[str] = ()) -> Backends:
    """What `backend`, a name, a sink or a list of these, comes to, together with the names of `also`.

    Raises:
        UnknownBackendError: It is no such thing, or an empty list.
    """
    chosen = list(backend) if isinstance(backend, Sequence) and not isinstance(backend, str) else [backend]
    if not chosen:
        raise UnknownBackendError(f"backend={backend!r} records nothing. {_choices()}")
    parts = [_one(each) for each in (*chosen, *also)]
    return Backends(
        record=any(part.record for part in parts),
        viewer=any(part.viewer for part in parts),
        sinks=tuple(sink for part in parts for sink in part.sinks),
        opened=tuple(dict.fromkeys(name for part in parts for name in part.opened)),
    )


def open_sink(name: str, context: SinkContext) -> Sink:
    """The sink of the backend called `name`, one of `OPENED`.

    Raises:
        OptionError: Its library is not installed, or what it was given is not for it.
    """
    module, _, function = OPENED[name].partition(":")
    try:
        opening: Callable[[SinkContext], Sink] = getattr(import_module(module), function)
        return opening(context)
    except ImportError as error:
        raise OptionError(
            f"backend={name!r} cannot be opened: {error}. "
            f"Install what it needs: pip install 'torchgraph-explorer[{name}]'."
        ) from error


def _one(backend: object) -> Backends:
    if isinstance(backend, str) and backend in BACKENDS:
        return BACKENDS[backend]
    if isinstance(backend, Sink) and not isinstance(backend, type):
        return Backends(record=False, viewer=False, sinks=(backend,))
    raise UnknownBackendError(f"No backend is {backend!r}. {_choices()}")


def _choices() -> str:
    names = ", ".join(repr(name) for name in BACKENDS)
    return f"Choose from {names}, pass any object with write(record) and close(), or a list of these."
