"""What a class of one's own freezes or switches off by design is not told; the same by accident is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import open_run, watch

pytestmark = pytest.mark.slow

KINDS = {"zero-init", "frozen-by-accident", "vanishing-gradient"}


class Branches(nn.Module):
    """Splines on a fixed grid, and a second branch that a mask of zeros leaves out for now."""

    def __init__(self, *, is_mask_frozen: bool = True) -> None:
        super().__init__()
        self.grid = nn.Parameter(torch.linspace(-1, 1, 40).reshape(4, 10), requires_grad=False)
        self.coefficients = nn.Parameter(0.1 * torch.randn(10, 4))
        self.affine = nn.Parameter(torch.zeros(4, 4))
        self.mask = nn.Parameter(torch.zeros(4, 4), requires_grad=not is_mask_frozen)

    def forward(self, inputs: Tensor) -> Tensor:
        basis = torch.exp(-((inputs[:, :, None] - self.grid) ** 2)).sum(1)
        result: Tensor = basis @ self.coefficients + torch.sin(inputs @ self.affine) @ self.mask
        return result


def told(model: nn.Module, folder: Path, *, steps: int = 12) -> set[tuple[str, str]]:
    """What is told of a training whose optimizer has all parameters."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with watch(model, log_freq=1, backend="record", logdir=folder, run="run", verbose=False):
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(torch.randn(32, 4)), torch.randn(32, 4)).backward()
            optimizer.step()
    findings = open_run(folder / "run").model().findings()
    return {(one.kind, one.module or "") for one in findings if one.kind in KINDS}


def network(branches: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), branches, nn.Linear(4, 4))


def test_a_grid_and_a_mask_that_a_class_keeps_frozen_are_not_told(tmp_path: Path) -> None:
    assert told(network(Branches()), tmp_path) == set()


def test_a_linear_layer_that_is_frozen_between_others_is_told(tmp_path: Path) -> None:
    model = network(Branches())
    model.get_parameter("2.weight").requires_grad_(False)
    assert told(model, tmp_path) == {("frozen-by-accident", "2")}


def test_the_frozen_lengths_of_a_trained_weight_norm_are_not_told(tmp_path: Path) -> None:
    model = network(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)))
    model.get_parameter("1.parametrizations.weight.original0").requires_grad_(False)
    assert told(model, tmp_path) == set()


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_the_frozen_lengths_of_an_old_weight_norm_are_not_told(tmp_path: Path) -> None:
    model = network(nn.utils.weight_norm(nn.Linear(4, 4)))
    model.get_parameter("1.weight_g").requires_grad_(False)
    assert told(model, tmp_path) == set()


def test_zeros_that_nothing_switches_off_are_told(tmp_path: Path) -> None:
    assert told(network(Branches(is_mask_frozen=False)), tmp_path) == {("zero-init", "1")}


class States(nn.Module):
    """A table that acts behind two layers in it, and gets far less gradient than these, as the states of Mamba."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.Linear(4, 4), nn.Linear(4, 4)
        self.table = nn.Parameter(torch.randn(4, 4))

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = self.after(self.before(inputs) * (1 + 1e-6 * self.table.mean(0)))
        return result


def test_a_table_whose_place_among_the_layers_is_not_known_is_not_told(tmp_path: Path) -> None:
    torch.manual_seed(0)
    assert told(nn.Sequential(States(), nn.Linear(4, 4)), tmp_path) == set()


class Followed(nn.Module):
    """A layer and its teacher, a frozen copy that follows it before each pass, as in BYOL and DINO."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.student, self.teacher = nn.Linear(4, width), nn.Linear(4, width)
        self.teacher.load_state_dict(self.student.state_dict())
        self.teacher.requires_grad_(False)

    def forward(self, inputs: Tensor) -> Tensor:
        for one, other in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
            one.data = 0.9 * one.data + 0.1 * other.data
        result: Tensor = (self.student(inputs) - self.teacher(inputs)).mean(1, keepdim=True) + inputs
        return result


@pytest.mark.parametrize("width", [4, 5_000], ids=["all of it is measured", "a sample of it is measured"])
def test_a_teacher_that_an_optimizer_has_too_is_not_told(width: int, tmp_path: Path) -> None:
    assert told(network(Followed(width)), tmp_path) == set()


class Prompted(nn.Module):
    """Numbers that are added to the inputs, and are all that is trained, before a frozen network."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = nn.Parameter(torch.zeros(64, 4))
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)).requires_grad_(False)

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = self.body(inputs + self.prompt[: len(inputs)])
        return result


def test_a_frozen_network_behind_a_trained_prompt_is_not_told(tmp_path: Path) -> None:
    torch.manual_seed(0)
    assert told(nn.Sequential(Prompted()), tmp_path) == set()


class ZeroBlocks(nn.Module):
    """Residual blocks that end in zeros, before a last layer of zeros, as in diffusion models."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.SiLU(), nn.Linear(4, 4)) for _ in range(3))
        self.last = nn.Linear(4, 4)
        for layer in (*(block[2] for block in self.blocks), self.last):  # type: ignore[index]
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.first(inputs)
        for block in self.blocks:
            hidden = hidden + block(hidden)
        result: Tensor = self.last(hidden)
        return result


@pytest.mark.parametrize("steps", [2, 3, 5, 12])
def test_zeros_that_a_warm_up_from_zero_has_not_changed_yet_are_not_told(steps: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = ZeroBlocks()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 5000)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="run", verbose=False):
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(torch.randn(32, 4)), torch.randn(32, 4)).backward()
            optimizer.step()
            warm_up.step()
    found = {one.kind for one in open_run(tmp_path / "run").model().findings()}
    assert not found & {"zero-init", "update-too-small", "vanishing-gradient"}


@pytest.mark.parametrize(("steps", "expected"), [(1, set()), (12, {("vanishing-gradient", "0")})])
def test_a_gradient_that_is_lost_at_one_recorded_step_is_not_told(
    steps: int, expected: set[tuple[str, str]], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(4, 4), nn.Sigmoid())))
    assert told(model, tmp_path, steps=steps) == expected
