"""Faults of a batch of programs that the rules had not seen are told, and sound programs like them are not."""

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

SAMPLES = torch.randn(600, 8, generator=torch.Generator().manual_seed(1))
NUMBERS = SAMPLES[:, :1] * 2 - SAMPLES[:, 1:2] + 0.5
CLASSES = SAMPLES[:, :4].argmax(1)
RARE = (SAMPLES[:, 0] > 1).long()


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def network(outputs: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, outputs))


def of(targets: Tensor, loss: Loss, model: nn.Module, _: int) -> Tensor:
    at = torch.randint(len(SAMPLES), (32,))
    return loss(model(SAMPLES[at]), targets[at])


def told(folder: Path, model: nn.Module, targets: Tensor, loss: Loss) -> list[tuple[str, str | None]]:
    found = trained(folder, model, partial(of, targets, loss), rate=0.02)
    return [(one.kind, one.module) for one in found if one.is_at_least("warning")]


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        pytest.param(lambda out, y: (out.mean() - y.mean()) ** 2, ["loss-of-mean"], id="square of a mean error"),
        pytest.param(lambda out, y: (out - y).mean().abs(), ["loss-of-mean"], id="magnitude of a mean error"),
        pytest.param(F.mse_loss, [], id="squared error"),
        pytest.param(F.l1_loss, [], id="absolute error"),
        pytest.param(lambda out, y: F.l1_loss(out, y + 1000), [], id="absolute error far from targets"),
        pytest.param(lambda out, _: -out.mean(), [], id="linear loss, as a critic's"),
    ],
)
def test_a_loss_of_the_mean_prediction_is_told(loss: Loss, expected: list[str], tmp_path: Path) -> None:
    found = [kind for kind, _ in told(tmp_path, network(), NUMBERS, loss)]
    assert [kind for kind in found if kind == "loss-of-mean"] == expected


class Centred(nn.Module):
    """Standardises its inputs, or what its first layer gives, by a function of its own."""

    def __init__(self, first: Callable[[Tensor], Tensor], then: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.hidden, self.head = nn.Linear(8, 24), nn.Linear(24, 4)
        self.first, self.then = first, then

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.then(self.hidden(self.first(x)).tanh()))
        return out


def standardised(x: Tensor, *, dim: int) -> Tensor:
    return (x - x.mean(dim, keepdim=True)) / (x.std(dim, keepdim=True) + 1e-5)


def same(x: Tensor) -> Tensor:
    return x


