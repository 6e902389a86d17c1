"""Sound trainings of which one thing is changed, as the loss, a penalty or the order of the samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.centres import BATCH, CLASSES, FEATURES, batch, network, samples, warned
from tests.findings.trainings import trained
from torchgraph_explorer import open_run, watch

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


Loss = Callable[[Tensor, Tensor], Tensor]


def nll_of_probabilities(logits: Tensor, labels: Tensor) -> Tensor:
    return F.nll_loss(logits.softmax(1), labels)


def divergence_of_probabilities(logits: Tensor, labels: Tensor) -> Tensor:
    return F.kl_div(logits.softmax(1), F.one_hot(labels, CLASSES).float(), reduction="batchmean")


def nll_of_logarithms(logits: Tensor, labels: Tensor) -> Tensor:
    return F.nll_loss(logits.log_softmax(1), labels)


def cosine(logits: Tensor, labels: Tensor) -> Tensor:
    return -F.cosine_similarity(logits, F.one_hot(labels, CLASSES).float()).mean()


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (nll_of_probabilities, [("softmax-before-loss", "")]),
        (divergence_of_probabilities, [("softmax-before-loss", "")]),
        (nll_of_logarithms, []),
        (cosine, []),
    ],
)
def test_a_loss_of_logits_that_lacks_the_logarithm_is_told(
    loss: Loss, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        inputs, labels = batch()
        return loss(model(inputs), labels)

    assert warned(trained(tmp_path, network(), step)) == expected


@pytest.mark.parametrize(
    ("power", "factor", "expected"),
    [
        pytest.param(2, 0.5, [("weight-decay-dominates", None)], id="squares"),
        pytest.param(1, 0.2, [("weight-decay-dominates", None)], id="magnitudes"),
        pytest.param(2, 1e-4, [], id="few squares"),
        pytest.param(1, 1e-4, [], id="few magnitudes"),
    ],
)
def test_a_penalty_in_the_loss_that_outweighs_the_data_is_told(
    power: int, factor: float, expected: list[tuple[str, str | None]], tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        inputs, labels = batch()
        penalty = torch.stack([one.abs().pow(power).sum() for one in model.parameters()]).sum()
        return F.cross_entropy(model(inputs), labels) + factor * penalty

    assert warned(trained(tmp_path, network(), step, rate=0.01)) == expected


def test_a_penalty_is_told_where_a_small_last_layer_still_learns(tmp_path: Path) -> None:
    def step(model: nn.Module, _number: int) -> Tensor:
        inputs, _ = batch()
        penalty = torch.stack([one.square().sum() for one in model.parameters()]).sum()
        return F.mse_loss(model(inputs)[:, 0], inputs[:, :3].sum(1)) + penalty

    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    assert warned(trained(tmp_path, model, step, rate=0.002)) == [("weight-decay-dominates", None)]


def test_a_penalty_is_all_that_is_left_where_no_margin_is_missed(tmp_path: Path) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        inputs, _labels = batch()
        penalty = torch.stack([one.square().sum() for one in model.parameters()]).sum()
        return (1 - model(inputs)).relu().mean() + 1e-4 * penalty

    assert warned(trained(tmp_path, network(1), step, rate=0.2, steps=60)) == []


@pytest.mark.parametrize(("sign", "is_told"), [(-1, False), (1, True)], ids=["larger", "smaller"])
def test_gradients_that_are_multiples_of_the_weights_are_of_a_penalty_only_if_these_get_smaller(
    sign: int, is_told: bool, tmp_path: Path
) -> None:
    """As those of layers that are in balance, one of which is the transpose of the other."""

    def step(model: nn.Module, _: int) -> Tensor:
        return sign * cast("Tensor", model(torch.ones(BATCH, 1))).mean()

    model = nn.Sequential(nn.Linear(1, 24, bias=False), nn.Linear(24, 1, bias=False))
    with torch.no_grad():
        first, last = model.parameters()
        last.copy_(first.T)
    kinds = {one.kind for one in trained(tmp_path, model, step, rate=0.01, logs=False)}
    assert ("weight-decay-dominates" in kinds) is is_told


def in_order(number: int, classes: int = 2, stay: int = 8) -> tuple[Tensor, Tensor]:
    labels = torch.full((BATCH,), number // stay % classes)
    return samples(labels), labels


def in_turn(number: int) -> tuple[Tensor, Tensor]:
    """As an adversary sees what is real and what was made."""
    return in_order(number, stay=1)


def seldom(_: int) -> tuple[Tensor, Tensor]:
    labels = (torch.rand(BATCH) < 0.02).long()
    return samples(labels), labels


@pytest.mark.parametrize(
    ("batches", "last", "expected"),
    [
        pytest.param(in_order, [], [("one-class-batches", "4")], id="in order"),
        pytest.param(in_order, [nn.Sigmoid()], [("one-class-batches", "4")], id="in order, with a sigmoid"),
        pytest.param(in_turn, [], [], id="in turn"),
        pytest.param(seldom, [], [], id="a rare label"),
        pytest.param(lambda _: batch(2), [], [], id="shuffled"),
    ],
)
def test_batches_of_one_of_two_labels_are_told(
    batches: Callable[[int], tuple[Tensor, Tensor]],
    last: list[nn.Module],
    expected: list[tuple[str, str]],
    tmp_path: Path,
) -> None:
    loss = F.binary_cross_entropy if last else F.binary_cross_entropy_with_logits

    def step(model: nn.Module, number: int) -> Tensor:
        inputs, labels = batches(number)
        return loss(model(inputs)[:, 0], labels.float())

    found = trained(tmp_path, network(1, *last), step, rate=0.02)
    assert [one for one in warned(found) if one[0] == "one-class-batches"] == expected


@pytest.mark.parametrize(("rare", "expected"), [(0.0, [("one-class-batches", "")]), (0.02, [])])
def test_labels_that_are_all_the_same_are_told(rare: float, expected: list[tuple[str, str]], tmp_path: Path) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        labels = torch.where(torch.rand(BATCH) < rare, 1, 3)
        return F.cross_entropy(model(samples(labels)), labels)

    assert warned(trained(tmp_path, network(), step, rate=0.2, steps=60)) == expected


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_small_batches_of_labels_that_are_nearly_all_the_same_are_not_taken_for_sorted_ones(
    seed: int, tmp_path: Path
) -> None:
    """The first batch may well have shorter gradients than later ones by chance."""
    torch.manual_seed(seed)

    def step(model: nn.Module, _: int) -> Tensor:
        labels = torch.where(torch.rand(6) < 0.02, torch.randint(1, CLASSES, (6,)), 0)
        return F.cross_entropy(model(torch.randn(6, FEATURES)), labels)

    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))
    found = trained(tmp_path, model, step, rate=1e-3, steps=60)
    assert "one-class-batches" not in [one.kind for one in found]


def test_targets_of_a_squared_error_that_are_all_the_same_are_not_taken_for_labels(tmp_path: Path) -> None:
    """The gradients at first are as long as those of a cross entropy, and point the same way."""

    def step(model: nn.Module, _: int) -> Tensor:
        return F.mse_loss(model(torch.randn(BATCH, FEATURES)), torch.ones(BATCH, 4))

    model = network(4)
    nn.init.constant_(cast(nn.Linear, model[0]).bias, -100.0)  # its ReLU is dead: the outputs are all the same
    assert "one-class-batches" not in [one.kind for one in trained(tmp_path, model, step, rate=0.2, steps=60)]


@pytest.mark.parametrize(
    ("last", "expected"), [([nn.ReLU()], [("activation-before-loss", "5")]), ([nn.Identity()], [])]
)
def test_a_relu_before_a_binary_cross_entropy_is_told(
    last: list[nn.Module], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        inputs, labels = batch(2)
        return F.binary_cross_entropy_with_logits(model(inputs)[:, 0], labels.float())

    assert warned(trained(tmp_path, network(1, *last), step)) == expected


def test_a_gradient_that_is_clipped_as_its_norm_is_infinite_was_not_cleared(tmp_path: Path) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(8):
            inputs, labels = batch()
            optimizer.zero_grad()
            (1e22 * F.cross_entropy(model(inputs), labels)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    found = open_run(str(tmp_path / "run")).model().findings()
    assert [one.kind for one in found] == ["update-too-small"]
