"""What is recorded of an optimizer's steps, of a loss scale, and of evaluations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.listening import Listening, assert_row
from torchgraph_explorer import TorchgraphWarning, open_run, watch
from torchgraph_explorer.capture.parameters import Parameters


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))


def test_clipping_and_the_update_are_recorded_as_they_were() -> None:
    model, heard = network(), Listening()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with watch(model, log_freq=1, backend=heard, sample_n=None, optimizer=optimizer):
        model(torch.randn(5, 4)).square().sum().backward()
        weight = model.get_parameter("0.weight")
        assert weight.grad is not None
        before, gradient = weight.detach().clone(), weight.grad.clone()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        clipped = weight.grad.clone()
        optimizer.step()
        update = (weight - before).detach()
    key = ("0", None, "param", "weight")
    assert_row(heard.row((*key, "grad")), gradient.numpy())
    assert_row(heard.row((*key, "optimizer_grad")), clipped.numpy())
    assert_row(heard.row((*key, "update")), update.numpy())
    assert heard.row((*key, "update_ratio"))[0]["mean"] == pytest.approx(float(update.norm() / before.norm()))


def test_a_parameter_that_is_all_zero_has_no_ratio() -> None:
    model, heard = network(), Listening()
    nn.init.zeros_(model.get_parameter("2.bias"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with watch(model, log_freq=1, backend=heard, optimizer=optimizer):
        model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
    assert ("2", None, "param", "bias", "update") in heard.recorded()
    assert ("2", None, "param", "bias", "update_ratio") not in heard.recorded()


def test_the_optimizer_is_left_as_it_was() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with watch(model, log_freq=1, backend=Listening(), optimizer=optimizer):
        model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks


def test_gradients_are_recorded_without_the_loss_scale_which_is_recorded(tmp_path: Path) -> None:
    expected, heard = Listening(), Listening()
    x = torch.randn(5, 4)
    plain, scaled = network(), network()
    with watch(plain, log_freq=1, backend=expected, sample_n=None):
        plain(x).square().sum().backward()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with watch(scaled, log_freq=1, backend=["record", heard], sample_n=None, scaler=scaler, logdir=tmp_path) as watcher:
        scaler.scale(scaled(x).square().sum()).backward()
    assert heard.frames[0].gradient_scale == 1024
    for key in expected.recorded():
        (statistics, histogram), (same, buckets) = heard.row(key), expected.row(key)
        assert statistics == same, key
        np.testing.assert_array_equal(histogram.buckets, buckets.buckets)
        np.testing.assert_array_equal(histogram.counts, buckets.counts)
    assert open_run(str(watcher.run_dir)).model().frame(0).gradient_scale == 1024


def evaluate(model: nn.Module) -> None:
    model.eval()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(5, 4))
    model.train()


def test_an_evaluation_is_a_phase_of_its_own(tmp_path: Path) -> None:
    model = network()
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, phases=("train", "eval")) as watcher:
        for _ in range(2):
            model(torch.randn(5, 4)).sum().backward()
            model(torch.randn(5, 4)).sum().backward()
            evaluate(model)
    run = open_run(str(watcher.run_dir))
    assert {name: run.model(name).steps.tolist() for name in run.models} == {
        "Sequential": [0, 1, 2, 3],
        "Sequential (eval)": [2, 4],
    }
    assert {series.kind for series in run.model("Sequential (eval)").series} == {"value"}
    assert len(run.model("Sequential (eval)").graphs[0].calls) == 4


def test_evaluations_are_left_alone_unless_asked_for(tmp_path: Path) -> None:
    model = network()
    with watch(model, log_freq=1, backend="record", logdir=tmp_path) as watcher:
        model(torch.randn(5, 4)).sum().backward()
        evaluate(model)
    assert open_run(str(watcher.run_dir)).models == ("Sequential",)


def clip_behind_torchs_back(model: nn.Module, _optimizer: torch.optim.Optimizer) -> None:
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.data.clamp_(-0.01, 0.01)


def unscale(_model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(torch.ones(()))  # which it wants to have seen
    scaler.unscale_(optimizer)


@pytest.mark.parametrize("change", [clip_behind_torchs_back, unscale])
def test_what_the_optimizer_is_given_is_measured_though_torch_did_not_count_the_change(
    change: Callable[[nn.Module, torch.optim.Optimizer], None],
) -> None:
    model, heard = network(), Listening()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with watch(model, log_freq=1, backend=heard, sample_n=None, optimizer=optimizer):
        model(torch.randn(5, 4)).square().sum().backward()
        change(model, optimizer)
        given = model.get_parameter("0.weight").grad
        assert given is not None
        expected = given.clone()
        optimizer.step()
    assert_row(heard.row(("0", None, "param", "weight", "optimizer_grad")), expected.numpy())


UPDATED = {"optimizer_grad", "update", "update_ratio"}


def kinds_at(heard: Listening, frame: int) -> set[str]:
    return {key[4] for key in heard.recorded(frame)}


@pytest.mark.parametrize(("log_freq", "steps"), [(1, [0, 1, 2]), (2, [0, 2])])
def test_an_update_of_several_micro_batches_is_recorded_with_all_of_its_gradient(
    log_freq: int, steps: list[int]
) -> None:
    model, heard = network(), Listening()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with watch(model, log_freq=log_freq, backend=heard, sample_n=None, optimizer=optimizer):
        for micro_batches in (1, 3, 9):
            optimizer.zero_grad()
            for _ in range(micro_batches):
                model(torch.randn(5, 4)).square().sum().backward()
            weight = model.get_parameter("0.weight")
            assert weight.grad is not None
            before, gradient = weight.detach().clone(), weight.grad.clone()
            optimizer.step()
            update = (weight - before).detach()
    key = ("0", None, "param", "weight")
    assert [frame.step for frame in heard.frames] == steps
    assert all(kinds_at(heard, at) >= UPDATED for at in range(len(steps)))
    assert_row(heard.row((*key, "grad")), gradient.numpy())
    assert_row(heard.row((*key, "optimizer_grad")), gradient.numpy())
    assert_row(heard.row((*key, "update")), update.numpy())


@pytest.mark.parametrize("late", [False, True], ids=["before the next forward pass", "after it"])
def test_gradients_that_were_thrown_away_are_not_in_those_of_the_update(late: bool) -> None:
    """As where a `GradScaler` leaves an update out."""
    model, heard = network(), Listening()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with watch(model, log_freq=1, backend=heard, sample_n=None, optimizer=optimizer):
        model(torch.randn(5, 4)).square().sum().backward()
        if not late:
            optimizer.zero_grad()
        loss = model(torch.randn(5, 4)).square().sum()
        if late:
            optimizer.zero_grad()
        loss.backward()
        gradient = model.get_parameter("0.weight").grad
        assert gradient is not None
        expected = gradient.clone()
        optimizer.step()
    assert [frame.step for frame in heard.frames] == [0]
    for kind in ("grad", "optimizer_grad"):
        assert_row(heard.row(("0", None, "param", "weight", kind)), expected.numpy())


def test_only_the_first_update_after_a_step_is_its_own() -> None:
    model, heard = network(), Listening()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with watch(model, log_freq=4, backend=heard, sample_n=None, optimizer=optimizer):
        model(torch.randn(5, 4)).square().sum().backward()
        weight = model.get_parameter("0.weight")
        assert weight.grad is not None
        gradient = weight.grad.clone()
        optimizer.step()
        for _ in range(2):  # and nobody sets the gradients to zero
            model(torch.randn(5, 4)).square().sum().backward()
            optimizer.step()
    assert_row(heard.row(("0", None, "param", "weight", "optimizer_grad"), 0), gradient.numpy())


def micro_batches(model: nn.Module, optimizer: torch.optim.Optimizer) -> bytes:
    torch.manual_seed(1)
    for _ in range(2):
        for _ in range(3):
            model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())


@pytest.mark.parametrize("name", ["measure_gradients_of", "before_update", "after_update"])
def test_a_fault_while_an_update_is_measured_does_not_reach_training(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, model = network(), network()
    expected = micro_batches(plain, torch.optim.SGD(plain.parameters(), lr=0.01))

    def faulty(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(Parameters, name, faulty)
    optimizer, heard = torch.optim.SGD(model.parameters(), lr=0.01), Listening()
    with (
        pytest.warns(TorchgraphWarning, match="the optimizer's updates are no longer recorded.* a fault of ours"),
        watch(model, log_freq=1, backend=heard, optimizer=optimizer),
    ):
        assert micro_batches(model, optimizer) == expected
    assert heard.frames


def test_series_that_come_later_have_ids_of_their_own() -> None:
    model, heard = network(), Listening()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with watch(model, log_freq=1, backend=heard, optimizer=optimizer):
        model(torch.randn(5, 4)).square().sum().backward()
        model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
    assert sorted(series.id for series in heard.series.values()) == [*range(len(heard.series))]
