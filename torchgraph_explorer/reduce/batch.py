"""Measures the tensors of one step, one after the other: each becomes a row of statistics and a histogram."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

from torchgraph_explorer.reduce.device_batch import DeviceBatch
from torchgraph_explorer.reduce.row_buffer import Part, RowBuffer, StepFunctions, fingerprint, joined
from torchgraph_explorer.reduce.sampling import (
    Sampler,
    by_samples,
    flat,
    has_readable_bits,
    is_strided,
    plain_elements,
    without_repeats,
)

Added = TypeVar("Added", int, "tuple[int, int]")

RowsByTensor: TypeAlias = "dict[int, tuple[weakref.ref[Tensor], int, int]]"
"""The row of each tensor by its id, with its version then: a tensor that comes twice is measured once."""


class Batch:
    """The tensors of one step. Each becomes a row; the same tensor, unchanged, becomes one row only.

    Rows of tensors that are not in host memory come after all others, and are numbered from the end: -1, -2, ...
    """

    def __init__(
        self,
        sampler: Sampler,
        rows: RowBuffer,
        device_batch: DeviceBatch,
        *,
        step: int = 0,
        gradient_scale: float = 1.0,
    ) -> None:
        """Take samples with `sampler`, and put them into `rows`, or into `device_batch` if they are not in host memory.

        Which elements are sampled depends on `step`. Gradients are divided by `gradient_scale`.
        """
        self._sampler, self._rows, self._device_batch = sampler, rows, device_batch
        self._step, self._scale = step, gradient_scale
        self._values: RowsByTensor = {}
        self._norms: RowsByTensor = {}
        rows.clear()
        device_batch.clear()
        self._native = rows.begin(
            sampler.limit, sampler.positions, step=step, scale=gradient_scale, gpu=device_batch.gpu
        )

    @property
    def native(self) -> StepFunctions | None:
        """What measures ordinary tensors in place of the methods below, if it was built."""
        return self._native

    def values(self, tensor: Tensor) -> int:
        """Measure the elements of `tensor` as they are now; returns the row."""
        row = None if self._native is None else self._added(self._native.values, tensor)
        return self._once(tensor, self._values, self._measure) if row is None else row

    def values_again(self, tensor: Tensor) -> int:
        """Measure the elements of `tensor` although its version may be the same: torch does not count every write."""
        return self._measure(tensor)

    def gradients(self, gradient: Tensor) -> int:
        """Measure the elements of a gradient as the backward pass left it, multiplied by the loss scale."""
        return self.values(gradient) if self._scale == 1.0 else self._measure(gradient, self._scale)

    def norms(self, gradient: Tensor) -> int:
        """Measure the l2 norm of each sample of `gradient`, a sample being an index of the first dimension."""
        row = None if self._native is None else self._added(self._native.norms, gradient)
        return self._once(gradient, self._norms, self._measure_norms) if row is None else row

    def numbers(self, numbers: Tensor) -> list[int]:
        """Measure each of `numbers`, `[n]` of float32, as a tensor of its own; returns the rows."""
        if self._is_in_host_memory(numbers):
            first = None if self._native is None else self._added(self._native.numbers, numbers)
            return self._rows.add_numbers(numbers) if first is None else list(range(first, first + len(numbers)))
        return [-row for row in self._device_batch.add_numbers(numbers)]

    def units(self, output: Tensor, peaks: Tensor, *, is_second: bool, is_new: bool) -> tuple[int, int] | None:
        """Measure the units of `output`, its second or its last dimension, at the positions that `UnitRows` looks at.

        Their largest magnitudes are put into `peaks`, `[units]` of float32, with those that are there unless `is_new`.

        Returns:
            The rows of `peaks`, and of how far the values of each unit are apart; None if `tensors.c` does not take it.
        """
        return None if self._native is None else self._added(self._native.units, output, is_second, peaks, is_new)

    def forget(self) -> None:
        """Hold no weak reference any more: torch swaps no tensor that has one. Each is measured anew from now on."""
        self._values.clear()
        self._norms.clear()
        if self._native is not None:
            self._native.forget()

    def finish(self) -> Callable[[], Part]:
        """End the step. Returns a function that gives all rows, in any thread; it may have to wait for a device."""
        self.forget()
        on_host = self._rows.finish()
        if not len(self._device_batch):
            return lambda: on_host
        on_devices = self._device_batch.finish()
        return lambda: joined([on_host, on_devices()])

    @staticmethod
    def _is_in_host_memory(elements: Tensor) -> bool:
        return elements.is_cpu

    def _once(self, tensor: Tensor, known: RowsByTensor, measure: Callable[[Tensor], int]) -> int:
        try:
            version = tensor._version
        except RuntimeError:  # made in inference mode, where torch does not count writes
            return measure(tensor)
        seen = known.get(id(tensor))
        if seen is not None and seen[1] == version and seen[0]() is tensor:
            return seen[2]
        row = measure(tensor)
        known[id(tensor)] = (weakref.ref(tensor), version, row)
        return row

    def _added(self, add: Callable[..., Added | None], tensor: Tensor, *more: object) -> Added | None:
        """The row or rows that a function of `native` adds; None if it does not take the tensor."""
        if not (self._is_in_host_memory(tensor) or tensor.is_cuda):
            return None
        row = add(tensor, *more)
        if row is None and self._has_made_room():
            row = add(tensor, *more)
        return row

    def _has_made_room(self) -> bool:
        """Whether there was no room, and now is some."""
        if self._rows.is_full:
            self._rows.make_room()
            return True
        return self._device_batch.make_room()

    def _measure(self, tensor: Tensor, divisor: float = 1.0) -> int:
        row = None if self._native is None else self._added(self._native.values_again, tensor, divisor)
        if row is not None:
            return row
        found = plain_elements(tensor)
        if found is not None and self._is_in_host_memory(tensor):
            return self._rows.add_elements(found, self._sampler.positions(found[2], self._step), divisor)
        elements, repeats, whole = tensor, 1, None
        if found is None:
            if is_strided(tensor):
                elements, repeats = without_repeats(tensor.detach())
            elif has_readable_bits(tensor) and self._is_in_host_memory(tensor):
                whole = fingerprint(tensor.detach().resolve_conj().resolve_neg().contiguous())
            elements = flat(elements)
        first, stride, length = self._sampler.positions(elements.numel(), self._step)
        if self._is_in_host_memory(elements):
            return self._rows.add(
                elements,
                first=first,
                stride=stride,
                length=length,
                divisor=divisor,
                repeats=repeats,
                fingerprint=whole,
            )
        if self._native is not None and repeats == 1 and elements.dtype == tensor.dtype:
            row = self._added(self._native.values_again, elements, divisor)
            if row is not None:
                return row
        return -self._device_batch.add(
            elements.detach().view(-1),
            first=first,
            stride=stride,
            length=length,
            divisor=divisor,
            repeats=repeats,
            is_exact=not tensor.is_complex(),
        )

    def _measure_norms(self, gradient: Tensor) -> int:
        one, repeats, within = gradient, 1, 1
        if self._is_in_host_memory(gradient):
            found = plain_elements(gradient)
            if found is None and is_strided(gradient):
                one, within = without_repeats(gradient.detach(), first=1)
                one, repeats = without_repeats(one)
                one = by_samples(one.resolve_neg())
                found = plain_elements(one)
            if found is not None:
                samples = one.shape[0] if one.dim() else 1
                divisor = self._scale / math.sqrt(within)
                return self._rows.add_norms(found, samples=samples, divisor=divisor, repeats=repeats)
        return self._measure(sample_norms(gradient), self._scale)


def sample_norms(gradient: Tensor) -> Tensor:
    """The l2 norm of each index of the first dimension of `gradient`, `[b]`; of a scalar, `[1]`.

    In double precision, so that the squares of floats neither vanish nor overflow; Apple's GPUs have only floats.
    """
    if gradient.is_nested or gradient.layout != torch.strided:
        gradient = flat(gradient).unsqueeze(0)
    if gradient.dim() == 0:
        gradient = gradient.unsqueeze(0)
    samples = gradient.shape[0]
    rows = gradient.detach().reshape(samples, -1) if gradient.numel() else gradient.new_zeros(samples, 1)
    wide = torch.float32 if rows.device.type == "mps" else torch.float64
    if not (rows.is_floating_point() or rows.is_complex()):
        rows = rows.to(wide)
    if rows.is_complex():
        rows = rows.abs()
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=wide)
    return norms
