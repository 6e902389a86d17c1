"""How far an update moves the weights, measured from a sample of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, cast
from unittest import mock

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Key, Listening
from torchgraph_explorer import TorchgraphWarning, watch
from torchgraph_explorer.capture import sampled_updates

Matrices = dict[str, Tensor]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 300), nn.Linear(300, 2))


def matrices(model: nn.Module) -> Matrices:
    return {name: each.detach().clone() for name, each in model.named_parameters() if each.dim() > 1}


def key(name: str) -> Key:
    module, _, path = name.rpartition(".")
    return module, None, "param", path, "update_ratio"


def ratios(heard: Listening, frame: int = -1) -> dict[str, float]:
    found = {f"{key[0]}.{key[3]}": key for key in heard.recorded(frame) if key[-1] == "update_ratio"}
    return {name: heard.row(key, frame)[0]["mean"] for name, key in found.items()}


def train(model: nn.Module, optimizer: torch.optim.Optimizer, heard: Listening) -> dict[str, float]:
    """Train for one step; returns the exact ratio of each matrix."""
    before = matrices(model)
    with watch(model, log_freq=1, backend=heard):
        optimizer.zero_grad()
        model(torch.randn(6, 3, 8, 8)).square().mean().backward()
        optimizer.step()
    return {name: float((now - before[name]).norm() / before[name].norm()) for name, now in matrices(model).items()}


OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "SGD": lambda model: torch.optim.SGD(model.parameters(), lr=0.5),
    "Adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.01),
    "Adam without foreach": lambda model: torch.optim.Adam(model.parameters(), lr=0.01, foreach=False),
    "fused AdamW": lambda model: torch.optim.AdamW(model.parameters(), lr=0.01, fused=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_ratio_of_each_matrix_is_near_the_exact_one(name: str) -> None:
    model, heard = network(), Listening()
    exact = train(model, OPTIMIZERS[name](model), heard)
    assert ratios(heard).keys() == exact.keys()
    assert ratios(heard) == pytest.approx(exact, rel=0.15)


CHANGES: dict[str, Callable[[nn.Module], nn.Module]] = {
    "channels last": lambda model: model.to(memory_format=torch.channels_last),  # type: ignore[call-overload]
    "bfloat16": lambda model: model.bfloat16(),
    "float64": lambda model: model.double(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_matrices_of_any_layout_and_float_type_are_measured(name: str) -> None:
    model, heard = CHANGES[name](network()), Listening()
    exact = dict[str, float]()
    with watch(model, log_freq=1, backend=heard):
        before, x = matrices(model), torch.randn(6, 3, 8, 8, dtype=next(model.parameters()).dtype)
        model(x).square().mean().backward()
        torch.optim.Adam(model.parameters(), lr=0.01).step()
        for each, now in matrices(model).items():
            exact[each] = float((now.double() - before[each].double()).norm() / before[each].double().norm())
    assert ratios(heard) == pytest.approx(exact, rel=0.15)


def train_once(model: nn.Module, x: Tensor, heard: Listening) -> None:
    with watch(model, log_freq=1, backend=heard):
        model(x).square().mean().backward()
        torch.optim.SGD(model.parameters(), lr=0.5).step()


def test_small_matrices_are_measured_whole() -> None:
    model, heard = nn.Linear(30, 30), Listening()
    before = matrices(model)
    train_once(model, torch.randn(4, 30), heard)
    update = matrices(model)["weight"] - before["weight"]
    assert ratios(heard)[".weight"] == pytest.approx(float(update.norm() / before["weight"].norm()), rel=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (8, 8), (33, 31), (32, 32), (5, 205), (200, 300)], ids=str)
def test_c_and_python_measure_the_same(shape: tuple[int, int]) -> None:
    measured = list[float]()
    for is_in_c in (True, False):
        torch.manual_seed(0)
        model, heard = nn.Linear(shape[1], shape[0]), Listening()
        left = mock.patch.object(sampled_updates.SampledUpdates, "_in_c", return_value=[])
        with nullcontext() if is_in_c else left:
            train_once(model, torch.randn(4, shape[1]), heard)
        measured.append(ratios(heard)[".weight"])
    assert measured[0] == pytest.approx(measured[1], rel=1e-6)
    assert measured[0] > 0


def test_what_no_optimizer_moves_has_no_ratio() -> None:
    model, heard = network(), Listening()
    model[0].requires_grad_(requires_grad=False)
    train(model, torch.optim.SGD(model[3].parameters(), lr=0.5), heard)
    assert ratios(heard).keys() == {"3.weight"}


def test_a_matrix_of_zeros_has_a_finite_ratio() -> None:
    model, heard = network(), Listening()
    nn.init.zeros_(model.get_parameter("4.weight"))
    train(model, torch.optim.SGD(model.parameters(), lr=0.5), heard)
    assert ratios(heard)["4.weight"] == 0


def test_a_parameter_that_gets_other_memory_has_no_ratio() -> None:
    class Replacing(torch.optim.SGD):
        def step(self, closure: None = None) -> None:  # type: ignore[override]
            for each in self.param_groups[0]["params"]:
                each.data = each.data - 0.1

    model, heard = network(), Listening()
    train(model, Replacing(model.parameters(), lr=0.5), heard)
    assert not ratios(heard)


def test_an_optimizer_for_each_parameter_gives_the_same() -> None:
    model, heard = network(), Listening()
    before = matrices(model)
    optimizers = [torch.optim.SGD([each], lr=0.5) for each in model.parameters()]
    with watch(model, log_freq=1, backend=heard):
        model(torch.randn(6, 3, 8, 8)).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
    exact = {name: float((now - before[name]).norm() / before[name].norm()) for name, now in matrices(model).items()}
    assert ratios(heard) == pytest.approx(exact, rel=0.15)


class Point(nn.Parameter):
    """Gives no tensor where another one does, as a point on a manifold of HypLL's."""

    def detach(self) -> Any:
        return "a point"


def test_a_parameter_that_gives_no_tensor_leaves_the_ratios_of_others() -> None:
    model, heard = network(), Listening()
    last = cast("nn.Linear", model[4])
    last.weight = Point(last.weight.data)
    with watch(model, log_freq=1, backend=heard, verbose=False):
        model(torch.randn(6, 3, 8, 8)).square().mean().backward()
        torch.optim.SGD([one for one in model.parameters() if one.dim() > 1], lr=0.5, foreach=False).step()
    assert not heard.finished.notes
    assert set(ratios(heard)) == {"0.weight", "3.weight"}


def test_a_fault_is_said_once_and_all_else_is_recorded() -> None:
    model, heard = network(), Listening()
    fault = mock.patch.object(sampled_updates.SampledUpdates, "_after_update", side_effect=RuntimeError("broken"))
    with fault, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", TorchgraphWarning)
        exact = train(model, torch.optim.SGD(model.parameters(), lr=0.5), heard)
    assert all(ratio > 0 for ratio in exact.values())
    assert not ratios(heard)
    assert ("0", None, "param", "weight", "grad") in heard.recorded()
    assert sum("ratios of updates to weights are not recorded" in str(each.message) for each in told) == 1
