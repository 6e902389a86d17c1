"""One logged step of a model that runs compiled."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from torchgraph_explorer.capture.aside import Aside, is_readable, plain
from torchgraph_explorer.capture.compiled_looks import VALUE, Place
from torchgraph_explorer.capture.round import PATIENCE_FOR_MORE, Round
from torchgraph_explorer.records import Call


class CompiledRound(Round):
    """A step of which the operations that were compiled into the model tell. See `Round`.

    It has one forward pass, and hooks nothing. That it calls its modules as the latest step did which ran as it was
    written is taken for granted.

    Attributes:
        shown: Tensors that were shown.
    """

    def __init__(self, model: nn.Module, step: int, *, as_in: Iterable[Call], **options: Any) -> None:
        """A step with the calls of the one before. `options` are those of `Round`."""
        self.shown = 0
        self._numbers: Counter[tuple[str, str, str]] = Counter()
        self._number_at: dict[int, int] = {}
        super().__init__(model, step, **options)
        self.calls = list(as_in)

    @property
    def waits(self) -> bool:
        """The next forward pass begins the next step."""
        return False

    def rests(self) -> bool:
        """Its backward pass ended a while ago, or does not come."""
        return time.monotonic() - self._resting_since > PATIENCE_FOR_MORE

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Nothing to do: a part of it runs as it was written."""

    def see(self, place: Place, what: int, tensor: Tensor) -> None:
        """An operation in the compiled code shows a tensor."""
        try:
            with self._taps.lock, Aside():
                if what == VALUE:
                    self._see_value(place, plain(tensor))
                else:
                    self._see_gradient(place, plain(tensor))
        except Exception as fault:  # ours, in the middle of the user's compiled code
            self._lose(place.module, fault)

    def _arm(self, module: nn.Module, name: str, *, is_model: bool) -> Iterable[Any]:
        return ()

    def _see_value(self, place: Place, tensor: Tensor) -> None:
        if self._taps.closed or threading.get_ident() != self.thread or self._is_lost(place, tensor):
            return
        self.shown += 1
        at = place.module, place.role, place.path
        number = self._number_at[place.number] = self._numbers[at]
        self._numbers[at] += 1
        if "io" in self.kinds:
            self._observe((place.module, number, place.role, place.path, "value"), self._measure.values(tensor))

    def _see_gradient(self, place: Place, gradient: Tensor) -> None:
        if self._taps.closed or place.number not in self._number_at or self._is_lost(place, gradient):
            return
        self._begin_backward()
        if "io_grad" in self.kinds:
            key = place.module, self._number_at[place.number], place.role, place.path, "grad_norm"
            self._observe(key, self._measure.norms(gradient))

    def _is_lost(self, place: Place, tensor: Tensor) -> bool:
        return place.module in self._lost or not is_readable(tensor)
