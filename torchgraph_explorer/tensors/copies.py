"""Copies of tensors: chosen samples as they are, and statistics of each neuron over the whole batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.reduce import neurons
from torchgraph_explorer.reduce.room import Room

Memory: TypeAlias = "Tensor | npt.NDArray[Any]"
"""Elements; of a copy in host memory, an array."""

ORDINARY = frozenset({Tensor, torch.nn.Parameter})

FLOATS = frozenset({torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128})

_FP8 = {name for name in dir(torch) if name.startswith("float8_")}
DTYPES = (
    FLOATS
    | {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
    | {getattr(torch, name) for name in ("uint16", "uint32", "uint64", *_FP8) if hasattr(torch, name)}
)
"""The element types that are kept."""

SPARSE = frozenset({torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc})
"""Layouts that are kept with all their zeros."""

MOST_DENSE = 1 << 26
"""Bytes that a sparse tensor may take so."""

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Types that every operation on memory knows, by bytes of an element."""

_DOUBLE = frozenset({torch.float64, torch.complex128, torch.int32, torch.int64})
"""Types whose elements a float32 does not hold."""

_CHUNK, _DEVICE_CHUNK = 1 << 18, 1 << 26
"""Elements that statistics are computed of at a time: in host memory, what fits into the processor's cache."""


class NotKeptError(Exception):
    """A tensor cannot be kept; the message says why."""


class Copied(NamedTuple):  # made for nearly every tensor, and a frozen dataclass takes three times as long to make
    """What was taken of one tensor. No part shares memory with it.

    Attributes:
        values: The kept samples, in the dtype and on the device of the tensor; as bytes, if they are an array.
        dtype: The tensor's.
        shape: The tensor's.
        batch_dim: The dimension of the samples; None if the tensor is kept whole, without statistics.
        samples: Numbers of the kept samples in the batch.
        statistics: Mean, standard deviation and largest magnitude of each neuron over the batch, `[3, neurons]`.
    """

    values: Memory
    dtype: torch.dtype
    shape: tuple[int, ...]
    batch_dim: int | None
    samples: tuple[int, ...]
    statistics: Memory | None

    @property
    def pieces(self) -> tuple[Memory, ...]:
        """The arrays that hold the copy."""
        return (self.values,) if self.statistics is None else (self.values, self.statistics)

    @property
    def size(self) -> int:
        """The size of the copy in bytes."""
        return self.values.nbytes + (0 if self.statistics is None else self.statistics.nbytes)


def require_keepable(tensor: Tensor) -> None:
    """Refuse tensors whose elements cannot be copied as they are.

    Raises:
        NotKeptError: It is such a tensor.
    """
    if tensor.is_meta or type(tensor).__name__ == "FakeTensor":
        raise NotKeptError("it has a shape, but no values")
    if type(tensor) not in ORDINARY and type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        raise NotKeptError(f"it is a {type(tensor).__name__}, which computes its values itself")
    if tensor.is_nested:
        raise NotKeptError("it is a nested tensor")
    if tensor.layout is not torch.strided:
        _require_few_elements(tensor)
    if tensor.is_quantized:
        raise NotKeptError("it is quantized")
    if tensor.dtype not in DTYPES:
        raise NotKeptError(f"its elements are {tensor.dtype}")
    if type(tensor) in ORDINARY and not _is_in_memory(tensor):
        raise NotKeptError("its memory was freed")


def _require_few_elements(tensor: Tensor) -> None:
    """Refuse a sparse tensor that takes much memory as a dense one, and other layouts."""
    if tensor.layout not in SPARSE:
        raise NotKeptError(f"its layout is {tensor.layout}")
    if (size := tensor.numel() * tensor.element_size()) > MOST_DENSE:
        raise NotKeptError(
            f"it is sparse, and takes {size / 1e6:,.0f} MB with all its zeros, more than {MOST_DENSE / 1e6:,.0f} MB"
        )


def _is_in_memory(tensor: Tensor) -> bool:
    """Whether all elements are in memory: sharding and offloading free what is not in use. torch would not check it."""
    if tensor.numel() == 0 or tensor.layout is not torch.strided or not torch._C._has_storage(tensor):
        return True
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.untyped_storage().nbytes() >= (tensor.storage_offset() + last + 1) * tensor.itemsize


