"""Losses that weigh, leave out or mix up classes are told by their gradients, and healthy ones like them are not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.trainings import trained
from torchgraph_explorer import open_run, watch

pytestmark = pytest.mark.slow

Loss = Callable[[Tensor, Tensor], Tensor]

SAMPLES = torch.randn(1200, 8, generator=torch.Generator().manual_seed(1))
CLASSES = (2 * SAMPLES[:, :5]).argmax(1)
RARE = (SAMPLES[:, 0] > 1).long()
"""About 16 % of the samples."""

SHARES = torch.tensor([0.84, 0.16])


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def network(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, outputs))


def of(labels: Tensor, loss: Loss, model: nn.Module, _: int) -> Tensor:
    at = torch.randint(len(SAMPLES), (64,))
    return loss(model(SAMPLES[at]), labels[at])


def told(folder: Path, model: nn.Module, labels: Tensor, loss: Loss) -> set[tuple[str, str]]:
    return {(one.kind, one.severity) for one in trained(folder, model, partial(of, labels, loss)) if not one.causes}


def binary(outputs: Tensor, labels: Tensor, *, positive: float) -> Tensor:
    return F.binary_cross_entropy_with_logits(outputs[:, 0], labels.float(), pos_weight=torch.tensor(positive))


def of_few(outputs: Tensor, labels: Tensor) -> Tensor:
    """Labels that some samples lack, of all classes."""
    return F.cross_entropy(outputs, torch.where(torch.rand(len(labels)) < 0.3, -100, labels))


@pytest.mark.parametrize(
    ("outputs", "labels", "loss", "expected"),
    [
        pytest.param(2, RARE, nn.CrossEntropyLoss(SHARES), "class-weights-inverted", id="shares"),
        pytest.param(1, RARE, partial(binary, positive=0.2), "class-weights-inverted", id="shares of one logit"),
        pytest.param(2, RARE, nn.CrossEntropyLoss(1 / SHARES), None, id="one over shares"),
        pytest.param(1, RARE, partial(binary, positive=5.0), None, id="one over shares, of one logit"),
        pytest.param(1, 1 - RARE, partial(binary, positive=0.2), None, id="many positive ones that count less"),
        pytest.param(2, RARE, nn.CrossEntropyLoss(), None, id="no weights"),
        pytest.param(5, CLASSES, nn.CrossEntropyLoss(torch.rand(5) + 0.5), None, id="weights of even classes"),
        pytest.param(5, CLASSES, nn.CrossEntropyLoss(ignore_index=0), "class-left-out", id="class 0 ignored"),
        pytest.param(5, CLASSES, nn.CrossEntropyLoss(ignore_index=4), "class-left-out", id="the last class ignored"),
        pytest.param(
            5, CLASSES, nn.CrossEntropyLoss(torch.tensor([0.0, 1, 1, 1, 1])), "class-left-out", id="a weight of 0"
        ),
        pytest.param(5, CLASSES, of_few, None, id="some samples without a label"),
        pytest.param(6, CLASSES + 1, nn.CrossEntropyLoss(), None, id="a class that no sample has"),
        pytest.param(
            5,
            CLASSES,
            lambda outputs, labels: F.nll_loss(outputs.log_softmax(0), labels),
            "softmax-over-batch",
            id="a softmax over the samples",
        ),
        pytest.param(
            5,
            CLASSES,
            lambda outputs, labels: F.kl_div(outputs.softmax(1), F.one_hot(labels, 5) * 0.8 + 0.04),
            "softmax-before-loss",
            id="a divergence of probabilities",
        ),
        pytest.param(
            5,
            CLASSES,
            lambda outputs, labels: F.kl_div(outputs.softmax(1), F.one_hot(labels, 5) * 1.0),
            "softmax-before-loss",
            id="a divergence of probabilities, from labels",
        ),
        pytest.param(
            5,
            CLASSES,
            lambda outputs, labels: F.kl_div(outputs.log_softmax(1), F.one_hot(labels, 5) * 0.8 + 0.04),
            None,
            id="a divergence",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:reduction")
def test_what_a_loss_does_to_classes_is_told(
    outputs: int, labels: Tensor, loss: Loss, expected: str | None, tmp_path: Path
) -> None:
    assert told(tmp_path, network(outputs), labels, loss) == ({(expected, "warning")} if expected else set())


def test_classes_of_equal_logits_and_even_labels_are_no_softmax_over_the_samples(tmp_path: Path) -> None:
    """Gradients are those of both at first."""
    model = network(5)
    nn.init.zeros_(model[-1].weight)  # type: ignore[index]
    nn.init.zeros_(model[-1].bias)  # type: ignore[index]
    even = torch.stack([CLASSES.eq(one).nonzero()[:12, 0] for one in range(5)]).flatten()

    def step(model: nn.Module, _: int) -> Tensor:
        return F.cross_entropy(model(SAMPLES[even]), CLASSES[even])

    assert not [one for one in trained(tmp_path, model, step) if one.kind == "softmax-over-batch"]


def segmenter(classes: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, classes, 1))


def of_pixels(model: nn.Module, _: int, *, classes: int, way: str) -> Tensor:
    images = torch.randn(16, 1, 8, 8)
    labels = (images[:, 0] > 0).long() + (images[:, 0] > 1).long()
    output = model(images)
    if way == "along the width":
        return F.cross_entropy(output.reshape(-1, 8), torch.randint(8, (16 * classes * 8,)))
    rows = output if way == "viewed" else output.permute(0, 2, 3, 1)
    return F.cross_entropy(rows.reshape(-1, classes), labels.reshape(-1))


@pytest.mark.parametrize(
    ("classes", "way", "expected"),
    [
        pytest.param(3, "viewed", True, id="viewed"),
        pytest.param(4, "viewed", True, id="viewed, in half of the width"),
        pytest.param(3, "permuted", False, id="permuted"),
        pytest.param(8, "along the width", False, id="along the width"),
    ],
)
def test_a_loss_that_views_channels_as_rows_of_classes_is_told(
    classes: int, way: str, *, expected: bool, tmp_path: Path
) -> None:
    found = trained(tmp_path, segmenter(classes), partial(of_pixels, classes=classes, way=way))
    assert [(one.kind, one.module) for one in found if not one.causes and one.kind == "view-for-transpose"] == (
        [("view-for-transpose", "")] if expected else []
    )


@pytest.mark.parametrize(
    ("limit", "expected"), [(None, set()), (100.0, set()), (1e-3, {"clipping-always"}), (0.0, set())]
)
def test_gradients_that_are_divided_by_the_scale_of_the_loss_are_not_clipped(
    limit: float | None, expected: set[str], tmp_path: Path
) -> None:
    model = network(5)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for number in range(30):
            optimizer.zero_grad()
            (4096 * of(CLASSES, F.cross_entropy, model, number)).backward()
            for one in model.parameters():
                assert one.grad is not None
                one.grad /= 4096
            if limit is not None:
                nn.utils.clip_grad_norm_(model.parameters(), limit)
            optimizer.step()
    found = open_run(str(tmp_path / "run")).model().findings()
    assert {one.kind for one in found if one.kind in {"clipping-always", "rule-failed"}} == expected


@pytest.mark.parametrize(
    ("optimizer", "is_told"),
    [pytest.param(torch.optim.SGD, True, id="SGD"), pytest.param(torch.optim.Adam, False, id="Adam")],
)
def test_a_lower_learning_rate_is_advised_where_a_higher_limit_makes_updates_larger(
    optimizer: Callable[..., torch.optim.Optimizer], is_told: bool, tmp_path: Path
) -> None:
    model = network(5)
    stepping = optimizer(model.parameters(), lr=1e-3)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for number in range(30):
            stepping.zero_grad()
            of(CLASSES, F.cross_entropy, model, number).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            stepping.step()
    found = open_run(str(tmp_path / "run")).model().findings()
    assert ["lower the learning rate" in one.advice for one in found if one.kind == "clipping-always"] == [is_told]
