"""Two trainings with the same seed, one of them disturbed: where they part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import Comparison, compare, watch

pytestmark = pytest.mark.slow


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        inside: Tensor = self.relu(self.bn1(self.conv1(x)))
        outside: Tensor = self.relu(self.bn2(self.conv2(inside)) + x)
        return outside


def resnet() -> nn.Module:
    ends = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)]
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), *(Residual(8) for _ in range(2)), *ends)


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(48, 30), nn.Tanh(), nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 4))


NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], str]] = {
    "ResNet": (resnet, (8, 3, 4, 4), "3.conv2"),
    "small": (small, (8, 48), "2"),
}


class Unet(nn.Module):
    """With a skip around its middle."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 6, 3, padding=1, stride=2), nn.Conv2d(6, 6, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(6, 6, 2, 2), nn.Conv2d(9, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        inside = torch.relu(self.down(x))
        outside = self.up(torch.relu(self.middle(inside)) + inside)
        result: Tensor = self.out(torch.cat([outside, x], 1)).mean((2, 3))
        return result


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(6, 12), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(len(x), 12)
        for part in x.unbind(1):
            state = self.cell(part, state)
        result: Tensor = self.head(state)
        return result


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.layers(x).mean(1))
        return result


OTHERS = {
    "U-Net": (Unet, (8, 3, 8, 8), "middle"),
    "recurrent": (Recurrent, (8, 5, 6), "cell"),
    "transformer": (Transformer, (8, 5, 16), "layers.layers.1.linear1"),
}
DISTURBED_AT = 20
LAST = {1: 21, 50: 50}
"""The last step, by `log_freq`."""


def trained(
    folder: Path, net: str, *, every: int, disturb: bool = False, seed: int = 0, sample_n: int = 16_384
) -> Path:
    make, shape, module = {**NETS, **OTHERS}[net]
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    torch.manual_seed(1)
    with watch(
        model, backend="record", logdir=str(folder), run="run", log_freq=every, sample_n=sample_n, verbose=False
    ):
        for step in range(LAST[every] + 1):
            if disturb and step == DISTURBED_AT:
                with torch.no_grad():
                    next(model.get_submodule(module).parameters()).view(-1)[5] += 0.5
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(shape)), torch.randint(4, shape[:1])).backward()
            optimizer.step()
    return folder / "run"


def compared(folder: Path, net: str, *, every: int, sample_n: int = 16_384, **second: object) -> Comparison:
    one = trained(folder / "one", net, every=every, sample_n=sample_n)
    return compare(one, trained(folder / "other", net, every=every, sample_n=sample_n, **second))  # type: ignore[arg-type]


@pytest.mark.parametrize("every", [1, 50])
@pytest.mark.parametrize("net", NETS)
def test_a_weight_that_something_else_changed_is_found_and_when(net: str, every: int, tmp_path: Path) -> None:
    found = compared(tmp_path, net, every=every, disturb=True).first_divergence
    assert found is not None
    assert (found.kind, found.module, found.path) == ("parameter", NETS[net][2], "weight")
    assert (found.last_equal_step, found.step) == ((19, 20) if every == 1 else (0, 50))
    assert not found.is_rounding


@pytest.mark.parametrize("net", OTHERS)
def test_the_module_is_named_in_other_kinds_of_models_at_every_50th_step(net: str, tmp_path: Path) -> None:
    found = compared(tmp_path, net, every=50, disturb=True).first_divergence
    assert found is not None
    assert (found.kind, found.module, found.last_equal_step, found.step) == ("parameter", OTHERS[net][2], 0, 50)


def test_a_weight_that_is_not_sampled_is_found(tmp_path: Path) -> None:
    found = compared(tmp_path, "small", every=1, sample_n=8, disturb=True).first_divergence
    assert found is not None
    assert (found.module, found.step, found.is_rounding) == ("2", 20, False)


@pytest.mark.parametrize("every", [1, 50])
@pytest.mark.parametrize("net", NETS)
def test_two_equal_trainings_do_not_part(net: str, every: int, tmp_path: Path) -> None:
    found = compared(tmp_path, net, every=every, sample_n=64)
    assert found.first_divergence is None
    assert found.is_equal
    model = found.a
    fingerprints = model.rows(np.arange(len(model))).fingerprints
    assert np.count_nonzero(fingerprints == 0) == 0


def test_another_seed_differs_from_the_first_step_on(tmp_path: Path) -> None:
    found = compared(tmp_path, "small", every=50, seed=3).first_divergence
    assert found is not None
    assert (found.kind, found.module, found.last_equal_step, found.step) == ("parameter", "0", None, 0)
