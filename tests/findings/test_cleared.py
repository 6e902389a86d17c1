"""Gradients of earlier backward passes of a step that are cleared are told, unless something else is done with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import open_run, watch

pytestmark = pytest.mark.slow

STEPS = 24


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 3), nn.Linear(16, 2)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        values = self.body(inputs).relu()
        return self.first(values), self.second(values)


Step = Callable[[Heads, torch.optim.Optimizer], None]


def loss_of(model: Heads, inputs: Tensor | None = None, *, head: int = 0) -> Tensor:
    found: Tensor = model(torch.randn(8, 8) if inputs is None else inputs)[head]
    return (found - 1).square().mean()


def micro_batches(model: Heads, optimizer: torch.optim.Optimizer, *, clear: bool = True) -> None:
    optimizer.zero_grad()
    for _ in range(3):
        if clear:
            optimizer.zero_grad()
        loss_of(model).backward()
    optimizer.step()


def accumulated(model: Heads, optimizer: torch.optim.Optimizer) -> None:
    micro_batches(model, optimizer, clear=False)


def two_losses(model: Heads, optimizer: torch.optim.Optimizer) -> None:
    for head in (0, 1):
        optimizer.zero_grad()
        loss_of(model, head=head).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()


def attack(model: Heads, optimizer: torch.optim.Optimizer) -> None:
    """The first pass is for the gradient of the inputs alone."""
    inputs = torch.randn(8, 8, requires_grad=True)
    loss_of(model, inputs).backward()
    assert inputs.grad is not None
    optimizer.zero_grad()
    loss_of(model, (inputs + 0.1 * inputs.grad.sign()).detach()).backward()
    optimizer.step()


def sharpness(model: Heads, optimizer: torch.optim.Optimizer, *, through_data: bool = False) -> None:
    """Takes the gradient at a point nearby."""
    optimizer.zero_grad()
    loss_of(model).backward()
    moves = [(one, 0.01 * one.grad) for one in model.parameters() if one.grad is not None]
    with torch.no_grad():
        for one, move in moves:
            (one.data if through_data else one).add_(move)
        optimizer.zero_grad()
    loss_of(model).backward()
    with torch.no_grad():
        for one, move in moves:
            (one.data if through_data else one).sub_(move)
    optimizer.step()


def sharpness_through_data(model: Heads, optimizer: torch.optim.Optimizer) -> None:
    sharpness(model, optimizer, through_data=True)


def gathered(model: Heads, optimizer: torch.optim.Optimizer) -> None:
    """Adds up the gradients of the losses beside the parameters."""
    sums = [torch.zeros_like(one) for one in model.parameters()]
    for head in (0, 1):
        optimizer.zero_grad()
        loss_of(model, head=head).backward()
        for total, one in zip(sums, model.parameters(), strict=True):
            if one.grad is not None:
                total.add_(one.grad)
    for total, one in zip(sums, model.parameters(), strict=True):
        one.grad = total
    optimizer.step()


def adapted(model: Heads, optimizer: torch.optim.Optimizer) -> None:
    """Asks for gradients that are not left in the parameters, beside those from before the last update."""
    names, weights = zip(*(one for one in model.named_parameters() if "second" not in one[0]), strict=True)
    moves = torch.autograd.grad(loss_of(model), weights, create_graph=True)
    fast = {name: one - 0.1 * move for name, one, move in zip(names, weights, moves, strict=True)}
    loss = (torch.func.functional_call(model, fast, (torch.randn(8, 8),))[0] - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def closures(model: Heads, optimizer: torch.optim.Optimizer) -> None:
    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    optimizer.step(closure)  # type: ignore[arg-type]


def told(folder: Path, step: Step) -> list[tuple[str, str]]:
    torch.manual_seed(0)
    model = Heads()
    kind = torch.optim.LBFGS if step is closures else torch.optim.SGD
    optimizer = kind(model.parameters(), 0.05)
    with watch(model, log_freq=1, backend="record", logdir=str(folder), run="run", verbose=False):
        for _ in range(STEPS):
            step(model, optimizer)
    found = open_run(str(folder / "run")).model().findings()
    return [(one.kind, one.severity) for one in found if one.kind == "gradients-cleared"]


@pytest.mark.parametrize("step", [micro_batches, two_losses])
def test_gradients_that_are_cleared_before_the_next_pass_are_told(step: Step, tmp_path: Path) -> None:
    assert told(tmp_path, step) == [("gradients-cleared", "warning")]


@pytest.mark.parametrize("step", [accumulated, attack, sharpness, sharpness_through_data, gathered, adapted, closures])
def test_gradients_that_are_cleared_on_purpose_are_not(step: Step, tmp_path: Path) -> None:
    assert told(tmp_path, step) == []


def test_what_an_adversary_leaves_may_be_cleared(tmp_path: Path) -> None:
    """The loss of the generator leaves gradients in the critic, which are not for it."""
    torch.manual_seed(0)
    critic, generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)), nn.Linear(4, 8)
    optimizers = [torch.optim.SGD(one.parameters(), 0.01) for one in (critic, generator)]
    with watch(critic, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(STEPS):
            optimizers[1].zero_grad()
            (-critic(generator(torch.randn(8, 4)))).mean().backward()
            optimizers[1].step()
            optimizers[0].zero_grad()
            made = generator(torch.randn(8, 4)).detach()
            (critic(made).mean() - critic(torch.randn(8, 8)).mean()).backward()
            optimizers[0].step()
    found = open_run(str(tmp_path / "run")).model().findings()
    assert [one.kind for one in found if one.severity != "info"] == []


def test_gradients_that_are_too_small_are_not_cleared(tmp_path: Path) -> None:
    """A critic passes next to nothing on to a generator, which is called for it several times before an update."""
    torch.manual_seed(0)
    critic, generator = nn.Linear(8, 1), nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
    nn.init.constant_(critic.weight, 1e-16)
    optimizer = torch.optim.RMSprop(generator.parameters(), 1e-4)
    options: dict[str, Any] = {"log_freq": 1, "backend": "record", "logdir": str(tmp_path), "verbose": False}
    with watch(generator, run="run", **options), watch(critic, run="critic", **options):
        for step in range(5 * STEPS):
            made = generator(torch.randn(16, 4))
            critic(made.detach()).mean().backward()
            if step % 5 == 4:
                optimizer.zero_grad()
                critic(made).mean().backward()
                optimizer.step()
    found = [one.kind for one in open_run(str(tmp_path / "run")).model().findings()]
    assert "gradients-cleared" not in found
    assert "update-too-small" in found
