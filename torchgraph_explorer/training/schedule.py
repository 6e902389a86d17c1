"""Schedules: functions from the number of a step to whether it is logged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import TypeAlias

from torchgraph_explorer.console import reason
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.per_label import PerLabel

Schedule: TypeAlias = "Callable[[int], bool]"

DENSE = 64
"""Steps that `"log"` logs one by one; after those, 32 in each doubling."""

EARLY, USUAL = frozenset({0, 1, 10, 25}), 50
"""Steps that `"auto"` logs besides every `USUAL`-th, from where the training begins or goes on. Most rules of
`findings` need four recorded steps, which would otherwise come late, or never in a short training. They are apart,
since batches that follow each other may be alike."""


def schedule(log_freq: int | str | PerLabel | Schedule) -> Schedule:
    """The schedule that `log_freq` means: every so many steps, `"auto"`, `"log"`, or a predicate of its own.

    Of a `PerLabel`, each step: which of them are logged depends on their labels.

    Raises:
        OptionError: `log_freq` is nothing of that.
    """
    if isinstance(log_freq, PerLabel):
        return every(1)  # the labels select, see `Pipeline`
    if callable(log_freq):
        return partial(_chosen, log_freq)
    if log_freq == "auto":
        return _Usual()
    if log_freq == "log":
        return ever_sparser
    if (steps := _whole(log_freq)) is not None and steps >= 1:
        return every(steps)
    raise OptionError(
        f"log_freq={log_freq!r} does not say which steps to log. Pass a whole number of steps, 1 or more, 'auto', "
        f"'log', a PerLabel, or a function from a step to True or False."
    )


def _chosen(choose: Schedule, step: int) -> bool:
    """Whether the user's function `choose` logs a step.

    Raises:
        OptionError: It fails.
    """
    try:
        return choose(step)
    except Exception as fault:
        raise OptionError(
            f"log_freq= failed at step {step} ({reason(fault)}). The function gets the number of a step, and returns "
            f"True if that is to be logged"
        ) from fault


def _whole(log_freq: object) -> int | None:
    """The whole number, also as an integer of numpy or a float; None for anything else."""
    is_whole = isinstance(log_freq, Integral) or (isinstance(log_freq, float) and log_freq.is_integer())
    return int(log_freq) if is_whole and not isinstance(log_freq, bool) else None  # type: ignore[call-overload]


def every(steps: int) -> Schedule:
    """Step 0 and each `steps`-th after it."""
    return lambda step: step % steps == 0


class _Usual:
    """Four early steps, and every 50th. Where a training goes on from a checkpoint, the early ones count from there.

    That is known by the first pass, or by the first update if the checkpoint is loaded after that pass. A later jump of
    the count is none.
    """

    def __init__(self) -> None:
        """No step was asked for."""
        self._first, self._latest, self._asked = 0, -1, 0

    def __call__(self, step: int) -> bool:
        """Whether `step` is logged."""
        if self._asked < 2 and step > self._latest + 1:
            self._first = step
        self._asked, self._latest = self._asked + (step != self._latest), step
        return step % USUAL == 0 or step - self._first in EARLY


def ever_sparser(step: int) -> bool:
    """Every step at first, then exponentially sparser: about 500 of the first million."""
    spacing = 1 if step < DENSE else 1 << (step.bit_length() - DENSE.bit_length() + 1)
    return step % spacing == 0


def schedule_name(log_freq: int | str | PerLabel | Schedule) -> str:
    """The schedule's name in the record."""
    if not callable(log_freq):
        return str(log_freq if (steps := _whole(log_freq)) is None else steps)
    name = getattr(log_freq, "__qualname__", None)
    return name if isinstance(name, str) else type(log_freq).__name__  # a callable object may have any attribute
