"""Calls `rows.c`, which the build has compiled. It does everything that is done to every element.

`tensors.c`, where it was built, finds the elements of ordinary tensors; else, and for all others, Python does.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.errors import TorchgraphError
from torchgraph_explorer.histogram import Histograms, concatenate
from torchgraph_explorer.native import library_for_python, require_current
from torchgraph_explorer.schema import EXTENT, STATISTICS, Extent

TYPES = {
    torch.float32: 0,
    torch.float64: 1,
    torch.float16: 2,
    torch.bfloat16: 3,
    torch.int8: 4,
    torch.int16: 5,
    torch.int32: 6,
    torch.int64: 7,
    torch.uint8: 8,
    torch.bool: 8,
}
"""The element types that `rows.c` reads."""

Positions: TypeAlias = "Callable[[int, int], tuple[int, int, int]]"
"""Gives the sample of so many elements at a step: index of the first, stride, and length."""

Elements: TypeAlias = "tuple[int, int, int]"
"""Elements in host memory: the address of the first one, their type as in `TYPES`, and how many they are."""

BUILT = Path(__file__).parent / "built"
OF_TENSORS, OF_ROWS = "tensors.so", "rows.so"
OF_ROWS_FOR = {"AVX512": "rows-avx512.so", "AVX2": "rows-avx2.so"}
"""The builds of `rows.c` for newer processors, by what torch says of them; each gives the same bits."""

PARTS_OF_TENSORS = (
    *(Tensor, torch.nn.Parameter),
    *(Tensor.is_neg, Tensor.storage_offset, Tensor.untyped_storage, torch.UntypedStorage.nbytes),
)
"""What `described_tensor.h` needs to find the elements of a tensor, in its order."""

FIRST_ROWS, FIRST_ENTRIES = 256, 1 << 15
"""Rows, and entries of histograms, that there is memory for at first."""

_COUNTS = slice(STATISTICS.index("min"))
_L2_NORM = STATISTICS.index("l2_norm")
"""The columns that grow with the number of elements."""

VALUES, SQUARES, ELSEWHERE = range(3)
"""What a GPU has left of a tensor: its elements, sums of squares of its samples, or nothing that `rows.c` reads."""

_TABLES = 4 * (2048 + 272)
"""Counters that rows.c needs for each thread: `TABLES * SPAN`."""

MOST_THREADS = 8
"""Threads that look at one tensor: as many as there are blocks of rows.c in a sample of the default size."""


class Part(NamedTuple):
    """Some rows.

    Attributes:
        statistics: `[rows, len(STATISTICS)]`.
        histograms: One per row.
        fingerprints: `[rows]` uint64, as in `Frame.fingerprints`.
    """

    statistics: npt.NDArray[np.float32]
    histograms: Histograms
    fingerprints: npt.NDArray[np.uint64]


class _Buffers(ctypes.Structure):
    """`Rows` in rows.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("statistics", "ends", "buckets", "counts", "tables", "fingerprints")),
        *((name, ctypes.c_int64) for name in ("most_rows", "most_entries", "rows", "entries", "without_histograms")),
        *((name, ctypes.c_int64) for name in ("threads", "alone", "more_alone")),
    )


class _Place(ctypes.Structure):
    """`Place` in tensors.c: where rows are put now, how many are in memory that is full, and whether this one is."""

    _fields_ = (("rows", ctypes.c_void_p), ("before", ctypes.c_int64), ("is_full", ctypes.c_int64))


