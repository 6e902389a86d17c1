"""Checks the arguments of `watch`."""

from __future__ import annotations

from numbers import Integral

from torch import nn
from torch.optim import Optimizer

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.training.pipeline import Settings
from torchgraph_explorer.training.schedule import schedule

KINDS = ("io", "io_grad", "params", "params_grad")
"""What `log` may hold."""

COMPILED = ("eager", "inline")
"""What `compiled` may be."""

MOST_BINS = 1 << 16
"""Of the rows of a drawn histogram; more than any screen has."""

RANKS = ("merged", "all")
"""What `ranks` may be."""


def check(model: object, settings: Settings) -> None:
    """Raise an OptionError that says what is wrong with an argument of `watch`, if anything is."""
    if not isinstance(model, nn.Module):
        raise OptionError(f"watch() was given {type(model).__name__}. Pass the torch.nn.Module that is trained.")
    if wrong := [kind for kind in settings.log if kind not in KINDS]:
        raise OptionError(f"log={wrong!r} is nothing that can be recorded. Choose from {', '.join(KINDS)}, as a list.")
    schedule(settings.log_freq)
    _check_whole("bins", settings.bins, least=1, most=MOST_BINS)
    if settings.sample_n is not None:
        _check_whole("sample_n", settings.sample_n, least=1)
    if not 0 <= settings.reject_outlier_proportion <= 1:
        raise OptionError(
            f"reject_outlier_proportion={settings.reject_outlier_proportion!r} is no share. Pass a number from 0 to 1."
        )
    if settings.time_log is not None:
        _check_time_log(settings.time_log)
    _check_phases(settings.phases)
    if settings.compiled not in COMPILED:
        raise OptionError(
            f"compiled={settings.compiled!r} is no way to log a compiled model. Pass 'eager', which runs the steps "
            f"that are logged as they were written, or 'inline', which compiles the looking into them."
        )
    if settings.ranks not in RANKS:
        raise OptionError(
            f"ranks={settings.ranks!r} is no way to record several ranks. Pass 'merged', which makes one record of "
            f"them, or 'all', which keeps each as a model of its own."
        )
    if settings.optimizer is not None and not isinstance(settings.optimizer, Optimizer):
        raise OptionError(f"optimizer={settings.optimizer!r} is none. Pass the torch.optim.Optimizer that trains.")
    if settings.scaler is not None and not hasattr(settings.scaler, "get_scale"):
        raise OptionError(f"scaler={settings.scaler!r} is none. Pass the torch.amp.GradScaler in use.")


def _check_phases(phases: tuple[str, ...]) -> None:
    if "train" not in phases or not set(phases) <= {"train", "eval"}:
        raise OptionError(f"phases={phases!r} is no choice of phases. Pass 'train' or ('train', 'eval').")


def _check_whole(option: str, value: object, *, least: int, most: int | None = None) -> None:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or not least <= int(value) <= (most or int(value)):  # type: ignore[call-overload]
        to = f" to {most}" if most else ""
        raise OptionError(f"{option}={value!r} is no number of elements or rows. Pass a whole number from {least}{to}.")


def _check_time_log(time_log: object) -> None:
    match time_log:
        case (str(), read) if callable(read):
            return
    raise OptionError(
        f"time_log={time_log!r} is no time axis. Pass its name and a function of the model and the step: "
        f"time_log=('epoch', lambda model, step: epoch)."
    )
