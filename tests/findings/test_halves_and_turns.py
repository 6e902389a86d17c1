"""Losses of one sample, halves of recurrences, parts that are no longer trained, and the like are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.trainings import trained
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.finding import Finding

pytestmark = pytest.mark.slow

SAMPLES = torch.randn(512, 8, generator=torch.Generator().manual_seed(1))
CLASSES = (2 * SAMPLES[:, :4]).argmax(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


class Sequence(nn.Module):
    """A sequence is fed as one sample, and its last place is asked for."""

    def __init__(self, mixes: nn.Module) -> None:
        super().__init__()
        self.first, self.mixes, self.last = nn.Linear(8, 8), mixes, nn.Linear(8, 4)

    def forward(self, places: Tensor) -> Tensor:
        result = self.mixes(self.first(places))
        out: Tensor = self.last(result[0] if isinstance(result, tuple) else result)
        return out


class Means(nn.Module):
    """Each place gets the mean of all up to it."""

    def forward(self, places: Tensor) -> Tensor:
        return places.cumsum(0) / torch.arange(1, len(places) + 1)[:, None]


def perceptron(*between: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 24), *between, nn.Tanh(), nn.Linear(24, 4))


def of_first(losses: Tensor) -> Tensor:
    return losses[0]


@pytest.mark.parametrize(
    ("model", "reduce", "expected"),
    [
        pytest.param(perceptron, of_first, True, id="first"),
        pytest.param(lambda: perceptron(nn.BatchNorm1d(24)), lambda losses: losses[-1], True, id="last, normalised"),
        pytest.param(perceptron, lambda losses: losses[:2].mean(), False, id="two"),
        pytest.param(perceptron, torch.mean, False, id="mean"),
        pytest.param(lambda: Sequence(nn.GRU(8, 8)), lambda losses: losses[-1], False, id="last place of a recurrence"),
        pytest.param(lambda: Sequence(Means()), lambda losses: losses[-1], False, id="last place of means"),
    ],
)
def test_a_loss_of_one_sample_of_each_batch_is_told_as_that(
    model: Callable[[], nn.Module], reduce: Callable[[Tensor], Tensor], *, expected: bool, tmp_path: Path
) -> None:
    def step(network: nn.Module, _: int) -> Tensor:
        at = torch.randint(len(SAMPLES), (32,))
        return reduce(F.cross_entropy(network(SAMPLES[at]), CLASSES[at], reduction="none"))

    found = {one.kind: one.text for one in trained(tmp_path, model(), step, steps=12)}
    assert ("samples-left-out" in found) == expected
    assert "one-class-batches" not in found
    assert not expected or "only one of the 32 samples of a batch has a gradient" in found["samples-left-out"]


class Both(nn.Module):
    """A recurrent layer that goes both ways, of which a part is taken."""

    def __init__(self, take: Callable[[Tensor, Tensor], Tensor], features: int, layers: int = 1) -> None:
        super().__init__()
        self.gru, self.out = nn.GRU(2, 12, layers, batch_first=True, bidirectional=True), nn.Linear(features, 4)
        self.take = take

    def forward(self, samples: Tensor) -> Tensor:
        out: Tensor = self.out(self.take(*self.gru(samples.view(-1, 4, 2))))
        return out


UP, DOWN = "multiply the state of its forward direction", "multiply the state of its backward direction"


@pytest.mark.parametrize(
    ("take", "features", "layers", "expected"),
    [
        pytest.param(lambda out, _: out[:, -1], 24, 1, {"state-detached": DOWN}, id="outputs at the last place"),
        pytest.param(lambda out, _: out[:, 0], 24, 2, {"state-detached": f"layer 1 that {UP}"}, id="at the first"),
        pytest.param(
            lambda _, h: h[-1],
            12,
            1,
            {"no-gradient": "the forward direction of layer 0 is zero"},
            id="state of one way",
        ),
        pytest.param(lambda _, h: torch.cat([h[-2], h[-1]], 1), 24, 2, {}, id="states of both"),
        pytest.param(lambda out, _: out.mean(1), 24, 1, {}, id="mean"),
    ],
)
def test_a_direction_of_a_recurrence_of_which_nothing_is_used_is_told(
    take: Callable[[Tensor, Tensor], Tensor], features: int, layers: int, *, expected: dict[str, str], tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        at = torch.randint(len(SAMPLES), (32,))
        return F.cross_entropy(model(SAMPLES[at]), CLASSES[at])

    found = {one.kind: one for one in trained(tmp_path, Both(take, features, layers), step, steps=8)}
    kinds = {"state-detached", "no-gradient"} & found.keys()
    assert kinds == expected.keys()
    assert all(found[kind].module == "gru" and text in found[kind].text for kind, text in expected.items())


class Game(nn.Module):
    """Two parts that the loop calls and updates in turn."""

    def __init__(self, given: int = 8) -> None:
        super().__init__()
        self.maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8), nn.Tanh())
        self.judge = nn.Sequential(nn.Linear(given, 16), nn.LeakyReLU(), nn.Linear(16, 1))


def trainable(part: nn.Module, *, flag: bool) -> None:
    for one in part.parameters():
        one.requires_grad = flag


def played(
    folder: Path,
    game: Game,
    *,
    before: Callable[[Game], None],
    maker: nn.Module | None = None,
    data: Callable[[Tensor], Tensor] = Tensor.clone,
) -> list[Finding]:
    """What is told of 40 turns, in which the judge is frozen for the maker's update, and `before` is called before."""
    of_judge = torch.optim.Adam(game.judge.parameters(), 1e-3)
    of_maker = torch.optim.Adam((maker or game.maker).parameters(), 1e-3)
    with watch(game, log_freq=1, backend="record", logdir=str(folder), run="run", verbose=False):
        for _ in range(40):
            before(game)
            states = SAMPLES[torch.randint(len(SAMPLES), (16,))]
            loss = game.judge(data(states)).mean().square() + game.judge(data(game.maker(states[:, :4]))).mean()
            of_judge.zero_grad()
            loss.backward()
            of_judge.step()
            trainable(game.judge, flag=False)
            of_maker.zero_grad()
            (-game.judge(data(game.maker(states[:, :4])))).mean().backward()
            of_maker.step()
    return list(open_run(str(folder / "run")).model().findings())


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param(lambda _: None, ["judge"], id="never unfrozen"),
        pytest.param(lambda game: trainable(game.judge, flag=True), [], id="unfrozen for its own update"),
    ],
)
def test_a_part_that_stays_frozen_after_the_update_of_another_is_told(
    before: Callable[[Game], None], expected: list[str], tmp_path: Path
) -> None:
    told = [one for one in played(tmp_path, Game(), before=before) if one.kind == "frozen-by-accident"]
    assert [one.module for one in told] == expected
    assert all(one.step == 2 and "The optimizer still steps, and changes nothing." in one.text for one in told)


