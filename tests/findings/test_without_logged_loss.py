"""Faults of the loss are told with the default settings, where no loss is logged, by the gradients at the outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchgraph_explorer import Finding, open_run, watch

SAMPLES = torch.randn(4096, 8, generator=torch.Generator().manual_seed(1))
LABELS = SAMPLES[:, :5].argmax(1)
NUMBERS = SAMPLES[:, :1] - SAMPLES[:, 1:2].abs()

Step = Callable[[nn.Module, Tensor], Tensor]
"""The loss of a model on the samples with these numbers."""


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def told(
    folder: Path,
    model: nn.Module,
    loss_of: Step,
    *,
    steps: int = 201,
    rate: float = 0.02,
    schedule: Callable[[int], float] | None = None,
    of: nn.Module | None = None,
) -> list[Finding]:
    """What is told of a training with Adam of the parameters of `of`, or of the model."""
    optimizer = torch.optim.Adam((of or model).parameters(), rate)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule or (lambda _: 1.0))
    with watch(model, backend="record", logdir=str(folder), run="run", verbose=False):
        for _ in range(steps):
            loss = loss_of(model, torch.randint(len(SAMPLES), (32,)))
            model.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
    return [one for one in open_run(str(folder / "run")).model().findings() if one.severity != "info"]


def network(outputs: int = 5) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, outputs))


class Ending(nn.Module):
    """A network whose outputs go through a function that is no module."""

    def __init__(self, end: Callable[[Tensor], Tensor], outputs: int = 5) -> None:
        super().__init__()
        self.layers, self.end = network(outputs), end

    def forward(self, x: Tensor) -> Tensor:
        return self.end(self.layers(x))


class Cosines(nn.Module):
    """The cosines with a vector for each class, times a scale."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.layers, self.classes, self.scale = network(16), nn.Parameter(torch.randn(5, 16)), scale

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * F.linear(F.normalize(self.layers(x)), F.normalize(self.classes))


def of_classes(model: nn.Module, at: Tensor) -> Tensor:
    return F.cross_entropy(model(SAMPLES[at]), LABELS[at])


def of_two(model: nn.Module, at: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(model(SAMPLES[at])[:, 0], (SAMPLES[at, 0] > 0).float())


@pytest.mark.parametrize(
    ("model", "loss_of", "expected"),
    [
        pytest.param(lambda: Ending(torch.relu), of_classes, ["activation-before-loss"], id="ReLU"),
        pytest.param(lambda: Ending(torch.tanh), of_classes, ["activation-before-loss"], id="tanh"),
        pytest.param(lambda: Ending(torch.sigmoid), of_classes, ["activation-before-loss"], id="sigmoid"),
        pytest.param(
            lambda: Ending(lambda x: torch.relu(x + 0.1), 1), of_two, ["activation-before-loss"], id="ReLU, two classes"
        ),
        pytest.param(lambda: Cosines(1), of_classes, ["activation-before-loss"], id="cosines"),
        pytest.param(lambda: Cosines(16), of_classes, [], id="cosines with a scale"),
        pytest.param(network, of_classes, [], id="logits"),
        pytest.param(lambda: network(1), of_two, [], id="logits, two classes"),
        pytest.param(lambda: Ending(lambda x: 30 * torch.tanh(x / 30)), of_classes, [], id="logits with a soft cap"),
        pytest.param(
            lambda: Ending(F.dropout), of_classes, ["dropout-on-output"], id="dropout by a function behind logits"
        ),
    ],
)
def test_what_is_taken_for_logits_is_told(
    model: Callable[[], nn.Module], loss_of: Step, expected: list[str], tmp_path: Path
) -> None:
    assert [one.kind for one in told(tmp_path, model(), loss_of, rate=0.01)] == expected


def of_numbers(mean: float, deviation: float) -> Step:
    def loss_of(model: nn.Module, at: Tensor) -> Tensor:
        return F.mse_loss(model(SAMPLES[at]), mean + deviation * NUMBERS[at])

    return loss_of


def of_one_number(model: nn.Module, at: Tensor) -> Tensor:
    """As of a discriminator by least squares."""
    return F.mse_loss(model(SAMPLES[at]), torch.full((len(at), 1), 100.0))


@pytest.mark.parametrize(
    ("loss_of", "rate", "expected"),
    [
        pytest.param(of_numbers(2000, 10), 1e-2, ["targets-not-scaled"], id="years"),
        pytest.param(of_numbers(-1e4, 1), 1e-2, ["targets-not-scaled"], id="far below zero"),
        pytest.param(of_numbers(0, 1), 1e-3, [], id="normalised"),
        pytest.param(of_numbers(3, 1), 1e-2, [], id="soon reached"),
        pytest.param(of_one_number, 1e-3, [], id="one number for all"),
    ],
)
def test_targets_far_beyond_all_outputs_are_told(
    loss_of: Step, rate: float, expected: list[str], tmp_path: Path
) -> None:
    found = told(tmp_path, network(1), loss_of, rate=rate)
    assert [one.kind for one in found if one.kind == "targets-not-scaled"] == expected


def of_others(model: nn.Module, at: Tensor) -> Tensor:
    return F.cross_entropy(model(SAMPLES[at]), LABELS[at].roll(1))


def of_xor(model: nn.Module, at: Tensor) -> Tensor:
    labels = (SAMPLES[at, 0] * SAMPLES[at, 1] > 0).float()
    return F.binary_cross_entropy_with_logits(model(SAMPLES[at])[:, 0], labels)


def linear_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 32), nn.Linear(32, 1))


