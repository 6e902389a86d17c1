"""What is said of calls that torch calls no hook for."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import TorchgraphWarning, watch


def decorated(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """As transformers does with those of its models."""

    @functools.wraps(forward)
    def wrapper(self: nn.Module, x: Tensor) -> Tensor:
        return forward(self, x)

    return wrapper


class Decorated(nn.Linear):
    @decorated
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


class Calling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last = Decorated(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.layer.forward(x))
        return out


class OwnCall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.forward(x)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)
        return out


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.gate(x)
        return out


class Unrolled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.cell = nn.Linear(3, 3), Cell()

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for _ in range(2):
            x = self.cell.forward(x)
        return x


def warned(model: nn.Module) -> str:
    with (
        pytest.warns(TorchgraphWarning) as told,
        watch(model, log_freq=1, backend=Listening(), verbose=False),
    ):
        model(torch.ones(2, 3)).sum().backward()
    [message] = {str(each.message) for each in told}
    return message


def test_a_decorator_of_a_forward_is_not_said_to_call_it() -> None:
    message = warned(Calling())
    assert "layer.forward(), called in " in message
    assert "wrapper" not in message
    assert message.endswith("Call a module as layer(x), not as layer.forward(x).")


def test_nobody_is_told_to_call_a_class_with_its_own_call_in_another_way() -> None:
    message = warned(nn.Sequential(OwnCall(), nn.Linear(3, 3)))
    assert "0.forward(), called in OwnCall.__call__" in message or "0.forward(), called in __call__" in message
    assert "as layer(x)" not in message
    assert message.endswith("Calls of classes with a __call__ of their own (as in GPyTorch) cannot be seen.")


def test_a_forward_within_one_that_the_loop_calls_is_told() -> None:
    model = Unrolled()
    with (
        pytest.warns(TorchgraphWarning, match=r"do not see cell\.forward\(\), called in (Unrolled\.)?forward, so"),
        watch(model, log_freq=1, backend=Listening(), verbose=False),
    ):
        model.forward(torch.ones(2, 3)).sum().backward()


def test_nothing_is_said_of_a_loop_that_calls_the_forward_of_the_model() -> None:
    model = nn.Sequential(Cell(), nn.Linear(3, 3))
    with warnings.catch_warnings(record=True) as told, watch(model, log_freq=1, backend=Listening(), verbose=False):
        warnings.simplefilter("always")
        model.forward(torch.ones(2, 3)).sum().backward()
    assert [*map(str, told)] == []