class _Memory:
    """Memory for a number of rows.

    Attributes:
        address: Of the `Rows` of rows.c.
        add_row: Of rows.c, into this memory; returns 0 if it is full.
        add_sample: The same.
        add_norms: The same.
    """

    def __init__(self, rows: int, entries: int, *, histograms: bool = True) -> None:
        self.size = rows, entries
        self._statistics = np.empty((rows, len(STATISTICS)), np.float32)
        self._ends = np.empty(rows, np.uint32)
        self._buckets, self._counts = np.empty(entries, np.int16), np.empty(entries, np.uint32)
        self._threads = _threads()
        self._tables = np.zeros(self._threads * _TABLES, np.uint32)
        self._fingerprints = np.empty(rows, np.uint64)
        parts = (self._statistics, self._ends, self._buckets, self._counts, self._tables, self._fingerprints)
        self._buffers = _Buffers(
            *(part.ctypes.data for part in parts), rows, entries, 0, 0, not histograms, self._threads, 0, 0
        )
        add_row, add_sample, add_norms = functions()
        self.address = address = ctypes.addressof(self._buffers)
        self.add_row, self.add_sample = partial(add_row, address), partial(add_sample, address)
        self.add_norms = partial(add_norms, address)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        number: int = self._buffers.rows
        return number

    def begin(self) -> None:
        """Use as many threads as torch does now, if there is memory for them."""
        self._buffers.threads = min(self._threads, _threads())

    def repeat(self, times: int) -> None:
        """Make the last row stand for `times` times as many elements."""
        row = self._buffers.rows - 1
        start = self._ends[row - 1] if row else 0
        self._statistics[row, _COUNTS] *= times
        self._statistics[row, _L2_NORM] *= math.sqrt(times)
        counts = self._counts[start : self._buffers.entries]
        np.minimum(counts.astype(np.uint64) * np.uint64(times), np.iinfo(np.uint32).max, out=counts, casting="unsafe")
        extent = self._fingerprints[row] & np.uint64(EXTENT)
        times_hashes = (int(self._fingerprints[row] - extent) * times) % (1 << 64)
        self._fingerprints[row] = np.uint64(times_hashes) | extent

    def put_fingerprint(self, fingerprint: int) -> None:
        """Give the last row another fingerprint than that of the elements that it was made from."""
        self._fingerprints[self._buffers.rows - 1] = fingerprint

    def clear(self) -> None:
        """Forget all rows."""
        self._buffers.rows = self._buffers.entries = 0

    def part(self) -> Part:
        """A copy of the rows, in as much memory as they need."""
        rows, entries = self._buffers.rows, self._buffers.entries
        offsets = np.concatenate([np.zeros(1, np.uint32), self._ends[:rows]])
        histograms = Histograms(offsets, self._buckets[:entries].copy(), self._counts[:entries].copy())
        return Part(self._statistics[:rows].copy(), histograms, self._fingerprints[:rows].copy())


