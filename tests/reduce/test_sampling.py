"""Which elements of a tensor are looked at."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

import numpy as np
import pytest
import torch

from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.reduce.device_batch import DeviceBatch
from torchgraph_explorer.reduce.row_buffer import RowBuffer
from torchgraph_explorer.reduce.sampling import Sampler, flat, stride_for


def sampled(sampler: Sampler, elements: torch.Tensor) -> torch.Tensor:
    first, stride, length = sampler.positions(len(elements))
    return elements[first::stride][:length]


@pytest.mark.parametrize("count", [1, 16, 17, 1000, 24_000, 64 * 56 * 56, 3 * 5 * 7 * 11 * 13])
@pytest.mark.parametrize("most", [1, 16, 1000, 16_384])
def test_a_sample_spans_the_tensor_and_keeps_to_its_size(count: int, most: int) -> None:
    sample = sampled(Sampler(most), torch.arange(count))
    stride = stride_for(count, most)
    assert 1 <= len(sample) <= most or len(sample) == count <= 2 * most
    assert len(sample) == max(1, count // stride)
    assert int(sample[-1]) - int(sample[0]) >= count - 2 * stride


@pytest.mark.parametrize(
    ("count", "expected"), [(18_480, 18_480), (16_800, 16_800), (17_000, 5_666), (30_030, 30_030), (46_200, 46_200)]
)
def test_a_size_with_many_divisors_is_not_sampled_far_too_thinly(count: int, expected: int) -> None:
    assert Sampler(16_384).positions(count)[2] == expected


@pytest.mark.parametrize("shape", [(32, 64, 8, 8), (128, 512), (16, 64, 256)], ids=str)
def test_a_sample_sees_every_channel(shape: tuple[int, ...]) -> None:
    channel = torch.arange(shape[-1]).expand(shape).contiguous()
    assert math.gcd(stride_for(channel.numel(), 4096), channel.numel()) == 1
    assert len(sampled(Sampler(4096), channel.view(-1)).unique()) == shape[-1]


def test_sampling_leaves_every_global_generator_alone() -> None:
    before = (random.getstate(), repr(np.random.get_state()), torch.get_rng_state())
    Batch(Sampler(8), RowBuffer(), DeviceBatch()).values(torch.randn(100, generator=torch.Generator().manual_seed(0)))
    assert random.getstate() == before[0]
    assert repr(np.random.get_state()) == before[1]
    assert torch.equal(torch.get_rng_state(), before[2])


def test_none_takes_every_element() -> None:
    assert Sampler(None).positions(100_000) == (0, 1, 100_000)


DENSE = torch.arange(24.0).reshape(2, 3, 4)

FLAT: dict[str, tuple[Callable[[], torch.Tensor], Iterable[float]]] = {
    "contiguous": (lambda: DENSE, range(24)),
    "transposed, read as it lies": (lambda: DENSE.transpose(0, 2), range(24)),
    "channels last": (lambda: torch.arange(16.0).reshape(1, 2, 2, 4).to(memory_format=torch.channels_last), range(16)),
    "slice": (lambda: DENSE[:, :, :1], [0, 4, 8, 12, 16, 20]),
    "expanded": (lambda: torch.tensor([[1.0], [2.0]]).expand(2, 3), [1, 1, 1, 2, 2, 2]),
    "scalar": (lambda: torch.tensor(5.0), [5]),
    "empty": (lambda: torch.empty(0, 3), []),
    "sparse: what it stores": (lambda: torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse(), [2, 3]),
    "sparse rows: what it stores": (lambda: torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr(), [2, 3]),
    "ragged: what it stores": (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.zeros(1)], layout=torch.jagged),
        [0, 1, 1],
    ),
    "quantized: what it stands for": (
        lambda: torch.quantize_per_tensor(torch.tensor([0.0, 1.0]), 0.5, 0, torch.qint8),
        [0, 1],
    ),
}


@pytest.mark.filterwarnings("ignore")  # torch calls sparse rows, nested and quantized tensors prototypes
@pytest.mark.parametrize(("make", "expected"), FLAT.values(), ids=FLAT)
def test_flat_gives_each_element_once(make: Callable[[], torch.Tensor], expected: Iterable[float]) -> None:
    assert sorted(flat(make()).tolist()) == sorted(float(each) for each in expected)


NAN, INF = math.nan, math.inf
