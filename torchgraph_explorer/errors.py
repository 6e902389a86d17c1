"""The exceptions and warnings for users. Each message says what happened, what is allowed and what to do."""

from __future__ import annotations


class TorchgraphError(Exception):
    """Base class of our exceptions. The message says what to do instead."""


class OptionError(TorchgraphError, ValueError):
    """An argument of a public function has a value that is not allowed."""


class UnknownBackendError(OptionError):
    """The value of `watch(backend=...)` is not a backend."""


class RecordError(TorchgraphError):
    """A run on disk cannot be read: it is not a run, or a newer release wrote it."""


class NotFoundError(TorchgraphError, LookupError):
    """The record does not have the run, model, graph, series or step that was asked for."""


class TorchgraphWarning(UserWarning):
    """Something is not recorded, or was skipped while reading. Training or reading goes on."""
