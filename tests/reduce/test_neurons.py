"""One pass over a tensor that is kept gives what torch does: chosen samples, and statistics of each neuron."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from torchgraph_explorer.reduce import neurons
from torchgraph_explorer.reduce.row_buffer import TYPES
from torchgraph_explorer.tensors.copies import Copied, copied

SHAPES = [
    pytest.param((7, 5), 0, id="a batch of vectors"),
    pytest.param((3, 4, 6), 1, id="the batch in the middle"),
    pytest.param((5, 9), -1, id="the batch last"),
    pytest.param((16,), 0, id="a number a sample"),
    pytest.param((4, 2, 300), 0, id="more neurons than are summed at once"),
    pytest.param((27, 300), 0, id="more samples than are summed at once"),
    pytest.param((1, 8), 0, id="one sample"),
    pytest.param((0, 8), 0, id="no sample"),
    pytest.param((8, 0), 0, id="no neuron"),
    pytest.param((), 0, id="a scalar"),
    pytest.param((2, 3), 5, id="no such dimension"),
]


def by_torch(tensor: Tensor, **options: Any) -> Copied:
    """The same, without rows.c."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neurons, "is_readable_at_once", lambda _: False)
        found = copied(tensor, **options)
    assert isinstance(found.values, Tensor)
    return found


def some(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    if dtype.is_floating_point:
        return (torch.randn(shape, dtype=torch.float64) * 3 + 1).to(dtype)
    least, most = (0, 2) if dtype == torch.bool else (0, 255) if dtype == torch.uint8 else (-120, 120)
    return torch.randint(least, most, shape).to(dtype)


def as_bytes(one: Copied) -> bytes:
    values = one.values
    return (
        values.tobytes() if isinstance(values, np.ndarray) else values.reshape(-1).view(torch.uint8).numpy().tobytes()
    )


def assert_equal(one: Copied, other: Copied) -> None:
    assert (one.dtype, one.shape, one.batch_dim, one.samples) == (
        other.dtype,
        other.shape,
        other.batch_dim,
        other.samples,
    )
    assert as_bytes(one) == (as_bytes(other) if other.values.size else b"")
    if one.statistics is None or not isinstance(other.statistics, Tensor):
        assert one.statistics is other.statistics is None
        return
    expected = other.statistics.numpy()
    assert one.statistics.dtype == expected.dtype
    width = 1e-12 if expected.dtype == np.float64 else 2e-6
    np.testing.assert_allclose(np.asarray(one.statistics).reshape(expected.shape), expected, rtol=width, atol=width)


@pytest.mark.parametrize("samples", [3, None], ids="samples={}".format)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_one_pass_gives_what_torch_gives(
    shape: tuple[int, ...], dim: int, dtype: torch.dtype, samples: int | None
) -> None:
    tensor = some(shape, dtype)
    one = copied(tensor, samples=samples, batch_dim=dim)
    assert isinstance(one.values, np.ndarray)
    assert_equal(one, by_torch(tensor, samples=samples, batch_dim=dim))


def test_chosen_samples_are_copied() -> None:
    tensor = torch.arange(20.0).reshape(2, 5, 2)
    one = copied(tensor, samples=2, batch_dim=1, chosen={5: (0, 4)})
    assert_equal(one, by_torch(tensor, samples=2, batch_dim=1, chosen={5: (0, 4)}))
    assert as_bytes(one) == tensor[:, [0, 4]].numpy().tobytes()


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "column",
    [
        [1.0, NAN, 2.0],
        [NAN, 1.0, 2.0],
        [1.0, 2.0, INF],
        [INF, 1.0, 2.0],
        [INF, INF, INF],
        [INF, -INF, 1.0],
        [-0.0, 0.0, 0.0],
        [1e-42, 2e-42, 3e-42],
        [5.0, 5.0, 5.0],
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_what_is_not_finite_and_what_is_tiny_is_as_in_torch(column: list[float], dtype: torch.dtype) -> None:
    tensor = torch.tensor(column, dtype=torch.float64).to(dtype).unsqueeze(1)
    assert_equal(copied(tensor, samples=None, batch_dim=0), by_torch(tensor, samples=None, batch_dim=0))


def test_numbers_whose_squares_no_float_holds_have_a_spread() -> None:
    one = copied(torch.tensor([[3e38], [-3e38]]), samples=None, batch_dim=0)
    np.testing.assert_allclose(np.asarray(one.statistics), [0, 3e38, 3e38], rtol=1e-6)


COLUMNS = {
    "an outlier first": lambda noise: np.concatenate([[1e6], noise[1:]]),
    "an outlier among the others": lambda noise: np.concatenate([noise[:20], [1e6], noise[21:]]),
    "a mean far above the spread": lambda noise: 1000 + noise * 0.01,
    "a drift over the batch": lambda noise: np.arange(len(noise)) + noise * 1e-3,
    "tiny": lambda noise: noise * 1e-25,
    "subnormal": lambda noise: noise * 1e-40,
    "huge": lambda noise: noise * 1e36,
    "tiny beside large": lambda noise: np.concatenate([noise[:30] * 1e-25, noise[30:]]),
    "close to each other": lambda noise: 1e-11 * (1 + noise * 1e-3),
    "dead but for one sample": lambda noise: np.concatenate([np.zeros(len(noise) - 1), noise[-1:]]),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_statistics_of_every_scale_are_those_in_double_precision(
    column: Callable[[Any], Any], dtype: torch.dtype
) -> None:
    tensor = torch.tensor(column(np.random.default_rng(0).normal(size=43))).to(dtype).reshape(43, 1)
    values = tensor.double().numpy()
    expected = [values.mean(), values.std(), np.abs(values).max()]
    statistics = copied(tensor, samples=1, batch_dim=0).statistics
    np.testing.assert_allclose(np.asarray(statistics), expected, rtol=2e-6, atol=max(1e-7 * expected[1], 1e-45))


def test_neurons_that_never_change_have_no_spread_at_all() -> None:
    tensor = torch.tensor([0.1, 0.0, -3.3e-7, 1e-30, 7e33]).expand(43, 5).contiguous()
    one = copied(tensor, samples=1, batch_dim=0)
    mean, deviation, largest = np.asarray(one.statistics).reshape(3, 5)
    assert mean.tolist() == tensor[0].tolist()
    assert deviation.tolist() == [0] * 5
    assert largest.tolist() == tensor[0].abs().tolist()


def test_other_tensors_are_left_to_torch() -> None:
    base = torch.randn(4, 6)
    others = [base.t(), base[:, ::2], torch.complex(base, base), torch._neg_view(base)]
    assert not any(map(neurons.is_readable_at_once, others))
    for tensor in others:
        assert isinstance(copied(tensor, samples=2, batch_dim=0).values, Tensor)
