"""What is recorded of an optimizer's steps, of a loss scale, and of evaluations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.listening import Listening, assert_row
from torchgraph_explorer import open_run, watch


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
