"""One logged step of a model that runs compiled."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from torchgraph_explorer.capture.captured_step import SECONDS_FOR_BACKWARD, SECONDS_IDLE, CapturedStep
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
    """A step whose tensors come from operations that were compiled into the model. See `CapturedStep`.

    It has one forward pass and no hooks on modules. It is assumed to call its modules in the same way as an earlier
    step that ran as it was written, and to have the same tensor where that one did.

    Attributes:
        shown: How many tensors the operations have shown.
    """

    def __init__(self, model: nn.Module, step: int, *, like: EagerStep, **options: Any) -> None:
        """A step that calls its modules as `like` did. `options` are those of `CapturedStep`."""
        self.shown = 0
        self._has_returned = False
        self._same = like.same
        self._numbers: Counter[tuple[str, str, str]] = Counter()
        self._number_at: dict[int, int] = {}
        super().__init__(model, step, **options)
        self.calls = list(like.calls)

    @property
    def awaits_backward(self) -> bool:
        """The next forward pass begins the next step."""
        return False

    def is_idle(self) -> bool:
        """Its backward pass ended a while ago, or does not come."""
        return self._has_returned and self._idle_for(SECONDS_IDLE if self.is_over else SECONDS_FOR_BACKWARD)

    def show(self, role: str, found: Iterable[tuple[str, Tensor]]) -> None:
        """Measure tensors that the model itself was given or has returned, outside of the compiled code."""
        with NoDispatch():
            for path, tensor in found:
                if is_readable(tensor) and "io" in self.kinds:
                    self.rows["", 0, role, path, "value"] = self._measure.values(tensor)
                if tensor.requires_grad:
                    self._gradient_hooks.on_tensor(
                        tensor, ("", 0, role, path, "grad_norm") if "io_grad" in self.kinds else None
                    )

    def returned(self) -> None:
        """The forward pass is over. In the first one, the model was compiled, too."""
        self._has_returned, self._idle_since = True, time.monotonic()
        self._gradient_hooks.forget_graph()

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Do nothing: a part of the model runs as it was written."""

    def see(self, site: ProbeSite, what: int, tensor: Tensor) -> None:
        """An operation in the compiled code shows a tensor."""
        try:
            with self._gradient_hooks.lock, NoDispatch():
                # A new tensor object: compiled code reuses memory, and torch does not count its writes.
                now = plain(tensor).detach()
                if what == VALUE:
                    self._take_value(site, now)
                else:
                    self._take_gradient(site, now)
        except Exception as fault:  # ours, in the middle of the user's compiled code
            self.drop(site.module, fault)

    def _put_on_hooks(self, called: nn.Module) -> None:
        """Put on none. Measure the parameters now, for which there are no operations."""
        self._module_hooks.take_off()
        self._measure_remaining()

    def _take_value(self, site: ProbeSite, tensor: Tensor) -> None:
        if self._gradient_hooks.closed or threading.get_ident() != self.thread or self._is_skipped(site, tensor):
            return
        self.shown += 1
        at = site.module, site.role, site.path
        number = self._number_at[site.number] = self._numbers[at]
        self._numbers[at] += 1
        key = site.module, number, site.role, site.path, "value"
        if "io" in self.kinds and key not in self.rows:
            self._observe_all(key, self._measure.values(tensor))

    def _take_gradient(self, site: ProbeSite, gradient: Tensor) -> None:
        if self._gradient_hooks.closed or site.number not in self._number_at or self._is_skipped(site, gradient):
            return
        self._backward_passes.begin()
        if "io_grad" in self.kinds:
            key = site.module, self._number_at[site.number], site.role, site.path, "grad_norm"
            self._observe_all(key, self._measure.norms(gradient))

    def _observe_all(self, key: SeriesKey, row: int) -> None:
        """Note the row for all series of the same tensor. Of its gradients, the last one to come is the whole."""
        for each in self._same.get(key, (key,)):
            self.rows[each] = row

    def _is_skipped(self, site: ProbeSite, tensor: Tensor) -> bool:
        return site.module in self._dropped or not is_readable(tensor)