def test_a_part_in_no_optimizer_is_no_backbone_where_what_follows_is_given_other_data_too(tmp_path: Path) -> None:
    game = Game()
    found = played(tmp_path, game, before=lambda one: trainable(one.judge, flag=True), maker=game.judge)
    told = {one.module: one.severity for one in found if one.kind == "not-in-optimizer"}
    assert told == {"maker.0": "warning", "maker.2": "warning"}


@pytest.mark.parametrize(
    ("given", "join", "expected"),
    [
        pytest.param(8, Tensor.clone, True, id="all that is judged was made"),
        pytest.param(12, lambda one: torch.cat([one, one[:, :4] * 3], 1), False, id="actions beside states"),
    ],
)
def test_data_beyond_an_activation_is_told_only_where_that_makes_all_that_is_judged(
    given: int, join: Callable[[Tensor], Tensor], *, expected: bool, tmp_path: Path
) -> None:
    found = played(tmp_path, Game(given), before=lambda one: trainable(one.judge, flag=True), data=join)
    assert ("targets-out-of-range" in {one.kind for one in found}) == expected


def adam(model: nn.Module, *, maximize: bool) -> Callable[[], None]:
    return torch.optim.Adam(model.parameters(), 1e-2, maximize=maximize).step


def by_hand(model: nn.Module, *, maximize: bool) -> Callable[[], None]:
    @torch.no_grad()
    def step() -> None:
        for one in model.parameters():
            assert one.grad is not None
            one.add_(one.grad, alpha=0.05 if maximize else -0.05)

    return step


