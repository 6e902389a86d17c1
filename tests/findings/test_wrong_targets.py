"""Losses, targets and batches that are made wrong are told, and healthy ones that look like them are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.trainings import Step, trained
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.finding import Finding

pytestmark = pytest.mark.slow

torch.manual_seed(0)  # models are made as this file is read


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def told(findings: list[Finding], kind: str) -> list[tuple[str, str | None]]:
    return [(one.severity, one.module) for one in findings if one.kind == kind]


def network(outputs: int, *ends: nn.Module, inputs: int = 8) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 24), nn.Tanh(), nn.Linear(24, outputs), *ends)


class Ending(nn.Module):
    """A network whose outputs go through a function."""

    def __init__(self, outputs: int, end: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.body, self.end = network(outputs), end

    def forward(self, samples: Tensor) -> Tensor:
        return self.end(self.body(samples))


SAMPLES = torch.randn(256, 8, generator=torch.Generator().manual_seed(1))
NUMBERS = SAMPLES[:, :2].sum(1) + 0.5 * SAMPLES[:, 2] ** 2
CLASSES = (2 * SAMPLES[:, :5]).argmax(1)


def drawn(*tensors: Tensor, size: int = 32) -> Iterator[Tensor]:
    at = torch.randint(len(SAMPLES), (size,))
    return iter([one[at] for one in tensors])


# Targets that broadcast


def squared(predictions: Tensor, targets: Tensor) -> Tensor:
    return (predictions - targets).square().mean()


def of_columns(model: nn.Module, _: int) -> Tensor:
    samples, numbers = drawn(SAMPLES, NUMBERS)
    return squared(model(samples), numbers)


def of_columns_halved(model: nn.Module, step: int) -> Tensor:
    return of_columns(model, step) / 2


def of_all_samples(model: nn.Module, _: int) -> Tensor:
    return squared(model(SAMPLES), NUMBERS)


def of_flat_predictions(model: nn.Module, _: int) -> Tensor:
    samples, numbers = drawn(SAMPLES, NUMBERS)
    return squared(model(samples), numbers[:, None])


def of_equal_shapes(model: nn.Module, _: int) -> Tensor:
    samples, numbers = drawn(SAMPLES, NUMBERS)
    return squared(model(samples), numbers[:, None])


def of_one_number(model: nn.Module, _: int) -> Tensor:
    [samples] = drawn(SAMPLES)
    return squared(model(samples), torch.ones(()))


def of_a_number_each(model: nn.Module, _: int) -> tuple[Tensor, Tensor]:
    """Predictions for a batch around one point, whose samples all have its number."""
    centre = torch.randn(1, 8)
    return model(centre + 0.3 * torch.randn(32, 8)), centre[:, :1].tanh()


def of_a_number_each_and_a_penalty(model: nn.Module, step: int) -> Tensor:
    penalty = torch.stack([one.square().sum() for one in model.parameters()]).sum()
    return squared(*of_a_number_each(model, step)) + 1e-2 * penalty


def of_a_number_each_softly(model: nn.Module, step: int) -> Tensor:
    predictions, numbers = of_a_number_each(model, step)
    return (predictions - 4 * numbers).cosh().log().mean()


def of_one_number_and_a_penalty(model: nn.Module, step: int) -> Tensor:
    return of_one_number(model, step) + 0.1 * sum(one.square().sum() for one in model.parameters())


def of_a_number_for_each_batch(model: nn.Module, _: int) -> Tensor:
    samples, numbers = drawn(SAMPLES, NUMBERS)
    return squared(model(samples), numbers.mean())


@pytest.mark.parametrize(
    ("ends", "step", "logs", "severity"),
    [
        pytest.param((), of_columns, True, "warning", id="columns and flat targets"),
        pytest.param((), of_columns_halved, True, "warning", id="half of the squares"),
        pytest.param((), of_all_samples, True, "warning", id="all samples at each step"),
        pytest.param((nn.Flatten(0),), of_flat_predictions, True, "warning", id="flat predictions and columns"),
        pytest.param((), of_columns, False, "info", id="without a logged loss"),
        pytest.param((), of_all_samples, False, None, id="all samples, without a logged loss"),
        pytest.param((), of_equal_shapes, True, None, id="equal shapes"),
        pytest.param((), of_one_number, True, None, id="one number"),
        pytest.param((), of_one_number_and_a_penalty, True, None, id="one number, and a penalty"),
        pytest.param((), of_a_number_each_and_a_penalty, True, None, id="a number for each batch, and a penalty"),
        pytest.param((), of_a_number_each_softly, True, None, id="a number for each batch, and a bounded gradient"),
        pytest.param((), of_a_number_for_each_batch, True, None, id="a number for each batch"),
    ],
)
def test_targets_that_broadcast_are_told(
    ends: tuple[nn.Module, ...], step: Step, *, logs: bool, severity: str | None, tmp_path: Path
) -> None:
    found = trained(tmp_path, network(1, *ends), step, logs=logs)
    assert told(found, "targets-broadcast") == ([(severity, "")] if severity else [])


def of_several(model: nn.Module, _: int, *, turned: bool = False, own: bool = False) -> Tensor:
    """Three numbers of each sample; of another shape than those of the model, if they are `turned`."""
    samples, numbers = drawn(SAMPLES, NUMBERS)
    targets = numbers[:, None] * torch.tensor([1.0, -1.0, 2.0])
    if own:
        targets = targets.mean(0).expand(32, 3)
    return squared(model(samples), targets[:, None] if turned else targets)


@pytest.mark.parametrize(
    ("step", "logs", "severity"),
    [
        pytest.param(partial(of_several, turned=True), True, "warning", id="one more dimension"),
        pytest.param(partial(of_several, turned=True), False, "info", id="without a logged loss"),
        pytest.param(of_several, True, None, id="equal shapes"),
        pytest.param(partial(of_several, own=True), True, None, id="the same target for each sample of a batch"),
    ],
)
def test_targets_of_several_numbers_that_broadcast_are_told(
    step: Step, *, logs: bool, severity: str | None, tmp_path: Path
) -> None:
    found = trained(tmp_path, network(3), step, logs=logs)
    assert told(found, "targets-broadcast") == ([(severity, "")] if severity else [])


def absolute(model: nn.Module, _: int, *, end: str = "mean", flat: bool = False, size: int = 33) -> Tensor:
    samples, numbers = drawn(SAMPLES, NUMBERS, size=size)
    return F.l1_loss(model(samples), numbers if flat else numbers[:, None], reduction=end)


def ranked(model: nn.Module, _: int) -> Tensor:
    """Pairs whose order is wrong count, as in a hinge loss of pairs."""
    samples, numbers = drawn(SAMPLES, NUMBERS)
    predictions = model(samples)
    return F.relu(0.1 - (predictions - predictions.T) * (numbers[:, None] - numbers).sign()).mean()


def two_absolute_errors(model: nn.Module, step: int) -> Tensor:
    samples, numbers = drawn(SAMPLES, NUMBERS)
    predictions = model(samples)
    return F.l1_loss(predictions, numbers[:, None]) + F.l1_loss(predictions, torch.zeros(32, 1)) / 2


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("logs", [True, False])
@pytest.mark.parametrize(
    ("step", "is_told"),
    [
        pytest.param(partial(absolute, flat=True), True, id="a mean"),
        pytest.param(partial(absolute, flat=True, end="sum"), True, id="a sum"),
        pytest.param(absolute, False, id="equal shapes"),
        pytest.param(partial(absolute, end="sum"), False, id="a sum of equal shapes"),
        pytest.param(ranked, False, id="pairs that are ranked"),
        pytest.param(two_absolute_errors, False, id="two absolute errors"),
    ],
)
def test_absolute_errors_that_broadcast_are_told(step: Step, *, is_told: bool, logs: bool, tmp_path: Path) -> None:
    found = trained(tmp_path, network(1), step, logs=logs, rate=1e-3)
    assert told(found, "targets-broadcast") == ([("warning", "")] if is_told else [])


def test_predictions_that_broadcast_learn_the_median_where_errors_are_absolute() -> None:
    """The text says so."""
    predictions = torch.full((33, 1), float(NUMBERS[:33].median()), requires_grad=True)
    (predictions - NUMBERS[:33]).abs().mean().backward()
    assert predictions.grad is not None
    assert predictions.grad.abs().max() < 1e-8


def test_predictions_that_broadcast_learn_the_mean_of_the_targets() -> None:
    """The text says so."""
    predictions = torch.randn(32, 1, requires_grad=True)
    squared(predictions, NUMBERS[:32]).backward()
    expected = (predictions - NUMBERS[:32].mean()).detach() * 2 / 32
    assert predictions.grad is not None
    assert torch.allclose(predictions.grad, expected, atol=1e-6)


# What a network knows when it begins


def of_guesses(model: nn.Module, _: int, *, knows: bool) -> Tensor:
    """Labels by chance: as likely as the model takes them for at first, or all the same."""
    samples = torch.randn(512, 8)
    logits = samples @ torch.eye(8)[:5].T * (3 if knows else 0)
    return F.cross_entropy(model(samples), torch.multinomial(logits.softmax(1), 1)[:, 0])


@pytest.mark.parametrize(("knows", "severity"), [(True, "info"), (False, "warning")])
def test_a_loss_that_does_not_fall_is_no_warning_of_a_network_that_was_trained_before(
    tmp_path: Path, *, knows: bool, severity: str
) -> None:
    model = nn.Linear(8, 5)
    with torch.no_grad():
        model.weight.copy_(torch.eye(8)[:5] * 3 if knows else 0.1 * torch.randn(5, 8))
        model.bias.zero_()
    found = trained(tmp_path, model, partial(of_guesses, knows=knows), steps=200, rate=0.5)
    assert [one.severity for one in found if one.kind == "loss-not-falling"] == [severity]


# Dropout behind the last layer


def to_classes(model: nn.Module, _: int) -> Tensor:
    samples, classes = drawn(SAMPLES, CLASSES)
    return F.cross_entropy(model(samples), classes)


def to_words(model: nn.Module, _: int) -> Tensor:
    """Each sample has three words, of which each is of a class."""
    at = torch.randint(len(SAMPLES), (32, 3))
    return F.cross_entropy(model(SAMPLES[at]).flatten(0, 1), CLASSES[at].flatten())


def to_numbers_roughly(model: nn.Module, _: int) -> Tensor:
    samples, numbers = drawn(SAMPLES, NUMBERS)
    return F.huber_loss(model(samples)[:, 0], numbers)


def to_vectors(model: nn.Module, _: int) -> Tensor:
    [samples] = drawn(SAMPLES)
    return F.mse_loss(model(samples), samples[:, :5] + 1)


def dropped(values: Tensor) -> Tensor:
    return F.dropout(values, 0.3)


@pytest.mark.parametrize(
    ("model", "step", "expected"),
    [
        pytest.param(network(5, nn.Dropout(0.3)), to_classes, [("warning", "3")], id="of logits"),
        pytest.param(Ending(5, dropped), to_classes, [("warning", "")], id="of logits, by a function"),
        pytest.param(network(5, nn.Dropout(0.3)), to_vectors, [("warning", "3")], id="of numbers"),
        pytest.param(Ending(5, dropped), to_vectors, [("info", "")], id="of numbers, by a function"),
        pytest.param(network(5, nn.Dropout(0.3)), to_words, [("warning", "3")], id="of the logits of words"),
        pytest.param(network(1, nn.Dropout(0.3)), to_numbers_roughly, [], id="of one number, not its square"),
        pytest.param(network(5, nn.Dropout(0.0)), to_classes, [], id="of none"),
        pytest.param(network(5, nn.Dropout(0.3)).eval(), to_classes, [], id="in eval mode"),
        pytest.param(network(5, nn.ReLU()), to_classes, [], id="zeros of a ReLU"),
        pytest.param(Ending(5, lambda x: x * torch.eye(5)[0]), to_vectors, [], id="zeros at the same places"),
        pytest.param(nn.Sequential(nn.Dropout(0.3), network(5)), to_classes, [], id="before the first layer"),
    ],
)
def test_dropout_behind_the_last_layer_is_told(
    model: nn.Module, step: Step, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    found = trained(tmp_path, model, step)
    assert told(found, "dropout-on-output") == expected
    assert told(found, "rule-failed") == []


def test_dropout_of_features_that_another_network_takes_is_not_told(tmp_path: Path) -> None:
    head = nn.Linear(5, 5)

    def step(model: nn.Module, _: int) -> Tensor:
        samples, classes = drawn(SAMPLES, CLASSES)
        return F.cross_entropy(head(model(samples)), classes)

    found = trained(tmp_path, network(5, nn.Dropout(0.3)), step, beside=head)
    assert told(found, "dropout-on-output") == []


def test_a_network_of_one_unit_is_not_taken_for_targets_that_broadcast(tmp_path: Path) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        samples = torch.randn(16, 1)
        return squared(model(samples), 0.7 * samples)

    model = nn.Sequential(nn.Linear(1, 1), nn.Tanh(), nn.Linear(1, 1))
    nn.init.constant_(model[0].weight, 0.8)  # type: ignore[arg-type]
    nn.init.constant_(model[2].weight, -0.5)  # type: ignore[arg-type]
    assert told(trained(tmp_path, model, step, rate=0.002), "targets-broadcast") == []


# Batches of one class


ORDER = CLASSES.argsort(stable=True)


def in_order(model: nn.Module, step: int) -> Tensor:
    at = ORDER[torch.arange(step * 24, step * 24 + 24) % len(ORDER)]
    return F.cross_entropy(model(SAMPLES[at]), CLASSES[at])


def of_a_rare_class(model: nn.Module, _: int) -> Tensor:
    samples, classes = drawn(SAMPLES, CLASSES)
    return F.cross_entropy(model(samples), torch.where(torch.rand(32) < 0.03, classes, 0))


def of_many_passes(model: nn.Module, _: int) -> Tensor:
    return torch.stack([to_classes(model, 0) for _ in range(20)]).sum()


@pytest.mark.parametrize(
    ("step", "rate", "expected"),
    [
        pytest.param(in_order, 0.5, [("warning", "")], id="in the order of the labels"),
        pytest.param(in_order, 0.02, [("warning", "")], id="in their order, at a small learning rate"),
        pytest.param(to_classes, 0.5, [], id="shuffled"),
        pytest.param(of_a_rare_class, 1e-4, [], id="nearly all of one class"),
        pytest.param(of_a_rare_class, 0.02, [], id="nearly all of one class, which is learned"),
        pytest.param(of_many_passes, 0.01, [], id="twenty passes"),
    ],
)
def test_batches_of_one_class_are_told(
    step: Step, rate: float, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert told(trained(tmp_path, network(5), step, rate=rate), "one-class-batches") == expected


# A loss with the wrong sign


def negative(step: Step) -> Step:
    return lambda model, number: -step(model, number)


def to_actions(model: nn.Module, _: int) -> Tensor:
    """A policy that loses 1 by each action that is not the sample's class."""
    samples, classes = drawn(SAMPLES, CLASSES)
    policy = torch.distributions.Categorical(logits=model(samples))
    actions = policy.sample()
    return (policy.log_prob(actions) * (actions != classes)).mean()


