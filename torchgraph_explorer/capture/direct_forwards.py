"""Finds modules that are run by a call of their `forward`, which torch calls no hook for."""

from __future__ import annotations

import sys
from inspect import CO_NESTED
from typing import Any

from torch import nn

from torchgraph_explorer.capture.modules_by_name import ModulesByName

MOST_NAMED = 3
"""Modules that are named in the sentence about them."""

DECORATORS = ("torch.amp.", "torch.utils._contextlib")
"""Modules of torch that have the functions that `torch.autocast()` and `torch.no_grad()` put around others."""

TORCH_CALLS = (nn.Module._call_impl.__code__, nn.Module._slow_forward.__code__)
"""What torch executes for a call `layer(x)`: if it has no hook of ours, that was taken off or left out on purpose."""

_ADVICE = " Call a module as layer(x), not as layer.forward(x)."
_OWN_CALL = " Calls of classes with a __call__ of their own (as in GPyTorch) cannot be seen."


class DirectForwards:
    """The modules that were run so within calls of a step that is traced, each with the function that did it."""

    def __init__(self, modules: ModulesByName) -> None:
        """None was found among the `modules` of the model."""
        self._names = {id(module): name for name, module in modules.items()}
        self._found: dict[str, str] = {}

    def look(self, call: Any, name: str) -> None:
        """Look among the functions that are being executed within `call`, the frame of torch's call of module `name`.

        What is in its place as its `forward`, as fairscale's checkpoint is, may call that from another `forward`.
        """
        frame: Any = sys._getframe(1)
        inner_forwards: list[Any] = []
        while frame is not None and frame is not call:
            if frame.f_code.co_name == "forward":
                inner_forwards.append(frame)
            frame = frame.f_back
        if frame is None or len(inner_forwards) < 2:
            return  # the outermost is that of the module itself
        called = _self_of(inner_forwards[-1])
        for each in reversed(inner_forwards[:-1]):  # the outermost of a module first, since it may run its base class's
            module = _self_of(each)
            if module is called or not isinstance(module, nn.Module):
                continue
            found = self._names.get(id(module), name)
            caller = _caller_of(each, module)
            if found not in {"", name} and caller.f_code not in TORCH_CALLS:
                self._found.setdefault(found, _name_of(caller))

    def look_around(self, call: Any) -> None:
        """Look among the functions around `call`, the frame of torch's call of the first module of a pass.

        Hooks have seen no call around it, where a class has a `__call__` of its own that calls `forward`, or where
        the loop calls `forward` itself. Of the latter nothing is said: it may do so where there is nothing else to
        see. But a `forward` may call that of another module.
        """
        frame = call.f_back
        forwards: dict[int, Any] = {}
        while frame is not None:
            function = frame.f_code.co_name
            module = _self_of(frame) if function in {"__call__", "forward"} else None
            if id(module) in self._names and function == "forward":
                forwards[id(module)] = frame  # the outermost of a module, since it may run its base class's
            # Torch's own classes that have one, as that of a compiled model, go on to call hooks.
            elif id(module) in self._names and not str(frame.f_globals.get("__name__")).startswith("torch."):
                self._found.setdefault(self._names[id(module)] or type(module).__name__, _name_of(frame))
            frame = frame.f_back
        self._note_within([*forwards.values()][::-1])

    def _note_within(self, forwards: list[Any]) -> None:
        """Note those that were called within `forwards`, frames of which the first one is what the loop called."""
        for frame in forwards[1:]:
            module = _self_of(frame)
            caller = _caller_of(frame, module)
            if caller.f_code not in TORCH_CALLS:
                self._found.setdefault(self._names[id(module)] or type(module).__name__, _name_of(caller))

    def sentence(self) -> str | None:
        """What is not recorded for that reason, and what to do; None if nothing was found."""
        if not self._found:
            return None
        names = [f"{name}.forward(), called in {caller}" for name, caller in self._found.items()]
        more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        by_own_call = [caller.endswith("__call__") for caller in self._found.values()]
        return (
            f"Torch's hooks do not see {', '.join(names[:MOST_NAMED])}{more}, so inputs and outputs of these calls are "
            f"not recorded.{'' if all(by_own_call) else _ADVICE}{_OWN_CALL if any(by_own_call) else ''}"
        )


def _caller_of(frame: Any, module: object) -> Any:
    """The frame of the function that called the `forward` of `module`, not that of a decorator around this `forward`.

    Decorators of torch, such as `torch.autocast`, are told by their modules. Others, such as those of transformers, are
    functions within functions that are given the same `self`.
    """
    caller = frame.f_back
    while caller.f_back is not None and (
        str(caller.f_globals.get("__name__")).startswith(DECORATORS)
        or (caller.f_code.co_flags & CO_NESTED and _self_of(caller) is module)
    ):
        caller = caller.f_back
    return caller


def _name_of(frame: Any) -> str:
    """The function that is executed in `frame`, with its class where Python tells it: 3.10 does not."""
    code = frame.f_code
    return str(getattr(code, "co_qualname", code.co_name))


def _self_of(frame: Any) -> object:
    """The first argument of the function that is executed in `frame`."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