class RowBuffer:
    """A growing buffer of rows. A tensor to add must be contiguous, in host memory, and of a type in `TYPES`."""

    def __init__(self, *, histograms: bool = True) -> None:
        """Begin without rows. Without `histograms`, each row has statistics and an empty histogram.

        Raises:
            TorchgraphError: The compiled part is missing.
        """
        self._full: list[Part] = []
        self._histograms = histograms
        self._memory = _Memory(FIRST_ROWS, FIRST_ENTRIES, histograms=histograms)
        self._place = _Place(self._memory.address, 0, 0)
        self._of_tensors = tensor_functions()

    def begin(self, most: int, positions: Positions, *, step: int, scale: float, gpu: int = 0) -> StepFunctions | None:
        """What adds ordinary tensors, each once; None without `tensors.c`.

        `most` elements are sampled (-1: all), those that `positions` gives, as `Sampler.positions` does. Gradients are
        divided by `scale`. What a GPU reads is put into memory as `GpuRows` has it, at the address `gpu`;
        0: tensors on a GPU are not taken.
        """
        self._memory.begin()
        if self._of_tensors is None:
            return None
        return StepFunctions(*self._of_tensors(ctypes.addressof(self._place), most, positions, step, scale, gpu))

    @property
    def is_full(self) -> bool:
        """Whether one of those functions found no room for its row."""
        return bool(self._place.is_full)

    def make_room(self) -> None:
        """Make room, so that it will find some."""
        self._place.is_full = 0
        self._grow()

    def add(
        self,
        tensor: Tensor,
        *,
        first: int,
        stride: int,
        length: int,
        divisor: float,
        repeats: int = 1,
        fingerprint: int | None = None,
    ) -> int:
        """Add the row of `length` elements of `tensor`, from number `first`, `stride` apart; returns its number.

        NaN and infinite elements are counted in all of `tensor`. Elements are divided by `divisor`, and each stands for
        `repeats` that are equal. `fingerprint` is that of the tensor that `tensor` was computed from; without it, it is
        taken of the elements.
        """
        kind, count = TYPES[tensor.dtype], tensor.numel()
        while not self._memory.add_row(tensor.data_ptr(), kind, count, first, stride, length, divisor):
            self._grow()
        if fingerprint is not None:
            self._memory.put_fingerprint(fingerprint)
        return self._added(repeats)

    def add_elements(self, elements: Elements, positions: tuple[int, int, int], divisor: float) -> int:
        """Like `add`, for elements whose place is known: those at `positions`, as `Sampler.positions` gives them."""
        while not self._memory.add_row(*elements, *positions, divisor):
            self._grow()
        return self._last

    def add_sample(
        self,
        sample: Tensor,
        *,
        count: int,
        non_finite: tuple[int, int, int],
        divisor: float,
        repeats: int = 1,
    ) -> int:
        """Add the row of a tensor of `count` elements from a sample of it.

        `non_finite` is how many elements of the tensor are NaN, infinite and minus infinite. The fingerprint is that
        of the sample.
        """
        arguments = sample.data_ptr(), TYPES[sample.dtype], sample.numel(), divisor, count, *non_finite
        while not self._memory.add_sample(*arguments):
            self._grow()
        return self._added(repeats)

    def add_left(self, left: npt.NDArray[np.void], at: int, memories: npt.NDArray[np.uintp]) -> int:
        """Add the rows of what a GPU has left, `gpu_rows.LEFT`, from number `at` down to the first.

        `memories` are the addresses of the memory in which it is.

        Returns:
            The number of the first one that is of another kind, for which no row was added; -1 without one.
        """
        add = _add_left()
        while (at := add(self._memory.address, left.ctypes.data, at, memories.ctypes.data)) >= 0:
            if left["kind"][at] == ELSEWHERE:
                break
            self._grow()
        return at

    def add_norms(self, elements: Elements, *, samples: int, divisor: float, repeats: int = 1) -> int:
        """Add the row of the l2 norms of `elements` cut into `samples` equal pieces; returns its number."""
        address, kind, count = elements
        size = count // samples if samples else 0
        while not self._memory.add_norms(address, kind, samples, size, divisor):
            self._grow()
        return self._added(repeats)

    def add_numbers(self, numbers: Tensor) -> list[int]:
        """Add a row for each of `numbers`, `[n]` of float32; returns their numbers."""
        start, size = numbers.data_ptr(), numbers.element_size()
        for at in range(len(numbers)):
            while not self._memory.add_row(start + at * size, TYPES[torch.float32], 1, 0, 1, 1, 1.0):
                self._grow()
        return list(range(self._last + 1 - len(numbers), self._last + 1))

    def _added(self, repeats: int) -> int:
        if repeats != 1:
            self._memory.repeat(repeats)
        return self._last

    @property
    def _last(self) -> int:
        """The number of the row that was added last."""
        number: int = self._place.before + self._memory.rows - 1
        return number

    def finish(self) -> Part:
        """All rows, in order. Begin again without rows, in the same memory."""
        parts = [*self._full, self._memory.part()]
        self.clear()
        return joined(parts)

    def clear(self) -> None:
        """Begin again without rows, in the same memory."""
        self._full.clear()
        self._memory.clear()
        self._place.before = 0

    def _grow(self) -> None:
        """The memory is full: keep its rows, and go on in memory of twice the size."""
        self._full.append(self._memory.part())
        self._place.before += self._memory.rows
        rows, entries = self._memory.size
        self._memory = _Memory(2 * rows, 2 * entries, histograms=self._histograms)
        self._place.rows = self._memory.address


def joined(parts: Sequence[Part]) -> Part:
    """The rows of all `parts`, in order."""
    parts = [part for part in parts if len(part.statistics)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    statistics, fingerprints = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("statistics", "fingerprints")
    )
    return Part(statistics, concatenate([part.histograms for part in parts]), fingerprints)


@cache
def library() -> ctypes.CDLL:
    """The functions of `rows.c`, for this processor.

    Raises:
        TorchgraphError: They are missing, made for another kind of machine, or older than `rows.c`.
    """
    path = BUILT / OF_ROWS_FOR.get(torch.backends.cpu.get_cpu_capability(), OF_ROWS)
    if not path.is_file():
        path = BUILT / OF_ROWS
    try:
        require_current(BUILT)
        return ctypes.CDLL(str(path))
    except OSError as fault:
        raise TorchgraphError(
            f"The compiled part of torchgraph-explorer cannot be loaded: {fault}. Install it again on this machine: "
            "in its clone, pip install . or make install; from its wheel, pip install --force-reinstall --no-deps WHEEL"
        ) from fault


def fingerprint(tensor: Tensor) -> int:
    """The fingerprint of all elements of a contiguous tensor in host memory, of a type of 1, 2, 4, 8 or 16 bytes."""
    found: int = _fingerprint()(tensor.data_ptr(), tensor.itemsize, tensor.numel())
    return found


