"""The exceptions and warnings a user meets. Each message says what happened, what is allowed, what to do."""

from __future__ import annotations


class TorchgraphError(Exception):
    """Anything torchgraph_explorer refuses to do; the message says what to do instead."""


class OptionError(TorchgraphError, ValueError):
    """An argument of a public function is not one of those allowed."""


class UnknownBackendError(OptionError):
    """`watch(backend=...)` names no backend."""


class RecordError(TorchgraphError):
    """A run on disk cannot be read: it is no run, or a release newer than this one wrote it."""


class NotFoundError(TorchgraphError, LookupError):
    """A run, model, graph, series or step was asked for that the record does not hold."""


class TorchgraphWarning(UserWarning):
    """Something is not recorded, or was skipped while reading; training or reading goes on."""