OVER_BATCH, OVER_FEATURES = partial(standardised, dim=0), partial(standardised, dim=1)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param(partial(Centred, OVER_BATCH, same), [("normalised-over-batch", "hidden")], id="inputs"),
        pytest.param(
            partial(Centred, lambda x: OVER_BATCH(torch.cat([x[:, :5], 0 * x[:, :3] - 0.79], 1)), same),
            [("normalised-over-batch", "hidden")],
            id="inputs of which some are constant",
        ),
        pytest.param(partial(Centred, same, OVER_BATCH), [("normalised-over-batch", "head")], id="a hidden layer"),
        pytest.param(partial(Centred, OVER_FEATURES, OVER_FEATURES), [], id="each sample by itself"),
        pytest.param(
            lambda: nn.Sequential(nn.Linear(8, 24), nn.BatchNorm1d(24), nn.Identity(), nn.Linear(24, 4)),
            [],
            id="a batch normalisation",
        ),
    ],
)
def test_features_that_a_model_standardises_over_the_batch_are_told(
    model: Callable[[], nn.Module], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert told(tmp_path, model(), CLASSES, F.cross_entropy) == expected


def test_data_that_is_one_batch_may_be_standardised_over_it(tmp_path: Path) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        return F.cross_entropy(model(SAMPLES), CLASSES)

    found = trained(tmp_path, Centred(OVER_BATCH, same), step)
    assert not [one for one in found if one.kind == "normalised-over-batch"]


class Reader(nn.Module):
    """Predicts the next token, or the class of a sequence by its output at one place."""

    def __init__(self, *, batch_first: bool, place: int | None = None, classes: int = 12) -> None:
        super().__init__()
        self.tokens, self.place = nn.Embedding(12, 16), place
        self.rnn, self.head = nn.GRU(16, 24, batch_first=batch_first), nn.Linear(24, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        out = self.rnn(self.tokens(tokens))[0]
        found: Tensor = self.head(out if self.place is None else out[:, self.place])
        return found


def sequences() -> Tensor:
    return (torch.randint(12, (8, 1)) + torch.arange(7) * torch.randint(1, 3, (8, 1))) % 12


def next_tokens(model: nn.Module, _: int) -> Tensor:
    tokens = sequences()
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def next_tokens_in_time_first(model: nn.Module, _: int) -> Tensor:
    tokens = sequences().T
    return F.cross_entropy(model(tokens[:-1]).flatten(0, 1), tokens[1:].flatten())


def last_token(model: nn.Module, _: int) -> Tensor:
    tokens = sequences()
    return F.cross_entropy(model(tokens), tokens[:, -1])


@pytest.mark.parametrize(
    ("model", "step", "expected"),
    [
        pytest.param({"batch_first": False}, next_tokens, "batch-as-sequence", id="samples first, and not told so"),
        pytest.param({"batch_first": True}, next_tokens, None, id="samples first"),
        pytest.param({"batch_first": False}, next_tokens_in_time_first, None, id="places first"),
        pytest.param({"batch_first": True, "place": 0}, last_token, "state-detached", id="output at the first place"),
        pytest.param({"batch_first": True, "place": -1}, last_token, None, id="output at the last place"),
    ],
)
def test_a_recurrence_that_goes_the_wrong_way_or_nowhere_is_told(
    model: dict[str, bool], step: Callable[[nn.Module, int], Tensor], expected: str | None, tmp_path: Path
) -> None:
    found = [one for one in trained(tmp_path, Reader(**model), step, rate=0.5) if one.is_at_least("warning")]
    assert [(one.kind, one.module) for one in found] == ([(expected, "rnn")] if expected else [])


class Policy(nn.Module):
    """Logits of actions, or their probabilities, and a value."""

    def __init__(self, *, gives_shares: bool = False) -> None:
        super().__init__()
        self.body, self.actor, self.critic = nn.Linear(8, 24), nn.Linear(24, 3), nn.Linear(24, 1)
        self.gives_shares = gives_shares

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(x).tanh()
        logits = self.actor(h)
        return logits.softmax(-1) if self.gives_shares else logits, self.critic(h)


def of_policy(model: nn.Module, _: int, *, broadcasts: bool) -> Tensor:
    x = SAMPLES[torch.randint(len(SAMPLES), (64,))]
    logits, values = model(x)
    policy = torch.distributions.Categorical(logits=logits)
    actions = policy.sample()
    rewards = (actions == x[:, :3].argmax(1)).float()
    errors = rewards[:, None] - values
    advantages = errors.detach() if broadcasts else errors.detach().squeeze(1)
    return -(policy.log_prob(actions) * advantages).mean() + errors.square().mean() - 0.01 * policy.entropy().mean()


@pytest.mark.parametrize(
    ("gives_shares", "broadcasts", "expected"),
    [
        pytest.param(False, True, ["targets-broadcast"], id="advantages that broadcast"),
        pytest.param(True, False, ["softmax-before-loss"], id="probabilities as logits"),
        pytest.param(False, False, [], id="sound"),
    ],
)
def test_what_a_policys_loss_does_to_advantages_and_logits_is_told(
    gives_shares: bool, broadcasts: bool, expected: list[str], tmp_path: Path
) -> None:
    found = trained(tmp_path, Policy(gives_shares=gives_shares), partial(of_policy, broadcasts=broadcasts))
    assert [one.kind for one in found if one.is_at_least("warning")] == expected


def logit_loss(outputs: Tensor, labels: Tensor, *, positive: float) -> Tensor:
    return F.binary_cross_entropy_with_logits(outputs[:, 0], labels.float(), pos_weight=torch.tensor(positive))


@pytest.mark.parametrize(
    ("outputs", "labels", "loss", "expected"),
    [
        pytest.param(1, RARE, partial(logit_loss, positive=0.0), ["class-left-out"], id="pos_weight of 0"),
        pytest.param(2, RARE, nn.CrossEntropyLoss(torch.tensor([1.0, 0.0])), ["class-left-out"], id="weight of 0"),
        pytest.param(1, RARE, partial(logit_loss, positive=5.0), [], id="pos_weight of 5"),
        pytest.param(1, RARE * 0, partial(logit_loss, positive=1.0), ["one-class-batches"], id="one label"),
        pytest.param(1, RARE, partial(logit_loss, positive=1.0), [], id="two labels"),
    ],
)
def test_a_label_that_is_left_out_or_missing_is_told(
    outputs: int, labels: Tensor, loss: Loss, expected: list[str], tmp_path: Path
) -> None:
    assert [kind for kind, _ in told(tmp_path, network(outputs), labels, loss)] == expected


def of_pixels(model: nn.Module, _: int, *, loss: nn.Module) -> Tensor:
    images = torch.randn(8, 1, 12, 12)
    return loss(model(images + torch.randn_like(images) / 2), (images[:, 0] > 1).long())


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        pytest.param([1.0, 0.1], ["class-weights-inverted"], id="swapped"),
        pytest.param([0.2, 1.0], [], id="inverse shares"),
        pytest.param([1.0, 1.0], [], id="equal"),
    ],
)
def test_weights_of_the_classes_of_pixels_are_told(weight: list[float], expected: list[str], tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 3, padding=1))
    step = partial(of_pixels, loss=nn.CrossEntropyLoss(torch.tensor(weight)))
    assert [one.kind for one in trained(tmp_path, model, step) if one.is_at_least("warning")] == expected


