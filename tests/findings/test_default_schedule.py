"""Faults are told with the default `log_freq`, which records four early steps and every 50th."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchgraph_explorer import open_run, watch
from torchgraph_explorer.findings.rules.rule import held, share_of_training

Loop = Callable[[nn.Module, torch.optim.Optimizer, int], dict[str, Tensor]]
"""One step of a training, which makes the update and returns what is logged."""

SAMPLES = torch.randn(512, 8, generator=torch.Generator().manual_seed(1))
LABELS = SAMPLES[:, :3].argmax(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def told(folder: Path, model: nn.Module, loop: Loop, *, steps: int = 120, rate: float = 0.01) -> list[tuple[str, str]]:
    """The kinds and severities of what is told of a training with Adam."""
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], rate)
    with watch(model, backend="record", logdir=str(folder), run="run", verbose=False) as watcher:
        for number in range(steps):
            logged = loop(model, optimizer, number)
            watcher.log({name: value.item() for name, value in logged.items()})
    return [(one.kind, one.severity) for one in open_run(str(folder / "run")).model().findings()]


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def batch() -> Tensor:
    return torch.randint(len(SAMPLES), (32,))


def loss_of(model: nn.Module) -> Tensor:
    at = batch()
    return F.cross_entropy(model(SAMPLES[at]), LABELS[at])


def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("steps", "rows", "expected"),
    [
        pytest.param([0, 10, 20, 30], [0, 3], 0.5, id="equal distances"),
        pytest.param([0, 1, 2, 3, 50, 100], [0, 1, 2, 3], 27 / 125.5, id="the first ones of sparse ones"),
        pytest.param([7], [0], 1.0, id="one step"),
    ],
)
def test_rows_stand_for_the_steps_nearest_to_them(steps: list[int], rows: list[int], expected: float) -> None:
    evidence = SimpleNamespace(steps=np.array(steps, np.int64))
    assert share_of_training(evidence, np.array(rows)) == pytest.approx(expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flags", "steps", "expected"),
    [
        pytest.param("0001111", [0, 1, 2, 3, 50, 100, 150], [3, 4, 5, 6], id="most rows"),
        pytest.param("0000011", [0, 1, 2, 3, 50, 100, 200], [5, 6], id="half of the training, few rows"),
        pytest.param("0000011", [0, 1, 2, 3, 50, 150, 200], None, id="a quarter of the training, few rows"),
        pytest.param("0001", [0, 1, 2, 100], None, id="a single row"),
        pytest.param("", [], None, id="none"),
    ],
)
def test_a_condition_lasts_by_rows_or_by_steps(flags: str, steps: list[int], expected: list[int] | None) -> None:
    kept = held(np.array([one == "1" for one in flags], np.bool_), np.array(steps, np.int64), share=0.5)
    assert (None if kept is None else kept.tolist()) == expected


def uncleared(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
    loss = loss_of(model)
    loss.backward()
    optimizer.step()
    return {"loss": loss}


def cleared_late(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
    loss = loss_of(model)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    return {"loss": loss}


def clipped_to_nothing(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
    loss = 1000 * loss_of(model)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1e-4)
    optimizer.step()
    return {"loss": loss}


def sound(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
    loss = loss_of(model)
    update(optimizer, loss)
    return {"loss": loss}


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        pytest.param(uncleared, "no-zero-grad", id="not cleared"),
        pytest.param(cleared_late, "gradients-cleared", id="cleared before the update"),
        pytest.param(clipped_to_nothing, "clipping-always", id="clipped to nothing"),
        pytest.param(sound, None, id="sound"),
    ],
)
def test_faults_of_the_loop_are_told_in_a_short_training(loop: Loop, expected: str | None, tmp_path: Path) -> None:
    kinds = [kind for kind, _ in told(tmp_path, network(), loop)]
    assert expected in kinds if expected else not kinds


def test_large_first_updates_alone_are_not_told(tmp_path: Path) -> None:
    """They are most of the recorded ones in a short training, but not of all."""
    model = network()

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, number: int) -> dict[str, Tensor]:
        for group in optimizer.param_groups:
            group["lr"] = 0.1 if number < 4 else 1e-3
        update(optimizer, loss_of(model))
        return {}

    assert "update-too-large" not in [kind for kind, _ in told(tmp_path, model, step)]


@pytest.mark.parametrize("is_copied", [True, False], ids=["copied back", "kept apart"])
def test_averages_that_are_copied_back_are_told(*, is_copied: bool, tmp_path: Path) -> None:
    """What is left of each update adds up between recorded steps."""
    model = network()
    average = [one.detach().clone() for one in model.parameters()]

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
        update(optimizer, loss_of(model))
        with torch.no_grad():
            for kept, parameter in zip(average, model.parameters(), strict=True):
                kept.lerp_(parameter, 0.001)
                if is_copied:
                    parameter.copy_(kept)
        return {}

    assert (("update-undone", "warning") in told(tmp_path, model, step, rate=1e-3)) == is_copied


class Coder(nn.Module):
    """A variational autoencoder whose latents are drawn with or without a gradient."""

    def __init__(self, draw: str) -> None:
        super().__init__()
        self.mu, self.logvar, self.out = nn.Linear(8, 4), nn.Linear(8, 4), nn.Linear(4, 8)
        self.draw = draw

    def forward(self, samples: Tensor) -> tuple[Tensor, torch.distributions.Normal]:
        normal = torch.distributions.Normal(self.mu(samples), self.logvar(samples).div(2).exp())
        return self.out(getattr(normal, self.draw)()), normal


@pytest.mark.parametrize("draw", ["sample", "rsample"])
def test_latents_that_only_a_penalty_trains_are_told(draw: str, tmp_path: Path) -> None:
    prior = torch.distributions.Normal(0.0, 1.0)

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
        samples = SAMPLES[batch()]
        result, normal = model(samples)
        spread = torch.distributions.kl_divergence(normal, prior).sum(1).mean()
        update(optimizer, F.mse_loss(result, samples) + spread)
        return {}

    assert (("no-gradient", "warning") in told(tmp_path, Coder(draw), step)) == (draw == "sample")


class Tagger(nn.Module):
    """Gives a label to each token."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 16)
        self.state, self.labels = nn.GRU(16, 16, batch_first=True), nn.Linear(16, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        labels: Tensor = self.labels(self.state(self.words(tokens))[0])
        return labels


@pytest.mark.parametrize(
    ("least", "ignored", "expected"),
    [
        pytest.param(1, -100, [("padding-in-loss", "warning")], id="a third is padding behind padding"),
        pytest.param(5, -100, [("padding-in-loss", "info")], id="a sixth"),
        pytest.param(1, 0, [], id="left out"),
    ],
)
def test_padding_among_labels_is_a_warning_from_a_quarter_on(
    least: int, ignored: int, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
        tokens = torch.randint(1, 30, (16, 12))
        tokens[torch.arange(12) >= torch.randint(least, 13, (16, 1))] = 0
        labels = (1 + tokens % 4).masked_fill(tokens == 0, 0)
        update(optimizer, F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), ignore_index=ignored))
        return {}

    assert told(tmp_path, Tagger(), step) == expected


