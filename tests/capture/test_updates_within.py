"""Models that update parameters within their own forward pass."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import TorchgraphWarning, watch


class Within(nn.Module):
    """A probe of the hidden layer is trained in each pass, before the head is called."""

    def __init__(self, updates: int = 1) -> None:
        super().__init__()
        self.body, self.probe, self.head = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 2)
        self.optimizer, self.updates = torch.optim.SGD(self.probe.parameters(), 0.1), updates
        self.gradient: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.body(x).relu()
        for _ in range(self.updates):
            self.optimizer.zero_grad()
            (self.probe(hidden.detach()) - 1).square().mean().backward()
            self.gradient = self.probe.weight.grad.clone()  # type: ignore[union-attr]
            self.optimizer.step()
        out: Tensor = self.head(hidden)
        return out + self.probe(hidden).mean()


def train(model: Within, steps: int = 3) -> Listening:
    heard = Listening()
    optimizer = torch.optim.SGD([*model.body.parameters(), *model.head.parameters()], 0.1)
    with watch(model, log_freq=1, backend=heard, verbose=False):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(5, 3)).square().mean().backward()
            optimizer.step()
    return heard


@pytest.mark.parametrize("updates", [pytest.param(1, id="one"), pytest.param(3, id="three")])
def test_a_pass_is_recorded_to_its_end_although_it_makes_updates(updates: int) -> None:
    series = {(module, role, kind) for module, _, role, _, kind in train(Within(updates)).recorded(0)}
    assert {("head", "output", "value"), ("head", "output", "grad_norm"), ("", "output", "value")} <= series
    assert {(name, "param", "grad") for name in ("body", "probe", "head")} <= series


def test_a_gradient_is_that_of_the_update_within_the_pass() -> None:
    """What the outer loss adds to it later is no part of that update."""
    model = Within()
    heard = train(model, steps=1)
    assert model.gradient is not None
    statistics, _ = heard.row(("probe", None, "param", "weight", "grad"), 0)
    assert statistics["mean"] == pytest.approx(model.gradient.mean().item())


def test_a_pass_with_many_updates_says_what_is_not_recorded() -> None:
    with pytest.warns(TorchgraphWarning, match="a forward pass makes more than 16 updates itself"):
        train(Within(18), steps=1)


def test_a_module_that_torch_calls_is_not_said_to_be_called_by_its_forward() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        train(Within())
    assert [str(each.message) for each in told] == []
