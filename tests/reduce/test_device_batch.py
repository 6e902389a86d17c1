"""Tensors on an accelerator are measured as those in host memory are. No test has one: host tensors take its path."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from tests.reduce.test_batch import NORMS, TENSORS
from torchgraph_explorer import watch
from torchgraph_explorer.reduce import device_batch
from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.reduce.device_batch import DeviceBatch
from torchgraph_explorer.reduce.row_buffer import Part, RowBuffer
from torchgraph_explorer.reduce.sampling import Sampler
from torchgraph_explorer.schema import STATISTICS

NAN, INF = math.nan, math.inf
NON_FINITE = ("nan", "positive_infinity", "negative_infinity")


@pytest.fixture(params=["here", "elsewhere"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "elsewhere":
        send_elsewhere(monkeypatch)
    return str(request.param)


def send_elsewhere(patch: pytest.MonkeyPatch) -> None:
    """Have all tensors measured as if they were not in host memory."""
    patch.setattr(Batch, "_is_in_host_memory", staticmethod(lambda _: False))


def measured(tensors: list[Tensor], gradients: list[Tensor], *, most: int | None, scale: float = 1.0) -> Part:
    """The rows of `tensors` and of the norms of `gradients`, in this order."""
    batch = Batch(Sampler(most), RowBuffer(), DeviceBatch(), gradient_scale=scale)
    numbers = [batch.values(tensor) for tensor in tensors] + [batch.norms(gradient) for gradient in gradients]
    statistics, histograms, fingerprints = batch.finish()()
    order = np.array(numbers) % len(statistics)
    return Part(statistics[order], histograms.of(order), fingerprints[order])


def statistics_of(tensor: Tensor, *, most: int) -> dict[str, float]:
    statistics, *_ = measured([tensor], [], most=most)
    return dict(zip(STATISTICS, statistics[0].tolist(), strict=True))


@pytest.mark.parametrize("scale", [1.0, 1024.0])
@pytest.mark.parametrize("most", [None, 64])
def test_a_row_is_the_same_wherever_the_tensor_lies(
    most: int | None, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors, gradients = list(TENSORS.values()), [gradient for gradient, _ in NORMS.values()]
    here = measured(tensors, gradients, most=most, scale=scale)
    send_elsewhere(monkeypatch)
    there = measured(tensors, gradients, most=most, scale=scale)
    # A norm is a sum, and torch takes it in another order.
    np.testing.assert_allclose(there[0], here[0], rtol=1e-6)
    for one, other in zip(astuple(there[1]), astuple(here[1]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    ("value", "column"), [(NAN, "nan"), (INF, "positive_infinity"), (-INF, "negative_infinity")], ids=str
)
def test_a_single_non_finite_value_is_never_missed_by_a_sample(
    value: float, column: str, dtype: torch.dtype, place: str
) -> None:
    for position in (0, 4999, 99_999):
        tensor = torch.ones(100_000, dtype=dtype)
        tensor[position] = value
        statistics = statistics_of(tensor, most=64)
        found = {name: count for name in NON_FINITE if (count := statistics[name])}
        infinite = {"positive_infinity": 1}
        # Of an infinite value that is not in the sample, only the magnitude comes from the device.
        assert found in ({column: 1}, infinite if place == "elsewhere" and math.isinf(value) else {column: 1})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_after_a_step_with_non_finite_values_all_are_counted_until_a_step_has_none(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_elsewhere(monkeypatch)
    broken = torch.ones(100_000, dtype=dtype)
    broken[1::2], broken[:600:2], broken[600:800:2] = NAN, INF, -INF
    kept = DeviceBatch()

    def counted(tensor: Tensor) -> list[float]:
        batch = Batch(Sampler(8), RowBuffer(), kept)
        batch.values(torch.ones(5))  # what is not sampled tells nothing
        batch.values(tensor)
        statistics, *_ = batch.finish()()
        return [float(statistics[0, STATISTICS.index(name)]) for name in NON_FINITE]

    first = counted(broken)
    assert 1 <= sum(first) <= 9
    assert counted(broken) == counted(broken) == [50_000, 300, 100]
    assert counted(torch.ones(100_000, dtype=dtype)) == [0, 0, 0]
    assert counted(broken)[0] == first[0]


def test_large_finite_doubles_are_not_taken_for_infinite(place: str) -> None:
    statistics = statistics_of(torch.full((1000,), 1e300, dtype=torch.float64), most=8)
    assert statistics["positive_infinity"] == 0, place
    assert statistics["max"] == np.finfo(np.float32).max


def test_a_step_may_take_more_than_one_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_batch, "ROOM", 100)
    send_elsewhere(monkeypatch)
    tensors = [torch.full((count,), float(count)) for count in (40, 70, 250, 1, 99, 100)]
    statistics, *_ = measured(tensors, [], most=None)
    assert statistics[:, STATISTICS.index("mean")].tolist() == [40, 70, 250, 1, 99, 100]


def test_rows_from_both_places_of_one_step_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batch, "_is_in_host_memory", staticmethod(lambda tensor: tensor.numel() % 2 == 0))
    statistics, *_ = measured([torch.full((count,), float(count)) for count in range(1, 20)], [], most=None)
    assert statistics[:, STATISTICS.index("mean")].tolist() == list(range(1, 20))


def record_of_a_training() -> Listening:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(64, 3), nn.LayerNorm(3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, sample_n=None, optimizer=optimizer, verbose=False):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(5, 1, 6, 6)).square().sum().backward()
            optimizer.step()
    return heard


@pytest.mark.slow
def test_a_whole_training_is_recorded_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    here = record_of_a_training()
    send_elsewhere(monkeypatch)
    there = record_of_a_training()
    assert len(there.frames) == len(here.frames) == 3
    assert not there.finished.notes
    for at in range(3):
        assert there.recorded(at) == here.recorded(at)
        for key in here.recorded(at):
            (told, _), (expected, _) = there.row(key, at), here.row(key, at)
            # The spread of norms that are nearly equal shows the last digits of their sums.
            np.testing.assert_allclose(list(told.values()), list(expected.values()), rtol=1e-4, err_msg=str(key))
