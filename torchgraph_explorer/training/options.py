"""The arguments of `watch`, grouped and checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias

import numpy as np
from torch import nn
from torch.optim import Optimizer

from torchgraph_explorer.capture.forward_passes import PASSES, PassChoice
from torchgraph_explorer.capture.module_selection import ModuleSelection
from torchgraph_explorer.capture.modules_by_name import modules_by_name
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.findings.own_rules import OwnRule, check_rules
from torchgraph_explorer.per_label import PerLabel
from torchgraph_explorer.sinks import Sink
from torchgraph_explorer.tensors.keep import Keep
from torchgraph_explorer.training.on_finding import OnFinding
from torchgraph_explorer.training.schedule import Schedule, schedule

KINDS = ("io", "io_grad", "params", "params_grad")
"""The tensors that `log` may name."""

COST = "cost"
"""In `log`: what each call costs."""

SCALARS = "scalars"
"""In `log`: statistics without histograms, of the tensors that are named beside it; of all if none is."""

COMPILED = ("eager", "inline")
"""The values of `compiled`."""

MOST_BINS = 1 << 16
"""The largest `bins`: more rows than any screen has."""

MOST_SAMPLED = 1 << 48
"""The largest `sample_n`: no memory has more elements."""

LAST_PORT = (1 << 16) - 1
"""The largest `port`."""

RANKS = ("merged", "all")
"""The values of `ranks`."""


WHICH_PASSES = ("first", "spread", "last")
"""The names in `passes`."""

Passes: TypeAlias = "int | tuple[str, int]"
TimeLog: TypeAlias = "tuple[str, Callable[[Any, int], float]]"


class Scaler(Protocol):
    """An object like `torch.amp.GradScaler`."""

    def get_scale(self) -> float:
        """The factor that the loss is multiplied by."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to record of a model, and how; see `watch`."""

    log: tuple[str, ...]
    log_freq: int | str | PerLabel | Schedule
    bins: int
    sample_n: int | None
    reject_outlier_proportion: float
    time_log: TimeLog | None
    phases: tuple[str, ...] = ("train",)
    optimizer: Optimizer | None = None
    scaler: Scaler | None = None
    ranks: str = "merged"
    compiled: str = "eager"
    passes: Passes = PASSES
    keep: Keep | None = None
    only: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()

    @property
    def kinds(self) -> frozenset[str]:
        """What is measured, of `KINDS`."""
        return frozenset(self.log) - {SCALARS}

    @property
    def histograms(self) -> bool:
        """Whether histograms are made of it."""
        return SCALARS not in self.log


@dataclass(frozen=True, slots=True)
class Target:
    """Where to record a model; see `watch`.

    Attributes:
        backend: A name, a sink, or a list of these.
        name: The model's name, or None for that of its class.
        logdir: The folder of runs.
        given_run: The name of a run, a W&B run, or None.
        writer: A `SummaryWriter`, or None.
        upload_record: The record is kept with the W&B run, too.
    """

    backend: str | Sink | Sequence[str | Sink]
    name: str | None
    logdir: str | os.PathLike[str]
    given_run: str | Any
    writer: Any
    upload_record: bool

    @property
    def run(self) -> str | None:
        """The name of the run, if a name was given."""
        return self.given_run if isinstance(self.given_run, str) else None

    @property
    def wandb_run(self) -> Any:
        """The W&B run, if one was given."""
        return None if isinstance(self.given_run, str) else self.given_run


@dataclass(frozen=True, slots=True)
class Display:
    """How to show a run while it is recorded, and what is found in it; see `watch`."""

    host: str
    port: int
    verbose: bool
    block_at_exit: bool | None
    rules: Sequence[OwnRule] = ()
    on_finding: OnFinding | None = None


def several(given: object) -> tuple[Any, ...]:
    """What was passed as one or several. What is neither is one, which a check refuses."""
    return (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)


def logged(log: str | Sequence[str]) -> tuple[str, ...]:
    """What was passed as `log`. `"scalars"` alone is of all tensors."""
    chosen = several(log)
    return (*KINDS, SCALARS) if chosen == (SCALARS,) else chosen


def check_target(target: Target) -> None:
    """Raise an OptionError if an argument of `watch` for where to record is not allowed, as far as is known at once."""
    _check_claim("upload_record", target.upload_record, "True to keep the record with the W&B run, too, or False")


def check_display(display: Display) -> None:
    """Raise an OptionError if an argument of `watch` for how to show a run is not allowed."""
    if not isinstance(display.host, str):
        raise OptionError(
            f"host={display.host!r} is not an address. Pass one of this machine as a str, such as '127.0.0.1'."
        )
    if not _is_whole(display.port) or not 0 <= display.port <= LAST_PORT:
        raise OptionError(
            f"port={display.port!r} is not a port. Pass a whole number from 1 to {LAST_PORT}, or 0 for any free port."
        )
    _check_claim("verbose", display.verbose, "True to have said where the run is and what is found, or False")
    if display.block_at_exit is not None:
        _check_claim(
            "block_at_exit",
            display.block_at_exit,
            "True to keep the viewer until Ctrl-C when the script ends, False, or None to do so in a terminal only",
        )
    if display.rules != ():
        check_rules(display.rules, "rules=")
    if display.on_finding is not None and not callable(display.on_finding):
        raise OptionError(
            f"on_finding={display.on_finding!r} is not a function. Pass one that takes a finding, or None."
        )


