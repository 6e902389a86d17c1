"""Faults of everyday scripts are told, and what comes close to them is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.records import chain, module, recorded, weight
from tests.findings.trainings import trained
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.schema import TrainingFacts

SAMPLES = torch.randn(256, 20, 2, generator=torch.Generator().manual_seed(1))
NUMBERS = SAMPLES[:, -3:].sum((1, 2))[:, None]
BATCH = 32

Change = Callable[[Tensor], Tensor]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def batch(number: int) -> Tensor:
    return (torch.arange(BATCH) + number * BATCH) % len(SAMPLES)


def kinds(found: Sequence[Finding]) -> set[str]:
    return {one.kind for one in found if one.severity != "info"}


class LSTM(nn.Module):
    """What many people call a model of theirs."""

    def __init__(self, layer: nn.Module, arrange: Change, last: Change) -> None:
        super().__init__()
        self.lstm, self.out, self.arrange, self.last = layer, nn.Linear(16, 1), arrange, last

    def forward(self, samples: Tensor) -> Tensor:
        states, _ = self.lstm(self.arrange(samples))
        result: Tensor = self.out(self.last(states))
        return result


class Derived(nn.LSTM):
    """A recurrent layer by inheritance."""


Derived.__name__ = "LSTM"


def first(states: Tensor) -> Tensor:
    return states[:, -1]


def second(states: Tensor) -> Tensor:
    return states[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "arrange", "last", "expected"),
    [
        pytest.param(lambda: nn.LSTM(2, 16, batch_first=True), Tensor.clone, first, set(), id="a model called LSTM"),
        pytest.param(lambda: nn.LSTM(2, 16), lambda x: x.transpose(0, 1), second, set(), id="places first"),
        pytest.param(
            lambda: nn.LSTM(2, 16), lambda x: x.reshape(20, -1, 2), second, {"view-for-transpose"}, id="by a view"
        ),
        pytest.param(lambda: nn.LSTM(2, 16), Tensor.clone, first, {"batch-as-sequence"}, id="samples for places"),
        pytest.param(lambda: Derived(2, 16), Tensor.clone, first, {"batch-as-sequence"}, id="in a derived layer"),
    ],
)
def test_the_order_of_what_a_recurrent_layer_is_given(  # a case
    layer: Callable[[], nn.Module], arrange: Change, last: Change, expected: set[str], tmp_path: Path
) -> None:
    def step(model: nn.Module, number: int) -> Tensor:
        return F.mse_loss(model(SAMPLES[batch(number)]), NUMBERS[batch(number)])

    found = trained(tmp_path, LSTM(layer(), arrange, last), step, steps=8)
    assert kinds(found) & {"batch-as-sequence", "view-for-transpose"} == expected


class Rows(nn.Module):
    """Sums rows that a view has grouped, each `[samples, places, features]`."""

    def __init__(self) -> None:
        super().__init__()
        self.fed, self.out = nn.Linear(2, 8), nn.Linear(8, 1)

    def forward(self, samples: Tensor) -> Tensor:
        grouped = self.fed(samples).reshape(samples.shape[1], len(samples), 8)
        result: Tensor = self.out(grouped.tanh().sum(1))
        return result


@pytest.mark.slow
def test_a_view_that_groups_samples_by_their_number_is_not_told(tmp_path: Path) -> None:
    def step(model: nn.Module, number: int) -> Tensor:
        return (model(SAMPLES[batch(number), :16]) - NUMBERS[:16]).square().mean()

    assert "view-for-transpose" not in kinds(trained(tmp_path, Rows(), step, steps=6))


class Tagger(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(30, 8), nn.Linear(8, classes)

    def forward(self, words: Tensor) -> Tensor:
        result: Tensor = self.out(self.words(words))
        return result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        pytest.param(lambda out, tags: F.cross_entropy(out.view(len(out), 7, 12), tags), True, id="view"),
        pytest.param(lambda out, tags: F.cross_entropy(out.transpose(1, 2), tags), False, id="transpose"),
        pytest.param(lambda out, tags: F.cross_entropy(out.flatten(0, 1), tags.flatten()), False, id="flat"),
        pytest.param(lambda out, tags: F.mse_loss(out, F.one_hot(tags, 7).float()), False, id="squared error"),
        pytest.param(lambda out, _: out.logsumexp((1, 2)).mean() - out.mean(), False, id="over all of a sample"),
    ],
)
def test_a_view_of_the_logits_of_places_in_the_loss_is_told(
    measure: Callable[[Tensor, Tensor], Tensor], *, expected: bool, tmp_path: Path
) -> None:
    words = torch.randint(30, (64, 12))

    def step(model: nn.Module, _: int) -> Tensor:
        at = torch.randint(len(words), (16,))
        return measure(model(words[at]), words[at] % 7)

    assert ("view-for-transpose" in kinds(trained(tmp_path, Tagger(7), step, steps=6))) == expected


def network(inputs: int = 8) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, 3))


def averaged(decay: float) -> Callable[[nn.Module, nn.Module, int], None]:
    """Keeps an average in the second model, and copies it back into the first."""

    def after(model: nn.Module, average: nn.Module, _: int) -> None:
        with torch.no_grad():
            for one, mean in zip(model.parameters(), average.parameters(), strict=True):
                mean.lerp_(one, 1 - decay)
        model.load_state_dict(average.state_dict())

    return after


def looked_ahead(model: nn.Module, slow: nn.Module, number: int) -> None:
    """Goes half of the way of every five steps, as Lookahead does."""
    if number % 5 == 4:
        averaged(0.5)(model, slow, number)


def outer(model: nn.Module, start: nn.Module, number: int) -> None:
    """A tenth of the way of every four steps, as Reptile goes."""
    if number % 4 == 3:
        averaged(0.9)(model, start, number)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(averaged(0.999), True, id="an average is copied back"),
        pytest.param(
            lambda model, kept, _: model.load_state_dict(kept.state_dict()), True, id="what was kept is loaded"
        ),
        pytest.param(lambda model, kept, _: kept.load_state_dict(model.state_dict()), False, id="it is kept"),
        pytest.param(looked_ahead, False, id="half of every fifth step is taken back"),
        pytest.param(outer, False, id="nine tenths of every fourth step are taken back"),
    ],
)
@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD], ids=["Adam", "SGD"])
@pytest.mark.parametrize("every", [1, 3])
def test_updates_that_something_takes_back_are_told(  # a case
    after: Callable[[nn.Module, nn.Module, int], Any], optimizer: Any, every: int, *, expected: bool, tmp_path: Path
) -> None:
    model = network()
    other, steps = deepcopy(model), optimizer(model.parameters(), lr=0.01)
    samples = torch.randn(300, 8)
    with watch(model, log_freq=every, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for number in range(60):
            at = torch.randint(len(samples), (32,))
            steps.zero_grad()
            F.cross_entropy(model(samples[at]), samples[at, :3].argmax(1)).backward()
            steps.step()
            after(model, other, number)
    assert ("update-undone" in kinds(open_run(str(tmp_path / "run")).model().findings())) == expected


@pytest.mark.slow
def test_updates_of_few_embeddings_are_not_told_as_taken_back(tmp_path: Path) -> None:
    """The largest element of the table is in a row that no step changes."""
    table = nn.Embedding(500, 4)
    with torch.no_grad():
        table.weight[-2:] = torch.tensor([[9.0], [-9.0]])

    def step(model: nn.Module, number: int) -> Tensor:
        words = torch.arange(8) + number
        return F.mse_loss(model(words).sum(1), (words % 3).float())

    assert "update-undone" not in kinds(trained(tmp_path, table, step, steps=20))


class Adapter(nn.Module):
    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(requires_grad=False)
        self.a, self.b = (
            nn.Parameter(torch.randn(2, layer.in_features)),
            nn.Parameter(torch.zeros(layer.out_features, 2)),
        )

    def forward(self, samples: Tensor) -> Tensor:
        result: Tensor = self.layer(samples) + samples @ self.a.T @ self.b.T
        return result


class Stateful(nn.Module):
    """A recurrent layer that begins with a frozen state of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.state = nn.GRU(8, 8), nn.Parameter(torch.zeros(1, 8), requires_grad=False)

    def forward(self, samples: Tensor) -> Tensor:
        result: Tensor = self.gru(samples[None], self.state.expand(1, len(samples), 8).contiguous())[0][0]
        return result


