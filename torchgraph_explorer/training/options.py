"""The arguments of `watch`, grouped and checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol, TypeAlias

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


def logged(log: str | Sequence[str]) -> tuple[str, ...]:
    """What was passed as `log`. `"scalars"` alone is of all tensors."""
    chosen = (log,) if isinstance(log, str) else tuple(log)
    return (*KINDS, SCALARS) if chosen == (SCALARS,) else chosen


def check_finding_options(rules: object, on_finding: object) -> None:
    """Raise an OptionError if `rules` or `on_finding` of `watch` is not allowed."""
    if rules != ():
        check_rules(rules, "rules=")
    if on_finding is not None and not callable(on_finding):
        raise OptionError(f"on_finding={on_finding!r} is no function. Pass one that takes a finding, or None.")


def check(model: object, settings: Settings) -> None:
    """Raise an OptionError if an argument of `watch` is not allowed."""
    if not isinstance(model, nn.Module):
        raise OptionError(f"watch() was given {type(model).__name__}. Pass the torch.nn.Module that is trained.")
    if wrong := [kind for kind in settings.log if kind not in (*KINDS, COST, SCALARS)]:
        raise OptionError(
            f"log={wrong!r} is nothing that can be recorded. Choose from {', '.join((*KINDS, COST))}, as a list; add "
            f"{SCALARS!r} for their statistics without histograms."
        )
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
    pass_choice(settings.passes)
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
    _check_keep(settings.keep)
    _check_selection(model, settings)
    if settings.optimizer is not None and not isinstance(settings.optimizer, Optimizer):
        raise OptionError(
            f"optimizer={settings.optimizer!r} is not an optimizer. Pass the torch.optim.Optimizer that trains."
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
    is_number = isinstance(most, Integral) and not isinstance(most, bool) and int(most) >= 1
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


def module_selection(settings: Settings) -> ModuleSelection:
    """Which modules `settings` record."""
    return ModuleSelection(settings.only, settings.without)


def patterns(given: object, option: str) -> tuple[str, ...]:
    """The patterns of module names that were passed as `option`.

    Raises:
        OptionError: They are neither a pattern nor several.
    """
    several = (given,) if isinstance(given, str) else given
    if not isinstance(several, list | tuple) or not all(isinstance(one, str) and one for one in several):
        raise OptionError(
            f"{option}={given!r} names no modules. Pass a pattern such as 'encoder.layers.0', or a list of patterns."
        )
    return tuple(several)


def _check_selection(model: nn.Module, settings: Settings) -> None:
    selection = module_selection(settings)
    if selection.is_all:
        return
    names = [name for name in modules_by_name(unwrapped(model)) if name]
    if idle := selection.idle(names):
        raise OptionError(
            f"{', '.join(map(repr, idle))} in only= or except_= matches no module of {type(model).__name__}. "
            + (f"It has {', '.join(names[:5])}{', …' if len(names) > 5 else ''}; " if names else "It has none in it; ")
            + "* stands for any characters."
        )
    if settings.only == () or selection.chosen(names) == {""}:
        raise OptionError("only= and except_= leave no module to record. Choose at least one.")
