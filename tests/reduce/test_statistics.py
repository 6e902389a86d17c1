"""From tensors to rows, held against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.listening import assert_row
from torchgraph_explorer.buckets import Histograms
from torchgraph_explorer.records import STATISTICS
from torchgraph_explorer.reduce.batch import CHUNK, Batch, Chunk, sample_norms
from torchgraph_explorer.reduce.sampling import Sampler
from torchgraph_explorer.reduce.statistics import join, reduce_chunk

NAN, INF = math.nan, math.inf


def reduced(*tensors: Tensor, most: int | None = None) -> list[tuple[dict[str, float], Histograms]]:
    """The rows of `tensors`, measured in one step."""
    chunks: list[Chunk] = []
    batch = Batch(Sampler(most), chunks.append)
    rows = [batch.values(tensor) for tensor in tensors]
    batch.finish()
    statistics, histograms = join([reduce_chunk(chunk) for chunk in chunks])
    return [(dict(zip(STATISTICS, statistics[row].tolist(), strict=True)), histograms.row(row)) for row in rows]


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
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_row_says_what_numpy_says(name: str) -> None:
    tensor = TENSORS[name]
    assert_row(reduced(tensor)[0], tensor.to(torch.float64).numpy())


def test_rows_of_one_step_do_not_mix() -> None:
    for row, tensor in zip(reduced(*TENSORS.values()), TENSORS.values(), strict=True):
        assert_row(row, tensor.to(torch.float64).numpy())


def test_rows_beyond_a_chunk_are_in_order() -> None:
    tensors = [torch.full((CHUNK // 3,), float(i)) for i in range(7)] + [torch.ones(CHUNK + 5), torch.tensor(-1.0)]
    means = [row[0]["mean"] for row in reduced(*tensors)]
    assert means == [0, 1, 2, 3, 4, 5, 6, 1, -1]


def test_a_complex_tensor_is_described_by_its_magnitudes() -> None:
    assert_row(reduced(torch.tensor([3 + 4j, 0j]))[0], [5.0, 0.0])


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
    batch = Batch(Sampler(None), lambda _chunk: None)
    tensor = torch.ones(3)
    first, again = batch.values(tensor), batch.values(tensor)
    tensor.mul_(2)
    assert first == again
    assert batch.values(tensor) != first
    assert batch.values(tensor.clone()) not in (first, again)


def test_a_tensor_is_measured_as_it_was_when_it_was_seen() -> None:
    chunks: list[Chunk] = []
    batch = Batch(Sampler(None), chunks.append)
    tensor = torch.ones(3)
    batch.values(tensor)
    tensor.zero_()
    batch.finish()
    assert reduce_chunk(chunks[0])[0][0, STATISTICS.index("mean")] == 1


NORMS = {
    "matrix": (torch.tensor([[3.0, 4.0], [0.0, 1.0]]), [5, 1]),
    "images": (torch.ones(2, 3, 2, 2), [math.sqrt(12)] * 2),
    "vector: one number a sample": (torch.tensor([-2.0, 3.0]), [2, 3]),
    "scalar": (torch.tensor(-7.0), [7]),
    "no samples": (torch.empty(0, 4), []),
    "samples of nothing": (torch.empty(3, 0), [0, 0, 0]),
    "complex": (torch.tensor([[3 + 4j]]), [5]),
    "half does not overflow": (torch.full((1, 4), 60_000.0, dtype=torch.float16), [120_000]),
    "NaN stays with its sample": (torch.tensor([[NAN, 1.0], [0.0, 1.0]]), [NAN, 1]),
}


@pytest.mark.parametrize(("gradient", "expected"), NORMS.values(), ids=NORMS)
def test_the_norm_of_each_sample(gradient: Tensor, expected: list[float]) -> None:
    np.testing.assert_allclose(sample_norms(gradient).numpy(), expected, rtol=1e-3)