def frozen_adapter() -> nn.Module:
    return Adapter(nn.Linear(8, 8)).requires_grad_(requires_grad=False)


def closed_branch() -> nn.Module:
    layer = nn.Linear(8, 8).requires_grad_(requires_grad=False)
    nn.init.zeros_(layer.weight)
    return layer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(frozen_adapter, True, id="a frozen adapter"),
        pytest.param(closed_branch, True, id="a frozen layer of zeros"),
        pytest.param(lambda: Adapter(nn.Linear(8, 8)), False, id="an adapter that is trained"),
        pytest.param(Stateful, False, id="a state of zeros"),
    ],
)
def test_frozen_matrices_of_zeros_are_told(make: Callable[[], nn.Module], *, expected: bool, tmp_path: Path) -> None:
    model = nn.Sequential(make(), nn.Tanh(), nn.Linear(8, 3))
    samples = torch.randn(300, 8)

    def step(model: nn.Module, _: int) -> Tensor:
        at = torch.randint(len(samples), (32,))
        return F.cross_entropy(model(samples[at]), samples[at, :3].argmax(1))

    found = trained(tmp_path, model, step, steps=6)
    told = [one for one in found if one.kind == "frozen-by-accident" and "zero and frozen" in one.text]
    assert bool(told) == expected


