"""rows.c makes the rows of what a GPU has left of tensors: those that it makes of the tensors themselves."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from torchgraph_explorer.reduce.gpu_rows import LEFT
from torchgraph_explorer.reduce.row_buffer import ELSEWHERE, SQUARES, VALUES, Part, RowBuffer, fingerprint

MEMORY = 4096
"""Bytes of each piece of memory."""


def left_of(tensor: Tensor, *, first: int, stride: int, length: int) -> npt.NDArray[np.uint8]:
    """What a kernel leaves of the values of `tensor`: counts, the sum of the hashes, and the sampled elements."""
    wide = tensor.double()
    counts = wide.isnan().sum(), (wide == math.inf).sum(), (wide == -math.inf).sum()
    totals = np.array([*map(int, counts), fingerprint(tensor) >> 2], np.uint64)
    sample = tensor[first : first + (length - 1) * stride + 1 : stride].float().contiguous().numpy()
    return np.concatenate([totals.view(np.uint8), sample.view(np.uint8)])


def memories_with(pieces: list[npt.NDArray[np.uint8]]) -> tuple[list[npt.NDArray[np.uint8]], list[int]]:
    memories = [np.zeros(MEMORY, np.uint8) for _ in pieces]
    for at, piece in enumerate(pieces):
        memories[at][16 * at : 16 * at + len(piece)] = piece
    return memories, [16 * at for at in range(len(pieces))]


def rows_of(left: npt.NDArray[np.void], memories: list[npt.NDArray[np.uint8]]) -> Part:
    rows = RowBuffer()
    addresses = np.array([memory.ctypes.data for memory in memories], np.uintp)
    assert rows.add_left(left, len(left) - 1, addresses) == -1
    return rows.finish()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.uint8], ids=str)
def test_values_become_the_rows_of_the_tensors(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    tensors = [(torch.randn(900 + at, generator=generator) * 50).abs().to(dtype) for at in range(3)]
    if dtype.is_floating_point:
        tensors[1][5], tensors[1][7], tensors[2][0] = math.nan, math.inf, -math.inf
    sample = {"first": 2, "stride": 7, "length": 100}
    memories, places = memories_with([left_of(one, **sample) for one in tensors])
    left = np.array([(VALUES, at, places[at], len(one), 100, 0, 2.0) for at, one in enumerate(tensors)], LEFT)
    expected = RowBuffer()
    for one in reversed(tensors):
        expected.add(one, **sample, divisor=2.0)
    found, wanted = rows_of(left, memories), expected.finish()
    np.testing.assert_array_equal(found.statistics, wanted.statistics)
    np.testing.assert_array_equal(found.histograms.counts, wanted.histograms.counts)
    np.testing.assert_array_equal(found.fingerprints, wanted.fingerprints)


@pytest.mark.parametrize("parts", [1, 3])
def test_sums_of_squares_become_the_row_of_the_norms(parts: int) -> None:
    samples = torch.randn(20, 3 * 40, generator=torch.Generator().manual_seed(4)).double()
    samples[3] *= 1e100  # larger than a float
    sums = samples.square().reshape(20, parts, -1).sum(2).numpy()
    memories, _ = memories_with([sums.reshape(-1).view(np.uint8)])
    found = rows_of(np.array([(SQUARES, 0, 0, 20, 20, parts, 4.0)], LEFT), memories)
    norms = (samples.norm(dim=1) / 4).clamp(max=torch.finfo(torch.float32).max).float()
    expected = RowBuffer()
    expected.add(norms, first=0, stride=1, length=20, divisor=1.0)
    np.testing.assert_allclose(found.statistics, expected.finish().statistics, rtol=1e-6)


def test_what_is_made_elsewhere_is_left_to_the_caller() -> None:
    memories, places = memories_with([left_of(torch.arange(10.0), first=0, stride=1, length=10)] * 3)
    rows, addresses = RowBuffer(), np.array([memory.ctypes.data for memory in memories], np.uintp)
    left = np.array([(kind, 0, places[0], 10, 10, 0, 1.0) for kind in (VALUES, ELSEWHERE, VALUES)], LEFT)
    assert rows.add_left(left, 2, addresses) == 1
    assert rows.add_left(left, 0, addresses) == -1
    assert len(rows.finish().statistics) == 2


def test_there_are_more_rows_than_there_was_room_for() -> None:
    piece = left_of(torch.arange(300.0), first=0, stride=1, length=300)
    memories, _ = memories_with([piece])
    left = np.array([(VALUES, 0, 0, 300, 300, 0, 1.0)] * 5000, LEFT)
    assert len(rows_of(left, memories).statistics) == 5000
