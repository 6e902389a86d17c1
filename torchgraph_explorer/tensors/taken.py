"""The copies of a step's tensors, by kept.c or by Python, and where their bytes are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from torchgraph_explorer.reduce.neurons import DOUBLE, as_statistics, statistics_size
from torchgraph_explorer.reduce.to_host import Stream
from torchgraph_explorer.schema import KeptForm
from torchgraph_explorer.tensors.copies import Copied, dimension_of
from torchgraph_explorer.tensors.transfer import Bytes


class Taken(NamedTuple):
    """A copy that Python has made, and the stream in which it was."""

    copied: Copied
    stream: Stream | None


Placed: TypeAlias = "tuple[Bytes, int, torch.dtype, tuple[int, ...], tuple[int, ...] | None]"
"""A copy that kept.c has made: the memory it is in, where it begins, dtype and shape of the tensor, the kept samples.

Statistics come first. Without samples, the tensor was kept whole. It is a plain tuple; a `Taken` is not.
"""


class Blocks:
    """The blocks of copies, as `schema.KeptArrays` has them.

    Attributes:
        forms: Of each copy.
        samples: Of each copy.
        memories: As there.
    """

    def __init__(self, copies: Sequence[Taken | Placed], by_python: Mapping[int, list[Bytes]], batch_dim: int) -> None:
        """`by_python` has the host memory of each `Taken`, by its id; `batch_dim` is that of each `Placed`."""
        self.forms: list[KeptForm] = []
        self.samples: list[tuple[int, ...]] = []
        self.memories: list[Bytes] = []
        self._numbers: dict[int, int] = {}
        self._blocks: list[int] = []
        self._places: list[int] = []
        for one in copies:
            if isinstance(one, Taken):
                self._add_taken(one.copied, *by_python[id(one)])
            else:
                self._add_placed(one, batch_dim)

    @property
    def blocks(self) -> npt.NDArray[np.int64]:
        """The blocks of memory of each copy, `[copies, 2]`."""
        return np.array(self._blocks, np.int64).reshape(-1, 2)

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """The place of each block, `[blocks, 3]`."""
        return np.array(self._places, np.int64).reshape(-1, 3)

    def _add_placed(self, placed: Placed, batch_dim: int) -> None:
        memory, start, dtype, shape, samples = placed
        form = _form(dtype, shape, None if samples is None else len(samples), batch_dim)
        self.forms.append(form.kept)
        self.samples.append(samples or ())
        number = self._number(memory)
        self._blocks.append(self._block(number, start + form.statistics, form.values))
        self._blocks.append(-1 if form.kept.batch_dim is None else self._block(number, start, form.statistics))

    def _add_taken(self, copied: Copied, values: Bytes, statistics: Bytes | None = None) -> None:
        is_double = copied.statistics is not None and copied.statistics.itemsize == np.dtype(np.float64).itemsize
        self.forms.append(KeptForm(_name(copied.dtype), copied.shape, copied.batch_dim, is_double))
        self.samples.append(copied.samples)
        for piece in (values, statistics):
            self._blocks.append(-1 if piece is None else self._whole(np.ravel(piece).view(np.uint8)))

    def _whole(self, piece: Bytes) -> int:
        return self._block(self._number(piece), 0, piece.nbytes)

    def _number(self, memory: Bytes) -> int:
        known = self._numbers.setdefault(id(memory), len(self.memories))
        if known == len(self.memories):
            self.memories.append(memory)
        return known

    def _block(self, memory: int, start: int, size: int) -> int:
        self._places += memory, start, size
        return len(self._places) // 3 - 1


def copied_by_c(placed: Placed, batch_dim: int) -> Copied:
    """The copy that C has made, as Python has it."""
    memory, start, dtype, shape, samples = placed
    form = _form(dtype, shape, None if samples is None else len(samples), batch_dim)
    values = start + form.statistics
    statistics = None if form.kept.batch_dim is None else as_statistics(memory[start:values], dtype)
    kept = memory[values : values + form.values]
    return Copied(kept, dtype, form.kept.shape, form.kept.batch_dim, samples or (), statistics)


class _Form(NamedTuple):
    """What the copies by kept.c of tensors of the same dtype and shape have in common; bytes of their two parts."""

    kept: KeptForm
    statistics: int
    values: int


@lru_cache(maxsize=1 << 12)
def _form(dtype: torch.dtype, shape: tuple[int, ...], samples: int | None, batch_dim: int) -> _Form:  # noqa: PLR0917
    """The form of so many samples; None if tensors are kept whole."""
    name, sizes = _name(dtype), tuple(shape)
    dim = None if samples is None else dimension_of(len(shape), batch_dim)
    if dim is None or samples is None:
        return _Form(KeptForm(name, sizes, None), 0, prod(shape) * dtype.itemsize)
    neurons = prod(shape) // shape[dim]
    kept = KeptForm(name, sizes, dim, dtype in DOUBLE)
    return _Form(kept, statistics_size(dtype, neurons), neurons * samples * dtype.itemsize)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
