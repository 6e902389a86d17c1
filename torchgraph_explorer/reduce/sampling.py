"""Which elements of a tensor are looked at, and how they become float32 in host memory."""

from __future__ import annotations

import math
import random
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

LARGEST = float(np.finfo(np.float32).max)
SUMMED = (torch.float16, torch.bfloat16, torch.float32)
"""Types whose sum is taken in float32; float64 sums as it is, and rarer ones are converted first."""


@lru_cache(maxsize=4096)
def stride_for(count: int, most: int | None) -> int:
    """The distance between the elements sampled of `count`, so that they are about `most` and spread evenly.

    The distance has no common factor with `count`: if it had one with a dimension of the tensor, the sample would
    see only some channels.
    """
    if most is None or count <= most:
        return 1
    stride = -(-count // most)
    while math.gcd(stride, count) != 1:
        stride += 1
    return stride


def flat(tensor: Tensor) -> Tensor:
    """The elements of `tensor` in one dimension, of a strided real type; without a copy where it can be.

    A sparse or nested tensor's elements are those it stores, a quantized one's those it stands for, a complex
    one's their magnitudes. Their order has no meaning.
    """
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.is_nested:
        tensor = _nested(tensor)
    elif tensor.layout != torch.strided:
        tensor = _stored(tensor)
    return _memory(tensor)


def _stored(tensor: Tensor) -> Tensor:
    if tensor.layout == torch.sparse_coo:
        return tensor.coalesce().values()
    if tensor.layout == torch._mkldnn:  # type: ignore[attr-defined]
        return tensor.to_dense()
    return tensor.values()


def _nested(tensor: Tensor) -> Tensor:
    if tensor.layout == torch.jagged:
        return tensor.values()
    return torch.cat([part.reshape(-1) for part in tensor.unbind()])


def _memory(tensor: Tensor) -> Tensor:
    """A dense tensor as it lies in memory, whatever the order of its dimensions; otherwise a copy in order."""
    if tensor.is_contiguous():
        return tensor.view(-1)
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return tensor.reshape(-1)
        expected *= size
    return tensor.as_strided((tensor.numel(),), (1,))


def non_finite(elements: Tensor) -> tuple[int, int, int] | None:
    """How many of `elements` are NaN, infinite and minus infinite, exactly; None when none is.

    Costs one sum, unless that is not finite.
    """
    if not (elements.is_floating_point() or elements.is_complex()):
        return None
    if elements.is_complex():
        total = torch.view_as_real(elements.resolve_conj()).sum()
    else:
        total = elements.sum(dtype=torch.float32 if elements.dtype in SUMMED else None)
    if math.isfinite(total.item()):
        return None
    magnitudes = elements.abs() if elements.is_complex() else elements
    nan, infinite = torch.isnan(magnitudes), torch.isinf(magnitudes)
    negative = 0 if elements.is_complex() else int((infinite & (elements < 0)).sum())
    counts = int(nan.sum()), int(infinite.sum()) - negative, negative
    return counts if any(counts) else None


def to_float32(elements: Tensor, target: npt.NDArray[np.float32]) -> None:
    """Write `elements` into `target`. Finite ones too large for float32 become its largest."""
    if elements.is_complex():
        elements = elements.abs()
    if elements.dtype == torch.float64:
        bounded = elements.clamp(-LARGEST, LARGEST)
        elements = torch.where(torch.isinf(elements), elements, bounded)
    torch.from_numpy(target).copy_(elements)


class Sampler:
    """Takes evenly spread samples of at most `most` elements, from an offset of a private generator."""

    def __init__(self, most: int | None, *, seed: int = 0) -> None:
        """Sample `most` elements of a tensor, all if None."""
        self.most = most
        self._random = random.Random(seed)

    def sample(self, elements: Tensor) -> Tensor:
        """Some of `elements`, which are in one dimension; a view."""
        count = elements.numel()
        stride = stride_for(count, self.most)
        if stride == 1:
            return elements
        length = max(1, count // stride)
        first = self._random.randrange(count - (length - 1) * stride)
        return elements[first : first + (length - 1) * stride + 1 : stride]
