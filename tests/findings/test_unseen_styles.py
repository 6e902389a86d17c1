"""Faults in styles of programs that were new to the rules, each beside the same program without the fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.trainings import Step
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.finding import Finding

pytestmark = pytest.mark.slow

WEIGHTS = torch.randn(16, 4, generator=torch.Generator().manual_seed(3))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def classified(model: nn.Module, _: int) -> Tensor:
    inputs = torch.randn(32, 16)
    return F.cross_entropy(model(inputs), (inputs @ WEIGHTS).argmax(1))


def network(width: int = 32) -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 4))


def told(found: list[Finding]) -> list[tuple[str, str, str | None]]:
    """The severity, kind and module of each finding."""
    return [(one.severity, one.kind, one.module) for one in found]


def watched(folder: Path, model: nn.Module, optimizers: list[Any], step: Step, *, steps: int = 60) -> list[Finding]:
    """What is told of a training in which each of `optimizers` steps."""
    with watch(model, log_freq=1, backend="record", logdir=str(folder), run="run", verbose=False) as watcher:
        for number in range(steps):
            loss = step(model, number)
            model.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            watcher.log({"loss": loss.item()})
    return list(open_run(str(folder / "run")).model().findings())


# Left out of the optimizer


@pytest.mark.parametrize("steps_both", [pytest.param(False, id="one"), pytest.param(True, id="both")])
def test_an_optimizer_that_makes_no_update_is_told_of_a_short_run(steps_both: bool, tmp_path: Path) -> None:
    model = network()
    first, last = (torch.optim.SGD(model[at].parameters(), 0.1) for at in (0, 2))
    found = watched(tmp_path, model, [first, last] if steps_both else [last], classified)
    assert told(found) == ([] if steps_both else [("warning", "not-in-optimizer", "0")])


class LowRank(nn.Module):
    """A frozen layer with a trained addition of low rank."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(2, base.in_features) / 4)
        self.up = nn.Parameter(torch.zeros(base.out_features, 2))

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.base(values) + values @ self.down.T @ self.up.T
        return result


@pytest.mark.parametrize(
    ("is_frozen", "expected"),
    [
        pytest.param(True, [("warning", "not-in-optimizer", "0")], id="adapters of a frozen layer"),
        pytest.param(False, [("info", "not-in-optimizer", "0")], id="a backbone that is not frozen"),
    ],
)
def test_adapters_that_the_optimizer_lacks_are_no_backbone(
    *, is_frozen: bool, expected: list[Any], tmp_path: Path
) -> None:
    first, model = nn.Linear(16, 32), network()
    nn.init.normal_(first.weight, std=0.3)
    optimizer = torch.optim.SGD(model[2].parameters(), 0.1)
    model[0] = LowRank(first) if is_frozen else first
    assert told(watched(tmp_path, model, [optimizer], classified)) == expected


# Losses that stay where they began