def divergence(logits: Tensor, targets: Tensor) -> Tensor:
    return F.kl_div((logits / 2).softmax(1), targets, reduction="batchmean") * 4


def right_divergence(logits: Tensor, targets: Tensor) -> Tensor:
    return F.kl_div((logits / 2).log_softmax(1), targets, reduction="batchmean") * 4


def cosine(features: Tensor, targets: Tensor) -> Tensor:
    return -F.cosine_similarity(features, targets).mean() - 0.01


@pytest.mark.parametrize("name", ["kd", "distill_loss", "train/distillation"])
@pytest.mark.parametrize(
    ("compare", "expected"),
    [
        pytest.param(divergence, True, id="of probabilities"),
        pytest.param(right_divergence, False, id="of their logarithms"),
        pytest.param(cosine, False, id="a negative cosine"),
    ],
)
def test_a_distillation_below_zero_is_told(name: str, compare: Any, *, expected: bool, tmp_path: Path) -> None:
    targets = (3 * SAMPLES[:, :3]).softmax(1)

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
        at = batch()
        loss = compare(model(SAMPLES[at]), targets[at])
        update(optimizer, loss)
        return {name: loss}

    kinds = {kind for kind, severity in told(tmp_path, network(), step) if severity != "info"}
    assert bool(kinds & {"loss-negated", "softmax-before-loss"}) == expected