@lru_cache(maxsize=256)
def samples_of(batch: int, most: int | None) -> tuple[int, ...]:
    """The kept samples of a batch: at most `most`, spread evenly over it."""
    kept = batch if most is None else min(batch, most)
    return tuple(at * batch // kept for at in range(kept))


def spread_over(categories: Sequence[str], most: int | None) -> tuple[int, ...]:
    """The kept samples of a batch whose samples are of these categories: at most `most`, spread evenly over them.

    Each category gets one in turn, in the order in which they appear, and its samples are spread over its own.
    """
    if most is None or most >= len(categories):
        return tuple(range(len(categories)))
    places: dict[str, list[int]] = {}
    for at, category in enumerate(categories):
        places.setdefault(category, []).append(at)
    share = dict.fromkeys(places, 0)
    left = most
    while left:
        for category, own in places.items():
            if left and share[category] < len(own):
                share[category] += 1
                left -= 1
    chosen = (own[at] for category, own in places.items() for at in samples_of(len(own), share[category]))
    return tuple(sorted(chosen))


def copied(
    tensor: Tensor,
    *,
    samples: int | None,
    batch_dim: int | None,
    chosen: Mapping[int, tuple[int, ...]] | None = None,
    room: Room | None = None,
) -> Copied:
    """Copy `samples` of `tensor` along `batch_dim`, or all of it if it has no such dimension or that is None.

    Of a batch whose size is in `chosen`, the samples there are copied. Small tensors share the memory in `room`.

    Raises:
        NotKeptError: It cannot be copied.
    """
    if type(tensor) in ORDINARY and neurons.is_readable_at_once(tensor):
        return _copied_at_once(tensor, samples, batch_dim, chosen, room or Room())
    require_keepable(tensor)
    tensor = tensor.detach()
    tensor = (tensor if tensor.layout is torch.strided else tensor.to_dense()).as_subclass(Tensor)
    if tensor.is_complex():
        tensor = tensor.resolve_conj()
    tensor = tensor.resolve_neg()
    dim = dimension_of(tensor.dim(), batch_dim)
    if dim is None:
        return Copied(_clone(tensor), tensor.dtype, tuple(tensor.shape), None, (), None)
    batch = tensor.shape[dim]
    given = chosen.get(batch) if chosen else None
    kept = samples_of(batch, samples) if given is None else given
    values = _selected(tensor, dim, len(kept)) if given is None else _at(tensor, dim, given)
    return Copied(values, tensor.dtype, tuple(tensor.shape), dim, kept, _statistics(tensor, dim))


def _copied_at_once(  # noqa: PLR0917  # called for nearly every tensor
    tensor: Tensor,
    samples: int | None,
    batch_dim: int | None,
    chosen: Mapping[int, tuple[int, ...]] | None,
    room: Room,
) -> Copied:
    """Like `copied`, in one pass over a tensor in host memory."""
    shape, dim = tuple(tensor.shape), dimension_of(tensor.dim(), batch_dim)
    if dim is None:
        return Copied(neurons.whole(tensor, room=room), tensor.dtype, shape, None, (), None)
    given = chosen.get(shape[dim]) if chosen else None
    kept = samples_of(shape[dim], samples) if given is None else given
    values, statistics = neurons.samples_and_statistics(tensor, dim, kept, room=room)
    return Copied(values, tensor.dtype, shape, dim, kept, statistics)


def dimension_of(count: int, dim: int | None) -> int | None:
    """The dimension of samples among `count`, of which `dim` may be counted from the end; None if there is none."""
    return dim % count if dim is not None and -count <= dim < count else None


def _clone(tensor: Tensor) -> Tensor:
    return _of_same_size(tensor).clone(memory_format=torch.contiguous_format)


def _of_same_size(tensor: Tensor) -> Tensor:
    """The same memory as numbers that can be indexed: not every operation knows every type."""
    return tensor if tensor.is_complex() else tensor.view(_SAME_SIZE[tensor.element_size()])


def _at(tensor: Tensor, dim: int, samples: tuple[int, ...]) -> Tensor:
    at = torch.tensor(samples, dtype=torch.int64, device=tensor.device)
    return _of_same_size(tensor).index_select(dim, at).contiguous()


def _selected(tensor: Tensor, dim: int, kept: int) -> Tensor:
    """A copy of `kept` samples, those of `samples_of`."""
    batch = tensor.shape[dim]
    if kept == batch:
        return _clone(tensor)
    if kept and batch % kept == 0:
        return _of_same_size(tensor)[(slice(None),) * dim + (slice(None, None, batch // kept),)].clone(
            memory_format=torch.contiguous_format
        )
    at = (
        torch.arange(kept, dtype=torch.int64, device=tensor.device)
        .mul_(batch)
        .div_(max(kept, 1), rounding_mode="floor")
    )
    return _of_same_size(tensor).index_select(dim, at).contiguous()


def _statistics(tensor: Tensor, dim: int) -> Tensor:
    """Mean, population standard deviation and largest magnitude of each neuron, `[3, neurons]`."""
    batch = tensor.shape[dim]
    wide = torch.float64 if tensor.dtype in _DOUBLE and tensor.device.type != "mps" else torch.float32
    rows = tensor.movedim(dim, 0).reshape(batch, -1) if tensor.numel() else tensor.new_empty(batch, 0)
    neurons = tensor.numel() // batch if batch else _product(tensor.shape[:dim] + tensor.shape[dim + 1 :])
    found = torch.full((3, neurons), float("nan"), dtype=wide, device=tensor.device)
    chunk = max(1, (_CHUNK if tensor.is_cpu else _DEVICE_CHUNK) // max(batch, 1))
    for start in range(0, neurons if batch else 0, chunk):
        part = rows[:, start : start + chunk]
        _measure(part.abs() if part.is_complex() else part, found[:, start : start + chunk])
    return found


def _measure(part: Tensor, found: Tensor) -> None:
    values = part.to(found.dtype)
    torch.mean(values, 0, out=found[0])
    torch.maximum(values.amax(0), values.amin(0).neg_(), out=found[2])
    torch.mean((values - found[0]).square_(), 0, out=found[1])
    found[1].sqrt_()


def _product(sizes: tuple[int, ...]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product