@pytest.mark.parametrize("made", [adam, by_hand])
@pytest.mark.parametrize("maximize", [True, False], ids=["up", "down"])
def test_updates_up_the_gradient_are_told_as_the_first_cause(
    made: Callable[..., Callable[[], None]], *, maximize: bool, tmp_path: Path
) -> None:
    model = perceptron()
    update = made(model, maximize=maximize)
    with watch(model, backend="record", logdir=str(tmp_path), run="run", verbose=False) as watcher:
        for _ in range(60):
            at = torch.randint(len(SAMPLES), (32,))
            loss = F.cross_entropy(model(SAMPLES[at]), CLASSES[at])
            model.zero_grad()
            loss.backward()
            update()
            watcher.log({"loss": loss.item()})
    first = [*open_run(str(tmp_path / "run")).model().findings()][:1]
    assert [(one.kind, one.step) for one in first] == ([("loss-negated", 0)] if maximize else [])


class DropPath(nn.Module):
    """Drops whole samples."""

    def __init__(self, dropped: float) -> None:
        super().__init__()
        self.dropped = dropped

    def forward(self, samples: Tensor) -> Tensor:
        return samples * (torch.rand(len(samples), 1) > self.dropped) / (1 - self.dropped)


class Residual(nn.Module):
    def __init__(self, dropped: float) -> None:
        super().__init__()
        self.inner, self.drop, self.last = nn.Linear(8, 8), DropPath(dropped), nn.Linear(8, 4)

    def forward(self, samples: Tensor) -> Tensor:
        out: Tensor = self.last(samples + self.drop(self.inner(samples).relu()))
        return out


@pytest.mark.parametrize(("dropped", "expected"), [(0.95, ["drop"]), (0.1, []), (0.5, [])])
def test_a_class_of_ones_own_that_drops_nearly_all_is_told(dropped: float, expected: list[str], tmp_path: Path) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        at = torch.randint(len(SAMPLES), (32,))
        return F.cross_entropy(model(SAMPLES[at]), CLASSES[at])

    found = [one for one in trained(tmp_path, Residual(dropped), step, steps=8) if one.kind == "dropout-extreme"]
    assert [one.module for one in found] == expected
    assert all("of what it is given to zero" in one.text for one in found)


@pytest.mark.parametrize("weight", [0.01, 1e-5], ids=["too much", "little"])
def test_a_code_that_a_penalty_empties_is_told_at_the_default_schedule(weight: float, tmp_path: Path) -> None:
    encoder, decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU()), nn.Linear(64, 8)
    model = nn.Sequential(encoder, decoder)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watch(model, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(280):
            samples = SAMPLES[torch.randint(len(SAMPLES), (64,))]
            code = encoder(samples)
            optimizer.zero_grad()
            (F.mse_loss(decoder(code), samples) + weight * code.sum()).backward()
            optimizer.step()
    found = {one.module: one.severity for one in open_run(str(tmp_path / "run")).model().findings()}
    assert found == ({"0.1": "warning"} if weight == 0.01 else {})


@pytest.mark.parametrize("is_clamped", [True, False])
def test_a_clamp_of_the_output_is_called_so_and_not_a_tanh(is_clamped: bool, tmp_path: Path) -> None:
    class Regressor(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

        def forward(self, samples: Tensor) -> Tensor:
            out: Tensor = self.inner(samples)
            return out.clamp(0, 1) if is_clamped else out

    def step(model: nn.Module, _: int) -> Tensor:
        samples = SAMPLES[torch.randint(len(SAMPLES), (64,))]
        return F.mse_loss(model(samples), 2 * samples[:, :4])

    found = [one for one in trained(tmp_path, Regressor(), step, steps=40) if one.kind == "targets-out-of-range"]
    assert ["A clamp keeps the model's outputs between 0 and 1" in one.text for one in found] == [True] * is_clamped


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(lambda _, optimizer: optimizer.step(), True, id="past the scaler"),
        pytest.param(lambda scaler, optimizer: (scaler.step(optimizer), scaler.update()), False, id="by the scaler"),
    ],
)
def test_the_factor_of_a_scaler_that_stays_in_the_gradients_is_told(
    step: Callable[[torch.amp.GradScaler, torch.optim.Optimizer], object], *, expected: bool, tmp_path: Path
) -> None:
    model, scaler = perceptron(), torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False) as watcher:
        for _ in range(30):
            at = torch.randint(len(SAMPLES), (32,))
            loss = F.cross_entropy(model(SAMPLES[at]), CLASSES[at])
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            step(scaler, optimizer)
            watcher.log({"loss": loss.item()})
    found = [one.text for one in open_run(str(tmp_path / "run")).model().findings() if one.kind == "update-too-large"]
    assert ["about 65536 times those of the cross entropy" in one for one in found] == [True] * expected