@pytest.mark.parametrize(
    ("model", "loss_of", "rate", "expected"),
    [
        pytest.param(network, of_others, 1e-2, ["loss-not-falling"], id="labels of other samples"),
        pytest.param(network, of_classes, 1e-3, [], id="own labels"),
        pytest.param(network, of_classes, 1e-4, [], id="slowly learned"),
        pytest.param(linear_layers, of_xor, 1e-3, ["missing-nonlinearity"], id="linear layers that cannot learn it"),
        pytest.param(linear_layers, of_two, 1e-3, [], id="linear layers that learn"),
        pytest.param(lambda: network(1), of_xor, 1e-3, [], id="two classes, soon learned"),
    ],
)
def test_what_is_not_learned_is_told(
    model: Callable[[], nn.Module], loss_of: Step, rate: float, expected: list[str], tmp_path: Path
) -> None:
    ours = {"loss-not-falling", "missing-nonlinearity"}
    assert [one.kind for one in told(tmp_path, model(), loss_of, rate=rate) if one.kind in ours] == expected


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    ("is_flat", "is_one", "expected"),
    [
        pytest.param(True, False, ["targets-broadcast"], id="columns and flat targets"),
        pytest.param(False, False, [], id="equal shapes"),
        pytest.param(False, True, [], id="really one target for each batch"),
    ],
)
def test_targets_that_broadcast_are_told(is_flat: bool, is_one: bool, expected: list[str], tmp_path: Path) -> None:
    def loss_of(model: nn.Module, at: Tensor) -> Tensor:
        samples, numbers = SAMPLES[at], NUMBERS[at]
        if is_one:
            number = torch.randn(())
            samples, numbers = samples + number, number.expand(len(at), 1)
        return F.mse_loss(model(samples), numbers[:, 0] if is_flat else numbers)

    found = told(tmp_path, network(1), loss_of, rate=0.003)
    assert [one.kind for one in found if one.kind == "targets-broadcast"] == expected


@pytest.mark.parametrize(
    ("schedule", "is_of_another", "words"),
    [
        pytest.param(lambda step: step // 1000, False, "The learning rate is 0", id="a warm-up of whole numbers"),
        pytest.param(None, True, "No optimizer has updated any parameter of this model", id="optimizer of another"),
    ],
)
def test_why_no_weight_changes_is_said(
    schedule: Callable[[int], float] | None, is_of_another: bool, words: str, tmp_path: Path
) -> None:
    other = network() if is_of_another else None
    found = told(tmp_path, network(), of_classes, schedule=schedule, of=other)
    assert [words in one.text for one in found if one.kind == "update-too-small"] == [True]


def test_a_softmax_over_one_output_leaves_no_label_out(tmp_path: Path) -> None:
    """Samples of one label get no gradient, since the answer is right for all of these."""

    def loss_of(model: nn.Module, at: Tensor) -> Tensor:
        return F.binary_cross_entropy(model(SAMPLES[at])[:, 0], (LABELS[at] == 1).float())

    found = told(tmp_path, Ending(lambda x: x.softmax(1), 1), loss_of)
    kinds = [one.kind for one in found if not one.causes]
    assert "class-left-out" not in kinds
    assert "single-class" in kinds


@pytest.mark.parametrize(("scale", "expected"), [(0.0, ["zero-init"]), (0.5, [])])
def test_a_product_of_matrices_that_is_multiplied_by_zero_is_told(
    scale: float, expected: list[str], tmp_path: Path
) -> None:
    class Adapted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = nn.Linear(8, 5).requires_grad_(False)
            self.A, self.B = nn.Parameter(torch.randn(4, 8)), nn.Parameter(torch.zeros(5, 4))

        def forward(self, x: Tensor) -> Tensor:
            adapted: Tensor = self.base(x) + x @ self.A.T @ self.B.T * scale
            return adapted

    found = told(tmp_path, nn.Sequential(nn.Linear(8, 8), Adapted()), of_classes)
    assert [one.kind for one in found if one.kind == "zero-init"] == expected
    assert all("`A` beside it is not zero" in one.text for one in found if one.kind == "zero-init")
