"""Collects the samples of one step's tensors, and hands them on in chunks to be reduced elsewhere."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.reduce.sampling import Sampler, flat, non_finite, to_float32

CHUNK = 1 << 18
"""Elements in a chunk, unless a single tensor has more."""


@dataclass(slots=True)
class Chunk:
    """Samples of some rows, one after the other.

    Attributes:
        batch: Number of the batch it is of.
        values: `[elements]` float32, NaN and infinite ones among them.
        lengths: How many of them each row has.
        counts: Elements of each row's whole tensor.
        non_finite: For each row NaN, infinite and minus infinite elements of the whole tensor; None where they are to
            be counted among `values`, which then are all there is.
    """

    batch: int
    values: npt.NDArray[np.float32]
    lengths: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    non_finite: list[tuple[int, int, int] | None] = field(default_factory=list)

    @property
    def used(self) -> int:
        """Elements of `values` that are taken."""
        return sum(self.lengths)


_numbers = itertools.count()


class Batch:
    """The tensors of one step. Each becomes a row; the same tensor, unchanged, becomes one row only.

    Attributes:
        number: Tells this batch from every other of the process.
    """

    def __init__(self, sampler: Sampler, emit: Callable[[Chunk], None], *, gradient_scale: float = 1.0) -> None:
        """Take samples with `sampler`, and call `emit` with every full chunk. Gradients are divided by the scale."""
        self.number = next(_numbers)
        self._sampler, self._emit, self._scale = sampler, emit, gradient_scale
        self._chunk: Chunk | None = None
        self._used = 0
        self._rows = 0
        self._known: dict[int, tuple[weakref.ref[Tensor], int, int]] = {}

    def values(self, tensor: Tensor) -> int:
        """Measure the elements of `tensor` as they are now; returns the row."""
        version = _version(tensor)
        known = self._known.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == version:
            return known[2]
        row = self._add(flat(tensor))
        if version >= 0:
            self._known[id(tensor)] = (weakref.ref(tensor), version, row)
        return row

    def gradients(self, gradient: Tensor) -> int:
        """Measure the elements of a gradient as the backward pass left it, multiplied by the loss scale."""
        return self.values(gradient) if self._scale == 1.0 else self._add(flat(gradient), scale=self._scale)

    def norms(self, gradient: Tensor) -> int:
        """Measure the l2 norm of each sample of `gradient`, a sample being an index of the first dimension."""
        return self._add(sample_norms(gradient), scale=self._scale)

    def finish(self) -> None:
        """Hand on what is left."""
        if self._chunk is not None:
            self._emit(self._chunk)
            self._chunk = None
        self._known.clear()

    def _add(self, elements: Tensor, *, scale: float = 1.0) -> int:
        sample = self._sampler.sample(elements)
        length, count = sample.numel(), elements.numel()
        chunk = self._room(length)
        if length:
            to_float32(sample, target := chunk.values[self._used : self._used + length])
            if scale != 1.0:
                target /= np.float32(scale)
        self._used += length
        chunk.lengths.append(length)
        chunk.counts.append(count)
        chunk.non_finite.append(None if length == count else non_finite(elements) or (0, 0, 0))
        self._rows += 1
        return self._rows - 1

    def _room(self, length: int) -> Chunk:
        """A chunk with room for `length` more elements."""
        if self._chunk is not None and self._used + length > len(self._chunk.values):
            self._emit(self._chunk)
            self._chunk = None
        if self._chunk is None:
            self._chunk = Chunk(self.number, np.empty(max(CHUNK, length), dtype=np.float32))
            self._used = 0
        return self._chunk


def sample_norms(gradient: Tensor) -> Tensor:
    """The l2 norm of each row of `gradient` flattened but for its first dimension, `[b]`; one of a scalar is `[1]`."""
    if gradient.is_nested or gradient.layout != torch.strided:
        gradient = flat(gradient).unsqueeze(0)
    if gradient.dim() == 0:
        gradient = gradient.unsqueeze(0)
    samples = gradient.shape[0]
    rows = gradient.detach().reshape(samples, -1) if gradient.numel() else gradient.new_zeros(samples, 1)
    wide = torch.float64 if rows.dtype in (torch.float64, torch.complex128) else torch.float32
    if not (rows.is_floating_point() or rows.is_complex()):
        rows = rows.to(wide)
    if rows.is_complex():
        rows = rows.abs()
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=wide)
    return norms


def _version(tensor: Tensor) -> int:
    """How often the tensor was written to; -1 where torch does not count, as in inference mode."""
    return -1 if tensor.is_inference() else tensor._version
