"""Clipping that comes after the update is told, and nothing else that is done with gradients there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import open_run, watch
from torchgraph_explorer.finding import Finding

pytestmark = pytest.mark.slow

STEPS = 24

Step = Callable[[nn.Module, torch.optim.Optimizer], None]


def loss_of(model: nn.Module) -> Tensor:
    found: Tensor = model(torch.randn(8, 8))
    return (found - 1).square().sum()


def clip(model: nn.Module) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)


def after_the_update(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
    clip(model)


def cleared_at_the_end(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    loss_of(model).backward()
    optimizer.step()
    clip(model)
    optimizer.zero_grad()


def cleared_late(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    loss = loss_of(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    clip(model)


def with_a_closure(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    def closure() -> float:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss.item()

    optimizer.step(closure)
    clip(model)


def before_the_update(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss_of(model).backward()
    clip(model)
    optimizer.step()


def zeroed_in_place(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad(set_to_none=False)
    loss_of(model).backward()
    optimizer.step()


def zeroed_and_dropped(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    zeroed_in_place(model, optimizer)
    optimizer.zero_grad(set_to_none=False)
    optimizer.zero_grad()


def used_by_others(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Another loss adds to the gradients after the update, as that of a generator does to those of its critic."""
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
    loss_of(model).backward()


def decaying(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Momentum by hand: the next gradients are added to a part of the last ones."""
    loss_of(model).backward()
    optimizer.step()
    for one in model.parameters():
        if one.grad is not None:
            one.grad.mul_(0.5)


def noisy(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
    for one in model.parameters():
        if one.grad is not None:
            one.grad.add_(torch.randn_like(one.grad))


def told(step: Step, tmp_path: Path, *, log_freq: int = 1, size: int = 16) -> list[Finding]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, size), nn.Tanh(), nn.Linear(size, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with watch(model, log_freq=log_freq, backend="record", logdir=tmp_path, run="run", verbose=False):
        for _ in range(STEPS * log_freq):
            step(model, optimizer)
    return [one for one in open_run(tmp_path / "run").model().findings() if one.kind == "clipping-after-step"]


@pytest.mark.parametrize("log_freq", [1, 5])
@pytest.mark.parametrize("step", [after_the_update, cleared_at_the_end, cleared_late, with_a_closure])
def test_clipping_after_the_update_is_told(step: Step, log_freq: int, tmp_path: Path) -> None:
    [one] = told(step, tmp_path, log_freq=log_freq)
    assert (one.severity, one.module) == ("warning", None)
    assert one.evidence["steps"] == STEPS - 1
    assert one.text.startswith(f"After {STEPS - 1} of {STEPS} recorded updates, something multiplies the gradients")


@pytest.mark.parametrize("log_freq", [1, 5])
@pytest.mark.parametrize(
    "step", [before_the_update, zeroed_in_place, zeroed_and_dropped, used_by_others, decaying, noisy]
)
def test_nothing_else_that_changes_gradients_is_told(step: Step, log_freq: int, tmp_path: Path) -> None:
    assert told(step, tmp_path, log_freq=log_freq) == []


def test_a_limit_that_is_never_reached_is_not_told(tmp_path: Path) -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1e9)

    assert told(step, tmp_path) == []


def test_training_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    def trained(folder: Path | None) -> list[Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        watcher = folder and watch(model, log_freq=1, backend="record", logdir=folder, verbose=False)
        for _ in range(STEPS):
            after_the_update(model, optimizer)
        if watcher:
            watcher.close()
        return [*model.parameters(), *(one.grad for one in model.parameters() if one.grad is not None)]

    watched, plain = trained(tmp_path), trained(None)
    assert len(watched) == len(plain) == 8
    assert all(map(torch.equal, watched, plain))


@pytest.mark.parametrize("is_swapped", [False, True])
def test_the_model_can_be_converted_while_a_gradient_is_held(
    is_swapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.__future__, "_swap_module_params_on_conversion", is_swapped)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, verbose=False):
        after_the_update(model, optimizer)
        model.double()
    assert model.weight.grad is not None
    assert model.weight.grad.dtype == torch.float64
