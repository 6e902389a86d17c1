"""The parameter names of the functions that run and make modules."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from torch import nn

from torchgraph_explorer.capture.unwrap import unwrapped

POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Signatures:
    """Names of the parameters that take positional arguments, looked up once for each class.

    `*args` is among them with its star. For a function without a signature there are no names, and nothing is raised.
    """

    def __init__(self) -> None:
        """Begin with no signature looked up."""
        self._known: dict[object, tuple[str, ...]] = {}

    def of_forward(self, module: nn.Module) -> tuple[str, ...]:
        """The names for `forward`, without `self`; for a wrapper, those of the module within it."""
        try:
            module = unwrapped(module)
            forward = module.forward
            own = vars(module).get("forward")
        except Exception:  # the user's code, e.g. a property
            return ()
        if own is not None:
            return _names(forward)
        return self._once(type(module), "forward", lambda: _names(forward))

    def of_class(self, kind: type) -> tuple[str, ...]:
        """The names for `__init__`; where it passes on `*args`, as in LSTM, those of the base class."""
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
    """The names for a method that torch has compiled from a script or a trace."""
    try:
        return tuple(argument.name for argument in function.schema.arguments if argument.name != "self")
    except Exception:
        return ()
