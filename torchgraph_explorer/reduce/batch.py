"""Measures the tensors of one step as they come: each becomes a row of statistics and a histogram."""

from __future__ import annotations

import weakref

import torch
from torch import Tensor

from torchgraph_explorer.reduce.native import Part, Rows
from torchgraph_explorer.reduce.sampling import Sampler, flat, lies_open, non_finite


class Batch:
    """The tensors of one step. Each becomes a row; the same tensor, unchanged, becomes one row only."""

    def __init__(self, sampler: Sampler, *, gradient_scale: float = 1.0) -> None:
        """Take samples with `sampler`. Gradients are divided by the scale.

        Raises:
            TorchgraphError: The compiled part of the package is missing.
        """
        self._sampler, self._scale = sampler, gradient_scale
        self._rows = Rows()
        self._known: dict[tuple[int, bool], tuple[weakref.ref[Tensor], int, int]] = {}

    def values(self, tensor: Tensor) -> int:
        """Measure the elements of `tensor` as they are now; returns the row."""
        return self._once(tensor, are_norms=False)

    def gradients(self, gradient: Tensor) -> int:
        """Measure the elements of a gradient as the backward pass left it, multiplied by the loss scale."""
        return self.values(gradient) if self._scale == 1.0 else self._measure(gradient, self._scale)

    def norms(self, gradient: Tensor) -> int:
        """Measure the l2 norm of each sample of `gradient`, a sample being an index of the first dimension."""
        return self._once(gradient, are_norms=True)

    def finish(self) -> Part:
        """All rows."""
        self._known.clear()
        return self._rows.finish()

    def _once(self, tensor: Tensor, *, are_norms: bool) -> int:
        version = -1 if tensor.is_inference() else tensor._version  # in inference mode torch does not count writes
        key = id(tensor), are_norms
        known = self._known.get(key)
        if known is not None and known[1] == version and known[0]() is tensor:
            return known[2]
        row = self._measure_norms(tensor) if are_norms else self._measure(tensor, 1.0)
        if version >= 0:
            self._known[key] = (weakref.ref(tensor), version, row)
        return row

    def _measure(self, tensor: Tensor, divisor: float) -> int:
        elements = tensor if lies_open(tensor) else flat(tensor)
        count = elements.numel()
        first, stride, length = self._sampler.place(count)
        if elements.is_cpu:
            return self._rows.add(elements, first=first, stride=stride, length=length, divisor=divisor)
        elements = elements.detach().view(-1)
        found = non_finite(elements) or (0, 0, 0)
        sample = elements[first : first + (length - 1) * stride + 1 : stride].cpu() if length else elements.cpu()
        return self._rows.add_sample(sample, count=count, non_finite=found, divisor=divisor)

    def _measure_norms(self, gradient: Tensor) -> int:
        if lies_open(gradient) and gradient.is_cpu:
            samples = gradient.shape[0] if gradient.dim() else 1
            return self._rows.add_norms(gradient, samples=samples, divisor=self._scale)
        return self._measure(sample_norms(gradient), self._scale)


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