class WithLoss(nn.Module):
    """A network that returns its loss, as many do that are given labels."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(16, 32), nn.Linear(32, outputs)

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        outputs = self.head(self.body(inputs).relu())
        if targets.is_floating_point():
            return F.mse_loss(outputs, targets)
        return F.cross_entropy(outputs, targets)


def of_noise(model: nn.Module, number: int) -> Tensor:
    """The loss for labels that do not belong to the samples; at first, it is higher by chance."""
    loss: Tensor = model(torch.randn(64, 16), torch.randint(4, (64,))) * (1.2 if number < 3 else 1)
    return loss


def of_noisy_numbers(model: nn.Module, number: int) -> Tensor:
    """As much, for numbers whose error stays at the logarithm of 4."""
    loss: Tensor = model(torch.randn(64, 16), torch.randn(64, 4) * 1.386**0.5) * (1.2 if number < 3 else 1)
    return loss


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(of_noise, [("warning", "loss-not-falling", None)], id="a cross entropy"),
        pytest.param(of_noisy_numbers, [], id="a squared error"),
    ],
)
def test_a_cross_entropy_within_the_model_that_stays_at_chance_is_told(
    step: Step, expected: list[Any], tmp_path: Path
) -> None:
    model = WithLoss(4)
    assert told(watched(tmp_path, model, [torch.optim.Adam(model.parameters(), 3e-3)], step, steps=200)) == expected


# Losses that begin far above that of a guess


class Residual(nn.Module):
    """A step of a network that is called again and again, and adds a share of its output."""

    def __init__(self, share: float, outputs: int) -> None:
        super().__init__()
        self.first, self.change, self.last = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, outputs)
        self.share = share
        nn.init.normal_(self.change.weight, std=0.15)

    def forward(self, inputs: Tensor) -> Tensor:
        values = self.first(inputs)
        for _ in range(24):
            values = values + self.share * self.change(values).relu()
        result: Tensor = self.last(values).squeeze(-1)
        return result


class Scores(nn.Module):
    """The products of embeddings, as of users and items."""

    def __init__(self, std: float) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(50, 512), nn.Embedding(40, 512)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=std)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        return (self.users(users) * self.items(items)).sum(-1)


class Beside(nn.Module):
    """Learned features beside those of a layer that is far larger."""

    def __init__(self) -> None:
        super().__init__()
        self.deep, self.wide, self.head = nn.Linear(16, 16), nn.Identity(), nn.Linear(32, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = self.head(torch.cat([self.deep(inputs).relu(), self.wide(inputs * 1e4)], 1))
        return result


def liked(model: nn.Module, _: int) -> Tensor:
    users, items = torch.randint(50, (64,)), torch.randint(40, (64,))
    return F.binary_cross_entropy_with_logits(model(users, items), ((users + items) % 2).float())


def measured(model: nn.Module, _: int) -> Tensor:
    inputs = torch.randn(32, 16)
    return F.mse_loss(model(inputs), inputs @ WEIGHTS)


FAR_OFF = ("warning", "bad-init-scale")


@pytest.mark.parametrize(
    ("model", "step", "expected"),
    [
        pytest.param(lambda: Residual(1.0, 4), classified, [(*FAR_OFF, "change")], id="steps of full length"),
        pytest.param(lambda: Residual(1 / 24, 4), classified, [], id="short steps"),
        pytest.param(lambda: Residual(1.0, 4), measured, [], id="a squared error"),
        pytest.param(lambda: Scores(1.0), liked, [(*FAR_OFF, "")], id="products of many features"),
        pytest.param(lambda: Scores(0.05), liked, [], id="products of small features"),
        pytest.param(Beside, classified, [], id="imbalanced branches, which say more"),
    ],
)
def test_a_cross_entropy_that_begins_far_above_a_guess_is_told(
    model: Any, step: Step, expected: list[Any], tmp_path: Path
) -> None:
    network = model()
    found = watched(tmp_path, network, [torch.optim.Adam(network.parameters(), 1e-3)], step)
    assert [one for one in told(found) if one[1] == "bad-init-scale"] == expected


def test_a_sum_over_the_samples_is_not_taken_for_a_loss_that_begins_far_above_a_guess(tmp_path: Path) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    assert told(watched(tmp_path, model, [optimizer], lambda model, step: 32 * classified(model, step))) == []


# Latents that are drawn without a gradient


class Autoencoder(nn.Module):
    """A variational autoencoder whose means and spreads come from two layers or from one."""

    def __init__(self, *, with_gradient: bool, are_two: bool) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 32), nn.Tanh())
        self.fc_mu, self.fc_logvar = nn.Linear(32, 4), nn.Linear(32, 4)
        self.both = nn.Linear(32, 8)
        self.decoder = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 16))
        self.with_gradient, self.are_two = with_gradient, are_two
        unused = (self.both,) if are_two else (self.fc_mu, self.fc_logvar)
        for layer in unused:
            layer.requires_grad_(False)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        coded = self.encoder(inputs)
        mean, spread = (self.fc_mu(coded), self.fc_logvar(coded)) if self.are_two else self.both(coded).chunk(2, 1)
        normal = torch.distributions.Normal(mean, (spread / 2).exp())
        return self.decoder(normal.rsample() if self.with_gradient else normal.sample()), mean, spread


def reconstructed(model: nn.Module, _: int) -> Tensor:
    inputs = torch.randn(32, 4) @ WEIGHTS.T
    outputs, mean, spread = model(inputs)
    divergence = -0.5 * (1 + spread - mean**2 - spread.exp()).sum(1).mean()
    loss: Tensor = (outputs - inputs).square().sum(1).mean() + divergence
    return loss


@pytest.mark.parametrize(
    ("with_gradient", "are_two", "expected"),
    [
        pytest.param(False, True, ["fc_mu"], id="two layers"),
        pytest.param(False, False, [""], id="one layer"),
        pytest.param(True, True, [], id="two layers, with a gradient"),
        pytest.param(True, False, [], id="one layer, with a gradient"),
    ],
)
def test_latents_that_only_the_divergence_trains_are_told(
    *, with_gradient: bool, are_two: bool, expected: list[str], tmp_path: Path
) -> None:
    model = Autoencoder(with_gradient=with_gradient, are_two=are_two)
    found = watched(tmp_path, model, [torch.optim.Adam(model.parameters(), 3e-3)], reconstructed)
    assert [one.module for one in found if one.kind == "no-gradient"] == expected


# Labels of padding


class Tagger(nn.Module):
    """A label for each token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(30, 16)
        self.state, self.labels = nn.GRU(16, 16, batch_first=True), nn.Linear(16, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        result: Tensor = self.labels(self.state(self.tokens(tokens))[0])
        return result


TAGS = torch.randint(5, (30,), generator=torch.Generator().manual_seed(5))


def tagged(model: nn.Module, *, label: int, is_padded: bool = True) -> Tensor:
    tokens = torch.randint(1, 30, (16, 12))
    is_padding = torch.arange(12) >= torch.randint(3 if is_padded else 12, 13, (16, 1))
    tokens[is_padding] = 0
    labels = TAGS[tokens].masked_fill(is_padding, label)
    return F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), ignore_index=-100)


