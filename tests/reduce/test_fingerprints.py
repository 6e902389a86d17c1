"""The fingerprints of tensors, held against the same sum in Python."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.reduce.device_batch import DeviceBatch
from torchgraph_explorer.reduce.row_buffer import RowBuffer
from torchgraph_explorer.reduce.sampling import Sampler
from torchgraph_explorer.schema import EXTENT, Extent

_WORD, _HALF = (1 << 64) - 1, (1 << 32) - 1


def hash32(bits: int) -> int:
    product = (bits ^ 0x85EBCA77) * 0x9E3779B1
    return ((product & _HALF) * (product >> 32)) ^ product


def hash64(bits: int) -> int:
    for _ in range(2):
        bits = ((bits ^ (bits >> 32)) * 0xD6E8FEB86659FD93) & _WORD
    return bits ^ (bits >> 32)


def hash128(low: int, high: int) -> int:
    return hash64((hash64(low) + high) & _WORD)


def expected(tensor: Tensor) -> int:
    """What rows.c computes, element by element."""
    plain = tensor.resolve_conj().resolve_neg().contiguous()
    raw = plain.flatten().view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    if tensor.itemsize == 16:
        halves = np.frombuffer(raw, "<u8").reshape(-1, 2).tolist()
        return sum(hash128(low, high) for low, high in halves) << 2 & _WORD | Extent.ALL
    bits = np.frombuffer(raw, f"<u{tensor.itemsize}").tolist()
    return sum(map(hash64 if tensor.itemsize == 8 else hash32, bits)) << 2 & _WORD | Extent.ALL


def fingerprints(*tensors: Tensor, most: int | None = None, step: int = 0) -> list[int]:
    batch = Batch(Sampler(most), RowBuffer(), DeviceBatch(), step=step)
    rows = [batch.values(tensor) for tensor in tensors]
    found = batch.finish()().fingerprints
    return [int(found[row]) for row in rows]


def numbers(count: int) -> Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(count))


DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.complex128),
)


@pytest.mark.parametrize("count", [0, 1, 7, 5000])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_fingerprint_is_a_sum_over_the_bits_of_all_elements(dtype: torch.dtype, count: int) -> None:
    tensor = (20 * numbers(count)).to(dtype)
    assert fingerprints(tensor) == [expected(tensor)]


@pytest.mark.parametrize("most", [1, 16, 700])
def test_it_does_not_depend_on_what_is_sampled(most: int) -> None:
    tensors = [numbers(9001), numbers(4001).to(torch.int64), numbers(3001).bfloat16()]
    assert fingerprints(*tensors, most=most) == [expected(tensor) for tensor in tensors]


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda tensor: tensor.transpose(0, 2),
    "channels last": lambda tensor: tensor[None].to(memory_format=torch.channels_last),
    "not dense": lambda tensor: torch.stack([tensor, tensor], dim=-1)[..., 0],
    "backwards": lambda tensor: tensor.flip(0),
    "negated by a flag": lambda tensor: torch.complex(tensor, -tensor).conj().imag,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_does_not_depend_on_the_layout(layout: str) -> None:
    tensor = numbers(24 * 25).reshape(4, 6, 25)
    assert fingerprints(LAYOUTS[layout](tensor)) == [expected(tensor)]


def test_it_is_that_of_all_elements_of_an_expanded_tensor() -> None:
    expanded = numbers(5)[:, None].expand(5, 3)
    assert fingerprints(expanded) == [expected(expanded.clone())]


def test_the_conjugate_has_another_one() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 1j])
    assert len(set(fingerprints(tensor, tensor.conj(), tensor * 1j))) == 3


CHANGES: dict[str, Callable[[Tensor], object]] = {
    "the last bit of one element": lambda tensor: tensor.view(torch.int32)[4321].add_(1),
    "the sign of a zero": lambda tensor: tensor[0].neg_(),
    "the payload of a NaN": lambda tensor: tensor.view(torch.int32)[1].add_(5),
    "equal and opposite last bits": lambda tensor: tensor.view(torch.int32)[7:9].add_(torch.tensor([1, -1])),
    "NaN for a number": lambda tensor: tensor[2].fill_(math.nan),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_no_statistic_shows_changes_it(change: str) -> None:
    before = numbers(5000)
    before[0], before[1] = 0.0, math.nan
    after = before.clone()
    CHANGES[change](after)
    one, other = fingerprints(before, after, most=16)
    assert one != other


def test_no_two_of_many_small_changes_cancel() -> None:
    before = numbers(4096)
    changed = [before.clone() for _ in range(400)]
    for seed, tensor in enumerate(changed):
        signs = torch.randint(0, 2, (4096,), generator=torch.Generator().manual_seed(seed), dtype=torch.int32)
        tensor.view(torch.int32).add_(signs)
    assert len(set(fingerprints(before, *changed))) == 401


@pytest.mark.parametrize("shape", [(10, 500), (3, 5, 7), (6,), ()], ids=str)
def test_that_of_norms_is_of_the_gradient_itself(shape: tuple[int, ...]) -> None:
    gradient = numbers(math.prod(shape)).reshape(shape)
    batch = Batch(Sampler(None), RowBuffer(), DeviceBatch())
    row = batch.norms(gradient)
    assert int(batch.finish()().fingerprints[row]) == expected(gradient)


class OnDevice(Batch):
    """Measures as if the tensors were on an accelerator."""

    @staticmethod
    def _is_in_host_memory(elements: Tensor) -> bool:
        return False


@pytest.mark.parametrize(
    ("tensor", "most", "extent"),
    [
        pytest.param(numbers(50), 100, Extent.ALL, id="small"),
        pytest.param(numbers(50).bfloat16(), 100, Extent.ALL, id="small, of another type"),
        pytest.param(numbers(5000), 100, Extent.SAMPLE, id="sampled"),
        pytest.param(numbers(50).double(), 100, Extent.SAMPLE, id="doubles, of which floats are copied"),
        pytest.param(torch.complex(numbers(5), numbers(5)), 100, Extent.SAMPLE, id="magnitudes of complex numbers"),
    ],
)
def test_on_an_accelerator_it_says_what_it_is_of(tensor: Tensor, most: int, extent: Extent) -> None:
    batch = OnDevice(Sampler(most), RowBuffer(), DeviceBatch())
    row = batch.values(tensor)
    found = int(batch.finish()().fingerprints[row])
    assert found & EXTENT == extent
    assert extent is Extent.SAMPLE or found == expected(tensor)


@pytest.mark.parametrize("measured", [Batch, OnDevice])
def test_two_runs_sample_the_same_elements_at_a_step_and_others_at_another(measured: type[Batch]) -> None:
    def rows(step: int) -> list[list[float]]:
        batch = measured(Sampler(16), RowBuffer(), DeviceBatch(), step=step)
        batch.values(numbers(5000))
        found: list[list[float]] = batch.finish()().statistics.tolist()
        return found

    assert rows(3) == rows(3)
    assert rows(3) != rows(4)


def test_over_many_steps_every_element_is_sampled() -> None:
    sampler = Sampler(16)
    firsts = {sampler.positions(1009, step) for step in range(0, 100_000, 50)}
    seen = {first + stride * at for first, stride, length in firsts for at in range(length)}
    assert seen == set(range(1009))
