"""Modules that are equal to each other, or have no hash: torch's own walk leaves the second out, or fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.listening import Key, Listening, assert_row
from torchgraph_explorer import attach, explore, open_run, watch
from torchgraph_explorer.capture.module_info import module_facts


class Scale(nn.Module):
    """Equal to another one with the same factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.weight = nn.Parameter(torch.full((3,), factor))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scale) and self.factor == other.factor

    def __hash__(self) -> int:
        return hash(self.factor)

    def forward(self, x: Tensor) -> Tensor:
        scaled = x * self.weight
        attach(scaled, self, "scaled")
        return scaled + 1


class Unhashable(Scale):
    """Equal, and has no hash."""

    __hash__ = None  # type: ignore[assignment]


@dataclass(unsafe_hash=True)
class Clamp(nn.Module):
    """A dataclass."""

    low: float = 0.0

    def __post_init__(self) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(min=self.low)


def with_plain_hooks(model: nn.Sequential, x: Tensor) -> dict[Key, Any]:
    """What plain hooks on the parts of `model` and its parameters see in one step."""
    values: dict[Key, Any] = {}
    handles = []
    for name, part in model._modules.items():
        assert part is not None

        def see(_part: nn.Module, inputs: Any, output: Tensor, name: str = name) -> None:
            values[name, 0, "input", "input[0]", "value"] = inputs[0].detach().numpy().copy()
            values[name, 0, "output", "output", "value"] = output.detach().numpy().copy()

        handles.append(part.register_forward_hook(see))
    model(x).square().sum().backward()
    for handle in handles:
        handle.remove()
    for name, part in model._modules.items():
        assert part is not None
        for path, parameter in part._parameters.items():
            assert parameter is not None
            assert parameter.grad is not None
            values[name, None, "param", path, "value"] = parameter.detach().numpy().copy()
            values[name, None, "param", path, "grad"] = parameter.grad.numpy().copy()
            parameter.grad = None
    return values


MODELS: dict[str, Callable[[], nn.Sequential]] = {
    "by value": lambda: nn.Sequential(Scale(2.0), nn.Linear(3, 3), Scale(2.0)),
    "dataclass": lambda: nn.Sequential(Clamp(), nn.Linear(3, 3), Clamp()),
    "no hash": lambda: nn.Sequential(Unhashable(2.0), nn.Linear(3, 3), Unhashable(2.0)),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_each_of_two_equal_modules_is_recorded_as_plain_hooks_see_it(make: Callable[[], nn.Sequential]) -> None:
    model, x = make(), torch.randn(4, 3)
    expected = with_plain_hooks(model, x)
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, sample_n=None):
        model(x).square().sum().backward()
    assert set(expected) <= heard.recorded()
    for key, values in expected.items():
        assert_row(heard.row(key), values, name=key)
    assert not heard.finished.notes


@pytest.mark.parametrize("kind", [Scale, Unhashable])
def test_a_tensor_attached_in_one_of_two_equal_modules_is_of_that_one(kind: type[Scale]) -> None:
    model, x = nn.Sequential(kind(2.0), kind(2.0)), torch.randn(4, 3)
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, sample_n=None):
        model(x).sum().backward()
    for name, values in {"0": x.numpy() * 2, "1": (x.numpy() * 2 + 1) * 2}.items():
        assert_row(heard.row((name, 0, "attached", "scaled", "value")), values)


def test_a_tensor_attached_in_one_of_two_equal_modules_is_explored_as_of_that_one() -> None:
    model, x = nn.Sequential(Scale(2.0), Scale(2.0)), torch.randn(4, 3)
    session = explore(model, x, loss=torch.sum, serve=False)
    first, second = (name for name in session.tensors if "scaled" in name)
    assert np.allclose(session.value(first), x.numpy() * 2)
    assert np.allclose(session.value(second), (x.numpy() * 2 + 1) * 2)
    assert first.startswith("0")
    assert second.startswith("1")


def test_the_parameters_of_both_of_two_equal_modules_are_counted() -> None:
    """Torch leaves out those of the second."""
    model = nn.Sequential(Scale(2.0), nn.Linear(3, 3), Scale(2.0))
    shared = nn.Sequential(model[0], model[0])
    assert sum(one.numel() for one in model.parameters()) == 3 + 12
    assert [one.total_params for one in module_facts(model)] == [3 + 12 + 3, 3, 12, 3]
    assert module_facts(shared)[0].total_params == 3


def test_the_second_of_two_equal_modules_is_told_not_to_be_in_the_optimizer(tmp_path: Path) -> None:
    """It is not in `model.parameters()`, so it does not learn."""
    model = nn.Sequential(nn.Linear(3, 3), Scale(2.0), nn.Linear(3, 3), Scale(2.0))
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    with watch(model, backend="record", log_freq=1, logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randn(8, 3)).square().mean().backward()
            optimizer.step()
    found = open_run(str(tmp_path / "run")).model().findings()
    assert [(one.kind, one.module) for one in found] == [("not-in-optimizer", "3")]


def test_a_model_with_a_named_modules_of_its_own_is_recorded() -> None:
    class Own(nn.Sequential):
        def named_modules(self) -> Any:  # type: ignore[override]
            return [("", self)]

    model, listening = Own(nn.Linear(3, 2)), Listening()
    with watch(model, backend=listening, log_freq=1, verbose=False):
        model(torch.randn(4, 3)).sum().backward()
    assert ("0", 0, "output", "output", "value") in listening.recorded()