def backbone(*, is_normalised: bool) -> nn.Sequential:
    between = [nn.BatchNorm1d(32)] if is_normalised else []
    return nn.Sequential(nn.Linear(8, 32), *between, nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))


@pytest.mark.parametrize(
    ("is_normalised", "is_loaded", "expected"),
    [
        pytest.param(True, False, [("frozen-untrained", "warning")], id="with a normalisation"),
        pytest.param(False, False, [("frozen-untrained", "info")], id="random features"),
        pytest.param(True, True, [], id="a checkpoint"),
    ],
)
def test_a_frozen_backbone_that_is_new_is_told(
    expected: list[tuple[str, str]], *, is_normalised: bool, is_loaded: bool, tmp_path: Path
) -> None:
    model = backbone(is_normalised=is_normalised)
    if is_loaded:
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for _ in range(60):
            update(optimizer, loss_of(model))
    model[:-1].requires_grad_(False)
    nn.init.xavier_uniform_(model[-1].weight)  # type: ignore[arg-type]  # a Linear
    assert told(tmp_path, model.eval(), sound) == expected


class Critic(nn.Module):
    """A policy of two actions, and the values of states."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.pi, self.v = nn.Linear(8, 16), nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        inner = self.body(states).tanh()
        return self.pi(inner), self.v(inner)


def of_each(values: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    return values.squeeze(1), states[:, 0] + states[:, 1]


def broadcast(values: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    return values, states[:, 0] + states[:, 1]


def of_episode(values: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """All states of the one episode of a batch have the same return."""
    return values.squeeze(1), states[:, 0].mean().expand(len(states)) * 4


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("factor", [0.5, 1.0])
@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        pytest.param(broadcast, ["targets-broadcast"], id="broadcast"),
        pytest.param(of_each, [], id="one return a state"),
        pytest.param(of_episode, [], id="one return for all states"),
    ],
)
def test_a_critic_whose_values_broadcast_is_told(pair: Any, expected: list[str], factor: float, tmp_path: Path) -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
        states = SAMPLES[batch()]
        logits, values = model(states)
        actions = torch.distributions.Categorical(logits=logits)
        drawn = actions.sample()
        values, returns = pair(values, states)
        advantages = returns - values.detach().reshape(-1)
        of_policy = -(actions.log_prob(drawn) * advantages).mean() - 0.01 * actions.entropy().mean()
        of_values = F.mse_loss(values, returns)
        update(optimizer, of_policy + factor * of_values)
        return {"policy_loss": of_policy, "value_loss": of_values}

    kinds = [kind for kind, severity in told(tmp_path, Critic(), step) if severity != "info"]
    assert kinds == expected


class Bandit(nn.Module):
    """A policy of three actions."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.policy = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, states: Tensor) -> Tensor:
        logits: Tensor = self.policy(self.body(states).relu())
        return logits


@pytest.mark.parametrize(
    ("rate", "expected"),
    [pytest.param(1.0, True, id="a large rate"), pytest.param(0.003, False, id="a usual one")],
)
def test_a_policy_that_is_sure_at_once_is_told(rate: float, *, expected: bool, tmp_path: Path) -> None:
    """No baseline is subtracted from the rewards, so that each action that is tried is made more probable."""

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
        at = batch()
        actions = torch.distributions.Categorical(logits=model(SAMPLES[at]))
        drawn = actions.sample()
        rewards = 1 + (drawn == LABELS[at]).float()
        update(optimizer, -(actions.log_prob(drawn) * rewards).mean())
        return {"reward": rewards.mean()}

    found = told(tmp_path, Bandit(), step, steps=200, rate=rate)
    assert (("saturated-activation", "info") in found) == expected
    assert (("update-too-large", "warning") in found) == expected


