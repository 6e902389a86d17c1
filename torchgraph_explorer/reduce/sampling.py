"""Selects the elements of a tensor that are measured, and finds them in memory."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import torch
from torch import Tensor

from torchgraph_explorer.reduce.row_buffer import TYPES, Elements

_WORD = (1 << 64) - 1
_STRIDED = torch.strided


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
    is_there = _is_in_memory(elements, elements.data_ptr(), elements.numel())
    return elements if is_there else _read_out(elements)


def _read_out(elements: Tensor) -> Tensor:
    """A copy of elements that have no memory of their own: copying makes a wrapper compute them."""
    if type(elements) in {Tensor, torch.nn.Parameter}:
        raise ValueError(f"the memory of a tensor of {elements.numel()} elements was freed")
    try:
        return torch.empty(elements.shape, dtype=elements.dtype).copy_(elements)
    except Exception:  # of a class that can only be copied to its own kind, as quantized activations may be
        values = elements.dequantize()
        if type(values) is not Tensor:
            raise
        return values.reshape(-1).contiguous()


def plain_elements(tensor: Tensor) -> Elements | None:
    """The elements of `tensor`, if `rows.c` can read them where they are.

    For that, all are in memory, in order, and of a type in `TYPES`.
    """
    kind = TYPES.get(tensor.dtype)
    if (
        kind is None
        or tensor.layout is not _STRIDED
        or tensor.is_nested
        or not tensor.is_contiguous()
        or tensor.is_neg()
    ):
        return None
    address, count = tensor.data_ptr(), tensor.numel()
    return (address, kind, count) if _is_in_memory(tensor, address, count) else None


def is_contiguous_plain(tensor: Tensor) -> bool:
    """Whether there are such `plain_elements`."""
    return plain_elements(tensor) is not None


def _is_in_memory(tensor: Tensor, address: int, count: int) -> bool:
    """Whether all elements of a contiguous tensor are in memory: its storage may have been freed or cut."""
    if count == 0 or address == 0:
        return count == 0
    return (tensor.storage_offset() + count) * tensor.itemsize <= tensor.untyped_storage().nbytes()


def has_readable_bits(tensor: Tensor) -> bool:
    """Whether it is strided and of a type that `flat` has to convert, but whose bits can be read as they are."""
    is_converted = tensor.is_complex() or (tensor.dtype not in TYPES and tensor.is_floating_point())
    is_dense = tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_quantized)
    return is_converted and is_dense and not tensor._is_zerotensor()


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
    if not _are_together(tensor):
        return tensor.reshape(-1).contiguous()  # a view, where one stride is enough
    return tensor.as_strided((tensor.numel(),), (1,))


def _are_together(tensor: Tensor) -> bool:
    """Whether its elements are next to each other in memory, in whatever order."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def by_samples(tensor: Tensor) -> Tensor:
    """`tensor` as it is in memory, where the elements of each sample are together; or in order."""
    if tensor.is_contiguous() or tensor.dim() == 0 or not tensor.numel():
        return tensor.contiguous()
    samples = tensor.shape[0]
    size = tensor.numel() // samples
    if (samples > 1 and tensor.stride(0) != size) or not _are_together(tensor):
        return tensor.contiguous()
    return tensor.as_strided((samples, size), (size, 1))


class Sampler:
    """Takes evenly spread samples of at most `most` elements.

    Which elements they are follows from the number of elements and of the step, so that two equal runs sample the same
    ones, and over many steps each element is looked at.
    """

    def __init__(self, most: int | None) -> None:
        """Sample `most` elements of a tensor, all if None."""
        self.most = most
        self.limit = -1 if most is None else most

    def positions(self, count: int, step: int = 0) -> tuple[int, int, int]:
        """The sample of `count` elements at a step: index of the first, stride, and length."""
        if self.most is None or count <= self.most:
            return 0, 1, count
        stride = stride_for(count, self.most)
        if stride == 1:
            return 0, 1, count
        length = max(1, count // stride)
        return _scrambled(count, step) % (count - (length - 1) * stride), stride, length


def _scrambled(count: int, step: int) -> int:
    """A number of 32 bits that looks like chance, and is the same for the same arguments."""
    mixed = ((step + 1) * 0x9E3779B97F4A7C15 + count * 0xD6E8FEB86659FD93) & _WORD
    mixed = ((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93) & _WORD
    return mixed >> 32