def check(model: object, settings: Settings) -> None:
    """Raise an OptionError if an argument of `watch` is not allowed."""
    if not isinstance(model, nn.Module):
        raise OptionError(f"watch() was given {type(model).__name__}. Pass the torch.nn.Module that is trained.")
    if wrong := [kind for kind in settings.log if kind not in (*KINDS, COST, SCALARS)]:
        raise OptionError(
            f"log={wrong!r} cannot be recorded. Choose from {', '.join((*KINDS, COST))}, as a list; add "
            f"{SCALARS!r} for their statistics without histograms."
        )
    schedule(settings.log_freq)
    _check_whole("bins", settings.bins, of="rows", most=MOST_BINS)
    if settings.sample_n is not None:
        _check_whole("sample_n", settings.sample_n, of="elements", most=MOST_SAMPLED, otherwise=", or None for all")
    if not _is_share(settings.reject_outlier_proportion):
        raise OptionError(
            f"reject_outlier_proportion={settings.reject_outlier_proportion!r} is not a share. "
            f"Pass a number from 0 to 1."
        )
    if settings.time_log is not None:
        _check_time_log(settings.time_log)
    _check_phases(settings.phases)
    pass_choice(settings.passes)
    if settings.compiled not in COMPILED:
        raise OptionError(
            f"compiled={settings.compiled!r} is not a way to log a compiled model. Pass 'eager', which runs logged "
            f"steps uncompiled, or 'inline', which runs them in a second compiled form that exposes its tensors."
        )
    if settings.ranks not in RANKS:
        raise OptionError(
            f"ranks={settings.ranks!r} is not a way to record several ranks. Pass 'merged', which makes one record of "
            f"them, or 'all', which keeps each as a model of its own."
        )
    _check_keep(settings.keep)
    _check_selection(model, settings)
    if settings.optimizer is not None and not isinstance(settings.optimizer, Optimizer):
        raise OptionError(
            f"optimizer={settings.optimizer!r:.100} is not an optimizer. Pass the torch.optim.Optimizer that trains. "
            f"If there are several, pass one of them: the updates of all are recorded."
        )
    if settings.scaler is not None and not hasattr(settings.scaler, "get_scale"):
        raise OptionError(f"scaler={settings.scaler!r} is not a GradScaler. Pass the torch.amp.GradScaler in use.")


def pass_choice(passes: object) -> PassChoice:
    """Which passes of a step are recorded.

    Raises:
        OptionError: `passes` does not say that.
    """
    choice: Any = passes if isinstance(passes, tuple) and len(passes) == 2 else ("first", passes)
    which, most = choice
    is_number = _is_whole(most) and int(most) >= 1
    if which not in WHICH_PASSES or not is_number:
        raise OptionError(
            f"passes={passes!r} does not say which passes of a step to record. Pass how many of the first ones, such "
            f"as 4, or ('spread', 4), or ('last', 4)."
        )
    return PassChoice(int(most), which)


def _check_keep(keep: object) -> None:
    if keep is not None and not isinstance(keep, Keep):
        raise OptionError(
            f"keep={keep!r} does not say which tensors to keep. Pass keep=Keep('head', '*.weight'), or None."
        )


def _check_phases(phases: tuple[str, ...]) -> None:
    if "train" not in phases or any(phase not in ("train", "eval") for phase in phases):
        raise OptionError(f"phases={phases!r} is not a choice of phases. Pass 'train' or ('train', 'eval').")


def _check_claim(option: str, value: object, allowed: str) -> None:
    """Refuse what is neither true nor false: a word such as "no" would count as true."""
    is_claim = isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and value in (0, 1))
    if not is_claim:
        raise OptionError(f"{option}={value!r} is neither True nor False. Pass {allowed}.")


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_share(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) <= 1


def _check_whole(option: str, value: object, *, of: str, most: int, otherwise: str = "") -> None:
    if not _is_whole(value) or not 1 <= int(value) <= most:  # type: ignore[call-overload]
        raise OptionError(
            f"{option}={value!r} is not a number of {of}. Pass a whole number from 1 to {most}{otherwise}."
        )


def _check_time_log(time_log: object) -> None:
    match time_log:
        case (str(name), read) if name and callable(read):
            return
    raise OptionError(
        f"time_log={time_log!r} is not a time axis. Pass its name and a function of the model and the step: "
        f"time_log=('epoch', lambda model, step: epoch)."
    )


def module_selection(settings: Settings) -> ModuleSelection:
    """Which modules `settings` record."""
    return ModuleSelection(settings.only, settings.without)


def patterns(given: object, option: str) -> tuple[str, ...]:
    """The patterns of module names that were passed as `option`.

    Raises:
        OptionError: They are neither a pattern nor several.
    """
    chosen = (given,) if isinstance(given, str) else given
    if not isinstance(chosen, list | tuple) or not all(isinstance(one, str) and one for one in chosen):
        raise OptionError(
            f"{option}={given!r} names no modules. Pass a pattern such as 'encoder.layers.0', or a list of patterns."
        )
    return tuple(chosen)


def _check_selection(model: nn.Module, settings: Settings) -> None:
    selection = module_selection(settings)
    if selection.is_all:
        return
    names = [name for name in modules_by_name(unwrapped(model)) if name]
    if idle := selection.idle(names):
        raise OptionError(
            f"{', '.join(map(repr, idle))} in only= or except_= matches no module of {type(model).__name__}. "
            + (
                f"Its modules are {', '.join(names[:5])}{', …' if len(names) > 5 else ''}. "
                if names
                else "It has none. "
            )
            + "In a pattern, * stands for any characters."
        )
    if settings.only == () or selection.chosen(names) == {""}:
        raise OptionError("only= and except_= leave no module to record. Choose at least one.")
