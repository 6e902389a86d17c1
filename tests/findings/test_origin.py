"""Where NaN began, on real models: modules that are reused, in-place operations and several calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import watch
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.run import open_run

BAD_STEP = 2


class Root(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sqrt(x)


class Reused(nn.Module):
    """Calls one layer three times; the second call gets a value whose root is NaN."""

    def __init__(self, *, inplace: bool = False) -> None:
        super().__init__()
        self.layer, self.root, self.relu = nn.Linear(4, 4), Root(), nn.ReLU(inplace=inplace)

    def forward(self, x: Tensor, offset: float) -> Tensor:
        x = self.root(self.relu(self.layer(x)) + 1)
        x = self.root(self.relu(self.layer(x)) + offset)
        return self.layer(x)


class Between(nn.Module):
    """Adds infinity between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor, offset: float) -> Tensor:
        return self.two(self.one(x) + (float("inf") if offset < 0 else 0.0))


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.after = Between(), nn.Linear(4, 4)

    def forward(self, x: Tensor, offset: float) -> Tensor:
        return self.after(self.inner(x, offset))


def first_finding(model: nn.Module, folder: Path) -> Finding:
    torch.manual_seed(0)
    with watch(model, backend="record", log_freq=1, logdir=folder, verbose=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for step in range(4):
            optimizer.zero_grad()
            model(torch.randn(8, 4), -100.0 if step == BAD_STEP else 1.0).sum().backward()
            optimizer.step()
    return next(one for one in open_run(folder).model().findings() if one.kind == "nan")


@pytest.mark.parametrize(
    ("make", "module", "call", "role"),
    [
        pytest.param(Reused, "root", 1, "output", id="the second call of a module"),
        pytest.param(lambda: Reused(inplace=True), "root", 1, "output", id="after an operation in place"),
        pytest.param(Nested, "inner", 0, "output", id="between the layers of a submodule"),
    ],
)
def test_nan_is_told_where_it_began(
    make: Callable[[], nn.Module], module: str, call: int, role: str, tmp_path: Path
) -> None:
    one = first_finding(make(), tmp_path)
    assert (one.module, one.call, one.step) == (module, call, BAD_STEP)
    assert (one.path or "").startswith(role)


class Overwritten(nn.Module):
    """One element of one weight becomes NaN in the forward pass of some step."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor, offset: float) -> Tensor:
        with torch.no_grad():
            self.two.weight[0, 0] *= float("nan") if offset < 0 else 1.0
        return self.two(self.one(x))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(
            Between, "The model, a Between, made NaN or infinity from finite inputs in its own `fo", id="model"
        ),
        pytest.param(Reused, "The Root `root` made NaN or infinity from finite inputs.", id="module"),
        pytest.param(
            Overwritten, f"The parameter `weight` of `two` is not finite when step {BAD_STEP} begins. ", id="one"
        ),
    ],
)
def test_its_origin_is_said_in_a_sentence(make: Callable[[], nn.Module], text: str, tmp_path: Path) -> None:
    assert first_finding(make(), tmp_path).text.startswith(text)


def test_a_parameter_that_began_as_nan_leads_to_its_initialization(tmp_path: Path) -> None:
    model = Between()
    nn.init.constant_(model.one.bias, float("nan"))
    one = first_finding(model, tmp_path)
    assert (one.module, one.step) == ("one", 0)
    assert "The initialization or a loaded checkpoint made it so." in one.text
    assert "how the parameter is initialized" in one.advice
    assert "learning rate" not in one.advice


def test_in_an_evaluation_parameters_may_be_what_is_not_finite(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(12, 2))
    nn.init.constant_(model.get_parameter("0.weight"), float("nan"))
    model.eval()
    options: dict[str, Any] = {"phases": ("train", "eval"), "log_freq": 1, "backend": "record", "verbose": False}
    with watch(model, logdir=str(tmp_path), run="run", **options), torch.no_grad():
        for _ in range(3):
            model(torch.randint(0, 5, (8, 3)))
    run = open_run(str(tmp_path / "run"))
    [one] = [one for name in run.models for one in run.model(name).findings() if one.kind == "nan"]
    assert one.text.startswith(
        "The Embedding `0` made NaN or infinity from finite inputs, or from parameters that are not"
    )