class Adversaries(nn.Module):
    def __init__(self, *, with_sigmoid: bool) -> None:
        super().__init__()
        self.make = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
        ends = [nn.Sigmoid()] if with_sigmoid else []
        self.judge = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1), *ends)


@pytest.mark.slow
@pytest.mark.parametrize("with_sigmoid", [True, False], ids=["probabilities", "logits"])
@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        pytest.param(lambda p: torch.log(1 - p + 1e-8).mean(), True, id="flat where the judge is sure"),
        pytest.param(lambda p: -torch.log(p + 1e-8).mean(), False, id="steep there"),
    ],
)
def test_a_generator_whose_loss_is_flat_is_told(
    measure: Change, *, with_sigmoid: bool, expected: bool, tmp_path: Path
) -> None:
    model = Adversaries(with_sigmoid=with_sigmoid)
    makes = torch.optim.Adam(model.make.parameters(), 1e-4)
    judges = torch.optim.Adam(model.judge.parameters(), 0.05)

    def judged(samples: Tensor) -> Tensor:
        given: Tensor = model.judge(samples)
        return given if with_sigmoid else given.sigmoid()

    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(160):
            data, made = 3 + torch.randn(32, 8), model.make(torch.randn(32, 4))
            judges.zero_grad()
            (-torch.log(judged(data) + 1e-8) - torch.log(1 - judged(made.detach()) + 1e-8)).mean().backward()
            judges.step()
            makes.zero_grad()
            measure(judged(made)).backward()
            makes.step()
    found = open_run(str(tmp_path / "run")).model().findings()
    assert ([one.module for one in found if one.kind == "vanishing-gradient"] == ["make"]) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "measure", "expected"),
    [
        pytest.param([nn.Sigmoid()], F.binary_cross_entropy_with_logits, True, id="a sigmoid, and another in the loss"),
        pytest.param([nn.Sigmoid()], F.binary_cross_entropy, False, id="a sigmoid"),
        pytest.param([nn.Sigmoid()], F.mse_loss, False, id="a squared error"),
        pytest.param([], F.binary_cross_entropy_with_logits, False, id="logits"),
    ],
)
def test_a_discriminator_with_a_sigmoid_too_many_is_told(
    ending: list[nn.Module], measure: Callable[[Tensor, Tensor], Tensor], *, expected: bool, tmp_path: Path
) -> None:
    model = Adversaries(with_sigmoid=False)
    model.judge.extend(ending)
    makes = torch.optim.Adam(model.make.parameters(), 1e-3)
    judges = torch.optim.Adam(model.judge.parameters(), 1e-3)
    one, none = torch.ones(32, 1), torch.zeros(32, 1)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(10):
            data, made = 3 + torch.randn(32, 8), model.make(torch.randn(32, 4))
            judges.zero_grad()
            ((measure(model.judge(data), one) + measure(model.judge(made.detach()), none)) / 2).backward()
            judges.step()
            makes.zero_grad()
            measure(model.judge(made), one).backward()
            makes.step()
    found = open_run(str(tmp_path / "run")).model().findings()
    assert ([one.module for one in found if one.kind == "softmax-before-loss"] == ["judge"]) == expected


