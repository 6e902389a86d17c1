"""One logged step of a model that runs compiled."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from torchgraph_explorer.capture.captured_step import PATIENCE_FOR_BACKWARD, PATIENCE_FOR_MORE, CapturedStep
from torchgraph_explorer.capture.gradient_hooks import SeriesKey
from torchgraph_explorer.capture.inline.probes import VALUE
from torchgraph_explorer.capture.inline.registry import ProbeSite
from torchgraph_explorer.capture.no_dispatch import NoDispatch, is_readable, plain
from torchgraph_explorer.schema import Call


@dataclass(frozen=True, slots=True)
class EagerStep:
    """What is known from a step that ran as it was written.

    Attributes:
        calls: Its calls.
        same: The series of one tensor, by each of them, where there are several.
    """

    calls: tuple[Call, ...]
    same: Mapping[SeriesKey, tuple[SeriesKey, ...]]


def eager_step(calls: tuple[Call, ...], rows: Mapping[SeriesKey, int]) -> EagerStep:
    """A step from its calls and the row of each series. Series of the same tensor have the same row."""
    by_row: dict[int, list[SeriesKey]] = {}
    for key, row in rows.items():
        by_row.setdefault(row, []).append(key)
    return EagerStep(calls, {key: tuple(keys) for keys in by_row.values() if len(keys) > 1 for key in keys})


class InlineStep(CapturedStep):
    """A step of which the operations that were compiled into the model tell. See `CapturedStep`.

    It has one forward pass, and hooks nothing. That it calls its modules as an earlier step did which ran as it was
    written, and that the same tensors are the same, is taken for granted.

    Attributes:
        shown: Tensors that were shown.
    """

    def __init__(self, model: nn.Module, step: int, *, like: EagerStep, **options: Any) -> None:
        """A step that does what the one `like` did. `options` are those of `CapturedStep`."""
        self.shown = 0
        self._has_returned = False
        self._same = like.same
        self._numbers: Counter[tuple[str, str, str]] = Counter()
        self._number_at: dict[int, int] = {}
        super().__init__(model, step, **options)
        self.calls = list(like.calls)

    @property
    def waits(self) -> bool:
        """The next forward pass begins the next step."""
        return False

    def stays_for_update(self) -> bool:
        """No: what is compiled would go on telling it."""
        return False

    def rests(self) -> bool:
        """Its backward pass ended a while ago, or does not come."""
        patience = PATIENCE_FOR_MORE if self.backward_ended else PATIENCE_FOR_BACKWARD
        return self._has_returned and self._rested(patience)

    def show(self, role: str, found: Iterable[tuple[str, Tensor]]) -> None:
        """Tensors that the model itself was given or has returned, outside of what is compiled."""
        with NoDispatch():
            for path, tensor in found:
                if is_readable(tensor) and "io" in self.kinds:
                    self.rows["", 0, role, path, "value"] = self._measure.values(tensor)
                if tensor.requires_grad:
                    self._gradient_hooks.on_tensor(
                        tensor, ("", 0, role, path, "grad_norm") if "io_grad" in self.kinds else None
                    )

    def returned(self) -> None:
        """The compiled forward pass is over; the first time, it was compiled in it."""
        self._has_returned, self._resting_since = True, time.monotonic()
        self._gradient_hooks.forget_graph()

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Nothing to do: a part of it runs as it was written."""

    def see(self, site: ProbeSite, what: int, tensor: Tensor) -> None:
        """An operation in the compiled code shows a tensor."""
        try:
            with self._gradient_hooks.lock, NoDispatch():
                now = plain(tensor).detach()  # compiled code writes anew into a tensor, and torch does not count it
                if what == VALUE:
                    self._see_value(site, now)
                else:
                    self._see_gradient(site, now)
        except Exception as fault:  # ours, in the middle of the user's compiled code
            self.lose(site.module, fault)

    def _arm(self, called: nn.Module) -> None:
        """The operations in the compiled code tell, not hooks; of parameters none does."""
        self._see_rest()

    def _see_value(self, site: ProbeSite, tensor: Tensor) -> None:
        if self._gradient_hooks.closed or threading.get_ident() != self.thread or self._is_lost(site, tensor):
            return
        self.shown += 1
        at = site.module, site.role, site.path
        number = self._number_at[site.number] = self._numbers[at]
        self._numbers[at] += 1
        key = site.module, number, site.role, site.path, "value"
        if "io" in self.kinds and key not in self.rows:
            self._observe_all(key, self._measure.values(tensor))

    def _see_gradient(self, site: ProbeSite, gradient: Tensor) -> None:
        if self._gradient_hooks.closed or site.number not in self._number_at or self._is_lost(site, gradient):
            return
        self._backward_passes.begin()
        if "io_grad" in self.kinds:
            key = site.module, self._number_at[site.number], site.role, site.path, "grad_norm"
            self._observe_all(key, self._measure.norms(gradient))

    def _observe_all(self, key: SeriesKey, row: int) -> None:
        """The row is that of all series of the same tensor. Of its gradients the last to come is the whole."""
        for each in self._same.get(key, (key,)):
            self.rows[each] = row

    def _is_lost(self, site: ProbeSite, tensor: Tensor) -> bool:
        return site.module in self._lost or not is_readable(tensor)
