"""Rows of tensors in the memory of an Nvidia GPU, which reads them by kernels of our own: `gpu/kernels.c`.

`tensors.c` starts a kernel for each tensor, in the stream in which the training works. Here is the memory for what the
kernels leave behind; `rows.c` makes the rows of it, on the host.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.native import require_current
from torchgraph_explorer.reduce.cuda_driver import driver
from torchgraph_explorer.reduce.row_buffer import ELSEWHERE

CHUNK = 1 << 22
"""Bytes of memory that is asked for at once; more if a single tensor needs more."""

FIRST_ROWS = 1024
"""Rows for which there is room at first."""

LEFT = np.dtype(
    [(name, np.int64) for name in ("kind", "memory", "at", "count", "length", "parts")] + [("divisor", float)]
)
"""`Left` in on_gpu.h."""


class _Gpu(ctypes.Structure):
    """`Gpu` in on_gpu.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("launch", "values", "squares")),
        ("number", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("stream", "next", "end")),
        *((name, ctypes.c_int64) for name in ("memory", "begin")),
        ("left", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("filled", "most", "wanted", "wanted_number")),
    )


class Kernels(NamedTuple):
    """Addresses: of the driver's function that starts a kernel, and of the kernels."""

    launch: int
    values: int
    squares: int


@cache
def kernels(number: int) -> Kernels | None:
    """Those for GPU `number`, which is the current one; None where the driver does not take them."""
    file = Path(__file__).parent / "gpu" / "built" / "kernels.ptx"
    if (cuda := driver()) is None:
        return None
    try:
        require_current(file.parent)
        module, functions = ctypes.c_void_p(), (ctypes.c_void_p(), ctypes.c_void_p())
        if cuda.cuModuleLoadData(ctypes.byref(module), file.read_bytes() + b"\0"):
            return None
        for function, name in zip(functions, (b"torchgraph_values", b"torchgraph_squares"), strict=True):
            if cuda.cuModuleGetFunction(ctypes.byref(function), module, name):
                return None
        launch = ctypes.cast(cuda.cuLaunchKernel, ctypes.c_void_p)
    except (OSError, AttributeError):
        return None
    addresses = [address.value for address in (launch, *functions)]
    return Kernels(*addresses) if all(addresses) else None  # type: ignore[arg-type]  # none is None


class GpuRows:
    """What was left of the tensors of a step, in the order in which they were added.

    Attributes:
        chunks: The memory on the GPU, each piece with the stream for which it was made.
    """

    def __init__(self) -> None:
        """Nothing is left of a tensor yet."""
        self.chunks: list[tuple[torch.cuda.Stream, Tensor]] = []
        self._gpu = _Gpu(number=-1)
        self._left = np.empty(0, LEFT)
        self._grow(FIRST_ROWS)

    @property
    def address(self) -> int:
        """Address of the `Gpu` that `tensors.c` reads."""
        return ctypes.addressof(self._gpu)

    def __len__(self) -> int:
        """How many rows there are."""
        filled: int = self._gpu.filled
        return filled

    def add_elsewhere(self, number: int) -> int:
        """Add a row that is made elsewhere, where it has this number. Returns how many there then are."""
        if len(self) == len(self._left):
            self._grow(2 * len(self._left))
        self._left[len(self)] = (ELSEWHERE, 0, number, 0, 0, 0, 1.0)
        self._gpu.filled += 1
        return len(self)

    def make_room(self) -> bool:
        """Make the room that `tensors.c` found missing; returns whether there is some now, for it to be tried again."""
        gpu, wanted = self._gpu, self._gpu.wanted
        gpu.wanted = 0
        number: int = gpu.wanted_number
        if not wanted or number != torch.cuda.current_device() or gpu.number not in {-1, number}:
            return False  # a second GPU: its tensors are measured by torch's operations
        if (found := kernels(number)) is None:
            return False
        gpu.launch, gpu.values, gpu.squares = found
        gpu.number = number
        if gpu.filled == gpu.most:
            self._grow(2 * len(self._left))
        stream = torch.cuda.current_stream()
        if gpu.stream != (stream.cuda_stream or None) or not gpu.next or gpu.end - gpu.next < wanted:
            memory = torch.zeros(max(wanted, CHUNK), dtype=torch.uint8, device=stream.device)
            gpu.stream, gpu.begin, gpu.memory = stream.cuda_stream, memory.data_ptr(), len(self.chunks)
            gpu.next, gpu.end = gpu.begin, gpu.begin + len(memory)
            self.chunks.append((stream, memory))
        return True

    def take(self) -> npt.NDArray[np.void]:
        """What was left, as `LEFT`; the next step begins without rows and without memory."""
        left = self._left[: len(self)].copy()
        self.clear()
        return left

    def clear(self) -> None:
        """Begin a step without rows."""
        self.chunks = []
        self._gpu.filled = self._gpu.memory = self._gpu.wanted = 0
        self._gpu.next = self._gpu.end = None

    def _grow(self, size: int) -> None:
        left = np.empty(size, LEFT)
        left[: len(self._left)] = self._left
        self._left = left
        self._gpu.left, self._gpu.most = left.ctypes.data, size