def hard(model: nn.Module, samples: Tensor) -> Tensor:
    soft = model(samples).sigmoid()
    return ((soft > 0.5).float() - 0 * soft).mean()


def clamped(model: nn.Module, samples: Tensor) -> Tensor:
    return (model(samples) + 50).clamp(0, 1).mean()


def soft(model: nn.Module, samples: Tensor) -> Tensor:
    mean: Tensor = model(samples).sigmoid().mean()
    return mean


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "expected"), [(hard, True), (clamped, True), (soft, False)])
def test_gradients_of_zeros_at_all_that_the_model_gives_are_told(
    loss: Callable[[nn.Module, Tensor], Tensor], *, expected: bool, tmp_path: Path
) -> None:
    samples = torch.randn(64, 8)
    found = trained(tmp_path, network(), lambda model, _: loss(model, samples), steps=6)
    assert ("no-gradient" in kinds(found)) == expected
    assert "update-too-small" not in kinds(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "labels", "expected"),
    [
        pytest.param(F.binary_cross_entropy_with_logits, (0.0, 255.0), True, id="a mask of bytes"),
        pytest.param(F.binary_cross_entropy_with_logits, (-1.0, 1.0), True, id="-1 and 1"),
        pytest.param(F.binary_cross_entropy_with_logits, (0.0, 1.0), False, id="0 and 1"),
        pytest.param(F.binary_cross_entropy_with_logits, (0.1, 0.9), False, id="smoothed"),
        pytest.param(F.mse_loss, (0.0, 255.0), False, id="a squared error"),
        pytest.param(lambda out, y: F.relu(1 - out * y).mean(), (-1.0, 1.0), False, id="a hinge"),
        pytest.param(lambda out, y: (out * y).mean(), (-1.0, 1.0), False, id="scores"),
        pytest.param(F.soft_margin_loss, (-1.0, 1.0), False, id="a soft margin"),
        pytest.param(lambda out, _: out.sum(), (0.0, 1.0), False, id="a sum"),
        pytest.param(lambda out, y: F.relu(1 - out * y).sum(), (-1.0, 1.0), False, id="a sum of hinges"),
    ],
)
def test_labels_of_pixels_that_are_not_between_0_and_1_are_told(
    measure: Callable[[Tensor, Tensor], Tensor], labels: tuple[float, float], *, expected: bool, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))
    images = torch.randn(32, 1, 8, 8)
    masks = torch.where(images > 0.5, labels[1], labels[0])

    def step(model: nn.Module, number: int) -> Tensor:
        at = (torch.arange(8) + 8 * number) % 32
        return measure(model(images[at]), masks[at])

    found = trained(tmp_path, model, step, steps=8, rate=1e-4, logs=False)
    assert ("targets-out-of-range" in kinds(found)) == expected


FLAT = 1 + 0.02 * np.random.default_rng(0).standard_normal(200)
HIGH_AND_LOW = np.where(np.arange(40) % 3, 4.0, -3.0)