@pytest.mark.parametrize(
    ("label", "is_padded", "expected"),
    [
        pytest.param(0, True, ["padding-in-loss"], id="the label of a class"),
        pytest.param(-100, True, [], id="left out"),
        pytest.param(0, False, [], id="no padding"),
    ],
)
def test_padding_with_the_label_of_a_class_is_told(
    label: int, expected: list[str], *, is_padded: bool, tmp_path: Path
) -> None:
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    found = watched(tmp_path, model, [optimizer], lambda model, _: tagged(model, label=label, is_padded=is_padded))
    assert [one.kind for one in found] == expected


# Losses that normalise over the samples


def contrasted(model: nn.Module, dim: int) -> Tensor:
    """Two views of each sample attract each other."""
    inputs = torch.randn(24, 16)
    vectors = model(torch.cat([inputs, inputs + 0.2 * torch.randn(24, 16)]))
    vectors = F.normalize(vectors - vectors.mean(0) if dim < 0 else vectors, dim=max(dim, 0))
    alike = (vectors @ vectors.T / 0.2).masked_fill(torch.eye(48, dtype=torch.bool), -1e9)
    return F.cross_entropy(alike, torch.arange(48).roll(24))


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        pytest.param(0, ["normalised-over-batch"], id="over the samples"),
        pytest.param(1, [], id="over the features"),
        pytest.param(-1, [], id="standardised over the samples"),
    ],
)
def test_a_loss_that_normalises_over_the_samples_is_told(dim: int, expected: list[str], tmp_path: Path) -> None:
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    found = watched(tmp_path, model, [optimizer], lambda model, _: contrasted(model, dim), steps=12)
    assert [one.kind for one in found if one.kind == "normalised-over-batch"] == expected


# Teachers that are trained with their students


class Distilled(nn.Module):
    """A student that learns from a teacher."""

    def __init__(self, *, is_trained: bool) -> None:
        super().__init__()
        self.teacher, self.student = network(64), network(16)
        if is_trained:
            for parameter in self.teacher.parameters():
                parameter.data = 2 * parameter + 0.1 * torch.randn_like(parameter)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.student(inputs), self.teacher(inputs)


def distilled(model: nn.Module, _: int) -> Tensor:
    student, teacher = model(torch.randn(32, 16))
    return F.kl_div(student.log_softmax(1), teacher.softmax(1), reduction="batchmean")


@pytest.mark.parametrize(
    ("is_trained", "is_held", "expected"),
    [
        pytest.param(True, True, ["teacher"], id="a trained one"),
        pytest.param(True, False, [], id="a trained one that is frozen"),
        pytest.param(False, True, [], id="a new one, which both begin with"),
    ],
)
def test_a_teacher_that_learns_from_its_student_is_told(
    *, is_trained: bool, is_held: bool, expected: list[str], tmp_path: Path
) -> None:
    model = Distilled(is_trained=is_trained)
    model.teacher.requires_grad_(is_held)
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], 1e-3)
    found = watched(tmp_path, model, [optimizer], distilled, steps=12)
    assert [one.module for one in found if one.kind == "teacher-trained"] == expected


# One layer in a list several times


