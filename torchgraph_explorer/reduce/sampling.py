"""Selects the elements of a tensor that are measured, and finds them in memory."""

from __future__ import annotations

import itertools
import math
import random
from functools import lru_cache

import torch
from torch import Tensor

from torchgraph_explorer.reduce.row_buffer import TYPES


@lru_cache(maxsize=4096)
def stride_for(count: int, most: int | None) -> int:
    """The distance between the elements sampled of `count`, so that they are about `most` and spread evenly.

    The distance has no common factor with `count`: if it had one with a dimension of the tensor, the sample would
    see only some channels. Where that would leave less than half of `most`, it may be a smaller one that is nearer.
    """
    if most is None or count <= most:
        return 1
    wanted = -(-count // most)
    above = next(stride for stride in itertools.count(wanted) if math.gcd(stride, count) == 1)
    below = next(stride for stride in range(wanted, 0, -1) if math.gcd(stride, count) == 1)
    return above if above <= 2 * wanted or above * below <= wanted * wanted else below


def flat(tensor: Tensor) -> Tensor:
    """The elements of `tensor` in one dimension, of a strided real type; without a copy where it can be.

    A sparse or nested tensor's elements are those it stores, a quantized one's those it stands for, a complex
    one's their magnitudes. Their order has no meaning.

    Raises:
        ValueError: The tensor has no memory any more, only a shape.
    """
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.is_nested:
        tensor = _nested(tensor)
    elif tensor.layout != torch.strided:
        tensor = _stored(tensor)
    if tensor.is_complex():
        tensor = tensor.abs()
    elif tensor.dtype not in TYPES:
        tensor = tensor.float()
    if tensor._is_zerotensor():  # all zeros, without memory
        tensor = tensor.clone()
    elements = _memory(tensor.resolve_neg())
    return elements if _has_memory(elements) else _read_out(elements)


def _read_out(elements: Tensor) -> Tensor:
    """A copy of elements that have no memory of their own: copying makes a wrapper compute them."""
    if type(elements) in {Tensor, torch.nn.Parameter}:
        raise ValueError(f"the memory of a tensor of {elements.numel()} elements was freed")
    return torch.empty(elements.shape, dtype=elements.dtype).copy_(elements)


def is_contiguous_plain(tensor: Tensor) -> bool:
    """Whether `rows.c` can read the elements where they are: all in memory, in order, and of a type in `TYPES`."""
    return (
        tensor.dtype in TYPES
        and tensor.layout is torch.strided
        and not tensor.is_nested
        and tensor.is_contiguous()
        and not tensor.is_neg()
        and _has_memory(tensor)
    )


def _has_memory(tensor: Tensor) -> bool:
    """Whether all elements of a contiguous tensor are in memory: its storage may have been freed or cut."""
    count = tensor.numel()
    if count == 0 or tensor.data_ptr() == 0:
        return count == 0
    return (tensor.storage_offset() + count) * tensor.itemsize <= tensor.untyped_storage().nbytes()


def is_strided(tensor: Tensor) -> bool:
    """Whether it is a strided tensor of a type in `TYPES`, whatever the order of its elements in memory."""
    return tensor.dtype in TYPES and tensor.layout is torch.strided and not tensor.is_nested


def without_repeats(tensor: Tensor, *, first: int = 0) -> tuple[Tensor, int]:
    """One of the equal slices along each dimension, from number `first`, that was expanded, and how many there are.

    An expanded tensor may be much larger than the memory that there is.
    """
    repeats = 1
    for dim in range(first, tensor.dim()):
        if tensor.stride(dim) == 0 and tensor.shape[dim] > 1:
            repeats *= tensor.shape[dim]
            tensor = tensor.narrow(dim, 0, 1)
    return tensor, repeats


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
    """The elements in the order of memory, if they are dense in it; otherwise a copy in order."""
    if tensor.is_contiguous():
        return tensor.view(-1)
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return tensor.reshape(-1).contiguous()  # a view, where one stride is enough
        expected *= size
    return tensor.as_strided((tensor.numel(),), (1,))


class Sampler:
    """Takes evenly spread samples of at most `most` elements, from an offset of a private generator."""

    def __init__(self, most: int | None, *, seed: int = 0) -> None:
        """Sample `most` elements of a tensor, all if None."""
        self.most = most
        self._random = random.Random(seed)

    def positions(self, count: int) -> tuple[int, int, int]:
        """The sample of `count` elements: index of the first, stride, and length."""
        stride = stride_for(count, self.most)
        if stride == 1:
            return 0, 1, count
        length = max(1, count // stride)
        return int(self._random.random() * (count - (length - 1) * stride)), stride, length
