"""The table of backends, and what a sink is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torchgraph_explorer.errors import UnknownBackendError
from torchgraph_explorer.records import Record


@runtime_checkable
class Sink(Protocol):
    """Where the records of one session go. All calls come from one thread, which is not the training's."""

    def write(self, record: Record) -> None:
        """Take the next record: a `Session` first, `Finished` last."""

    def close(self) -> None:
        """No more records will come."""


@dataclass(frozen=True, slots=True)
class Backends:
    """What a choice of backends comes to.

    Attributes:
        record: A run folder is written.
        viewer: A server shows it while it is written.
        sinks: The user's own.
    """

    record: bool
    viewer: bool
    sinks: tuple[Sink, ...]


BACKENDS = {
    "standalone": Backends(record=True, viewer=True, sinks=()),
    "record": Backends(record=True, viewer=False, sinks=()),
}
"""What each name means."""


def resolve(backend: str | Sink | Sequence[str | Sink]) -> Backends:
    """What `backend`, a name, a sink or a list of these, comes to.

    Raises:
        UnknownBackendError: It is no such thing, or an empty list.
    """
    chosen = list(backend) if isinstance(backend, Sequence) and not isinstance(backend, str) else [backend]
    if not chosen:
        raise UnknownBackendError(f"backend={backend!r} records nothing. {_choices()}")
    parts = [_one(each) for each in chosen]
    return Backends(
        record=any(part.record for part in parts),
        viewer=any(part.viewer for part in parts),
        sinks=tuple(sink for part in parts for sink in part.sinks),
    )


def _one(backend: object) -> Backends:
    if isinstance(backend, str) and backend in BACKENDS:
        return BACKENDS[backend]
    if isinstance(backend, Sink) and not isinstance(backend, type):
        return Backends(record=False, viewer=False, sinks=(backend,))
    raise UnknownBackendError(f"No backend is {backend!r}. {_choices()}")


def _choices() -> str:
    names = ", ".join(repr(name) for name in BACKENDS)
    return f"Choose from {names}, pass any object with write(record) and close(), or a list of these."
