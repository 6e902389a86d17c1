"""What gradients, clamps, masks and rates of the first steps tell, each beside the same training without the fault."""

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
from torchgraph_explorer.finding import Finding

pytestmark = pytest.mark.slow

Loss = Callable[[Tensor, Tensor], Tensor]

SAMPLES = torch.randn(1600, 8, generator=torch.Generator().manual_seed(1))
CLASSES = (2 * SAMPLES[:, :5]).argmax(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def network(outputs: int, *more: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, outputs), *more)


def told(found: list[Finding]) -> set[tuple[str, str, str | None]]:
    """The kind, severity and module of each root cause that is no info."""
    return {(one.kind, one.severity, one.module) for one in found if not one.causes and one.severity != "info"}


def of(labels: Tensor, loss: Loss, model: nn.Module, _: int) -> Tensor:
    at = torch.randint(len(SAMPLES), (64,))
    return loss(model(SAMPLES[at]), labels[at])


# A cross entropy with the wrong sign


def negative(loss: Loss) -> Loss:
    return lambda outputs, labels: -loss(outputs, labels)


def rewarded(outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of a policy that is punished for each action, and for some more than for others."""
    chosen = outputs.log_softmax(1)[torch.arange(len(labels)), labels]
    return (chosen * torch.rand(len(labels))).mean()


@pytest.mark.parametrize(
    ("outputs", "loss"),
    [
        pytest.param(5, negative(F.cross_entropy), id="mean"),
        pytest.param(5, negative(partial(F.cross_entropy, reduction="sum")), id="sum"),
        pytest.param(5, negative(lambda z, y: F.nll_loss(z.log_softmax(1), y)), id="logarithm without a minus"),
        pytest.param(2, negative(lambda z, y: F.cross_entropy(z, (y > 2).long())), id="two classes"),
        pytest.param(1, negative(lambda z, y: weighted(z, y, weight=1.0)), id="two labels"),
    ],
)
def test_a_cross_entropy_with_the_wrong_sign_is_told_by_its_gradients(outputs: int, loss: Loss, tmp_path: Path) -> None:
    wrong = trained(tmp_path / "wrong", network(outputs), partial(of, CLASSES, loss), rate=0.005, logs=False)
    right = trained(tmp_path / "right", network(outputs), partial(of, CLASSES, negative(loss)), rate=0.005, logs=False)
    assert (told(wrong), told(right)) == ({("loss-negated", "error", None)}, set())


def test_a_likelihood_without_a_minus_is_told_behind_a_log_softmax(tmp_path: Path) -> None:
    model = network(5, nn.LogSoftmax(1))
    found = trained(tmp_path, model, partial(of, CLASSES, negative(F.nll_loss)), rate=0.005, logs=False)
    assert told(found) == {("loss-negated", "error", None)}


@pytest.mark.parametrize("loss", [F.cross_entropy, negative(F.cross_entropy)], ids=["loss", "objective"])
def test_an_optimizer_that_maximises_is_told_for_a_loss_and_not_for_an_objective(loss: Loss, tmp_path: Path) -> None:
    found = trained(tmp_path, network(5), partial(of, CLASSES, loss), logs=False, maximize=True)
    assert told(found) == ({("loss-negated", "error", None)} if loss is F.cross_entropy else set())


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(rewarded, id="policy"),
        pytest.param(lambda z, y: -z.softmax(1)[torch.arange(len(y)), y].mean(), id="mean probability"),
    ],
)
def test_a_loss_that_is_meant_to_be_negative_is_not_told(loss: Loss, tmp_path: Path) -> None:
    assert told(trained(tmp_path, network(5), partial(of, CLASSES, loss), logs=False)) == set()


# A softmax or sigmoid twice


def focal(logits: Tensor, labels: Tensor, *, focus: float = 2.0, positive: float = 0.25) -> Tensor:
    shares, labels = logits.sigmoid(), labels.to(logits.dtype).reshape(logits.shape)
    entropy = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    right = shares * labels + (1 - shares) * (1 - labels)
    return ((positive * labels + (1 - positive) * (1 - labels)) * (1 - right) ** focus * entropy).mean()


def focal_of_classes(logits: Tensor, labels: Tensor) -> Tensor:
    entropy = F.cross_entropy(logits, labels, reduction="none")
    return ((1 - (-entropy).exp()) ** 2 * entropy).mean()


def weighted(logits: Tensor, labels: Tensor, *, weight: float = 3.0) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits[:, 0], (labels > 2).float(), pos_weight=torch.tensor(weight))


def binary(loss: Loss) -> Loss:
    return lambda outputs, labels: loss(outputs, (labels > 2).float()[:, None])


TWICE = [
    pytest.param(1, nn.Sigmoid(), binary(focal), id="focal loss"),
    pytest.param(1, nn.Sigmoid(), binary(partial(focal, focus=1.0, positive=0.5)), id="focal loss of another exponent"),
    pytest.param(1, nn.Sigmoid(), weighted, id="a weight for positives"),
    pytest.param(5, nn.Softmax(1), focal_of_classes, id="focal loss of classes"),
    pytest.param(5, nn.Softmax(1), nn.CrossEntropyLoss(torch.tensor([1.0, 2, 3, 4, 5])), id="weights of classes"),
]


@pytest.mark.parametrize(("outputs", "last", "loss"), TWICE)
def test_a_loss_that_applies_an_activation_again_is_told_by_its_gradients(
    outputs: int, last: nn.Module, loss: Loss, tmp_path: Path
) -> None:
    twice = trained(tmp_path / "twice", network(outputs, last), partial(of, CLASSES, loss))
    once = trained(tmp_path / "once", network(outputs), partial(of, CLASSES, loss))
    assert (told(twice), told(once)) == ({("softmax-before-loss", "warning", "3")}, set())


def behind(activation: Callable[[Tensor], Tensor], loss: Loss) -> Loss:
    """A loss that is given what an activation gives of the model's outputs, as in many training loops."""
    return lambda outputs, labels: loss(activation(outputs), labels)


def of_softmax(outputs: Tensor) -> Tensor:
    return outputs.softmax(1)


def two(loss: Loss) -> Loss:
    return lambda outputs, labels: loss(outputs, (labels > 2).long())


def of_all(loss: Loss) -> Loss:
    """A loss of one number for each class, 1 for the right one."""
    return lambda outputs, labels: loss(outputs, F.one_hot(labels, outputs.shape[1]).to(outputs.dtype))


def binary_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(outputs, labels)


@pytest.mark.parametrize(
    ("outputs", "activation", "loss", "kind"),
    [
        pytest.param(5, of_softmax, F.cross_entropy, "softmax-before-loss", id="softmax"),
        pytest.param(5, of_softmax, focal_of_classes, "softmax-before-loss", id="softmax before a focal loss"),
        pytest.param(2, of_softmax, two(F.cross_entropy), "softmax-before-loss", id="softmax of two classes"),
        pytest.param(1, torch.sigmoid, binary(binary_entropy), "softmax-before-loss", id="sigmoid"),
        pytest.param(1, torch.sigmoid, binary(focal), "softmax-before-loss", id="sigmoid before a focal loss"),
        pytest.param(5, torch.sigmoid, of_all(binary_entropy), "softmax-before-loss", id="sigmoid of several labels"),
        pytest.param(5, torch.sigmoid, F.cross_entropy, "activation-before-loss", id="sigmoid before classes"),
        pytest.param(5, torch.tanh, F.cross_entropy, "activation-before-loss", id="tanh before classes"),
        pytest.param(5, torch.relu, F.cross_entropy, "activation-before-loss", id="ReLU before classes"),
    ],
)
def test_an_activation_in_the_loop_before_a_loss_of_logits_is_told(
    outputs: int, activation: Callable[[Tensor], Tensor], loss: Loss, kind: str, tmp_path: Path
) -> None:
    wrong = trained(tmp_path / "wrong", network(outputs), partial(of, CLASSES, behind(activation, loss)))
    right = trained(tmp_path / "right", network(outputs), partial(of, CLASSES, loss))
    assert (told(wrong), told(right)) == ({(kind, "warning", "")}, set())


@pytest.mark.parametrize(
    ("outputs", "activation", "loss"),
    [
        pytest.param(2, of_softmax, two(F.cross_entropy), id="two classes"),
        pytest.param(1, torch.sigmoid, binary(binary_entropy), id="sigmoid"),
        pytest.param(3, torch.sigmoid, lambda z, y: F.cross_entropy(z, y % 3), id="sigmoid before classes"),
    ],
)
def test_an_activation_is_told_of_sure_outputs_too(
    outputs: int, activation: Callable[[Tensor], Tensor], loss: Loss, tmp_path: Path
) -> None:
    model = network(outputs)
    with torch.no_grad():
        for weight in model[2].parameters():
            weight.mul_(20)
    kinds = {one.kind for one in trained(tmp_path, model, partial(of, CLASSES, behind(activation, loss)))}
    assert kinds & {"softmax-before-loss", "activation-before-loss"}


@pytest.mark.parametrize(
    ("outputs", "loss"),
    [
        pytest.param(5, behind(of_softmax, of_all(F.mse_loss)), id="squared error of a softmax"),
        pytest.param(2, behind(of_softmax, two(of_all(F.mse_loss))), id="squared error of a softmax of two classes"),
        pytest.param(5, behind(torch.sigmoid, of_all(F.mse_loss)), id="squared error of sigmoids"),
        pytest.param(1, behind(torch.sigmoid, binary(F.mse_loss)), id="squared error of one sigmoid"),
        pytest.param(1, behind(torch.sigmoid, binary(F.binary_cross_entropy)), id="cross entropy of a sigmoid"),
        pytest.param(5, behind(torch.tanh, of_all(F.mse_loss)), id="squared error of a tanh"),
        pytest.param(5, lambda outputs, labels: F.cross_entropy(10 * outputs.tanh(), labels), id="tanh times 10"),
        pytest.param(5, partial(F.cross_entropy, label_smoothing=0.1), id="smoothed labels"),
        pytest.param(
            5,
            lambda outputs, labels: 1 - (outputs.softmax(1) * F.one_hot(labels, 5)).sum() / len(labels),
            id="probability of the right class",
        ),
    ],
)
def test_an_activation_in_the_loop_before_its_own_loss_is_not_told(outputs: int, loss: Loss, tmp_path: Path) -> None:
    assert told(trained(tmp_path, network(outputs), partial(of, CLASSES, loss))) == set()


@pytest.mark.parametrize(
    ("loss", "kinds"),
    [
        pytest.param(two(F.cross_entropy), {"softmax-before-loss"}, id="another softmax"),
        pytest.param(two(of_all(F.mse_loss)), set(), id="squared error"),
        pytest.param(two(lambda shares, labels: F.nll_loss(shares.log(), labels)), set(), id="logarithm"),
    ],
)
def test_a_softmax_of_two_classes_is_told_before_another_one_alone(loss: Loss, kinds: set[str], tmp_path: Path) -> None:
    found = trained(tmp_path, network(2, nn.Softmax(1)), partial(of, CLASSES, loss))
    assert {kind for kind, *_ in told(found)} == kinds


class OwnLoss(nn.Module):
    """Returns its logits and its loss, of which the softmax is only seen in the gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network(5)

    def forward(self, samples: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.body(samples)
        return logits, F.cross_entropy(logits.softmax(1), labels)


def test_a_softmax_within_the_models_own_loss_is_told(tmp_path: Path) -> None:
    def loss_of(model: nn.Module, _: int) -> Tensor:
        at = torch.randint(len(SAMPLES), (64,))
        loss: Tensor = model(SAMPLES[at], CLASSES[at])[1]
        return loss

    assert told(trained(tmp_path, OwnLoss(), loss_of)) == {("softmax-before-loss", "warning", "")}


def test_a_sigmoid_by_a_function_before_a_focal_loss_is_told(tmp_path: Path) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = network(1)

        def forward(self, samples: Tensor) -> Tensor:
            return torch.sigmoid(self.body(samples))

    found = trained(tmp_path, Model(), partial(of, CLASSES, binary(focal)), rate=2.0, steps=60)
    assert told(found) == {("softmax-before-loss", "warning", "")}


@pytest.mark.parametrize(
    ("last", "loss"),
    [
        pytest.param(nn.Sigmoid(), binary(F.mse_loss), id="squared error of a sigmoid"),
        pytest.param(nn.Sigmoid(), binary(F.binary_cross_entropy), id="cross entropy of a sigmoid"),
        pytest.param(nn.Sigmoid(), binary(F.l1_loss), id="absolute error of a sigmoid"),
    ],
)
def test_other_losses_of_a_sigmoid_are_not_taken_for_another_sigmoid(
    last: nn.Module, loss: Loss, tmp_path: Path
) -> None:
    assert told(trained(tmp_path, network(1, last), partial(of, CLASSES, loss))) == set()


class Judge(nn.Module):
    """Tells whether samples are real, and their class, as the discriminator of an auxiliary classifier GAN does."""

    def __init__(self, last: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 24), nn.LeakyReLU(0.2))
        self.real, self.kind = nn.Sequential(nn.Linear(24, 1), nn.Sigmoid()), nn.Sequential(nn.Linear(24, 5), last)

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        values = self.body(samples)
        return self.real(values), self.kind(values)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        pytest.param(nn.Softmax(1), {("softmax-before-loss", "warning", "kind.1")}, id="a softmax"),
        pytest.param(nn.Identity(), set(), id="logits"),
    ],
)
def test_a_second_output_that_is_a_softmax_is_told_if_its_loss_is_a_part_of_a_mean(
    last: nn.Module, expected: set[tuple[str, str, str | None]], tmp_path: Path
) -> None:
    def loss(model: nn.Module, _: int) -> Tensor:
        at = torch.randint(len(SAMPLES), (64,))
        real, kind = model(SAMPLES[at])
        return (F.binary_cross_entropy(real[:, 0], (CLASSES[at] > 2).float()) + F.cross_entropy(kind, CLASSES[at])) / 4

    assert told(trained(tmp_path, Judge(last), loss)) == expected


def test_a_second_output_that_is_a_softmax_is_told_if_only_a_later_pass_uses_it(tmp_path: Path) -> None:
    def loss(model: nn.Module, _: int) -> Tensor:
        first, second = torch.randint(len(SAMPLES), (2, 64))
        real, kind = model(SAMPLES[first])[0], model(SAMPLES[second])[1]
        return F.binary_cross_entropy(real[:, 0], (CLASSES[first] > 2).float()) + F.cross_entropy(kind, CLASSES[second])

    assert told(trained(tmp_path, Judge(nn.Softmax(1)), loss)) == {("softmax-before-loss", "warning", "kind.1")}


def test_probabilities_that_are_nearly_the_same_at_first_are_no_collapse(tmp_path: Path) -> None:
    """Nor are they taken for directions, although what is added to all of them does not change the loss."""
    model = network(10, nn.Softmax(1))
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.02)
    found = trained(tmp_path, model, partial(of, CLASSES, F.cross_entropy), rate=1e-3, steps=24)
    assert told(found) == {("softmax-before-loss", "warning", "3")}


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(lambda outputs, labels: F.mse_loss(outputs, F.one_hot(labels, 5).float()), id="squared error"),
        pytest.param(lambda outputs, labels: F.nll_loss(outputs.log(), labels), id="cross entropy"),
    ],
)
def test_other_losses_of_a_softmax_are_not_taken_for_another_softmax(loss: Loss, tmp_path: Path) -> None:
    assert told(trained(tmp_path, network(5, nn.Softmax(1)), partial(of, CLASSES, loss))) == set()


# Labels


@pytest.mark.parametrize("last", [pytest.param((), id="logits"), pytest.param((nn.Sigmoid(),), id="probabilities")])
@pytest.mark.parametrize("divided", [pytest.param(True, id="twice"), pytest.param(False, id="once")])
def test_labels_that_were_divided_by_255_twice_are_told(
    last: tuple[nn.Module, ...], divided: bool, tmp_path: Path
) -> None:
    masks = (SAMPLES > 0).float() / (255 if divided else 1)
    loss = F.binary_cross_entropy if last else F.binary_cross_entropy_with_logits
    found = trained(tmp_path, network(8, *last), partial(of, masks, loss))
    assert told(found) == ({("targets-not-scaled", "warning", "")} if divided else set())


def test_small_probabilities_as_labels_are_not_told(tmp_path: Path) -> None:
    found = trained(tmp_path, network(8), partial(of, SAMPLES.sigmoid() / 50, F.binary_cross_entropy_with_logits))
    assert "targets-not-scaled" not in {one.kind for one in found}


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        pytest.param(0.0, {("class-left-out", "warning", "")}, id="0"),
        pytest.param(1e-5, {("class-left-out", "warning", "")}, id="next to nothing"),
        pytest.param(0.1, set(), id="a tenth"),
        pytest.param(1.0, set(), id="1"),
    ],
)
def test_a_class_in_the_middle_that_the_loss_leaves_out_is_told(
    weight: float, expected: set[tuple[str, str, str | None]], tmp_path: Path
) -> None:
    weights = torch.ones(5)
    weights[2] = weight
    assert told(trained(tmp_path, network(5), partial(of, CLASSES, nn.CrossEntropyLoss(weights)))) == expected


def test_a_frequent_class_that_is_balanced_is_not_left_out(tmp_path: Path) -> None:
    rare = (torch.arange(len(SAMPLES)) % 400 == 0).long()
    labels = torch.where(rare > 0, CLASSES, 0)
    loss = nn.CrossEntropyLoss(torch.tensor([1e-3, 1, 1, 1, 1]))
    assert "class-left-out" not in {one.kind for one in trained(tmp_path, network(5), partial(of, labels, loss))}


# Tasks


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.classes = nn.Linear(32, 5)
        self.number = nn.Linear(32, 1)

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        shared = self.trunk(samples)
        return self.classes(shared), self.number(shared)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        pytest.param(3000.0, {("loss-outweighed", "warning", "classes")}, id="targets in the thousands"),
        pytest.param(1.0, set(), id="targets of deviation 1"),
        pytest.param(10.0, set(), id="a larger one"),
    ],
)
def test_a_task_whose_loss_hardly_counts_is_told(
    scale: float, expected: set[tuple[str, str, str | None]], tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        at = torch.randint(len(SAMPLES), (64,))
        classes, number = model(SAMPLES[at])
        return F.cross_entropy(classes, CLASSES[at]) + F.mse_loss(number[:, 0], scale * SAMPLES[at].sum(1))

    found = trained(tmp_path, TwoHeads(), step, rate=1e-8 if scale > 100 else 1e-3, logs=False)
    assert {one for one in told(found) if one[0] == "loss-outweighed"} == expected


# Clamps


class Clamped(nn.Module):
    def __init__(self, limit: float) -> None:
        super().__init__()
        self.first, self.last, self.limit = nn.Linear(8, 32), nn.Linear(32, 5), limit

    def forward(self, samples: Tensor) -> Tensor:
        result: Tensor = self.last(self.first(samples).clamp(0, self.limit))
        return result


def test_a_clamp_that_stops_nearly_all_gradients_is_told(tmp_path: Path) -> None:
    step = partial(of, CLASSES, F.cross_entropy)
    narrow, wide = (trained(tmp_path / f"{limit}", Clamped(limit), step) for limit in (1e-3, 6.0))
    assert ("saturated-activation", "warning", "") in told(narrow)
    assert told(wide) == set()


@pytest.mark.parametrize("limit", [0.01, 2.0])
def test_a_hardtanh_is_judged_by_its_own_limits(limit: float, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 32), nn.Hardtanh(-limit, limit), nn.Linear(32, 5))
    found = trained(tmp_path, model, partial(of, CLASSES, F.cross_entropy))
    assert told(found) == ({("saturated-activation", "warning", "1")} if limit < 1 else set())


# Normalisations


@pytest.mark.parametrize("sizes", [pytest.param((64, 24), id="all"), pytest.param((24,), id="features")])
def test_a_layer_norm_over_the_samples_is_told(sizes: tuple[int, ...], tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 24), nn.LayerNorm(sizes), nn.ReLU(), nn.Linear(24, 5))
    found = trained(tmp_path, model, partial(of, CLASSES, F.cross_entropy))
    assert told(found) == ({("normalised-over-batch", "warning", "1")} if len(sizes) > 1 else set())


@pytest.mark.parametrize(
    ("momentum", "is_new", "expected"),
    [
        pytest.param(0.0, True, {("norm-momentum", "warning", "1")}, id="0"),
        pytest.param(0.0, False, set(), id="0, of a trained network"),
        pytest.param(0.1, True, set(), id="a tenth"),
    ],
)
def test_running_statistics_that_no_batch_changes_are_told(
    momentum: float, is_new: bool, expected: set[tuple[str, str, str | None]], tmp_path: Path
) -> None:
    norm = nn.BatchNorm1d(24, momentum=momentum)
    if not is_new:
        nn.init.uniform_(norm.weight, 0.5, 1.5)
    model = nn.Sequential(nn.Linear(8, 24), norm, nn.ReLU(), nn.Linear(24, 5))
    assert told(trained(tmp_path, model, partial(of, CLASSES, F.cross_entropy))) == expected


# Masks


class Attention(nn.Module):
    """Self-attention over tokens with a mask of padding, and the mean of the places with a token."""

    def __init__(self, *, inverted: bool, expanded: bool) -> None:
        super().__init__()
        self.embedding, self.qkv, self.head = nn.Embedding(20, 16), nn.Linear(16, 48), nn.Linear(16, 3)
        self.inverted, self.expanded = inverted, expanded

    def forward(self, tokens: Tensor) -> Tensor:
        samples, length = tokens.shape
        query, key, value = self.qkv(self.embedding(tokens)).view(samples, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        is_token = tokens != 0
        mask = (~is_token if self.inverted else is_token)[:, None, None]
        if self.expanded:
            mask = mask.expand(samples, 2, length, length)
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).flatten(2)
        kept = seen * is_token[..., None]
        result: Tensor = self.head(kept.sum(1) / is_token.sum(1, keepdim=True))
        return result


@pytest.mark.parametrize("expanded", [pytest.param(True, id="expanded"), pytest.param(False, id="of keys")])
@pytest.mark.parametrize("inverted", [pytest.param(True, id="inverted"), pytest.param(False, id="right")])
def test_a_mask_of_fused_attention_that_hides_tokens_is_told(inverted: bool, expanded: bool, tmp_path: Path) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        lengths = torch.randint(3, 12, (32, 1))
        tokens = torch.randint(1, 20, (32, 12)) * (torch.arange(12) < lengths)
        return F.cross_entropy(model(tokens), (tokens == 5).any(1).long() + (tokens == 9).any(1).long())

    found = trained(tmp_path, Attention(inverted=inverted, expanded=expanded), step, steps=8)
    kinds = {one.kind for one in found if one.severity != "info"}
    assert ("padding-mask-inverted" in kinds) is inverted


# Rates


def scheduled(folder: Path, factor: Callable[[int], float], *, steps: int = 100) -> list[Finding]:
    """What is told of a training whose rate is multiplied by `factor` of the step."""
    model = network(5)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    with watch(model, log_freq=1, backend="record", logdir=str(folder), run="run", verbose=False):
        for number in range(steps):
            optimizer.zero_grad()
            of(CLASSES, F.cross_entropy, model, number).backward()
            optimizer.step()
            schedule.step()
    return list(open_run(str(folder / "run")).model().findings())


def wave(period: int, step: int) -> float:
    return float(0.5 + 0.5 * torch.cos(torch.tensor(2 * torch.pi * step / period)))


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        pytest.param(partial(wave, 12), {("learning-rate-gone", "warning", None)}, id="every 12 updates"),
        pytest.param(partial(wave, 60), set(), id="every 60 updates"),
        pytest.param(lambda step: max(wave(12, step), 0.1), set(), id="down to a tenth"),
        pytest.param(lambda step: 1.0, set(), id="constant"),
    ],
)
def test_a_rate_that_vanishes_every_few_updates_is_told(
    factor: Callable[[int], float], expected: set[tuple[str, str, str | None]], tmp_path: Path
) -> None:
    assert told(scheduled(tmp_path, factor)) == expected


@pytest.mark.parametrize(
    ("rate", "expected"),
    [pytest.param(1e-13, {("update-too-small", "warning", "0")}, id="tiny"), pytest.param(1e-5, set(), id="small")],
)
def test_a_layer_whose_updates_round_to_nothing_is_told(
    rate: float, expected: set[tuple[str, str, str | None]], tmp_path: Path
) -> None:
    model = network(5)
    groups: list[dict[str, object]] = [{"params": model[0].parameters(), "lr": rate}, {"params": model[2].parameters()}]
    optimizer = torch.optim.Adam(groups, 0.01)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for number in range(40):
            optimizer.zero_grad()
            of(CLASSES, F.cross_entropy, model, number).backward()
            optimizer.step()
    assert told(list(open_run(str(tmp_path / "run")).model().findings())) == expected


# Directions


class Twins(nn.Module):
    """An encoder and a predictor; gives what both make of a view."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
        self.predictor = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))

    def forward(self, view: Tensor) -> tuple[Tensor, Tensor]:
        code = self.encoder(view)
        return code, self.predictor(code)


@pytest.mark.parametrize("repels", [pytest.param(False, id="attracted alone"), pytest.param(True, id="contrast")])
def test_vectors_that_come_to_point_the_same_way_are_told(repels: bool, tmp_path: Path) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        samples = SAMPLES[torch.randint(len(SAMPLES), (64,))]
        (_, first), (second, _) = (model(samples + 0.2 * torch.randn(64, 8)) for _ in range(2))
        likeness = F.normalize(first, dim=1) @ F.normalize(second, dim=1).T
        return F.cross_entropy(likeness / 0.2, torch.arange(64)) if repels else -likeness.diagonal().mean()

    found = trained(tmp_path, Twins(), step, steps=60, rate=2.0 if not repels else 0.1, momentum=0.9)
    assert ({one for one in told(found) if one[0] == "collapse"} != set()) is not repels