NOISE = torch.randn(16, 4, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("noise", [lambda: NOISE, lambda: torch.randn(16, 4)], ids=["fixed", "new"])
def test_a_generator_that_is_given_the_same_noise_at_each_step_is_told(
    noise: Callable[[], Tensor], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    game, bce = Game(), F.binary_cross_entropy_with_logits
    of_judge, of_maker = (torch.optim.Adam(one.parameters(), 1e-3) for one in (game.judge, game.maker))
    with watch(game, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(150):
            data, made = game.judge(SAMPLES[torch.randint(len(SAMPLES), (16,))]), game.maker(noise())
            judged = game.judge(made.detach())
            of_judge.zero_grad()
            (bce(data, torch.ones_like(data)) + bce(judged, torch.zeros_like(judged))).backward()
            of_judge.step()
            judged = game.judge(made)
            of_maker.zero_grad()
            bce(judged, torch.ones_like(judged)).backward()
            of_maker.step()
    told = [one for one in open_run(str(tmp_path / "run")).model().findings() if one.kind == "repeated-batch"]
    assert [(one.module, one.severity) for one in told] == [("maker", "warning")] * ("fixed" in request.node.name)


def test_updates_are_not_called_small_where_all_gradients_are_zero(tmp_path: Path) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        return model(SAMPLES[torch.randint(len(SAMPLES), (32,))]).clamp(min=50).mean()

    assert [one.kind for one in trained(tmp_path, perceptron(), step, steps=12)] == ["no-gradient"]


@pytest.mark.parametrize("label", [1.0, 0.0], ids=["label of data", "its own label"])
@pytest.mark.parametrize("last", [nn.Identity, nn.Sigmoid])
def test_a_discriminator_that_is_taught_one_label_for_all_is_told(
    last: Callable[[], nn.Module], label: float, tmp_path: Path
) -> None:
    game = Game()
    game.judge.append(last())
    measure = F.binary_cross_entropy if last is nn.Sigmoid else F.binary_cross_entropy_with_logits
    of_judge, of_maker = (torch.optim.Adam(one.parameters(), 1e-3) for one in (game.judge, game.maker))
    with watch(game, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(150):
            data, made = game.judge(SAMPLES[torch.randint(len(SAMPLES), (16,))]), game.maker(torch.randn(16, 4))
            judged = game.judge(made.detach())
            of_judge.zero_grad()
            (measure(data, torch.ones_like(data)) + measure(judged, torch.full_like(judged, label))).backward()
            of_judge.step()
            judged = game.judge(made)
            of_maker.zero_grad()
            measure(judged, torch.ones_like(judged)).backward()
            of_maker.step()
    found = [one for one in open_run(str(tmp_path / "run")).model().findings() if one.kind == "one-class-batches"]
    assert [one.module for one in found] == ["judge"] * (label == 1)


@pytest.mark.parametrize("itself", [True, False])
def test_a_loss_of_zero_from_the_first_step_on_is_told(itself: bool, tmp_path: Path) -> None:
    model = perceptron()
    other = model if itself else perceptron()

    def step(_: nn.Module, __: int) -> Tensor:
        samples = SAMPLES[torch.randint(len(SAMPLES), (32,))]
        with torch.no_grad():
            wanted = other(samples)
        return F.kl_div(model(samples).log_softmax(1), wanted.softmax(1), reduction="batchmean")

    found = [one.text for one in trained(tmp_path, model, step, steps=40) if one.kind == "update-too-small"]
    assert ["The logged loss is zero at all steps" in one for one in found] == [True] * itself
