"""Measures tensors on an accelerator, without waiting for it.

A sample of each tensor is put into a buffer on its device. The buffers are copied to the host once a step, in a stream
of their own, and read in the writer's thread. The training's thread only queues the work.

An Nvidia GPU reads ordinary tensors by kernels of our own, see `gpu_rows.py`. What they do not take, and all tensors on
other devices, torch's operations read, as is said here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.reduce.gpu_rows import GpuRows
from torchgraph_explorer.reduce.row_buffer import ELSEWHERE, Part, RowBuffer, of_sample
from torchgraph_explorer.reduce.to_host import Stream, ToHost, current_stream, relaxed

ROOM = 1 << 20
"""Elements of a buffer, 4 MB; more if a single tensor needs more."""

_WITHIN_FLOAT = frozenset(
    {torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.uint8, torch.bool}
)
"""Types all of whose numbers are float32, too."""


@dataclass(slots=True)
class _Buffers:
    """The buffers of one stream, and how much of the last one is in use.

    Streams do not share buffers: the work of one on a buffer may not be over when another one would write to it.
    """

    stream: Stream
    buffers: list[Tensor] = field(default_factory=list)
    filled: int = 0

    def room(self, length: int) -> tuple[Tensor, int]:
        """Unused memory for `length` floats, and the index of its buffer."""
        if not self.buffers or self.filled + length > len(self.buffers[-1]):
            self.buffers.append(torch.empty(max(length, ROOM), dtype=torch.float32, device=self.stream[0]))
            self.filled = 0
        self.filled += length
        return self.buffers[-1][self.filled - length : self.filled], len(self.buffers) - 1


@dataclass(frozen=True, slots=True)
class _Sample:
    """The elements that were taken from one tensor, and where they are.

    Attributes:
        stream: Device and stream of the buffer.
        buffer: Index of the buffer among those of the stream.
        start: Position of the first element in it.
        length: How many elements there are.
        totals: How many numbers about the whole tensor precede them: 0; 1, the largest magnitude; or 3, the counts of
            NaN, infinite and minus infinite elements.
        count: Elements of the whole tensor.
        divisor: The elements are divided by it.
        repeats: How many equal elements of the tensor each one stands for.
        dtype: The tensor's, if the buffer has all its elements exactly; else None.
    """

    stream: Stream
    buffer: int
    start: int
    length: int
    totals: int
    count: int
    divisor: float
    repeats: int
    dtype: torch.dtype | None


class DeviceBatch:
    """The rows of tensors that are not in host memory, step by step.

    Of a tensor that is sampled and read by no kernel of ours, the largest magnitude of all elements is computed, too.
    It is NaN if an element is NaN, else infinite if one is infinite, so that none is missed. Their number is known from
    the sample alone; a kind that is not in the sample counts as one. Once the copy of a step has arrived and has some,
    all of them are counted in the following steps, until a step has none. That reads each tensor several times.

    Its fingerprint is computed on the host, of what is copied there: of all elements of a small tensor, else of the
    sample. With torch's operations, a fingerprint of all would take memory of the size of the tensor.
    """

    def __init__(self, *, histograms: bool = True) -> None:
        """Begin without rows; `histograms` as for `RowBuffer`."""
        self._histograms = histograms
        self._samples: list[_Sample] = []
        self._memory: dict[Stream, _Buffers] = {}
        self._on_gpu = GpuRows()
        self._counts = False

    @property
    def gpu(self) -> int:
        """The address of what `tensors.c` needs to have a GPU read tensors."""
        return self._on_gpu.address

    def make_room(self) -> bool:
        """See `GpuRows.make_room`."""
        return self._on_gpu.make_room()

    def __len__(self) -> int:
        """How many rows the step has so far."""
        return len(self._on_gpu)

    def clear(self) -> None:
        """Begin a step without rows."""
        self._samples, self._memory = [], {}
        self._on_gpu.clear()

    def add(
        self,
        elements: Tensor,
        *,
        first: int,
        stride: int,
        length: int,
        divisor: float,
        repeats: int = 1,
        is_exact: bool = True,
    ) -> int:
        """Add the row of `length` of `elements`, `[n]`, from number `first`, `stride` apart, as `RowBuffer.add` would.

        `is_exact` is whether `elements` are those of the tensor, and not computed from them.

        Returns:
            How many rows the step then has.
        """
        memory = self._buffers(elements.device)
        if stride == 1 or not elements.is_floating_point():
            totals: tuple[Tensor, ...] = ()
        elif self._counts:
            totals = elements.isnan().sum(), (elements == math.inf).sum(), (elements == -math.inf).sum()
        else:
            totals = (_bounded(torch.linalg.vector_norm(elements, ord=math.inf)),)
        room, buffer = memory.room(len(totals) + length)
        end = first + (length - 1) * stride + 1 if length else first
        room[len(totals) :].copy_(_bounded(elements[first:end:stride]))
        for i, number in enumerate(totals):
            room[i].copy_(number)
        at, count = memory.filled - length, elements.numel()
        dtype = elements.dtype if is_exact and length == count and elements.dtype in _WITHIN_FLOAT else None
        return self._noted(_Sample(memory.stream, buffer, at, length, len(totals), count, divisor, repeats, dtype))

    def add_numbers(self, numbers: Tensor) -> list[int]:
        """Add a row for each of `numbers`, `[n]` of float32; returns how many rows the step has after each."""
        memory = self._buffers(numbers.device)
        room, buffer = memory.room(len(numbers))
        room.copy_(numbers)
        first = memory.filled - len(numbers)
        return [
            self._noted(_Sample(memory.stream, buffer, first + at, 1, 0, 1, 1.0, 1, torch.float32))
            for at in range(len(numbers))
        ]

    def _buffers(self, device: torch.device) -> _Buffers:
        stream = current_stream(device)
        memory = self._memory.get(stream)
        if memory is None:
            memory = self._memory[stream] = _Buffers(stream)
        return memory

    def _noted(self, sample: _Sample) -> int:
        self._samples.append(sample)
        return self._on_gpu.add_elsewhere(len(self._samples) - 1)

    def finish(self) -> Callable[[], Part]:
        """Begin to copy the samples to the host; the next step begins without rows.

        Returns:
            A function that waits for the copy and gives the rows, the latest first. To be called once, in any thread.
        """
        streams = [(chunk.device, stream) for stream, chunk in self._on_gpu.chunks]
        chunks = _in_order(streams, [chunk for _, chunk in self._on_gpu.chunks])
        buffers = {stream: ToHost(stream, memory.buffers) for stream, memory in self._memory.items()}
        samples, left = self._samples, self._on_gpu.take()
        self.clear()

        def read() -> Part:
            with relaxed():
                copies = {stream: copy.wait() for stream, copy in buffers.items()}
                return self._rows(samples, copies=copies, left=left, chunks=chunks())

        return read

    def _rows(
        self,
        samples: Sequence[_Sample],
        *,
        copies: dict[Stream, list[Tensor]],
        left: npt.NDArray[np.void],
        chunks: Sequence[Tensor],
    ) -> Part:
        """The rows, the latest first."""
        rows, self._counts = RowBuffer(histograms=self._histograms), False
        memories = np.array([chunk.data_ptr() for chunk in chunks], np.uintp)
        are_whole = left["kind"] != ELSEWHERE
        at = len(left) - 1
        while (at := rows.add_left(left, at, memories)) >= 0:
            one = samples[left["at"][at]]
            are_whole[at] = one.dtype is not None
            self._counts |= _add(rows, one, copies[one.stream][one.buffer])
            at -= 1
        part = rows.finish()
        fingerprints = np.where(are_whole[::-1], part.fingerprints, of_sample(part.fingerprints))
        return part._replace(fingerprints=fingerprints)


def _add(rows: RowBuffer, one: _Sample, buffer: Tensor) -> bool:
    """Add the row of a tensor of which a sample is in `buffer`; returns whether one that is sampled is not finite."""
    sample = buffer[one.start : one.start + one.length]
    if one.dtype is not None:
        sample = sample.to(one.dtype)  # so that the fingerprint is that of the tensor's own bits
    if one.length == one.count:
        rows.add(sample, first=0, stride=1, length=one.length, divisor=one.divisor, repeats=one.repeats)
        return False
    found = _non_finite(sample, buffer[one.start - one.totals : one.start].tolist())
    rows.add_sample(sample, count=one.count, non_finite=found, divisor=one.divisor, repeats=one.repeats)
    return any(found)


def _in_order(streams: Sequence[Stream], tensors: Sequence[Tensor]) -> Callable[[], list[Tensor]]:
    """Begin to copy `tensors`, each of its stream. Returns a function that waits for the copies and gives them."""
    copies = {
        stream: ToHost(stream, [one for one, of in zip(tensors, streams, strict=True) if of == stream])
        for stream in dict.fromkeys(streams)
    }

    def wait() -> list[Tensor]:
        found = {stream: iter(copy.wait()) for stream, copy in copies.items()}
        return [next(found[stream]) for stream in streams]

    return wait


def _bounded(tensor: Tensor) -> Tensor:
    """Finite doubles that are too large for a float become the largest float, as in `rows.c`."""
    if tensor.dtype != torch.float64:
        return tensor
    largest = torch.finfo(torch.float32).max
    return torch.where(torch.isfinite(tensor), tensor.clamp(-largest, largest), tensor)


def _non_finite(sample: Tensor, totals: list[float]) -> tuple[int, int, int]:
    """How many are NaN, infinite and minus infinite, as far as is known from the sample and from `totals`."""
    if len(totals) == 3:
        return int(totals[0]), int(totals[1]), int(totals[2])
    [largest] = totals or [0.0]
    if math.isfinite(largest):
        return 0, 0, 0
    nan, infinite = int(sample.isnan().sum()), sample[sample.isinf()]
    negative = int((infinite < 0).sum())
    positive = len(infinite) - negative
    if math.isnan(largest):
        return max(nan, 1), positive, negative
    return nan, positive if len(infinite) else 1, negative