class Blocks(nn.Module):
    """Layers with residual connections."""

    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.first, self.blocks, self.last = nn.Linear(16, 32), nn.ModuleList(blocks), nn.Linear(32, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        values = self.first(inputs)
        for block in self.blocks:
            values = values + block(values)
        result: Tensor = self.last(values)
        return result


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        pytest.param(lambda: [nn.Linear(32, 32)] * 3, [("info", "identical-modules", "blocks.0")], id="one layer"),
        pytest.param(lambda: [nn.Linear(32, 32) for _ in range(3)], [], id="three layers"),
        pytest.param(lambda: [nn.ReLU()] * 3, [], id="one function"),
    ],
)
def test_a_layer_that_stands_in_a_list_several_times_is_told(blocks: Any, expected: list[Any], tmp_path: Path) -> None:
    model = Blocks(blocks())
    assert told(watched(tmp_path, model, [torch.optim.Adam(model.parameters(), 1e-3)], classified)) == expected


# Divergences below zero


@pytest.mark.parametrize(
    ("name", "takes_logarithms", "expected"),
    [
        pytest.param("kl", False, [("warning", "loss-negated", None)], id="of probabilities"),
        pytest.param("kl", True, [], id="of their logarithms"),
        pytest.param("approx_kl", False, [], id="an estimate"),
    ],
)
def test_a_divergence_below_zero_is_told(
    name: str, expected: list[Any], *, takes_logarithms: bool, tmp_path: Path
) -> None:
    student, teacher = network(), network(64)
    optimizer = torch.optim.Adam(student.parameters(), 1e-3)
    with watch(student, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False) as watcher:
        for _ in range(20):
            inputs = torch.randn(32, 16)
            shares = (student(inputs) / 3).softmax(1)
            with torch.no_grad():
                targets = (teacher(inputs) / 3).softmax(1)
            divergence = F.kl_div(shares.log() if takes_logarithms else shares, targets, reduction="batchmean")
            optimizer.zero_grad()
            divergence.backward()
            optimizer.step()
            watcher.log({name: divergence.item()})
    assert told(list(open_run(tmp_path / "run").model().findings())) == expected


# Runs of a few updates


class Narrow(nn.Module):
    """Two layers that hardly count beside a fixed projection at first, and open with the updates."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 4)
        self.gain = nn.Parameter(torch.full((32,), 1e-6))
        self.register_buffer("fixed", torch.randn(16, 32))

    def forward(self, inputs: Tensor) -> Tensor:
        opened = self.gain * self.second(self.first(inputs).relu())
        result: Tensor = self.last(inputs @ self.get_buffer("fixed") + opened)
        return result


@pytest.mark.parametrize(
    ("steps", "expected"),
    [pytest.param(3, [], id="a few updates"), pytest.param(12, ["first"], id="more updates")],
)
def test_a_gradient_that_is_small_for_a_few_updates_is_not_called_lost(
    steps: int, expected: list[Any], tmp_path: Path
) -> None:
    model = Narrow()
    found = watched(tmp_path, model, [torch.optim.Adam(model.parameters(), 5e-5)], classified, steps=steps)
    assert [one.module for one in found if one.kind == "vanishing-gradient"] == expected


# Decoders that see the answers


class Translator(nn.Module):
    """torch's transformer, with sources as long as targets."""

    def __init__(self, *, is_masked: bool) -> None:
        super().__init__()
        self.sources, self.targets = nn.Embedding(20, 16), nn.Embedding(20, 16)
        self.body = nn.Transformer(16, 2, 1, 1, 32, 0.0, batch_first=True)
        self.last, self.is_masked = nn.Linear(16, 20), is_masked

    def forward(self, sources: Tensor, targets: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(targets.shape[1]) if self.is_masked else None
        result: Tensor = self.last(self.body(self.sources(sources), self.targets(targets), tgt_mask=mask))
        return result


def translated(model: nn.Module, _: int) -> Tensor:
    sources = torch.randint(3, 20, (16, 8))
    targets = torch.cat([torch.ones(16, 1, dtype=torch.long), sources.flip(1)], 1)
    return F.cross_entropy(model(sources, targets[:, :-1]).flatten(0, 1), targets[:, 1:].flatten())


@pytest.mark.parametrize(
    ("is_masked", "expected"),
    [pytest.param(False, ["body.decoder.layers.0.self_attn"], id="no mask"), pytest.param(True, [], id="a mask")],
)
def test_a_decoder_that_sees_the_answers_is_told_beside_an_encoder_of_as_many_tokens(
    *, is_masked: bool, expected: list[str], tmp_path: Path
) -> None:
    model = Translator(is_masked=is_masked)
    found = watched(tmp_path, model, [torch.optim.Adam(model.parameters(), 1e-3)], translated, steps=12)
    assert [one.module for one in found if one.kind == "future-visible"] == expected


# Normalisations of single elements


@pytest.mark.parametrize(
    ("groups", "size", "expected"),
    [
        pytest.param(16, 1, ["3"], id="groups of one channel"),
        pytest.param(4, 1, [], id="groups of four channels"),
        pytest.param(16, 2, [], id="channels of four elements"),
    ],
)
def test_groups_of_single_elements_are_told(groups: int, size: int, expected: list[str], tmp_path: Path) -> None:
    pool = nn.AdaptiveAvgPool2d(size)
    norm, head = nn.GroupNorm(groups, 16), nn.Linear(16 * size**2, 4)
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), pool, norm, nn.Flatten(), head)

    def step(model: nn.Module, _: int) -> Tensor:
        inputs = torch.randn(16, 1, 8, 8)
        return F.cross_entropy(model(inputs), inputs[:, 0, 0, :4].argmax(1))

    found = watched(tmp_path, model, [torch.optim.Adam(model.parameters(), 1e-3)], step, steps=20)
    assert [one.module for one in found if one.kind == "normalised-alone"] == expected