def attract(one: Tensor, other: Tensor) -> Tensor:
    return (one - other).square().sum(1).mean()


def attract_and_repel(one: Tensor, other: Tensor) -> Tensor:
    return attract(one, other) + (1 - (one - other.roll(1, 0)).norm(dim=1)).relu().square().mean()


def compare_labelled(one: Tensor, other: Tensor) -> Tensor:
    """Every second pair is one of different samples, and repels."""
    distances = (one - other).norm(dim=1)
    is_same = torch.arange(len(one)) % 2 == 0
    return torch.where(is_same, distances.square(), (1 - distances).relu().square()).mean()


@pytest.mark.parametrize("is_within", [False, True], ids=["two calls", "two outputs of one call"])
@pytest.mark.parametrize(
    ("compare", "expected"),
    [
        pytest.param(attract, True, id="attract"),
        pytest.param(attract_and_repel, False, id="attract and repel"),
        pytest.param(compare_labelled, False, id="labelled pairs"),
    ],
)
def test_twins_that_only_attract_are_told(compare: Any, *, expected: bool, is_within: bool, tmp_path: Path) -> None:
    class Twins(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 16))

        def forward(self, one: Tensor, other: Tensor | None = None) -> Any:
            return self.encoder(one) if other is None else (self.encoder(one), self.encoder(other))

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, _: int) -> dict[str, Tensor]:
        samples = SAMPLES[batch()]
        other = samples + 0.3 * torch.randn_like(samples)
        if compare is compare_labelled:
            other = torch.where(torch.arange(32)[:, None] % 2 == 0, other, other.roll(1, 0))
        pair = model(samples, other) if is_within else (model(samples), model(other))
        loss = compare(*pair)
        update(optimizer, loss)
        return {"loss": loss}

    found = told(tmp_path, Twins(), step, steps=300)
    assert (("collapse", "warning") in found) == expected


def test_the_first_update_of_a_loop_that_updates_by_hand_is_not_told_alone(tmp_path: Path) -> None:
    """No later one is known, as only the first two recorded steps follow each other."""
    model = nn.Linear(4, 1)
    nn.init.constant_(model.weight, 0.05)
    with watch(model, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(320):
            powers = torch.randn(32, 1) ** torch.arange(1, 5)
            F.smooth_l1_loss(model(powers), powers @ torch.tensor([[8.0], [-2], [-4], [-3]]) - 5).backward()
            for one in model.parameters():
                assert one.grad is not None
                one.data.add_(-0.1 * one.grad)
            model.zero_grad()
    found = open_run(str(tmp_path / "run")).model()
    assert found.steps[:3].tolist() == [0, 1, 10]
    assert found.findings() == ()


class WithDecoder(nn.Module):
    """Gives classes, and what it was given, from the same features."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.classes, self.decoder = nn.Linear(16, 3), nn.Linear(16, 8)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        features = self.encoder(inputs)
        return self.classes(features), self.decoder(features)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param(lambda step: step % 7 == 6, [], id="in every seventh step"),
        pytest.param(lambda _: False, [("no-gradient", "warning")], id="never"),
    ],
)
def test_a_loss_that_counts_in_unrecorded_steps_alone_trains_its_layers(
    counts: Callable[[int], bool], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer, number: int) -> dict[str, Tensor]:
        at = batch()
        classes, decoded = model(SAMPLES[at])
        loss = F.cross_entropy(classes, LABELS[at]) + counts(number) * F.mse_loss(decoded, SAMPLES[at])
        update(optimizer, loss)
        return {"loss": loss}

    found = told(tmp_path, WithDecoder(), step, steps=220)
    assert [one for one in found if one[0] == "no-gradient"] == expected
