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
from torchgraph_explorer.extras import installing
from torchgraph_explorer.schema import Record


@runtime_checkable
class Sink(Protocol):
    """Where the records of one session go. All calls come from one thread, which is not the training's.

    A sink that raises is closed and gets no more records, with one warning: only the sink itself can know whether a
    record is half written. A sink whose store may be unavailable for a while keeps the records itself and raises
    nothing, as `record.writer.RecordWriter` does. A sink that blocks holds up the others.

    A method `when_idle()`, if a sink has one, is called now and then while no record comes. A method `keep(step, most)`
    gets the `KeptStep` of each step of which tensors are kept, after its frame, and returns how many bytes the
    model's kept tensors take now; beyond `most` it leaves a step out. They may be people's data: a sink without this
    method never sees them. A method `found(findings)` gets what the rules find anew while the model trains.
    """

    def write(self, record: Record) -> None:
        """Take the next record: a `Session` first, `Finished` last."""

    def close(self) -> None:
        """No more records will come."""


@dataclass(frozen=True, slots=True)
class SinkContext:
    """The session that a sink of `LIBRARY_BACKENDS` is for.

    Attributes:
        run_dir: The run's folder or URL, which a record is written to.
        logdir: The folder of runs it lies in.
        run: The run's name, its path below `logdir`.
        model_name: The model's name in the run.
        writer: The SummaryWriter given to `watch`, or None.
        wandb_run: The W&B run given to `watch`, or None.
        upload_record: The record is to be uploaded to the W&B run, too.
        tensor_megabytes: What kept tensors add to W&B's page at most, in 10⁶ bytes.
    """

    run_dir: str
    logdir: str
    run: str
    model_name: str
    writer: Any = None
    wandb_run: Any = None
    upload_record: bool = False
    tensor_megabytes: float = 0.0


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
    """What to write to, for a choice of backends.

    Attributes:
        record: A run folder is written.
        viewer: A server shows it while it is written.
        sinks: The user's own.
        libraries: Names of `LIBRARY_BACKENDS`.
    """

    record: bool
    viewer: bool
    sinks: tuple[Sink, ...] = ()
    libraries: tuple[str, ...] = ()


LIBRARY_BACKENDS: dict[str, str] = {
    "tensorboard": "torchgraph_tensorboard.sink:open_sink",
    "wandb": "torchgraph_wandb.sink:open_sink",
}
"""Backends that need another library: the function that makes a sink from a `SinkContext`.

Its module is imported when the backend is used. The extra of this package that installs the library has the backend's
name.
"""

RESUMABLE: dict[str, str] = {"wandb": "torchgraph_wandb.resuming:resumed"}
"""Backends whose service can resume a run: the function that returns a `Resumed` or None.

Its arguments are the service's run and the model's name.
"""

BACKENDS = {
    "standalone": Backends(record=True, viewer=True),
    "record": Backends(record=True, viewer=False),
    "none": Backends(record=False, viewer=False),
    **{name: Backends(record=True, viewer=False, libraries=(name,)) for name in LIBRARY_BACKENDS},
}
"""What each name means."""


def resolve(backend: str | Sink | Sequence[str | Sink], *, also: Sequence[str] = ()) -> Backends:
    """The backends that `backend`, a name, a sink or a list of these, stands for, and those named in `also`.

    Raises:
        UnknownBackendError: `backend` is something else, or an empty list.
    """
    chosen = list(backend) if isinstance(backend, Sequence) and not isinstance(backend, str) else [backend]
    if not chosen:
        raise UnknownBackendError(f"backend={backend!r} records nothing. {_choices()}")
    parts = [_one(each) for each in (*chosen, *also)]
    return Backends(
        record=any(part.record for part in parts),
        viewer=any(part.viewer for part in parts),
        sinks=tuple(sink for part in parts for sink in part.sinks),
        libraries=tuple(dict.fromkeys(name for part in parts for name in part.libraries)),
    )


def open_sink(name: str, context: SinkContext) -> Sink:
    """The sink of the backend called `name`, one of `LIBRARY_BACKENDS`.

    Raises:
        OptionError: Its library is not installed, or `context` has something that it cannot use.
    """
    try:
        opening: Callable[[SinkContext], Sink] = _function(LIBRARY_BACKENDS[name])
        return opening(context)
    except ImportError as error:
        raise OptionError(
            f"backend={name!r} cannot be opened: {error}. Install what it needs: {installing(name)}"
        ) from error


def resumed_run(context: SinkContext, backends: Sequence[str]) -> Resumed | None:
    """What the service of one of `backends` says of the run of `context`, if it resumes it."""
    for backend in backends:
        if backend in RESUMABLE:
            found: Resumed | None = _function(RESUMABLE[backend])(context.wandb_run, context.model_name)
            if found is not None:
                return found
    return None


def _function(reference: str) -> Callable[..., Any]:
    """The function that `reference` names, as `module:function`. Its module is imported only now."""
    module, _, name = reference.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _one(backend: object) -> Backends:
    if isinstance(backend, str) and backend in BACKENDS:
        return BACKENDS[backend]
    if isinstance(backend, Sink) and not isinstance(backend, type):
        return Backends(record=False, viewer=False, sinks=(backend,))
    raise UnknownBackendError(f"There is no backend {backend!r}. {_choices()}")


def _choices() -> str:
    names = ", ".join(repr(name) for name in BACKENDS)
    return f"Choose from {names}, pass any object with write(record) and close(), or a list of these."