# Learning rates of single layers


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        pytest.param((1e-10, 1e-2), [("update-too-small", "0")], id="of most layers"),
        pytest.param((1e-10, 1e-10), [("update-too-small", None)], id="of all layers"),
        pytest.param((1e-3, 1e-2), [], id="of none"),
    ],
)
def test_layers_that_hardly_change_beside_others_are_named(
    rates: tuple[float, float], expected: list[Any], tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    groups = [{"params": model[:3].parameters(), "lr": rates[0]}, {"params": model[4].parameters(), "lr": rates[1]}]
    found = watched(tmp_path, model, [torch.optim.Adam(groups)], classified)
    assert [(one.kind, one.module) for one in found if one.kind == "update-too-small"] == expected


class Tags(nn.Module):
    """Sums many embeddings of which all inputs take the same row, as where a text has no tags, and one that is used."""

    def __init__(self) -> None:
        super().__init__()
        self.tags = nn.ModuleList([nn.Embedding(256, 16) for _ in range(8)])
        self.never_called, self.body, self.last = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, values: Tensor) -> Tensor:
        none = torch.full((len(values),), 2)
        tags = torch.stack([tag(none) for tag in self.tags]).sum(0)
        result: Tensor = self.last(torch.relu(self.body(values + tags)))
        return result


def guessed(model: nn.Module) -> Tensor:
    """A loss that cannot fall: the labels do not depend on the inputs."""
    return F.cross_entropy(0.1 * model(torch.randn(32, 16)), torch.randint(0, 4, (32,)))


def test_rows_of_embeddings_that_do_not_come_are_no_small_updates(tmp_path: Path) -> None:
    model = Tags()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    found = watched(tmp_path, model, [optimizer], lambda net, _: guessed(net))
    assert "update-too-small" not in {one.kind for one in found}


class Decoder(nn.Module):
    """Takes tokens, and those before each answer."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(40, 16), nn.Embedding(40, 16)
        self.body, self.head = nn.GRU(16, 16, batch_first=True), nn.Linear(16, 40)

    def forward(self, tokens: Tensor, before: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(self.target(before), self.source(tokens).mean(1)[None])[0])
        return logits


class Reverses(nn.Module):
    """Translates tokens into the same in reverse: it is handed the labels, and moves them by one place itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Decoder()

    def forward(self, tokens: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        before = torch.zeros_like(labels)
        before[:, 1:] = labels[:, :-1]
        logits = self.inner(tokens, before)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


def test_labels_that_are_the_tokens_in_reverse_are_no_answers_in_the_inputs(tmp_path: Path) -> None:
    def reversed_tokens(model: nn.Module, _: int) -> Tensor:
        tokens = torch.randint(1, 40, (16, 12))
        loss: Tensor = model(tokens, labels=tokens.flip(1))[0]
        return loss

    model = Reverses()
    found = watched(tmp_path, model, [torch.optim.Adam(model.parameters(), 3e-3)], reversed_tokens, steps=12)
    assert "answers-in-inputs" not in {one.kind for one in found}