def to_a_cosine(model: nn.Module, _: int) -> Tensor:
    [samples] = drawn(SAMPLES)
    return -F.cosine_similarity(model(samples), samples[:, :5]).mean()


@pytest.mark.parametrize(
    ("step", "options", "is_told"),
    [
        pytest.param(negative(to_classes), {}, True, id="cross entropy"),
        pytest.param(negative(to_vectors), {}, True, id="squared error"),
        pytest.param(negative(to_classes), {"maximize": True}, False, id="likelihood that is maximised"),
        pytest.param(to_classes, {}, False, id="positive"),
        pytest.param(to_a_cosine, {}, False, id="cosine"),
        pytest.param(to_actions, {}, False, id="policy"),
    ],
)
def test_a_loss_with_the_wrong_sign_is_told(
    step: Step, options: dict[str, bool], *, is_told: bool, tmp_path: Path
) -> None:
    found = trained(tmp_path, network(5), step, steps=80, rate=0.2, **options)
    assert told(found, "loss-negated") == ([("error", None)] if is_told else [])


# Targets below zero for a ReLU


def to_numbers(model: nn.Module, _: int) -> Tensor:
    samples, numbers = drawn(SAMPLES, NUMBERS)
    return F.mse_loss(model(samples)[:, 0], numbers)


