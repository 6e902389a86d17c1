"""A model that is explored, and a training that goes on, are as if nothing had happened."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.exploring.models import Attention, Convolutions
from tests.models import Digits
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.exploring.session import Session


class Stateful(nn.Module):
    """Counts its calls, keeps a tensor, changes a buffer in place, and draws random numbers everywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.drop = nn.Dropout()
        self.register_buffer("seen", torch.zeros(3))
        self.calls, self.fails = 0, False
        self.memory: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.get_buffer("seen").add_(1)
        x = self.drop(self.norm(self.conv(x))) * random.random() * float(np.random.rand())
        self.memory = x
        self.eval()
        if self.fails:
            raise ValueError("no")
        return self.frozen(x.mean((2, 3)))


def state(model: nn.Module) -> list[object]:
    """Everything that must stay."""
    tensors = {name: one.clone().tolist() for name, one in model.state_dict().items()}
    versions = [one._version for one in (*model.parameters(), *model.buffers())]
    same = [id(one) for one in (*model.parameters(), *model.buffers())]
    flags = [(one.requires_grad, id(one.grad), str(one.grad)) for one in model.parameters()]
    modes = [module.training for module in model.modules()]
    hooks = [(list(m._forward_hooks.items()), list(m._forward_pre_hooks.items())) for m in model.modules()]
    own = [{k: id(v) for k, v in vars(m).items()} for m in model.modules()]
    rng = torch.get_rng_state().tolist(), random.getstate(), str(np.random.get_state())
    return [tensors, versions, same, flags, modes, hooks, own, rng, torch.is_grad_enabled()]


def edit_and_ask(session: Session) -> None:
    session.edit("input", (0, 0, 0, 0), 2.0)
    session.gradient("conv")


REQUESTS: dict[str, Callable[[Session], object]] = {
    "run": Session.run,
    "gradient": lambda session: session.gradient("conv"),
    "row": lambda session: session.contributions("conv", "norm", to=(0, 0, 1, 1)),
    "column": lambda session: session.contributions("conv", "norm", from_=(0, 0, 1, 1)),
    "matrix": lambda session: session.matrix("input", "conv"),
    "edit": edit_and_ask,
    "difference": lambda session: session.value("norm", when="difference"),
}


@pytest.mark.parametrize("fails", [False, True], ids=["in order", "after an exception"])
@pytest.mark.parametrize("ask", REQUESTS.values(), ids=REQUESTS.keys())
def test_the_model_is_as_before_after_each_request(ask: Callable[[Session], object], fails: bool) -> None:
    model = Stateful()
    model.conv.register_forward_hook(lambda *_: None)
    model(torch.randn(2, 1, 5, 5)).sum().backward()
    model.train()
    model.memory, model.fails = None, fails
    x = torch.randn(2, 1, 5, 5)
    before = state(model)
    session = Session(model, x, loss=torch.sum)
    if fails:
        with pytest.raises(ValueError, match="no"):
            ask(session)
    else:
        ask(session)
    assert state(model) == before


def test_a_target_that_fails_leaves_the_model_as_before() -> None:
    model, x = Stateful(), torch.randn(2, 1, 5, 5)
    before = state(model)
    with pytest.raises(ZeroDivisionError):
        Session(model, x, loss=lambda _: 1 / 0).gradient("conv")  # type: ignore[arg-type,return-value]
    assert state(model) == before


def train(folder: Path, *, explores: bool) -> tuple[list[object], Any]:
    """Losses and parameters of a training that is explored between two steps, or is not; and its record."""
    torch.manual_seed(1)
    model = Digits()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    losses = []
    with watch(model, backend="record", log_freq=1, logdir=str(folder), verbose=False) as watcher:
        for step in range(5):
            x, y = torch.randn(4, 1, 8, 8), torch.randint(0, 10, (4,))
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            if explores and step in (1, 3):
                session = watcher.explore(
                    x, loss=lambda output, y=y: nn.functional.cross_entropy(output, y), serve=False
                )
                session.matrix("input", "stem")
                session.edit("input", 0, 0.0)
                session.contributions("stem", "output", from_=(0, 0, 1, 1))
            loss.backward()
            optimizer.step()
            if explores and step == 2:
                watcher.explore(x, loss=torch.sum, serve=False).gradient("stem")
            losses.append(loss.item())
    assert watcher.run_dir is not None
    weights = [one.tolist() for one in model.state_dict().values()]
    return [losses, weights, torch.rand(3).tolist()], open_run(watcher.run_dir).model()


@pytest.mark.slow
def test_training_goes_on_bit_for_bit_after_it_was_explored(tmp_path: Path) -> None:
    """Within a step that is logged, and between two; and its record is the same."""
    explored, record = train(tmp_path / "explored", explores=True)
    plain, expected = train(tmp_path / "plain", explores=False)
    assert explored == plain
    assert record.steps.tolist() == expected.steps.tolist()
    assert [str(one) for one in record.series] == [str(one) for one in expected.series]
    np.testing.assert_array_equal(record.statistics(range(5)), expected.statistics(range(5)))


def test_a_session_follows_a_training_that_has_gone_on() -> None:
    """What autograd kept of the earlier parameters is gone, so the pass is made again."""
    model, x = Convolutions(), torch.randn(2, 2, 8, 8)
    session = Session(model, x, loss=torch.sum)
    before = session.gradient("first")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    after = session.gradient("first")
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, Session(model, x, loss=torch.sum).gradient("first"))


CHANGES: dict[str, Callable[[Any], object]] = {
    "a parameter": lambda model: nn.init.zeros_(model[0].weight),
    "the memory of a parameter": lambda model: setattr(model[0].weight, "data", torch.zeros(2, 3)),
    "a parameter, for another": lambda model: setattr(model[0], "weight", nn.Parameter(torch.zeros(2, 3))),
    "a module, for another": lambda model: setattr(model, "0", nn.Linear(3, 2)),
    "a buffer": lambda model: model[1].running_mean.add_(5),
    "the mode": lambda model: model.train(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_session_sees_what_was_changed(change: Callable[[nn.Sequential], object]) -> None:
    model, x = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval(), torch.rand(4, 3)
    session = Session(model, x, loss=torch.sum)
    before = session.value("output"), session.state()
    change(model)
    after = session.value("output"), session.state()
    torch.testing.assert_close(after[0], Session(model, x, loss=torch.sum).value("output"))
    assert (torch.equal(before[0], after[0]), before[1] == after[1]) == (False, False)
    assert session.state() == after[1]


def test_a_session_that_is_run_sees_what_was_written_past_torch() -> None:
    model, x = nn.Linear(3, 2), torch.rand(4, 3)
    session = Session(model, x, loss=torch.sum)
    before = session.value("output")
    model.weight.data.add_(1)
    torch.testing.assert_close(session.run(), before + x.sum(1, keepdim=True))
    torch.testing.assert_close(session.value("output"), model(x))


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference_mode"])
def test_a_session_works_where_gradients_are_disabled(context: Callable[[], Any]) -> None:
    model, x = Attention(), torch.randn(2, 5, 8)
    expected = Session(model, x, loss=torch.sum).gradient("input")
    with context():
        torch.testing.assert_close(Session(model, x, loss=torch.sum).gradient("input"), expected)


def test_frozen_models_are_explored_too() -> None:
    model = Attention().requires_grad_(False)
    tokens = nn.Sequential(nn.Embedding(7, 8), model).requires_grad_(False)
    session = Session(tokens, torch.tensor([[1, 2, 3]]), loss=torch.sum)
    assert session.contributions("0", "1", to=(0, 2, 1)).abs().sum() > 0