def told(folder: Path, scalars: dict[str, Any], **more: Any) -> Sequence[Finding]:
    """Of a run of one layer whose weights change by a tenth in each step."""
    frames = [{("fc", "param", "weight", "value"): [1.0 + step / 10, 2.0]} for step in range(200)]
    return recorded(folder, chain(module("fc", "Linear", weight(2, 2))), frames, scalars=scalars, **more).findings()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scalars", "expected"),
    [
        pytest.param({"triplet": FLAT}, True, id="the name of a loss function"),
        pytest.param({"train/mse": FLAT}, True, id="one of the training"),
        pytest.param({"val_mse": FLAT}, False, id="one of other data"),
        pytest.param({"triplet": FLAT, "cost": FLAT}, False, id="two such names"),
        pytest.param({"accuracy": FLAT}, False, id="no name of a loss"),
        pytest.param({"loss": np.linspace(2, 0.1, 200), "mse": FLAT}, False, id="beside the loss"),
    ],
)
def test_a_loss_by_another_name_is_looked_at(scalars: dict[str, Any], *, expected: bool, tmp_path: Path) -> None:
    assert ("loss-not-falling" in kinds(told(tmp_path, scalars))) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scalars", "expected"),
    [
        pytest.param({"dice_loss": HIGH_AND_LOW}, True, id="beyond both bounds"),
        pytest.param({"dice_loss": np.abs(HIGH_AND_LOW)}, False, id="beside a cross entropy"),
        pytest.param({"dice_loss": -np.abs(HIGH_AND_LOW)}, False, id="a sum over classes with the other sign"),
        pytest.param({"giou_loss": HIGH_AND_LOW}, False, id="another ratio"),
        pytest.param({"val_dice": HIGH_AND_LOW}, False, id="of other data"),
    ],
)
def test_a_ratio_that_probabilities_cannot_have_is_told(
    scalars: dict[str, Any], *, expected: bool, tmp_path: Path
) -> None:
    assert ("logits-before-nll" in kinds(told(tmp_path, scalars))) == expected


@pytest.mark.slow
@pytest.mark.parametrize("learns", [True, False])
def test_a_linear_model_is_warned_of_if_it_does_not_learn(tmp_path: Path, *, learns: bool) -> None:
    model = nn.Sequential(nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 2))
    samples = torch.randn(2000, 2)
    labels = (samples.sum(1) > 0 if learns else samples.prod(1) > 0).long()

    def step(model: nn.Module, _: int) -> Tensor:
        at = torch.randint(len(samples), (64,))
        return F.cross_entropy(model(samples[at]), labels[at])

    found = trained(tmp_path, model, step, steps=200)
    [severity] = [one.severity for one in found if one.kind == "missing-nonlinearity"]
    assert severity == ("info" if learns else "warning")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "expected"), [pytest.param(1.0, False, id="clipped"), pytest.param(None, True, id="not clipped")]
)
def test_peaks_of_the_gradient_that_are_clipped_are_not_told(
    limit: float | None, *, expected: bool, tmp_path: Path
) -> None:
    norms = [1.0 if step % 3 else 5000.0 for step in range(60)]
    facts = [
        # At every fifth step, the norms were not known.
        TrainingFacts(gradient_norm=norm, clipped_norm=min(norm, limit or norm)) if step % 5 else TrainingFacts()
        for step, norm in enumerate(norms)
    ]
    norms[0] = 1.0
    frames = [
        {("fc", "param", "weight", "value"): [1.0 + step / 100, 2.0], ("fc", "param", "weight", "grad"): [norm, 0.0]}
        for step, norm in enumerate(norms)
    ]
    model = recorded(tmp_path, chain(module("fc", "Linear", weight(2, 2))), frames, training=facts)
    assert ("exploding-gradient" in kinds(model.findings())) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lv", "logvar", "var"])
@pytest.mark.parametrize("draw", ["sample", "rsample"])
def test_latents_that_are_drawn_without_a_gradient_are_told(name: str, draw: str, tmp_path: Path) -> None:
    class Coder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mu, self.out = nn.Linear(8, 4), nn.Linear(4, 8)
            self.add_module(name, nn.Linear(8, 4))

        def forward(self, samples: Tensor) -> tuple[Tensor, Any]:
            drawn = torch.distributions.Normal(self.mu(samples), self.get_submodule(name)(samples).div(2).exp())
            return self.out(getattr(drawn, draw)()), drawn

    samples, prior = torch.randn(200, 8), torch.distributions.Normal(0.0, 1.0)

    def step(model: nn.Module, _: int) -> Tensor:
        some = samples[torch.randint(len(samples), (32,))]
        result, drawn = model(some)
        return F.mse_loss(result, some) + torch.distributions.kl_divergence(drawn, prior).sum(1).mean()

    found = trained(tmp_path, Coder(), step, steps=40)
    assert ("mu" in [one.module for one in found if one.kind == "no-gradient"]) == (draw == "sample")
