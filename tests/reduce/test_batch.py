"""From tensors to rows, held against numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import astuple
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from tests.listening import assert_row
from torchgraph_explorer import histogram
from torchgraph_explorer.errors import TorchgraphError
from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.reduce import row_buffer
from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.reduce.device_batch import DeviceBatch
from torchgraph_explorer.reduce.row_buffer import RowBuffer
from torchgraph_explorer.reduce.sampling import Sampler
from torchgraph_explorer.schema import STATISTICS

NAN, INF = math.nan, math.inf


Row: TypeAlias = "tuple[dict[str, float], Histograms]"


def reduced(*tensors: Tensor, most: int | None = None) -> list[Row]:
    """The rows of `tensors`, measured in one step."""
    batch = Batch(Sampler(most), RowBuffer(), DeviceBatch())
    numbers = [batch.values(tensor) for tensor in tensors]
    return rows_of(batch, numbers)


def rows_of(batch: Batch, numbers: list[int]) -> list[Row]:
    statistics, histograms, _ = batch.finish()()
    return [(dict(zip(STATISTICS, statistics[row].tolist(), strict=True)), histograms.row(row)) for row in numbers]


TENSORS = {
    "normal": torch.randn(1000, generator=torch.Generator().manual_seed(1)),
    "wide": torch.randn(500, generator=torch.Generator().manual_seed(1)) ** 9 * 1e-20,
    "constant": torch.full((7,), -2.5),
    "zeros": torch.zeros(5),
    "minus zero": torch.tensor([-0.0, 0.0, -0.0]),
    "tiny": torch.tensor([1e-45, -1e-45, 3e-39, -1e-38, 1.2e-38]),
    "huge": torch.tensor([3.4e38, -3.4e38]),
    "edges of buckets": torch.tensor([1.0, 1.25, 1.5, 1.75, 2.0, -1.0, -1.25]),
    "one": torch.tensor(4.0),
    "empty": torch.empty(0),
    "all NaN": torch.tensor([NAN, NAN]),
    "NaN and infinities": torch.tensor([NAN, INF, -INF, -INF, 1.0, -3.0]),
    "integers": torch.tensor([[1, -2], [3, 400]]),
    "bytes": torch.tensor([0, 255], dtype=torch.uint8),
    "booleans": torch.tensor([True, True, False]),
    "half": torch.tensor([0.5, -65504.0], dtype=torch.float16),
    "bfloat16": torch.tensor([0.5, 3e38], dtype=torch.bfloat16),
    "double": torch.tensor([0.1, -0.2], dtype=torch.float64),
    "double with NaN and infinities": torch.tensor([NAN, INF, -INF, 1e-30, 7.0], dtype=torch.float64),
    "half with NaN and infinities": torch.tensor([NAN, INF, -INF, 6e-8, -7.0], dtype=torch.float16),
    "bfloat16 with NaN and infinities": torch.tensor([NAN, INF, -INF, 1e-40, -7.0], dtype=torch.bfloat16),
    "far from zero, close together": torch.tensor([1e6, 1e6 + 1, 1e6 - 1]),
    "an outlier first": torch.tensor([3e30, 1.0, 2.0, 3.0]),
    "more than a block": torch.linspace(-3, 5, 10_001),
    "float8": torch.tensor([1.5, -0.25]).to(torch.float8_e4m3fn),
    "complex: its magnitudes": torch.tensor([3 + 4j, 0j]),
    "transposed": torch.arange(6.0).reshape(2, 3).T,
    "every fourth": torch.arange(24.0).reshape(2, 3, 4)[:, :, 0],
    "every second row": torch.arange(24.0).reshape(6, 4)[::2],
    "the real parts": torch.complex(torch.ones(5), torch.full((5,), -9.0)).real,
    "a diagonal": torch.arange(16.0).reshape(4, 4).diagonal(),
    "one value, expanded": torch.full((1,), 3.0).expand(8),
    "rows, expanded": torch.tensor([1.0, -2.0, 0.0]).expand(5, 3),
    "columns, expanded, with NaN": torch.tensor([[1.0], [NAN]]).expand(2, 4),
    "windows that overlap": torch.arange(6.0).unfold(0, 3, 1),
    "negated by a flag": torch.tensor([1 + 2j]).conj().imag,
    "zero without memory": torch._efficientzerotensor((2, 3)),
    **{str(dtype): torch.tensor([-3, 7, 0]).to(dtype) for dtype in (torch.int8, torch.int16, torch.int32, torch.uint8)},
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_row_says_what_numpy_says(name: str) -> None:
    assert_row(reduced(TENSORS[name])[0], elements(TENSORS[name]))


@pytest.mark.parametrize("rest", [0, 1, 64, 511, 512, 513])
@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_a_last_block_of_few_elements_is_counted_with_the_others(blocks: int, rest: int) -> None:
    numbers = torch.randn(blocks * 2048 + rest, generator=torch.Generator().manual_seed(blocks + rest))
    tensor = numbers * 10.0 ** torch.linspace(-40, 30, len(numbers))
    tensor[::5] = 0.0 if rest % 2 else -0.0
    first, again, _ = reduced(tensor, tensor.clone(), torch.ones(3))
    assert_row(first, elements(tensor))
    assert_row(again, elements(tensor))


def elements(tensor: Tensor) -> npt.NDArray[np.float64]:
    real = tensor.abs() if tensor.is_complex() else tensor
    return real.to(torch.float64).clone().resolve_neg().numpy()


def test_finite_numbers_too_large_for_a_float_become_its_largest() -> None:
    (statistics, _), *_ = reduced(torch.tensor([1e300, -1e300], dtype=torch.float64))
    largest = float(np.finfo(np.float32).max)
    assert (statistics["min"], statistics["max"], statistics["nan"]) == (-largest, largest, 0)


@pytest.mark.slow
def test_rows_of_one_step_do_not_mix() -> None:
    for row, tensor in zip(reduced(*TENSORS.values()), TENSORS.values(), strict=True):
        assert_row(row, elements(tensor))


def test_rows_are_in_order_however_many_there_are() -> None:
    count = 5 * row_buffer.FIRST_ROWS
    tensors = [torch.full((3,), float(i)) for i in range(count)] + [torch.randn(100_000), torch.tensor(-1.0)]
    means = [row[0]["mean"] for row in reduced(*tensors)]
    assert means[:count] == list(range(count))
    assert means[-1] == -1


def test_histograms_of_many_buckets_find_room() -> None:
    every_bucket = torch.from_numpy(histogram.lower_edge(np.arange(-1018, 1019)).astype(np.float32))
    tensors = [every_bucket * sign for sign in (1, -1)] * 20
    rows = reduced(*tensors)
    assert len(rows) * len(rows[0][1].buckets) > 2 * row_buffer.FIRST_ENTRIES
    for tensor, (_, found) in zip(tensors, rows, strict=True):
        np.testing.assert_array_equal(found.buckets, np.unique(histogram.bucket_of(tensor.numpy())))


@pytest.fixture(autouse=True)
def _load_again() -> Iterator[None]:
    yield
    load_again()


def load_again() -> None:
    for cached in (row_buffer.functions, row_buffer.library, row_buffer.tensor_functions):
        cached.cache_clear()


NOT_FINITE_BEYOND_THE_SAMPLE = (
    torch.linspace(-3, 5, 10_001).index_fill(0, torch.tensor([17, 5000, 10_000]), NAN),
    torch.cat([torch.linspace(-3, 5, 4100), torch.tensor([-INF])]),
)
CAN_RUN = {"AVX512": ("AVX512", "AVX2"), "AVX2": ("AVX2",)}


def test_every_build_of_the_library_gives_the_same_bits() -> None:
    capability = torch.backends.cpu.get_cpu_capability()
    found = []
    for build in (row_buffer.OF_ROWS, *(row_buffer.OF_ROWS_FOR[kind] for kind in CAN_RUN.get(capability, ()))):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_buffer, "OF_ROWS_FOR", {capability: build})
            load_again()
            batch = Batch(Sampler(1000), RowBuffer(), DeviceBatch())
            for tensor in (*TENSORS.values(), *NOT_FINITE_BEYOND_THE_SAMPLE):
                batch.values(tensor)
            batch.norms(torch.linspace(-1, 1, 5000).reshape(10, 500))
            found.append(batch.finish()())
    if len(found) == 1:
        pytest.skip("this processor cannot run the other builds")
    first, *others = [(part.statistics, part.fingerprints, *astuple(part.histograms)) for part in found]
    for parts in others:
        for one, other in zip(first, parts, strict=True):
            np.testing.assert_array_equal(one, other)


ANYWHERE = {
    **TENSORS,
    "parameter": torch.nn.Parameter(torch.linspace(-1, 1, 12).reshape(3, 4)),
    "transposed": torch.arange(6.0).reshape(2, 3).t(),
    "a part": torch.arange(9.0)[2:7],
    "expanded": torch.ones(1, 3).expand(4, 3),
    "negated": torch.randn(4, dtype=torch.complex64, generator=torch.Generator().manual_seed(2)).conj().imag,
    "complex": torch.tensor([3 + 4j, 1j]),
    "eight bits": torch.tensor([1.0, -2.0]).to(torch.float8_e5m2),
    "sparse": torch.tensor([0.0, 2.0, 0.0, -1.0]).to_sparse(),
    "inference": torch.inference_mode()(lambda: torch.tensor([1.0, 5.0]))(),
    "many": torch.randn(40_000, generator=torch.Generator().manual_seed(3)),
    "channels last": torch.randn(8, 5, 20, 51, generator=torch.Generator().manual_seed(4)).contiguous(
        memory_format=torch.channels_last
    ),
    "one, channels last": torch.randn(1, 3, 5, 7, generator=torch.Generator().manual_seed(5)).contiguous(
        memory_format=torch.channels_last
    ),
    "batch second": torch.randn(70, 3, 11, generator=torch.Generator().manual_seed(6)).transpose(0, 1),
    "with gaps": torch.randn(6, 8, generator=torch.Generator().manual_seed(7)).t()[:3],
    "integers in another order": torch.arange(60).reshape(3, 4, 5).permute(2, 0, 1),
}


@pytest.mark.parametrize("most", [None, 7, 1000], ids=["all", "7 sampled", "1000 sampled"])
def test_what_finds_elements_in_c_gives_the_same_rows_as_python(most: int | None) -> None:
    if row_buffer.tensor_functions() is None:
        pytest.skip("tensors.c is not built for this system")
    found = []
    for functions in (row_buffer.tensor_functions, lambda: None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_buffer, "tensor_functions", functions)
            batch = Batch(Sampler(most), RowBuffer(), DeviceBatch(), step=3, gradient_scale=2.0)
        for tensor in ANYWHERE.values():
            for act in (batch.values, batch.values_again, batch.gradients):
                act(tensor)
            if tensor.dtype in row_buffer.TYPES:
                batch.norms(tensor)
        found.append(batch.finish()())
    for one, other in zip(
        *[(part.statistics, part.fingerprints, *astuple(part.histograms)) for part in found], strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_step_has_more_rows_than_there_was_memory_for_at_first() -> None:
    batch = Batch(Sampler(None), RowBuffer(), DeviceBatch())
    numbers = [batch.values(torch.full((1, 2), float(at))) for at in range(3 * row_buffer.FIRST_ROWS)]
    norms = [batch.norms(torch.full((1, 1), float(at))) for at in range(3 * row_buffer.FIRST_ROWS)]
    rows = rows_of(batch, numbers + norms)
    assert [row["max"] for row, _ in rows] == [*map(float, range(len(numbers)))] * 2


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_buffer, "BUILT", row_buffer.BUILT / "nowhere")
    load_again()
    with pytest.raises(TorchgraphError, match=r"cannot be loaded: .*Install it again on this machine"):
        Batch(Sampler(None), RowBuffer(), DeviceBatch())


FREED = {
    "whole": (5, slice(0, 5), 0),
    "a part that does not begin it": (7, slice(2, 7), 0),
    "cut off in its middle": (7, slice(0, 5), 12),
}
"""Elements that there were, which are looked at, and the bytes that are left."""


@pytest.mark.parametrize(("count", "part", "left"), FREED.values(), ids=FREED)
def test_freed_memory_is_not_read(count: int, part: slice, left: int) -> None:
    storage = torch.ones(count)
    tensor = storage[part]
    storage.untyped_storage().resize_(left)
    with pytest.raises(ValueError, match="memory of a tensor of 5 elements was freed"):
        Batch(Sampler(None), RowBuffer(), DeviceBatch()).values(tensor)


def test_an_expanded_tensor_takes_no_more_memory_than_it_has() -> None:
    terabytes = torch.tensor([2.0, NAN]).repeat_interleave(3).expand(1 << 38, 6)
    [(statistics, histogram)] = reduced(terabytes, most=1000)
    assert (statistics["count"], statistics["nan"]) == (6 * 2**38, 3 * 2**38)
    assert (statistics["mean"], statistics["std"]) == (2, 0)
    assert statistics["l2_norm"] == pytest.approx(2 * math.sqrt(3 * 2**38))
    assert histogram.counts.tolist() == [2**32 - 1]  # the most that the record can tell


def test_subnormals_are_told_apart_where_the_training_flushes_them() -> None:
    tensors = [
        torch.cat([torch.zeros(1), torch.full((999,), 4.8e-39)]),
        torch.full((1000,), 3e-5, dtype=torch.float16),
        torch.tensor([-1.0, 1.0]),
    ]
    expected = reduced(*tensors)
    batch = Batch(Sampler(None), RowBuffer(), DeviceBatch())
    assert torch.set_flush_denormal(True)
    try:
        numbers = [batch.values(tensor) for tensor in tensors]
        flushes = float(torch.tensor(2e-38) / 4) == 0
    finally:
        torch.set_flush_denormal(False)
    assert flushes, "and still does afterwards"
    found = rows_of(batch, numbers)
    for (told, buckets), (other, expected_buckets) in zip(found, expected, strict=True):
        assert told == other
        assert astuple(buckets)[0].tolist() == astuple(expected_buckets)[0].tolist()
    assert found[1][0]["zeros"] == 0


@pytest.mark.parametrize("position", [0, 1, 4999, 99_998, 99_999])
@pytest.mark.parametrize(("value", "column"), [(NAN, "nan"), (INF, "positive_infinity"), (-INF, "negative_infinity")])
def test_a_single_non_finite_value_is_never_missed_by_a_sample(position: int, value: float, column: str) -> None:
    tensor = torch.ones(100_000)
    tensor[position] = value
    (statistics, histogram), *_ = reduced(tensor, most=64)
    assert statistics[column] == 1
    assert statistics["count"] == 100_000
    assert histogram.counts.sum() == statistics["sampled"] <= 64


def test_a_sample_estimates_the_whole() -> None:
    tensor = torch.randn(300_000, generator=torch.Generator().manual_seed(5)) * 3 + 1
    (estimate, histogram), *_ = reduced(tensor, most=16_384)
    assert estimate["mean"] == pytest.approx(float(tensor.mean()), abs=0.1)
    assert estimate["std"] == pytest.approx(float(tensor.std()), rel=0.03)
    assert estimate["l2_norm"] == pytest.approx(float(tensor.norm()), rel=0.03)
    assert 8_000 < estimate["sampled"] == histogram.counts.sum() <= 16_384


def test_the_same_tensor_is_measured_once_until_it_is_written_to() -> None:
    batch = Batch(Sampler(None), RowBuffer(), DeviceBatch())
    tensor = torch.ones(3)
    first, again = batch.values(tensor), batch.values(tensor)
    tensor.mul_(2)
    assert first == again
    assert batch.values(tensor) != first
    assert batch.values(tensor.clone()) not in (first, again)


def test_a_tensor_is_measured_as_it_was_when_it_was_seen() -> None:
    batch = Batch(Sampler(None), RowBuffer(), DeviceBatch())
    tensor = torch.ones(3)
    row = batch.values(tensor)
    tensor.zero_()
    assert rows_of(batch, [row])[0][0]["mean"] == 1


NORMS = {
    "matrix": (torch.tensor([[3.0, 4.0], [0.0, 1.0]]), [5, 1]),
    "images": (torch.ones(2, 3, 2, 2), [math.sqrt(12)] * 2),
    "vector: one number a sample": (torch.tensor([-2.0, 3.0]), [2, 3]),
    "scalar": (torch.tensor(-7.0), [7]),
    "no samples": (torch.empty(0, 4), []),
    "samples of nothing": (torch.empty(3, 0), [0, 0, 0]),
    "complex": (torch.tensor([[3 + 4j]]), [5]),
    "half does not overflow": (torch.full((1, 4), 60_000.0, dtype=torch.float16), [120_000]),
    "transposed": (torch.tensor([[3.0, 0.0], [4.0, 1.0]]).T, [5, 1]),
    "transposed and tiny": (torch.full((3, 4), 1e-23).T, [math.sqrt(3) * 1e-23] * 4),
    "transposed and huge": (torch.full((3, 4), 1e19).T, [math.sqrt(3) * 1e19] * 4),
    "one gradient for all, as of a sum": (torch.tensor(0.5).expand(3, 4), [1, 1, 1]),
    "one gradient within each sample": (torch.tensor([[1.0], [-2.0]]).expand(2, 9), [3, 6]),
    "zero without memory, one sample for all": (torch._efficientzerotensor((1, 3)).expand(2, 3), [0, 0]),
    "one sample for all": (torch.tensor([[3.0, 4.0]]).expand(5, 2), [5] * 5),
    "NaN stays with its sample": (torch.tensor([[NAN, 1.0], [0.0, 1.0]]), [NAN, 1]),
}


@pytest.mark.parametrize(("gradient", "expected"), NORMS.values(), ids=NORMS)
@pytest.mark.parametrize("scale", [1.0, 1024.0])
def test_the_norm_of_each_sample(gradient: Tensor, expected: list[float], scale: float) -> None:
    batch = Batch(Sampler(None), RowBuffer(), DeviceBatch(), gradient_scale=scale)
    row = batch.norms(gradient)
    assert_row(rows_of(batch, [row])[0], np.array(expected, dtype=np.float64) / scale)


SPREAD = [1.0, 1e-30, 1e30, 0.0, 1.0, 3.0, NAN, INF, -2.0]
"""Factors of samples: squares of some vanish or overflow in single precision."""


@pytest.mark.parametrize("size", [1, 31, 32, 33, 100, 256, 257, 3000])
@pytest.mark.parametrize("samples", [1, 7, 8, 9, 27])
def test_a_sample_has_the_norm_that_it_has_alone(samples: int, size: int) -> None:
    gradient = torch.randn(samples, size, generator=torch.Generator().manual_seed(size))
    gradient *= torch.tensor([SPREAD[at % len(SPREAD)] for at in range(samples)])[:, None]
    batch = Batch(Sampler(None), RowBuffer(), DeviceBatch())
    numbers = [batch.norms(gradient), *(batch.norms(one.clone()) for one in gradient.split(1))]
    together, *alone = rows_of(batch, numbers)
    assert_row(together, np.array([INF if one["positive_infinity"] else one["max"] for one, _ in alone]))


def test_gradients_are_unscaled_and_values_are_not() -> None:
    batch = Batch(Sampler(None), RowBuffer(), DeviceBatch(), gradient_scale=4.0)
    tensor = torch.tensor([8.0, -2.0])
    rows = rows_of(batch, [batch.values(tensor), batch.gradients(tensor)])
    assert [row[0]["max"] for row in rows] == [8.0, 2.0]


@pytest.mark.parametrize("name", ["many", "channels last", "one, channels last", "integers in another order"])
def test_elements_next_to_each_other_are_found_in_c_in_whatever_order(name: str) -> None:
    batch = Batch(Sampler(1000), RowBuffer(), DeviceBatch())
    native = batch.native
    if native is None or row_buffer.exchange() is None:
        pytest.skip("tensors.c is not built for this system, or torch is older than 2.10")
    found = [act(ANYWHERE[name]) for act in (native.values, native.gradients)]
    assert None not in found
    assert len(batch.finish()().statistics) == 1  # of one tensor that nothing has written to in between


@pytest.mark.parametrize(("name", "is_found"), [("channels last", True), ("batch second", False)])
def test_norms_of_samples_are_taken_in_c_where_each_sample_is_together(name: str, *, is_found: bool) -> None:
    batch = Batch(Sampler(1000), RowBuffer(), DeviceBatch())
    native = batch.native
    if native is None or row_buffer.exchange() is None:
        pytest.skip("tensors.c is not built for this system, or torch is older than 2.10")
    assert (native.norms(ANYWHERE[name]) is not None) == is_found
    assert len(batch.finish()().statistics) == is_found
