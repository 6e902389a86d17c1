"""How often torch may compile a function again: the forms with operations in them do not count."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.inline.registry import OpenWindow

ASKS = ("exceeds_recompile_limit", "exceeds_cache_size_limit")
"""Torch's function that tells whether a function was compiled often enough: its name now, and before torch 2.7."""

COUNTS = ("num_cache_entries", "num_cache_entries_with_same_id_matched_objs", "total_cache_entries_all_regions")
"""What it looks at, of which some releases of torch have fewer."""


class CompilationLimit:
    """Torch's limit on the forms of one function, `recompile_limit`, as if there were none with operations in them.

    Beyond it, torch runs the function as it was written, or raises if it is to be one graph. The forms with operations
    stay in torch's cache after the watch, and so does this.
    """

    def __init__(self, window: OpenWindow) -> None:
        """The limit is torch's own. `window` tells which form is being compiled."""
        self._window = window
        self._with_operations: Counter[object] = Counter()
        self._lock = interrupts.lock()
        self._is_on = False

    def take_over(self) -> None:
        """Take over from now on, to the end of the process. Torch's compiler has been imported."""
        compiler: Any = sys.modules.get("torch._dynamo.convert_frame")
        with self._lock:
            if self._is_on or compiler is None:
                return
            self._is_on = True
            for name in ASKS:
                if (plain := getattr(compiler, name, None)) is not None:
                    setattr(compiler, name, self._asking(plain))

    def _asking(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def exceeds(forms: Any, compilation: Any, *more: Any) -> Any:
            function = getattr(compilation, "frame_id", None)
            if self._window.on:
                self._with_operations[function] += 1
                return False, ""
            try:
                without = self._without_operations(forms, function)
            except Exception:  # torch says nothing of its own classes from release to release
                without = forms
            return plain(without, compilation, *more)

        return exceeds

    def _without_operations(self, forms: Any, function: object) -> Any:
        """Torch's counts of the forms of `function`, less those with operations."""
        fewer = self._with_operations[function]
        counted = {name: getattr(forms, name) for name in COUNTS if hasattr(forms, name)} if fewer else {}
        return replace(forms, **{name: max(0, count - fewer) for name, count in counted.items()}) if counted else forms


def may_compile_again() -> bool:
    """Whether torch may compile a function in another form: the user may have set that it is to raise, or not to."""
    dynamo: Any = sys.modules.get("torch._dynamo")
    if dynamo is None:
        return True
    stance = getattr(getattr(dynamo.eval_frame, "_stance", None), "stance", "default")
    return stance == "default" and not getattr(dynamo.config, "error_on_recompile", False)
