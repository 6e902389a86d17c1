"""The names of the parameters of functions that modules are called by."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from torch import nn

from torchgraph_explorer.capture.unwrap import unwrapped

POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Signatures:
    """Names of the parameters that take positional arguments, asked for once for each function and class.

    `*args` is among them with its star. Nothing is known, and nothing raised, of what has no signature.
    """

    def __init__(self) -> None:
        """Begin with none known."""
        self._known: dict[object, tuple[str, ...]] = {}

    def of_forward(self, module: nn.Module) -> tuple[str, ...]:
        """Those of `forward`, without `self`; of what a wrapper calls, not of the wrapper."""
        try:
            module = unwrapped(module)
            forward = module.forward
            own = vars(module).get("forward")
        except Exception:  # the user's code, e.g. of a property
            return ()
        if own is not None:
            return _names(forward)
        return self._once(type(module), "forward", lambda: _names(forward))

    def of_class(self, kind: type) -> tuple[str, ...]:
        """Those that an object of the class is made with; where it hands on any, as LSTM does, those of its base."""
        return self._once(kind, "__init__", lambda: _made_with(kind))

    def _once(self, kind: type, what: str, ask: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        key = kind, what
        if key not in self._known:
            self._known[key] = ask()
        return self._known[key]


def _made_with(kind: type) -> tuple[str, ...]:
    makers = (vars(one)["__init__"] for one in kind.__mro__ if "__init__" in vars(one))
    found = (_names(maker)[1:] for maker in makers)
    return next((names for names in found if not any(name.startswith("*") for name in names)), ())


def _names(function: Any) -> tuple[str, ...]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except Exception:  # no signature, or one that the user's code cannot give
        return _scripted(function)
    names = [one.name for one in parameters if one.kind in POSITIONAL]
    return (*names, *(f"*{one.name}" for one in parameters if one.kind is Parameter.VAR_POSITIONAL))


def _scripted(function: Any) -> tuple[str, ...]:
    """Of a method that torch has compiled from a script or a trace."""
    try:
        return tuple(argument.name for argument in function.schema.arguments if argument.name != "self")
    except Exception:
        return ()
