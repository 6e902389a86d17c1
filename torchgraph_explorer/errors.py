"""The exceptions and warnings for users. Each message says what happened, what is allowed and what to do."""

from __future__ import annotations


class TorchgraphError(Exception):
    """Base class of our exceptions. The message says what to do instead.

    Example:
        >>> try:
        ...     open_run("nowhere")
        ... except TorchgraphError as fault:
        ...     print(fault)
        nowhere does not exist. Pass the folder of a run, ...
    """


class OptionError(TorchgraphError, ValueError):
    """An argument of a public function has a value that is not allowed.

    Example:
        >>> watch(model, log_freq=0)
        Traceback (most recent call last):
        torchgraph_explorer.errors.OptionError: log_freq=0 ...
    """


class UnknownBackendError(OptionError):
    """The value of `watch(backend=...)` is not a backend.

    Example:
        >>> watch(model, backend="printer")
        Traceback (most recent call last):
        torchgraph_explorer.errors.UnknownBackendError: ...
    """


class RecordError(TorchgraphError):
    """A run on disk cannot be read: it is not a run, or a newer release wrote it.

    Example:
        >>> pathlib.Path("no-run").mkdir()
        >>> open_run("no-run")
        Traceback (most recent call last):
        torchgraph_explorer.errors.RecordError: ...
    """


class NotFoundError(TorchgraphError, LookupError):
    """The record does not have the run, model, graph, series or step that was asked for.

    Example:
        >>> open_run("runs").model("Nobody")
        Traceback (most recent call last):
        torchgraph_explorer.errors.NotFoundError: ...
    """


class TorchgraphWarning(UserWarning):
    """Something is not recorded, or was skipped while reading. Training or reading goes on.

    Example:
        Make it an error where a training must not go on without its record:

        >>> warnings.simplefilter("error", TorchgraphWarning)
    """
