"""The forward pass of a logged step of a model that runs compiled."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from torchgraph_explorer.capture.attach_targets import AttachedAs
from torchgraph_explorer.capture.gradient_hooks import SeriesKey
from torchgraph_explorer.capture.inline.probes import VALUE
from torchgraph_explorer.capture.inline.registry import ProbeSite
from torchgraph_explorer.capture.no_dispatch import NoDispatch, is_readable, plain
from torchgraph_explorer.capture.step_parts import ForwardParts
from torchgraph_explorer.capture.step_states import Event, State
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


class InlineForward:
    """The forward pass of a step whose tensors come from operations that were compiled into the model.

    There is one, and no hook is on the modules (a `step_parts.Forward`). It is assumed to call its modules in the
    same way as an earlier step that ran as it was written, and to have the same tensor where that one did.

    Attributes:
        shown: How many tensors the operations have shown.
        calls, passes, trace, thread, until_update, takes_more, trained: See `step_parts.Forward`.
    """

    takes_more = is_open = is_traced = False
    trained: frozenset[str] = frozenset()

    def __init__(self, parts: ForwardParts, *, like: EagerStep) -> None:
        """A step that calls its modules as `like` did. There are no operations for parameters: measure them now."""
        self.shown = 0
        self.calls, self.passes, self.trace = parts.calls, parts.passes, parts.trace
        self.thread, self.until_update = threading.get_ident(), parts.until_update
        self._modules, self._rows, self._gradients = parts.modules, parts.rows, parts.gradients
        self._state = parts.state
        self._same = like.same
        self._dropped: set[str] = set()
        self._numbers: Counter[tuple[str, str, str]] = Counter()
        self._number_at: dict[int, int] = {}
        self.calls.done = list(like.calls)
        self._modules.hooks.take_off()
        parts.ended()
        self.passes.begin("", until_update=self.until_update)
        self._state.on(Event.FORWARD_BEGINS)

    @property
    def may_have_backward(self) -> bool:
        """See `step_parts.Forward`."""
        return self._state.now in {State.FORWARD_OVER, State.BACKWARD}

    def show(self, role: str, found: Iterable[tuple[str, Tensor]]) -> None:
        """Measure tensors that the model itself was given or has returned, outside of the compiled code."""
        kinds, hooks = self._rows.kinds, self._gradients.hooks
        with NoDispatch():
            for path, tensor in found:
                if is_readable(tensor) and "io" in kinds:
                    self._rows.rows["", 0, role, path, "value"] = self._rows.measure.values(tensor)
                if self._rows.keeper is not None:
                    self._rows.keeper.take(("", 0, role, path, "value"), tensor)
                if tensor.requires_grad:
                    hooks.on_tensor(tensor, ("", 0, role, path, "grad_norm") if self._rows.uses("io_grad") else None)

    def returned(self) -> None:
        """The forward pass is over. In the first one, the model was compiled, too."""
        self._state.on(Event.FORWARD_ENDS)
        self._gradients.hooks.forget_graph()

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Do nothing: a part of the model runs as it was written."""

    def attach(self, tensor: object, module: nn.Module, name: AttachedAs) -> None:
        """Do nothing: no call is open."""

    def abandon(self) -> None:
        """Do nothing: nothing was switched on."""

    def leave_abandoned(self) -> None:
        """Do nothing: nothing was switched on."""

    def conclude(self) -> None:
        """Do nothing: no step of this kind is traced."""

    def finish(self) -> None:
        """Do nothing: no hook is on a module."""

    def give_up(self) -> None:
        """Do nothing: no hook is on a module."""

    def remove_hooks(self) -> None:
        """Do nothing: no hook is on a module."""

    def drop(self, name: str, fault: Exception) -> None:
        """Recording module `name` failed: record it no more."""
        self._dropped.add(name)
        self._modules.drop(name, fault)

    def see(self, site: ProbeSite, what: int, tensor: Tensor) -> None:
        """An operation in the compiled code shows a tensor."""
        try:
            with self._modules.lock, NoDispatch():
                # A new tensor object: compiled code reuses memory, and torch does not count its writes.
                now = plain(tensor).detach()
                if what == VALUE:
                    self._take_value(site, now)
                else:
                    self._take_gradient(site, now)
        except Exception as fault:  # ours, in the middle of the user's compiled code
            self.drop(site.module, fault)

    def _take_value(self, site: ProbeSite, tensor: Tensor) -> None:
        is_here = threading.get_ident() == self.thread
        if self._gradients.hooks.closed or not is_here or self._is_skipped(site, tensor):
            return
        self.shown += 1
        at = site.module, site.role, site.path
        number = self._number_at[site.number] = self._numbers[at]
        self._numbers[at] += 1
        key = site.module, number, site.role, site.path, "value"
        if "io" in self._rows.kinds and key not in self._rows.rows:
            self._note(key, self._rows.measure.values(tensor), tensor)

    def _take_gradient(self, site: ProbeSite, gradient: Tensor) -> None:
        if self._gradients.hooks.closed or site.number not in self._number_at or self._is_skipped(site, gradient):
            return
        self._gradients.hooks.begin()
        if "io_grad" in self._rows.kinds:
            key = site.module, self._number_at[site.number], site.role, site.path, "grad_norm"
            self._note(key, self._rows.measure.norms(gradient), gradient)

    def _note(self, key: SeriesKey, row: int, tensor: Tensor) -> None:
        """Note the row for all series of the same tensor. Of its gradients, the last one to come is the whole."""
        for each in self._same.get(key, (key,)):
            self._rows.rows[each] = row
            if self._rows.keeper is not None:
                self._rows.keeper.take(each, tensor)

    def _is_skipped(self, site: ProbeSite, tensor: Tensor) -> bool:
        return site.module in self._dropped or not is_readable(tensor)