def to_positive_numbers(model: nn.Module, _: int) -> Tensor:
    samples, numbers = drawn(SAMPLES, NUMBERS)
    return F.mse_loss(model(samples)[:, 0], numbers.relu())


@pytest.mark.parametrize(
    ("model", "step", "expected"),
    [
        pytest.param(network(1, nn.ReLU()), to_numbers, [("warning", "3")], id="module"),
        pytest.param(Ending(1, torch.relu), to_numbers, [("warning", "")], id="function"),
        pytest.param(network(1, nn.ReLU()), to_positive_numbers, [], id="targets from zero on"),
        pytest.param(network(1), to_numbers, [], id="no ReLU"),
    ],
)
def test_targets_below_the_zero_of_a_relu_are_told(
    model: nn.Module, step: Step, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    found = trained(tmp_path, model, step, steps=120, rate=0.1)
    assert told(found, "targets-out-of-range") == expected


# Latents


class Autoencoder(nn.Module):
    """A variational autoencoder with a name for the means and one for the spreads."""

    def __init__(self, mean: str, spread: str) -> None:
        super().__init__()
        self.names = mean, spread
        for name in self.names:
            self.add_module(name, nn.Linear(8, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 8))

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, spread = (self.get_submodule(name)(samples) for name in self.names)
        return self.decoder(mean + torch.randn_like(mean) * (spread / 2).exp()), mean, spread


class Policy(Autoencoder):
    """The same layers, with a value beside them instead of a decoder."""

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, spread = (self.get_submodule(name)(samples) for name in self.names)
        return self.decoder(samples[:, :3]) + (mean + spread).mean(), mean, spread


def weighted(weight: float) -> Step:
    def step(model: nn.Module, _: int) -> Tensor:
        [samples] = drawn(SAMPLES)
        seen, mean, spread = model(samples)
        divergence = -0.5 * (1 + spread - mean.square() - spread.exp()).sum(1).mean()
        return F.mse_loss(seen, samples) + weight * divergence

    return step


@pytest.mark.parametrize(
    ("model", "weight", "steps", "place"),
    [
        pytest.param(Autoencoder("mu", "logvar"), 1.0, 240, "mu", id="collapsed"),
        pytest.param(Autoencoder("fc_mean", "fc_log_var"), 1.0, 240, "fc_mean", id="other names"),
        pytest.param(Autoencoder("mu", "logvar"), 1.0, 100, None, id="may yet leave it"),
        pytest.param(Autoencoder("mu", "logvar"), 0.001, 240, None, id="in use"),
        pytest.param(Autoencoder("fc21", "fc22"), 1.0, 240, "fc21", id="names that do not tell"),
        pytest.param(Autoencoder("fc21", "fc22"), 0.001, 240, None, id="names that do not tell, in use"),
        pytest.param(Policy("fc21", "fc22"), 1.0, 240, None, id="policy with names that do not tell"),
        pytest.param(Policy("mu", "log_std"), 1.0, 210, None, id="policy"),
    ],
)
def test_latents_that_say_nothing_are_told(
    model: nn.Module, weight: float, steps: int, place: str | None, tmp_path: Path
) -> None:
    found = trained(tmp_path, model, weighted(weight), steps=steps, rate=0.1)
    assert told(found, "posterior-collapse") == ([("warning", place)] if place else [])


class Agent(nn.Module):
    """A policy, and beside it in the same module a critic that takes its actions."""

    def __init__(self) -> None:
        super().__init__()
        self.mu, self.log_std = nn.Linear(8, 3), nn.Linear(8, 3)
        self.critic = nn.Linear(3, 1)
        nn.init.zeros_(self.mu.bias)
        nn.init.zeros_(self.log_std.bias)

    def forward(self, samples: Tensor) -> Tensor:
        mean, spread = self.mu(samples), self.log_std(samples)
        return self.critic(mean + torch.randn_like(mean) * spread.exp())


def test_actions_that_a_critic_takes_are_no_latents(tmp_path: Path) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        [samples] = drawn(0.1 * SAMPLES)
        return F.mse_loss(model(samples), samples[:, :1])

    assert told(trained(tmp_path, Agent(), step, steps=210, rate=1e-4), "posterior-collapse") == []


# Frozen layers


def backbone(*, layers: int = 2, width: int = 64, begin: Callable[[Tensor], object] = lambda _: None) -> nn.Sequential:
    """Layers that are frozen, and one that is trained."""
    frozen = [nn.Linear(8 if at == 0 else width, width) for at in range(layers)]
    for one in frozen:
        begin(one.weight)
        one.requires_grad_(False)
    return nn.Sequential(*frozen, nn.Tanh(), nn.Linear(width, 5))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param(backbone(), [("info", "0")], id="as made"),
        pytest.param(backbone(begin=nn.init.xavier_normal_), [], id="otherwise"),
        pytest.param(backbone(layers=8, width=8), [("info", "0")], id="as made, of few elements"),
        pytest.param(
            backbone(layers=8, width=8, begin=lambda one: one.data.add_(0.1 * torch.randn_like(one))),
            [],
            id="trained, of few elements",
        ),
        pytest.param(backbone(layers=1), [], id="one layer"),
        pytest.param(network(5), [], id="trained"),
    ],
)
def test_frozen_layers_that_were_never_trained_are_told(
    model: nn.Module, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert told(trained(tmp_path, model, to_classes), "frozen-untrained") == expected


def test_frozen_layers_that_follow_others_are_trained(tmp_path: Path) -> None:
    model = backbone()

    def step(model: nn.Module, number: int) -> Tensor:
        for one in model.parameters():
            if not one.requires_grad:
                one.data.mul_(1.001)
        return to_classes(model, number)

    assert told(trained(tmp_path, model, step), "frozen-untrained") == []


# Outputs that are sampled


class Words(nn.Module):
    """A model of words, 24 samples of 20 of them, of 50: 24,000 numbers."""

    def __init__(self, end: Callable[[Tensor], Tensor], words: int = 50) -> None:
        super().__init__()
        self.words, self.out, self.end = nn.Embedding(words, 16), nn.Linear(16, words), end

    def forward(self, words: Tensor) -> Tensor:
        return self.end(self.out(self.words(words)))


def probabilities(logits: Tensor) -> Tensor:
    return logits.softmax(-1)


def entropy(outputs: Tensor, words: Tensor) -> Tensor:
    return F.cross_entropy(outputs.flatten(0, 1), words.flatten())


def likelihood(outputs: Tensor, words: Tensor) -> Tensor:
    return F.nll_loss(outputs.log().flatten(0, 1), words.flatten())


def dice(outputs: Tensor, words: Tensor) -> Tensor:
    right = F.one_hot(words, outputs.shape[-1])
    return 1 - 2 * (outputs * right).sum() / (outputs.sum() + right.sum())


@pytest.mark.parametrize("logs", [True, False])
def test_a_softmax_before_a_dice_coefficient_is_not_warned_of(logs: bool, tmp_path: Path) -> None:
    """Its gradient has the size of that of a cross entropy."""

    def step(model: nn.Module, _: int) -> Tensor:
        words = torch.randint(0, 4, (24, 20))
        return dice(model(words), words)

    found = trained(tmp_path, Words(probabilities, 4), step, steps=40, logs=logs, rate=1.0)
    assert [one for one in told(found, "softmax-before-loss") if one[0] != "info"] == []


@pytest.mark.parametrize(
    ("end", "loss", "is_told"),
    [
        pytest.param(probabilities, entropy, True, id="softmax twice"),
        pytest.param(probabilities, likelihood, False, id="softmax once"),
        pytest.param(torch.sigmoid, entropy, False, id="sigmoid"),
        pytest.param(lambda logits: logits, entropy, False, id="logits"),
    ],
)
def test_a_softmax_of_very_many_words_before_a_loss_with_one_is_told(
    end: Callable[[Tensor], Tensor], loss: Callable[[Tensor, Tensor], Tensor], *, is_told: bool, tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        words = torch.randint(0, 50, (24, 20))
        return loss(model(words), (words + 1) % 50)

    found = trained(tmp_path, Words(end), step, steps=10)
    assert told(found, "softmax-before-loss") == ([("warning", "")] if is_told else [])


# Probabilities that sum to one, for a loss of logits of their own


LABELS = F.one_hot(CLASSES, 5).float()


def of_labels(loss: Callable[..., Tensor]) -> Step:
    def step(model: nn.Module, _: int) -> Tensor:
        samples, labels = drawn(SAMPLES, LABELS)
        return loss(model(samples), labels)

    return step


@pytest.mark.parametrize("logs", [True, False])
@pytest.mark.parametrize(
    ("ends", "loss", "is_told"),
    [
        pytest.param([nn.Softmax(1)], F.binary_cross_entropy_with_logits, True, id="a sigmoid behind the softmax"),
        pytest.param(
            [nn.Softmax(1)],
            partial(F.binary_cross_entropy_with_logits, reduction="sum"),
            True,
            id="a sigmoid behind the softmax, and a sum",
        ),
        pytest.param([], F.binary_cross_entropy_with_logits, False, id="a sigmoid alone"),
        pytest.param([nn.Softmax(1)], F.binary_cross_entropy, False, id="a softmax alone"),
        pytest.param([nn.Softmax(1)], F.mse_loss, False, id="squared errors of a softmax"),
        pytest.param([nn.Softmax(1)], F.l1_loss, False, id="absolute errors of a softmax"),
    ],
)
def test_a_softmax_before_a_loss_that_applies_sigmoids_is_told(
    ends: list[nn.Module], loss: Callable[..., Tensor], *, is_told: bool, logs: bool, tmp_path: Path
) -> None:
    rate = 0.02 if isinstance(loss, partial) else 1.0
    found = trained(tmp_path, network(5, *ends), of_labels(loss), logs=logs, rate=rate)
    assert told(found, "softmax-before-loss") == ([("warning", "3")] if is_told else [])


@pytest.mark.parametrize(
    ("end", "loss", "is_told"),
    [
        pytest.param(nn.Sigmoid(), F.binary_cross_entropy_with_logits, True, id="twice"),
        pytest.param(nn.Sigmoid(), F.binary_cross_entropy, False, id="once"),
        pytest.param(nn.Sigmoid(), lambda found, label: F.mse_loss(found, label) / 2, False, id="squared errors"),
        pytest.param(nn.Identity(), F.binary_cross_entropy_with_logits, False, id="logits"),
    ],
)
def test_a_critic_whose_sigmoid_is_applied_twice_is_told(
    end: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], *, is_told: bool, tmp_path: Path
) -> None:
    """It is called for what is real, and for what was made, with one label for each."""

    def step(model: nn.Module, _: int) -> Tensor:
        real, made = model(torch.randn(16, 8) + 1), model(torch.randn(16, 8) - 1)
        return loss(real, torch.ones_like(real)) + loss(made, torch.zeros_like(made))

    found = trained(tmp_path, network(1, end), step, logs=False, rate=0.3)
    assert told(found, "softmax-before-loss") == ([("warning", "3")] if is_told else [])


# Targets in large units


def of_units(unit: float) -> Step:
    def step(model: nn.Module, _: int) -> Tensor:
        samples, numbers = drawn(SAMPLES, NUMBERS)
        return F.mse_loss(model(samples), unit * (1 + numbers[:, None]))

    return step


@pytest.mark.parametrize(
    ("unit", "rate", "ends", "expected"),
    [
        pytest.param(1e5, 1e-8, [], [("warning", "")], id="far from the targets"),
        pytest.param(1e5, 1e-2, [], [], id="on the way to them"),
        pytest.param(1.0, 1e-5, [], [], id="too slow to learn anything"),
        pytest.param(-1e5, 1e-2, [nn.ReLU()], [], id="behind a ReLU that lets nothing through"),
    ],
)
def test_targets_far_from_outputs_that_do_not_come_closer_are_told(
    unit: float, rate: float, ends: list[nn.Module], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    found = trained(tmp_path, network(1, *ends), of_units(unit), steps=60, rate=rate)
    assert told(found, "targets-not-scaled") == expected


# Losses that are divided, as of gradients that are added up, or have weights for the classes


WEIGHTS = torch.linspace(0.5, 2, 5)
WEIGHTED = nn.NLLLoss(weight=WEIGHTS)


@pytest.mark.parametrize(
    ("end", "loss", "kind"),
    [
        pytest.param(nn.Softmax(1), F.cross_entropy, "softmax-before-loss", id="softmax"),
        pytest.param(nn.Sigmoid(), F.cross_entropy, "activation-before-loss", id="sigmoid"),
        pytest.param(nn.Identity(), F.nll_loss, "logits-before-nll", id="logits"),
        pytest.param(nn.Identity(), WEIGHTED, "logits-before-nll", id="logits, with weights of classes"),
        pytest.param(nn.Identity(), F.cross_entropy, None, id="cross entropy"),
        pytest.param(nn.LogSoftmax(1), WEIGHTED, None, id="logarithms, with weights of classes"),
    ],
)
@pytest.mark.parametrize(
    ("parts", "of_logged"),
    [
        pytest.param(1, 1, id="whole"),
        pytest.param(4, 1, id="in parts"),
        pytest.param(4, 4, id="in parts, logged whole"),
    ],
)
def test_a_loss_of_which_each_pass_gives_a_part_is_told(
    end: nn.Module, loss: Callable[..., Tensor], kind: str | None, parts: int, of_logged: int, tmp_path: Path
) -> None:
    model = network(5, end)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False) as watcher:
        for _ in range(24):
            for _ in range(parts):
                samples, classes = drawn(SAMPLES, CLASSES)
                part = loss(model(samples), classes) / parts
                part.backward()
            optimizer.step()
            optimizer.zero_grad()
            watcher.log({"loss": part.item() * of_logged})
    ours = {"softmax-before-loss", "activation-before-loss", "logits-before-nll"}
    found = open_run(str(tmp_path / "run")).model().findings()
    assert [one.kind for one in found if one.kind in ours] == ([kind] if kind else [])


# Mixed precision


def of_classes(model: nn.Module) -> Tensor:
    samples, classes = drawn(SAMPLES, CLASSES)
    return F.cross_entropy(model(samples), classes)


def of_column(model: nn.Module, *, flat: bool) -> Tensor:
    samples, numbers = drawn(SAMPLES, NUMBERS)
    found = model(samples).float()
    return squared(found[:, 0] if flat else found, numbers)


def of_logits(model: nn.Module) -> Tensor:
    samples, classes = drawn(SAMPLES, CLASSES)
    return F.nll_loss(model(samples), classes)


@pytest.mark.parametrize(
    ("outputs", "end", "loss", "kind"),
    [
        pytest.param(5, nn.Softmax(1), of_classes, "softmax-before-loss", id="softmax"),
        pytest.param(5, nn.ReLU(), of_classes, "activation-before-loss", id="ReLU"),
        pytest.param(5, nn.Identity(), of_logits, "logits-before-nll", id="logits"),
        pytest.param(1, nn.Identity(), partial(of_column, flat=False), "targets-broadcast", id="broadcast"),
        pytest.param(5, nn.Identity(), of_classes, None, id="classes"),
        pytest.param(1, nn.Identity(), partial(of_column, flat=True), None, id="numbers"),
    ],
)
@pytest.mark.parametrize("is_known", [False, True])
def test_a_loss_that_is_scaled_is_judged_as_one_that_is_not(
    outputs: int, end: nn.Module, loss: Callable[[nn.Module], Tensor], kind: str | None, is_known: bool, tmp_path: Path
) -> None:
    model = network(outputs, end)
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu", init_scale=2.0**12)
    folder, options = str(tmp_path), {"log_freq": 1, **({"scaler": scaler} if is_known else {})}
    with watch(model, backend="record", logdir=folder, run="run", verbose=False, **options) as watcher:  # type: ignore[arg-type]
        for _ in range(24):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                value = loss(model)
            scaler.scale(value).backward()
            scaler.step(optimizer)
            scaler.update()
            watcher.log({"loss": value.item()})
    found = open_run(str(tmp_path / "run")).model().findings()
    assert [one.kind for one in found if one.severity != "info" and not one.causes] == ([kind] if kind else [])


@pytest.mark.parametrize("is_scaled", [False, True])
def test_a_scaler_of_another_training_says_nothing_of_this_one(*, is_scaled: bool, tmp_path: Path) -> None:
    other = torch.amp.GradScaler("cpu", init_scale=2.0**5)
    other.scale(torch.ones(()))
    model = network(5)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, enabled=is_scaled)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(12):
            optimizer.zero_grad()
            scaler.scale(of_classes(model)).backward()
            scaler.step(optimizer)
            scaler.update()
    run = open_run(str(tmp_path / "run")).model()
    known = [one for one in run.training_facts if one is not None]
    assert {one.loss_scale for one in known} == {2.0**12 if is_scaled else None}
    assert all(one.clipped_norm == pytest.approx(one.gradient_norm, rel=1e-3) for one in known)
    assert [one.kind for one in run.findings() if one.severity != "info"] == []
    assert other.get_scale() == 2.0**5