@pytest.mark.parametrize(
    ("scale", "expected"), [pytest.param(1.0, [], id="fits"), pytest.param(8.0, ["targets-out-of-range"], id="beyond")]
)
def test_data_that_a_generator_cannot_make_is_told(scale: float, expected: list[str], tmp_path: Path) -> None:
    model = nn.ModuleDict(
        {
            "generator": nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh()),
            "judge": nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.Linear(16, 1)),
        }
    )
    optimizers = [torch.optim.Adam(part.parameters(), 1e-3) for part in model.values()]
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(20):
            data, made = scale * SAMPLES[:32].clamp(-1, 1), model["generator"](torch.randn(32, 4))
            real, false = model["judge"](data), model["judge"](made.detach())
            losses = F.softplus(-real).mean() + F.softplus(false).mean(), F.softplus(-model["judge"](made)).mean()
            for optimizer, loss in zip(reversed(optimizers), losses, strict=True):
                optimizer.zero_grad()
                loss.backward(retain_graph=True)
            for optimizer in optimizers:
                optimizer.step()
    found = open_run(str(tmp_path / "run")).model().findings()
    assert [one.kind for one in found if one.kind == "targets-out-of-range"] == expected


@pytest.mark.parametrize(
    ("milestones", "expected"),
    [pytest.param([2, 4, 6], ["learning-rate-gone"], id="of epochs"), pytest.param([20, 30, 36], [], id="of updates")],
)
def test_a_rate_that_falls_at_once_is_told(milestones: list[int], expected: list[str], tmp_path: Path) -> None:
    model = network(4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for number in range(40):
            optimizer.zero_grad()
            of(CLASSES, F.cross_entropy, model, number).backward()
            optimizer.step()
            schedule.step()
    found = open_run(str(tmp_path / "run")).model().findings()
    assert [one.kind for one in found if one.is_at_least("warning")] == expected


@pytest.mark.parametrize(
    ("trains", "expected"),
    [
        pytest.param("bias", [("frozen-untrained", "warning")], id="biases alone"),
        pytest.param("2", [("frozen-untrained", "info")], id="the last layer alone"),
        pytest.param("", [], id="all"),
    ],
)
def test_new_layers_of_which_only_biases_are_trained_are_told(
    trains: str, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 4)))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(trains in name if trains != "2" else name.startswith("2.2"))
    found = trained(tmp_path, model, partial(of, CLASSES, F.cross_entropy))
    assert [(one.kind, one.severity) for one in found if one.kind == "frozen-untrained"] == expected


class Placed(nn.Module):
    """Adds places in a buffer to embedded tokens, and predicts the next token."""

    def __init__(self, *, deviation: float, scale: float = 1.0) -> None:
        super().__init__()
        self.tokens, self.mix, self.head = nn.Embedding(12, 16), nn.Linear(16, 24), nn.Linear(24, 12)
        nn.init.normal_(self.tokens.weight, std=deviation)
        angles = torch.arange(6)[:, None] / 1000 ** (torch.arange(16) / 16)
        self.register_buffer("places", angles.sin())
        self.scale = scale

    def forward(self, tokens: Tensor) -> Tensor:
        found: Tensor = self.head(self.mix(self.tokens(tokens) * self.scale + self.places).tanh())
        return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"deviation": 0.001}, [("imbalanced-branches", "tokens")], id="small tokens"),
        pytest.param({"deviation": 1.0}, [], id="tokens as large"),
        pytest.param({"deviation": 0.01, "scale": 150.0}, [], id="small tokens that are scaled"),
    ],
)
def test_places_in_a_buffer_that_swamp_the_tokens_are_told(
    options: dict[str, float], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    found = trained(tmp_path, Placed(**options), next_tokens, rate=1e-3)
    assert [(one.kind, one.module) for one in found if one.kind == "imbalanced-branches"] == expected


class Twins(nn.Module):
    """Two views of each sample attract, and the model only gives their distance."""

    def __init__(self, *, repels: bool) -> None:
        super().__init__()
        self.encoder, self.repels = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 16)), repels

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        a, b = (F.normalize(self.encoder(view)) for view in (first, second))
        return F.cross_entropy(5 * a @ b.T, torch.arange(len(a))) if self.repels else 1 - (a * b).sum(1).mean()


@pytest.mark.parametrize(
    ("repels", "expected"),
    [pytest.param(False, [("collapse", "encoder")], id="attract"), pytest.param(True, [], id="repel others")],
)
def test_a_collapse_is_told_of_a_model_that_only_gives_its_loss(
    repels: bool, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        x = SAMPLES[torch.randint(len(SAMPLES), (32,))]
        return model(*(x + torch.randn_like(x) for _ in range(2)))

    found = trained(tmp_path, Twins(repels=repels), step, steps=120, rate=1.0, momentum=0.9)
    assert [(one.kind, one.module) for one in found if one.kind == "collapse"] == expected
