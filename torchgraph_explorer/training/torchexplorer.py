"""Accepts TorchExplorer's parameters, so that scripts for it run with only the import changed.

Source: the signatures of torchexplorer 1.1.2, https://pypi.org/project/torchexplorer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from itertools import chain
from typing import ParamSpec, TypeVar, cast

from torchgraph_explorer.console import info
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.training.watcher import Watcher

P = ParamSpec("P")
T = TypeVar("T")

StructureWrapper = Watcher
"""What TorchExplorer's `watch` returns. Its `structure` is the watcher's module graph."""

POSITIONS = (
    "module",
    "log",
    "log_freq",
    "ignore_io_grad_classes",
    "disable_inplace",
    "bins",
    "sample_n",
    "reject_outlier_proportion",
    "time_log",
    "delay_log_multi_backward",
    "backend",
    "standalone_dir",
    "standalone_port",
    "verbose",
)
"""The parameters of its `watch`, in order. The first three are also ours."""

RENAMED = {"module": "model", "standalone_dir": "logdir", "standalone_port": "port"}
"""The names that they have here."""

NEEDLESS = ("ignore_io_grad_classes", "disable_inplace", "delay_log_multi_backward", "delay_log_multibackward")
"""Not needed here, and without effect. The last one is the spelling of the third in its README."""


def takes_old_parameters(watch: Callable[P, T]) -> Callable[P, T]:
    """`watch`, with the parameters of TorchExplorer's accepted, too, by name and by position."""
    known = tuple(signature(watch).parameters)

    @wraps(watch)
    def resolved(*args: P.args, **kwargs: P.kwargs) -> T:
        return cast("Callable[..., T]", watch)(**_resolved(args, kwargs, known))

    return resolved


def setup(*_args: object, **_kwargs: object) -> None:
    """Do nothing. TorchExplorer needs this call before `wandb.init()`; it is here so that old code runs.

    Example:
        >>> setup()
    """
    info("setup() is no longer needed. To log to W&B, pass backend='wandb' to watch(): it is not the default here.")


def _resolved(args: tuple[object, ...], kwargs: Mapping[str, object], known: tuple[str, ...]) -> dict[str, object]:
    """The arguments of a call by their names here. Prints which have another name or no effect."""
    if len(args) > len(POSITIONS):
        raise OptionError(
            f"watch() was given {len(args)} arguments by position, but takes at most {len(POSITIONS)}, which are those "
            f"of TorchExplorer. Pass all arguments after the first three by name."
        )
    found: dict[str, object] = {}
    for name, value in chain(zip(POSITIONS, args, strict=False), kwargs.items()):
        new = RENAMED.get(name, name)
        if new in found:
            raise OptionError(f"watch() was given {new}= twice{_also_called(new)}. Pass it once.")
        if new not in known and new not in NEEDLESS:
            raise OptionError(_unknown(name, known))
        found[new] = value
    _say_what_changed(kwargs, [name for name in NEEDLESS if found.pop(name, None)])
    return found


def _also_called(new: str) -> str:
    old = next((name for name in RENAMED if RENAMED[name] == new), None)
    return f", once perhaps as {old}=" if old is not None else ""


def _unknown(name: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(name, (*known, *RENAMED, *NEEDLESS), n=3, cutoff=0.7)
    instead = f"Did you mean {' or '.join(f'{each}=' for each in near)}?" if near else f"It takes {', '.join(known)}."
    return f"watch() takes no {name}=. {instead}"


def _say_what_changed(kwargs: Mapping[str, object], needless: list[str]) -> None:
    parts = [f"{old}= is called {new}= here" for old, new in RENAMED.items() if old in kwargs]
    if needless:
        names = ", ".join(needless)
        parts.append(f"{names}: no longer needed and without effect; you can leave it out")
    if parts:
        info(f"from TorchExplorer: {'. '.join(parts)}.")
