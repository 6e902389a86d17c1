"""An Nvidia GPU reads tensors in its memory as rows.c reads those in the host's."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.reduce.test_batch import NORMS, TENSORS
from torchgraph_explorer.reduce import gpu_rows
from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.reduce.device_batch import DeviceBatch
from torchgraph_explorer.reduce.row_buffer import Part, RowBuffer
from torchgraph_explorer.reduce.sampling import Sampler
from torchgraph_explorer.schema import Extent

if not torch.cuda.is_available():
    pytest.skip("torch finds no CUDA device", allow_module_level=True)

SIZES = (1, 2, 7, 15, 31, 100, 1000, 4099, 70_001, 1_000_003, 5_000_000)
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


def measured(tensors: list[Tensor], ways: str, *, most: int | None = 1000, scale: float = 1.0, step: int = 3) -> Part:
    """The rows of `tensors` by the `ways` of a batch, in this order."""
    batch = Batch(Sampler(most), RowBuffer(), DeviceBatch(), step=step, gradient_scale=scale)
    numbers = [getattr(batch, ways)(tensor) for tensor in tensors]
    statistics, histograms, fingerprints = batch.finish()()
    order = np.array(numbers) % len(statistics)
    return Part(statistics[order], histograms.of(order), fingerprints[order])


def assert_same(there: Part, here: Part, *, rtol: float = 0) -> None:
    np.testing.assert_allclose(there.statistics, here.statistics, rtol=rtol, atol=rtol)
    if rtol == 0:
        np.testing.assert_array_equal(there.histograms.buckets, here.histograms.buckets)
        np.testing.assert_array_equal(there.histograms.counts, here.histograms.counts)
        np.testing.assert_array_equal(there.fingerprints, here.fingerprints)


def random_bits(count: int, dtype: torch.dtype, seed: int) -> Tensor:
    """Any bits: of floats, some are NaN, infinite and subnormal."""
    generator = torch.Generator().manual_seed(seed)
    size = torch.empty(0, dtype=dtype).itemsize
    return torch.randint(0, 256, (count * size,), generator=generator, dtype=torch.uint8).view(dtype)


@pytest.mark.parametrize("most", [None, 64, 16384])
@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE], ids=str)
@pytest.mark.parametrize("begin", [0, 1, 3])
def test_values_are_those_that_the_host_reads(begin: int, dtype: torch.dtype, most: int | None) -> None:
    sizes = SIZES if most is not None else SIZES[:-2]
    tensors = [random_bits(size + begin, dtype, at) for at, size in enumerate(sizes)]
    here = measured([one[begin:] for one in tensors], "values", most=most)
    there = measured([one.cuda()[begin:] for one in tensors], "values", most=most)
    assert_same(there, here)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "shape", [(1,), (5,), (3, 1), (64, 10), (7, 33), (2, 100_003), (32, 1 << 16), (5000, 4), (1, 1 << 20)], ids=str
)
@pytest.mark.parametrize("scale", [1.0, 1024.0, 3.0])
def test_norms_are_those_that_the_host_reads(scale: float, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    gradient = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    here, there = (measured([one], "norms", scale=scale) for one in (gradient, gradient.cuda()))
    assert_same(there, here, rtol=1e-5)


def test_norms_of_what_is_not_finite_are_not() -> None:
    gradient = torch.ones(6, 50)
    gradient[1, 3], gradient[2, 49], gradient[4, 0] = math.nan, math.inf, -math.inf
    assert_same(measured([gradient.cuda()], "norms"), measured([gradient], "norms"), rtol=1e-6)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(0, 1),
    "permuted": lambda x: x.permute(3, 1, 0, 2),
    "every second": lambda x: x[:, :, :, ::2],
    "a window": lambda x: x[:, 1:3],
    "expanded": lambda x: x[:1].expand(9, *x.shape[1:]),
    "a conjugate": lambda x: torch.complex(x, x).conj(),
    "empty": lambda x: x[:0],
    "a scalar": lambda x: x[0, 0, 0, 0],
}


@pytest.mark.parametrize("way", ["values", "norms", "gradients"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tensor_is_read_however_it_lies(layout: str, way: str) -> None:
    x = torch.randn(6, 4, 10, 12, generator=torch.Generator().manual_seed(2))
    here, there = (measured([LAYOUTS[layout](one)], way, most=100) for one in (x, x.cuda()))
    np.testing.assert_allclose(there.statistics, here.statistics, rtol=1e-6)


@pytest.mark.parametrize("name", TENSORS)
def test_every_kind_of_tensor_is_read(name: str) -> None:
    tensor = TENSORS[name]
    try:
        there = tensor.cuda()
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"torch has no such tensor on a GPU: {error}"[:200])
    np.testing.assert_allclose(
        measured([there], "values").statistics, measured([tensor], "values").statistics, rtol=1e-6
    )


@pytest.mark.parametrize("name", NORMS)
def test_the_norms_of_every_kind_of_gradient_are_read(name: str) -> None:
    gradient, _ = NORMS[name]
    here, there = (measured([one], "norms").statistics for one in (gradient, gradient.cuda()))
    np.testing.assert_allclose(there, here, rtol=1e-6)


def test_a_step_has_more_rows_and_more_memory_than_it_began_with() -> None:
    tensors = [torch.randn(5000 + at) for at in range(2 * gpu_rows.FIRST_ROWS + 5)]
    rows = measured([one.cuda() for one in tensors], "values", most=None)
    assert_same(rows, measured(tensors, "values", most=None))
    assert (rows.fingerprints & np.uint64(3) == np.uint64(Extent.ALL)).all()


def test_streams_do_not_share_memory() -> None:
    tensors = [torch.randn(100_000) for _ in range(8)]
    other = torch.cuda.Stream()
    batch = Batch(Sampler(1000), RowBuffer(), DeviceBatch())
    numbers = []
    for at, tensor in enumerate(tensors):
        with torch.cuda.stream(other if at % 2 else torch.cuda.current_stream()):
            numbers.append(batch.values(tensor.cuda()))
    statistics = batch.finish()().statistics[numbers]
    np.testing.assert_array_equal(statistics, measured(tensors, "values", step=0).statistics)


def test_numbers_become_rows_of_one_element() -> None:
    numbers = torch.tensor([1.0, -2.0, math.nan, 0.0])
    batch = Batch(Sampler(1000), RowBuffer(), DeviceBatch())
    rows = batch.numbers(numbers.cuda())
    there = batch.finish()().statistics[rows]
    other = Batch(Sampler(1000), RowBuffer(), DeviceBatch())
    np.testing.assert_array_equal(there, (other.numbers(numbers), other.finish()().statistics)[1])


def test_nothing_waits_for_the_gpu_until_the_rows_are_read() -> None:
    tensors = [torch.randn(50, 1000, device="cuda") for _ in range(3)]
    batch = Batch(Sampler(1000), RowBuffer(), DeviceBatch())
    batch.values(tensors[0])  # loads the kernels
    torch.cuda.set_sync_debug_mode("error")
    try:
        for tensor in tensors:
            batch.values(tensor), batch.norms(tensor)
        read = batch.finish()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(read().statistics) == 6


def test_torchs_operations_read_what_the_kernels_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_rows, "kernels", lambda _: None)
    tensors = [torch.randn(50, 1000) for _ in range(3)]
    there = measured([one.cuda() for one in tensors], "values")
    np.testing.assert_array_equal(there.statistics, measured(tensors, "values").statistics)
