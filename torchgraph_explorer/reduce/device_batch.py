"""Measures tensors that lie on an accelerator, without waiting for it.

What is taken of each tensor is put into a buffer on its device. The buffers are copied once a step, in a stream of
their own, and read in the recorder's thread: the training thread only asks for things to be done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

from torchgraph_explorer.interrupts import Restoring
from torchgraph_explorer.reduce.row_buffer import Part, RowBuffer

ROOM = 1 << 20
"""Elements that a buffer has room for, unless a tensor alone needs more: 4 MB."""


DeviceStream: TypeAlias = "tuple[torch.device, torch.cuda.Stream | None]"
"""A device, and the stream on it in which things are done."""


@dataclass(slots=True)
class _Buffers:
    """Memory at one place, and how much of the last buffer is in use.

    No two streams share it: what was last done to it in one may not be over when another would write to it.
    """

    place: DeviceStream
    buffers: list[Tensor] = field(default_factory=list)
    filled: int = 0

    def room(self, length: int) -> tuple[Tensor, int]:
        """Unused memory for `length` floats, and in which buffer it is."""
        if not self.buffers or self.filled + length > len(self.buffers[-1]):
            self.buffers.append(torch.empty(max(length, ROOM), dtype=torch.float32, device=self.place[0]))
            self.filled = 0
        self.filled += length
        return self.buffers[-1][self.filled - length : self.filled], len(self.buffers) - 1


@dataclass(frozen=True, slots=True)
class _Taken:
    """What was taken of one tensor.

    Attributes:
        place: Where it is,
        buffer: in which of its buffers,
        start: from where on,
        length: and how many.
        told: How many numbers on all elements lie before them: none, their largest magnitude, or how many are NaN,
            infinite and minus infinite.
        count: Elements of the tensor.
        divisor: What the elements are to be divided by.
        repeats: How many elements each stands for.
    """

    place: DeviceStream
    buffer: int
    start: int
    length: int
    told: int
    count: int
    divisor: float
    repeats: int


class DeviceBatch:
    """The rows of tensors that do not lie in host memory, step by step.

    A tensor that is sampled is looked at as a whole for one number, its largest magnitude: that is NaN if an element
    is, or else infinite if one is, so that none is missed. How many there are is then known of the sample alone; a kind
    that is not in the sample is told as one. Once a step was found to have some, which is when its copy has come, all
    are counted in the steps that follow, until one has none. That reads each tensor several times.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._taken: list[_Taken] = []
        self._memory: dict[DeviceStream, _Buffers] = {}
        self._counts = False

    def __len__(self) -> int:
        """How many rows the step has so far."""
        return len(self._taken)

    def clear(self) -> None:
        """Begin a step without any."""
        self._taken, self._memory = [], {}

    def add(self, elements: Tensor, *, first: int, stride: int, length: int, divisor: float, repeats: int = 1) -> int:
        """Add the row of `length` of `elements`, `[n]`, from number `first`, `stride` apart, as `RowBuffer.add` would.

        Returns:
            How many rows the step then has.
        """
        place = _place(elements.device)
        memory = self._memory.get(place)
        if memory is None:
            memory = self._memory[place] = _Buffers(place)
        if stride == 1 or not elements.is_floating_point():
            told: tuple[Tensor, ...] = ()
        elif self._counts:
            told = elements.isnan().sum(), (elements == math.inf).sum(), (elements == -math.inf).sum()
        else:
            told = (_bounded(torch.linalg.vector_norm(elements, ord=math.inf)),)
        room, buffer = memory.room(len(told) + length)
        end = first + (length - 1) * stride + 1 if length else first
        room[len(told) :].copy_(_bounded(elements[first:end:stride]))
        for i, number in enumerate(told):
            room[i].copy_(number)
        at = memory.filled - length
        self._taken.append(_Taken(place, buffer, at, length, len(told), elements.numel(), divisor, repeats))
        return len(self._taken)

    def finish(self) -> Callable[[], Part]:
        """Begin to copy what was taken; the next step begins without any.

        Returns:
            Waits for the copy and gives the rows, the latest first. To be called once, in any thread.
        """
        copies = {place: _Copy(memory) for place, memory in self._memory.items()}
        taken = self._taken
        self.clear()
        return lambda: self._rows(reversed(taken), {place: copy.wait() for place, copy in copies.items()})

    def _rows(self, taken: Iterable[_Taken], copies: dict[DeviceStream, list[Tensor]]) -> Part:
        rows, counts = RowBuffer(), False
        for one in taken:
            buffer = copies[one.place][one.buffer]
            sample = buffer[one.start : one.start + one.length]
            if one.length == one.count:
                rows.add(sample, first=0, stride=1, length=one.length, divisor=one.divisor, repeats=one.repeats)
            else:
                found = _non_finite(sample, buffer[one.start - one.told : one.start].tolist())
                counts = counts or any(found)
                rows.add_sample(sample, count=one.count, non_finite=found, divisor=one.divisor, repeats=one.repeats)
        self._counts = counts
        return rows.finish()


class _Copy:
    """Buffers on their way to host memory."""

    def __init__(self, memory: _Buffers) -> None:
        self._done: torch.cuda.Event | None = None
        device, stream = memory.place
        if stream is None:
            self._buffers = [buffer.cpu() for buffer in memory.buffers]
            return
        own = torch.cuda.Stream(device)
        own.wait_stream(stream)
        current = torch.cuda.current_stream(device), torch.cuda.current_stream()
        with Restoring(lambda: [torch.cuda.set_stream(each) for each in current]):  # the last sets the device, too
            torch.cuda.set_stream(own)
            self._buffers = [buffer.to("cpu", non_blocking=True) for buffer in memory.buffers]  # into pinned memory
            self._done = torch.cuda.Event()
            self._done.record(own)
        for buffer in memory.buffers:
            buffer.record_stream(own)  # the device's memory is not given to anyone before the copy is made

    def wait(self) -> list[Tensor]:
        if self._done is not None:
            self._done.synchronize()
        return self._buffers


def _place(device: torch.device) -> DeviceStream:
    """Where what this thread does on `device` is done. Autograd runs a backward in the stream of its forward."""
    return device, torch.cuda.current_stream(device) if device.type == "cuda" else None


def _bounded(tensor: Tensor) -> Tensor:
    """Finite doubles that are too large for a float become its largest, as where the host reads them."""
    if tensor.dtype != torch.float64:
        return tensor
    largest = torch.finfo(torch.float32).max
    return torch.where(torch.isfinite(tensor), tensor.clamp(-largest, largest), tensor)


def _non_finite(sample: Tensor, told: list[float]) -> tuple[int, int, int]:
    """How many are NaN, infinite and minus infinite, as far as it is known from the sample and from what was told."""
    if len(told) == 3:
        return int(told[0]), int(told[1]), int(told[2])
    [largest] = told or [0.0]
    if math.isfinite(largest):
        return 0, 0, 0
    nan, infinite = int(sample.isnan().sum()), sample[sample.isinf()]
    negative = int((infinite < 0).sum())
    positive = len(infinite) - negative
    if math.isnan(largest):
        return max(nan, 1), positive, negative
    return nan, positive if len(infinite) else 1, negative
