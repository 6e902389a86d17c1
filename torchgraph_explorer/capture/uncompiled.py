"""Keeps torch's compiler from functions of ours that run in the middle of the user's compiled code.

Where the compiler cannot follow a function, Python executes it, and the compiler looks at each function that it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from torch._C._dynamo.eval_frame import set_eval_frame

P = ParamSpec("P")
R = TypeVar("R")


def uncompiled(act: Callable[P, R]) -> Callable[P, R]:
    """`act`, with nothing that it calls compiled. In time that does not count, unlike `torch.compiler.disable`."""

    @wraps(act)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        compiler = set_eval_frame(None)
        try:
            return act(*args, **kwargs)
        finally:
            if compiler is not None:
                set_eval_frame(compiler)

    return called
