"""How long each call of a step takes, and how many bytes it returns."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from time import perf_counter_ns

import torch

from torchgraph_explorer.capture.gradient_hooks import series_key
from torchgraph_explorer.capture.no_dispatch import NoDispatch
from torchgraph_explorer.capture.open_call import OpenCall
from torchgraph_explorer.capture.step_rows import StepRows
from torchgraph_explorer.schema import Call, TensorInfo


class CallCosts:
    """The time that passes in the training's thread from the beginning of each call to its end.

    Time in which the call and those within it are recorded is left out. No device is waited for.
    """

    def __init__(self) -> None:
        self._ours = self._paused = 0
        self._began: dict[int, int] = {}
        self._took: dict[int, int] = {}

    def pause(self) -> None:
        """Note when recording begins: the time that it takes is no cost of the calls."""
        self._paused = perf_counter_ns()

    def end(self, call: int) -> None:
        """Call number `call` is over: it was when recording began."""
        if (began := self._began.get(call)) is not None:
            self._took[call] = self._paused - self._ours - began

    def resume(self, inside: list[OpenCall]) -> None:
        """Recording is over. The last call in `inside` goes on, or begins."""
        now = perf_counter_ns()
        self._ours += now - self._paused
        if inside and (call := inside[-1].index) not in self._began:
            self._began[call] = now - self._ours

    def measure(self, calls: Sequence[Call], rows: StepRows) -> None:
        """Add rows for the `calls` of the step that are over."""
        numbers = [number for at, took in self._took.items() for number in (took / 1e9, bytes_of(calls[at].outputs))]
        self._began, took, self._took = {}, self._took, {}
        if not took:
            return
        with NoDispatch():
            found = rows.measure.numbers(torch.tensor(numbers, dtype=torch.float32, device="cpu"))
        for place, at in enumerate(took):
            call = calls[at]
            for kind, row in zip(("time", "memory"), found[2 * place : 2 * place + 2], strict=True):
                rows.rows[series_key(call.module, call.call, "output", "output", kind)] = row


def bytes_of(outputs: tuple[TensorInfo, ...]) -> int:
    """What the elements of these tensors take, whether they share memory or not. Ragged dimensions count once."""
    return sum(_itemsize(one.dtype) * prod(1 if size is None else size for size in one.shape) for one in outputs)


def _itemsize(dtype: str) -> int:
    """0 for a type that this torch does not have."""
    found = getattr(torch, dtype, None)
    return found.itemsize if isinstance(found, torch.dtype) else 0
