"""The backward passes through one step: when each ends."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import torch

from torchgraph_explorer.capture.gradient_hooks import current_backward
from torchgraph_explorer.capture.safe_hook import Hook


class BackwardPasses:
    """Asks the autograd engine to report the end of each backward pass.

    Not by a hook on the model's inputs: none of them need require a gradient. The engine's callback works for several
    forward passes, several backward passes and gradient accumulation alike.
    """

    def __init__(self, ended: Callable[[int], None], fail: Callable[[Exception], None]) -> None:
        """Call `ended` with the number of each backward pass that ends, and `fail` with what it raises."""
        self._ended, self._fail = ended, fail
        self._begun: set[int] = set()
        self._on: dict[int, weakref.ref[Hook]] = {}

    @property
    def have_begun(self) -> bool:
        """Whether a backward pass has begun."""
        return bool(self._begun)

    @property
    def are_on(self) -> bool:
        """Whether a backward pass has begun whose end was not reported."""
        return bool(self._on)

    def begin(self) -> bool:
        """A gradient has arrived: ask for the end of the pass that is on in this thread, once for each.

        Returns:
            Whether it is the first one of the pass.
        """
        task = current_backward()
        if task in self._begun:
            return False
        self._begun.add(task)
        self._on[task] = self._call_at_end(lambda: self._end_after_others(task))
        return True

    def end(self, task: int) -> bool:
        """Pass `task` has ended; whether no other one is on."""
        self._on.pop(task, None)
        return all(hook() is None for hook in self._on.values())

    def forget(self) -> None:
        """Those that are still noted as being on were given up by torch."""
        self._on.clear()

    def _end_after_others(self, task: int) -> None:
        self._call_at_end(lambda: self._ended(task))

    def _call_at_end(self, act: Callable[[], None]) -> weakref.ref[Hook]:
        """Call `act` at the end of the backward pass that is on, after everything that asked for it before.

        Asked for again at the end, it comes after what was asked for in between: data-parallel training averages the
        gradients then.

        Returns:
            A reference that is dead once torch has given the pass up.
        """
        engine = torch.autograd.Variable._execution_engine
        hook = Hook(act, self._fail)
        engine.queue_callback(hook)
        return weakref.ref(hook)