def of_sample(fingerprints: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The same fingerprints, marked as those of samples."""
    return (fingerprints & ~np.uint64(EXTENT)) | np.uint64(Extent.SAMPLE)


@cache
def _add_left() -> Callable[..., int]:
    found = library().torchgraph_add_left
    found.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    found.restype = ctypes.c_int64
    return found


@cache
def _fingerprint() -> Callable[..., int]:
    found = library().torchgraph_fingerprint
    found.argtypes, found.restype = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64), ctypes.c_uint64
    return found


class StepFunctions(NamedTuple):
    """The functions of `tensors.c` for one step.

    Each returns the row that it added, or None for a tensor that is not ordinary, and where there is no room.

    Attributes:
        values: As `Batch.values`.
        norms: As `Batch.norms`.
        values_again: As `Batch.values_again`, with what elements are divided by.
        gradients: As `Batch.gradients`.
        numbers: As `Batch.numbers`; returns the first row.
        units: As `Batch.units`.
        samples: As `QuickMeasure.samples`, and `updates` likewise.
        forget: As `Batch.forget`.
    """

    values: Callable[[Tensor], int | None]
    norms: Callable[[Tensor], int | None]
    values_again: Callable[[Tensor, float], int | None]
    gradients: Callable[[Tensor], int | None]
    numbers: Callable[[Tensor], int | None]
    units: Callable[[Tensor, bool, Tensor, bool], tuple[int, int] | None]
    samples: Callable[[list[Tensor], Tensor], tuple[list[int], list[int]] | None]
    updates: Callable[[list[Tensor], list[int], Tensor, Tensor], list[int]]
    forget: Callable[[], None]


@cache
def tensor_functions() -> Callable[..., list[Any]] | None:
    """What makes them; None where `tensors.c` was not built, or where this Python has not the interface it needs."""
    of_python = library_for_python(BUILT / OF_TENSORS)
    if of_python is None:
        return None
    make = of_python.torchgraph_tensor_functions
    make.argtypes, make.restype = (ctypes.py_object, *[ctypes.c_void_p] * 3), ctypes.py_object
    names = "dtype", "layout", "is_nested", "is_cpu", "itemsize", "_version"
    asked = Tensor.is_contiguous, Tensor.numel, Tensor.data_ptr, Tensor.dim, Tensor.size
    parts = *PARTS_OF_TENSORS, TYPES, torch.strided, 0, *names, *asked
    add_row, _, add_norms = (ctypes.cast(each, ctypes.c_void_p) for each in functions())  # type: ignore[arg-type]
    begin: Callable[..., list[Any]] = make(parts, exchange(), add_row, add_norms)
    return begin


def exchange() -> int | None:
    """The address of torch's functions for DLPack; None before torch 2.10."""
    capsule = getattr(Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    address: int = pointer(capsule, b"dlpack_exchange_api")
    return address


@cache
def functions() -> tuple[Callable[..., int], Callable[..., int], Callable[..., int]]:
    """The functions of `rows.c` that add a row, a row from a sample, and a row of norms.

    Raises:
        TorchgraphError: They are missing.
    """
    loaded = library()
    use_threads(loaded)
    pointer, number, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
    loaded.torchgraph_add_row.argtypes = (pointer, pointer, *[number] * 5, real)
    loaded.torchgraph_add_sample.argtypes = (pointer, pointer, number, number, real, *[number] * 4)
    loaded.torchgraph_add_norms.argtypes = (pointer, pointer, *[number] * 3, real)
    return loaded.torchgraph_add_row, loaded.torchgraph_add_sample, loaded.torchgraph_add_norms


def use_threads(loaded: ctypes.CDLL) -> None:
    """Let `rows.c` use threads of the OpenMP that torch computes with, where that has GNU's interface.

    A forked process uses none: GNU's OpenMP does not work there.
    """
    set_parallel = loaded.torchgraph_set_parallel
    set_parallel.argtypes, set_parallel.restype = (ctypes.c_void_p,), None
    if (parallel := _parallel()) is not None:
        set_parallel(parallel)
        os.register_at_fork(after_in_child=lambda: set_parallel(None))


def _parallel() -> int | None:
    """The address of torch's `GOMP_parallel`; None if it has none."""
    try:
        torchs = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        return ctypes.cast(torchs.GOMP_parallel, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


def _threads() -> int:
    """How many threads may look at one tensor now."""
    return max(1, min(torch.get_num_threads(), MOST_THREADS))