def some_labels(model: nn.Module, _: int) -> Tensor:
    return F.nll_loss(model(SAMPLES)[:100], CLASSES[:100])


def one_for_each_class(model: nn.Module, _: int) -> Tensor:
    """Which of the samples is the first of a class."""
    first = torch.stack([torch.eq(CLASSES, label).int().argmax() for label in range(5)])
    return F.nll_loss(model(SAMPLES).T, first)


@pytest.mark.parametrize(
    ("dimension", "step", "is_told"),
    [
        pytest.param(0, some_labels, True, id="over the samples"),
        pytest.param(1, some_labels, False, id="over the classes"),
        pytest.param(0, one_for_each_class, False, id="one sample for each class"),
    ],
)
def test_logarithms_over_samples_of_which_some_have_labels_are_told(
    dimension: int, step: Step, *, is_told: bool, tmp_path: Path
) -> None:
    found = trained(tmp_path, network(5, nn.LogSoftmax(dimension)), step, rate=1.0)
    assert told(found, "softmax-over-batch") == ([("warning", "")] if is_told else [])


class Collapsed(nn.Module):
    """Gives all samples the same answer."""

    def forward(self, answers: Tensor) -> Tensor:
        return answers.mean(0, keepdim=True).expand_as(answers) / 100


def test_small_gradients_at_equal_answers_are_not_told_as_those_of_a_softmax_over_samples(tmp_path: Path) -> None:
    found = trained(tmp_path, network(5, Collapsed()), lambda model, _: model(SAMPLES).square().mean(), rate=1e-3)
    assert told(found, "softmax-over-batch") == []
