"""Models and loops that are made wrong are told, and healthy ones that look like them are not."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.record.examples import SERIES, frame, write
from tests.record.long_runs import graph_of
from torchgraph_explorer import attach, open_run, watch
from torchgraph_explorer.finding import Finding

pytestmark = pytest.mark.slow

STEPS, WORDS, LENGTH, SAMPLES = 16, 12, 6, 5


def found(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    loss: Callable[[Any], Tensor],
    after: Callable[[int], object] = lambda _: None,
    steps: int = STEPS,
    log_freq: int = 1,
) -> list[Finding]:
    """What is told of a training."""
    with watch(model, log_freq=log_freq, backend="record", logdir=str(folder), run="run", verbose=False):
        for step in range(steps):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
            after(step)
    return list(open_run(str(folder / "run")).model().findings())


def kinds(findings: list[Finding]) -> list[tuple[str, str, str | None, int]]:
    return [(one.kind, one.severity, one.module, one.step) for one in findings]


def sgd(model: nn.Module, rate: float = 0.1) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), rate)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


# Ties


class LanguageModel(nn.Module):
    """An embedding, a recurrence and a head. The head's weight is the embedding's."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 16)
        self.body = nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, WORDS, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, words: Tensor) -> Tensor:
        result: Tensor = self.head(self.body(self.embedding(words))[0])
        return result


def next_word(model: Any) -> Tensor:
    words = (torch.randint(0, WORDS, (SAMPLES, 1)) + torch.arange(LENGTH + 1)) % WORDS
    return F.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())


def tied(_: LanguageModel) -> None:
    """Nothing breaks it."""


def copied(model: LanguageModel) -> None:
    model.head.weight = nn.Parameter(model.embedding.weight.detach().clone())


def drawn_anew(model: LanguageModel) -> None:
    model.head = nn.Linear(16, WORDS, bias=False)


def frozen_copy(model: LanguageModel) -> None:
    copied(model)
    model.embedding.weight.requires_grad_(False)


def zeros(model: LanguageModel) -> None:
    drawn_anew(model)
    nn.init.constant_(model.head.weight, 0.01)
    nn.init.constant_(model.embedding.weight, 0.01)


@pytest.mark.parametrize(
    ("change", "is_told"), [(tied, False), (copied, True), (drawn_anew, False), (frozen_copy, False), (zeros, False)]
)
def test_a_head_that_begins_as_a_copy_of_the_embedding_is_told(
    change: Callable[[LanguageModel], None], *, is_told: bool, tmp_path: Path
) -> None:
    model = LanguageModel()
    change(model)
    told = [one for one in kinds(found(tmp_path, model, sgd(model), loss=next_word)) if one[0] == "broken-tie"]
    assert told == ([("broken-tie", "warning", "head", 1)] if is_told else [])


@pytest.mark.parametrize("broken_at", [0, 6, STEPS - 3])
def test_a_tie_that_breaks_in_the_midst_is_told_with_its_step(broken_at: int, tmp_path: Path) -> None:
    model = LanguageModel()
    optimizer = sgd(model)

    def after(step: int) -> None:
        if step == broken_at:
            copied(model)
            optimizer.add_param_group({"params": [model.head.weight]})

    told = kinds(found(tmp_path, model, optimizer, loss=next_word, after=after))
    assert ("broken-tie", "warning", "head", broken_at + 2) in told  # which is the first after an update


@pytest.mark.parametrize(
    ("deviation", "scale", "is_tied", "expected"),
    [
        pytest.param(1.0, 1.0, True, ["0"], id="as torch makes it"),
        pytest.param(0.02, 1.0, True, [], id="small"),
        pytest.param(1.0, 0.125, True, [], id="with scaled logits"),
        pytest.param(1.0, 1.0, False, [], id="with a head of its own"),
        pytest.param(1.5, 1.0, True, [], id="as no torch makes it, but a training may"),
    ],
)
def test_a_head_that_shares_an_embedding_as_torch_makes_it_is_told(
    deviation: float, scale: float, expected: list[str], *, is_tied: bool, tmp_path: Path
) -> None:
    embedding, norm, head = nn.Embedding(50, 64), nn.LayerNorm(64), nn.Linear(64, 50, bias=False)
    nn.init.normal_(embedding.weight, std=deviation)
    nn.init.constant_(norm.weight, scale)
    if is_tied:
        head.weight = embedding.weight
    model = nn.Sequential(embedding, norm, head)

    def of_words(model: nn.Module) -> Tensor:
        words = torch.randint(0, 50, (SAMPLES, LENGTH + 1))
        return F.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())

    told = found(tmp_path, model, sgd(model), loss=of_words)
    assert [one.module for one in told if one.kind == "bad-init-scale"] == expected


def test_a_head_that_shares_a_large_embedding_behind_layers_is_told_once(tmp_path: Path) -> None:
    embedding, head = nn.Embedding(50, 144), nn.Linear(144, 50, bias=False)
    head.weight = embedding.weight
    layers = (nn.Linear(144, 144), nn.ReLU(), nn.Linear(144, 144), nn.LayerNorm(144))
    model = nn.Sequential(embedding, *layers, head)
    words = torch.randint(0, 50, (SAMPLES, LENGTH + 1))

    def of_words(model: nn.Module) -> Tensor:
        return F.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())

    told = found(tmp_path, model, sgd(model), loss=of_words)
    assert [one.module for one in told if one.kind == "bad-init-scale"] == ["0"]


class Lossy(nn.Module):
    """Hands on what it is given, and next to nothing of the gradient."""

    def forward(self, values: Tensor) -> Tensor:
        return 1e-6 * values + (1 - 1e-6) * values.detach()


@pytest.mark.parametrize("is_tied", [True, False])
def test_the_gradient_of_an_embedding_is_not_that_of_a_last_layer_which_shares_it(
    tmp_path: Path, *, is_tied: bool
) -> None:
    embedding, head = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
    for one in (embedding, head):
        nn.init.normal_(one.weight, std=0.2)
    if is_tied:
        head.weight = embedding.weight
    body = [part for _ in range(4) for part in (nn.Linear(16, 16), nn.Tanh())]
    model = nn.Sequential(embedding, nn.LayerNorm(16), *body, Lossy(), head)

    def of_words(model: nn.Module) -> Tensor:
        words = torch.randint(0, 50, (SAMPLES, LENGTH + 1))
        return F.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())

    told = found(tmp_path, model, sgd(model, 1e-5), loss=of_words)
    assert ("vanishing-gradient" in [one.kind for one in told]) is not is_tied


class Pair(nn.Module):
    """A student and its copy."""

    def __init__(
        self, name: str = "teacher", *, trained: bool = True, alike: bool = True, frozen: bool = False
    ) -> None:
        super().__init__()
        self.student = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        other = copy.deepcopy(self.student)
        self.student.requires_grad_(not frozen)
        if not alike:
            other[2] = nn.Linear(16, 3)
        self.add_module(name, other)
        self.copied, self.trained = name, trained

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        with torch.set_grad_enabled(self.trained):
            other: Tensor = self.get_submodule(self.copied)(inputs)
        return self.student(inputs), other


@pytest.mark.parametrize(
    ("options", "is_told"),
    [
        pytest.param({}, True, id="teacher"),
        pytest.param({"name": "ema_model"}, True, id="moving average"),
        pytest.param({"name": "encoder_k"}, True, id="encoder of keys"),
        pytest.param({"name": "target_net"}, True, id="target network"),
        pytest.param({"trained": False}, False, id="no gradient"),
        pytest.param({"name": "target_net", "frozen": True}, False, id="a copy that learns beside a frozen model"),
        pytest.param({"name": "second"}, False, id="twins"),
        pytest.param({"alike": False}, False, id="begins otherwise"),
    ],
)
def test_a_teacher_that_is_trained_is_told(options: dict[str, Any], *, is_told: bool, tmp_path: Path) -> None:
    model = Pair(**options)

    def loss(watched: Any) -> Tensor:
        one, other = watched(torch.randn(16, 8))
        return F.mse_loss(one, torch.randn(16, 3)) + F.mse_loss(one, other)

    told = [one for one in kinds(found(tmp_path, model, sgd(model), loss=loss)) if one[0] == "teacher-trained"]
    assert told == ([("teacher-trained", "warning", model.copied, 0)] if is_told else [])


class KeysAndQueries(nn.Module):
    """Both begin as the identity."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)
        for one in (self.query, self.key):
            nn.init.eye_(one.weight)
            nn.init.zeros_(one.bias)

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = (self.query(values) @ self.key(values).T).softmax(-1) @ values
        return result


def test_keys_that_begin_as_queries_do_are_no_teacher(tmp_path: Path) -> None:
    model = KeysAndQueries()
    told = kinds(found(tmp_path, model, sgd(model), loss=lambda net: net(torch.randn(16, 8)).square().mean()))
    assert "teacher-trained" not in [kind for kind, *_ in told]


# Recurrences and attention of torch


class Reader(nn.Module):
    """A recurrence whose weights are made by `begin`."""

    def __init__(self, kind: Callable[..., nn.RNNBase], begin: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.rnn, self.head = kind(8, 32, batch_first=True), nn.Linear(32, 3)
        for one in self.rnn.parameters():
            if one.dim() > 1:
                begin(one)

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.head(self.rnn(values)[0][:, -1])
        return result


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        pytest.param(nn.init.uniform_, ["rnn"], id="numbers from 0 to 1"),
        pytest.param(lambda one: nn.init.normal_(one, std=3), ["rnn"], id="large"),
        pytest.param(nn.init.orthogonal_, [], id="orthogonal"),
        pytest.param(nn.init.eye_, [], id="the identity"),
        pytest.param(nn.init.xavier_normal_, [], id="Xavier"),
        pytest.param(lambda _: None, [], id="as torch makes them"),
    ],
)
def test_recurrences_that_begin_too_large_are_told(
    kind: Callable[..., nn.RNNBase], begin: Callable[[Tensor], object], expected: list[str], tmp_path: Path
) -> None:
    model = Reader(kind, begin)
    told = found(tmp_path, model, sgd(model), loss=lambda net: net(torch.randn(8, 5, 8)).square().mean())
    assert [one.module for one in told if one.kind == "bad-init-scale"] == expected


class Attended(nn.Module):
    """Takes one of the results of attention, over as many places as there are features; or none."""

    def __init__(self, result: int | None) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 3)
        self.result = result

    def forward(self, values: Tensor) -> Tensor:
        results = self.attention(values, values, values)
        found: Tensor = self.head(values if self.result is None else values + results[self.result])
        return found


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (0, []),
        (1, [("no-gradient", "warning", "attention", 0)]),
        pytest.param(None, [("no-gradient", "warning", "attention", 0)], id="once, if neither is taken"),
    ],
)
def test_weights_of_attention_that_are_taken_for_values_are_told(
    result: int | None, expected: list[tuple[str, str, str, int]], tmp_path: Path
) -> None:
    model = Attended(result)
    told = kinds(found(tmp_path, model, sgd(model), loss=lambda net: net(torch.randn(4, 8, 8)).square().mean()))
    assert [one for one in told if one[0] in {"no-gradient", "unused-module"}] == expected


# Attention


class Attention(nn.Module):
    """Attention of one head, with a softmax over some dimension; of `[length, samples]` if it is `turned`."""

    def __init__(self, softmax: nn.Module, *, heads: int = 0, turned: bool = False) -> None:
        super().__init__()
        self.embedding, self.query, self.key = nn.Embedding(WORDS, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.softmax, self.drop, self.head = softmax, nn.Dropout(0.1), nn.Linear(16, WORDS)
        self.heads, self.turned = heads, turned

    def forward(self, words: Tensor) -> Tensor:
        values = self.embedding(words)
        if self.turned:
            scores = torch.einsum("kbd,qbd->kqb", self.key(values), self.query(values))
            result: Tensor = self.head(torch.einsum("kqb,kbd->qbd", self.drop(self.softmax(scores)), values))
            return result
        scores = self.query(values) @ self.key(values).mT
        if self.heads:
            scores = torch.stack([scores] * self.heads, 1)
        weights = self.drop(self.softmax(scores))
        return cast(Tensor, self.head((weights.mean(1) if self.heads else weights) @ values))


class Function(nn.Module):
    """A softmax that is no module of torch's."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, scores: Tensor) -> Tensor:
        return scores.softmax(self.dim)


@pytest.mark.parametrize(
    ("model", "place"),
    [
        pytest.param(lambda: Attention(nn.Softmax(0)), "softmax", id="first dimension"),
        pytest.param(lambda: Attention(Function(0), heads=2), "softmax", id="of several heads"),
        pytest.param(lambda: Attention(nn.Softmax(-1)), None, id="keys"),
        pytest.param(lambda: Attention(nn.Softmax(-2)), None, id="queries"),
        pytest.param(lambda: Attention(nn.Sigmoid()), None, id="no softmax"),
        pytest.param(lambda: Attention(nn.Softmax(0), turned=True), None, id="keys first"),
    ],
)
def test_attention_over_the_batch_is_told(model: Callable[[], nn.Module], place: str | None, tmp_path: Path) -> None:
    net = model()

    def loss(watched: Any) -> Tensor:
        words = torch.randint(0, WORDS, (LENGTH, SAMPLES) if net.turned else (SAMPLES, LENGTH))
        return F.cross_entropy(watched(words).flatten(0, 1), words.flatten())

    told = kinds(found(tmp_path, net, sgd(net), loss=loss))
    assert [one for one in told if one[0] == "softmax-over-batch"] == (
        [("softmax-over-batch", "warning", place, 0)] if place else []
    )


def test_attention_over_the_batch_is_told_of_tensors_that_are_sampled(tmp_path: Path) -> None:
    """Of 7 samples, 128 x 128 weights are 114,688 elements."""
    net = Attention(nn.Softmax(0))

    def loss(watched: Any) -> Tensor:
        words = torch.randint(0, WORDS, (7, 128))
        return F.cross_entropy(watched(words).flatten(0, 1), words.flatten())

    [told] = [one for one in found(tmp_path, net, sgd(net), loss=loss, steps=3) if one.kind == "softmax-over-batch"]
    assert (told.module, told.evidence["samples"]) == ("softmax", 7)
    assert told.evidence["mean"] == pytest.approx(1 / 7, rel=0.05)


# Layers without anything between them


def layers(*widths: int, between: Callable[[], nn.Module] | None = None) -> nn.Sequential:
    made: list[nn.Module] = []
    for before, after in pairwise(widths):
        made += [nn.Linear(before, after), *([] if between is None else [between()])]
    return nn.Sequential(*(made if between is None else made[:-1]))


class Residual(nn.Module):
    """What goes into a layer is added."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = inputs + self.layer(inputs)
        return result


@pytest.mark.parametrize(
    ("model", "place"),
    [
        pytest.param(lambda: layers(8, 32, 3), "0", id="the whole model"),
        pytest.param(
            lambda: nn.Sequential(*layers(8, 32, 16, 12), nn.ReLU(), nn.Linear(12, 3)), "0", id="three layers"
        ),
        pytest.param(lambda: layers(8, 32, 3, between=nn.Identity), "0", id="identities"),
        pytest.param(lambda: nn.Linear(8, 3), None, id="one layer"),
        pytest.param(lambda: layers(8, 32, 32, 3, between=nn.ReLU), None, id="activations"),
        pytest.param(lambda: layers(8, 2, 8, 3), None, id="a bottleneck and a head"),
        pytest.param(lambda: nn.Sequential(*layers(8, 16, 16), nn.ReLU(), nn.Linear(16, 3)), None, id="two layers"),
        pytest.param(lambda: nn.Sequential(*(Residual() for _ in range(4))), None, id="sums between them"),
        pytest.param(lambda: layers(8, 16, 16, 3, between=lambda: nn.LayerNorm(16)), None, id="normalised"),
    ],
)
def test_linear_layers_without_an_activation_are_told(
    model: Callable[[], nn.Module], place: str | None, tmp_path: Path
) -> None:
    net = model()
    told = found(tmp_path, net, sgd(net, 0.01), loss=lambda watched: watched(torch.randn(16, 8)).square().mean())
    assert [one.module for one in told if one.kind == "missing-nonlinearity"] == ([place] if place else [])


def test_a_model_of_very_many_linear_layers_is_judged_soon(tmp_path: Path) -> None:
    write(tmp_path / "run", graph_of(6_000), SERIES, frame(0), frame(10))
    model = open_run(tmp_path / "run").model()
    began = time.process_time()
    model.findings()
    assert time.process_time() - began < 4


def test_layers_without_an_activation_compute_what_one_layer_does() -> None:
    """The text says so."""
    net, inputs = layers(8, 32, 16, 3).double(), torch.randn(64, 8, dtype=torch.float64)
    inputs = torch.cat([inputs, torch.ones(64, 1, dtype=torch.float64)], 1)
    answer = net(inputs[:, :8])
    one_layer = torch.linalg.lstsq(inputs, answer).solution
    assert torch.allclose(inputs @ one_layer, answer)


# The learning rate


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))


def squares(model: Any) -> Tensor:
    inputs = torch.randn(16, 8)
    return F.mse_loss(model(inputs), inputs[:, :3] ** 2)


@pytest.mark.parametrize(
    ("rate", "since"),
    [
        pytest.param(lambda step: 0.1 ** (step // 4), 16, id="a tenth, every fourth step"),
        pytest.param(lambda step: 0.4**step, 11, id="less at each step"),
        pytest.param(lambda step: float(step < 10), 10, id="taken away"),
        pytest.param(lambda step: 1 - step / 40, None, id="to zero at the end"),
        pytest.param(lambda step: 0.1 ** (step // 12), None, id="a thousandth at the end"),
        pytest.param(lambda step: 0.1 ** (step // 6), None, id="for less than half"),
        pytest.param(lambda step: min(1.0, (step / 30) ** 4), None, id="warm-up"),
    ],
)
def test_a_learning_rate_that_is_taken_away_is_told(
    rate: Callable[[int], float], since: int | None, tmp_path: Path
) -> None:
    model = network()
    optimizer = sgd(model, 0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    findings = found(tmp_path, model, optimizer, loss=squares, after=lambda _: schedule.step(), steps=40)
    told = [one for one in kinds(findings) if one[0] == "learning-rate-gone"]
    assert told == ([] if since is None else [("learning-rate-gone", "warning", None, since)])


@pytest.mark.parametrize(("gone_at", "is_told"), [(10, True), (25, False)])
def test_a_learning_rate_at_few_recorded_steps_is_gone_for_half_of_all(
    gone_at: int, *, is_told: bool, tmp_path: Path
) -> None:
    """Of the steps 0, 15, 30 and 45, half or more have no rate in both cases."""
    model = network()
    optimizer = sgd(model, 0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: float(step < gone_at))
    findings = found(tmp_path, model, optimizer, loss=squares, after=lambda _: schedule.step(), steps=46, log_freq=15)
    assert ("learning-rate-gone" in {one.kind for one in findings}) == is_told


@pytest.mark.parametrize(("falls", "is_told"), [(False, True), (True, False)])
def test_a_thousandth_of_the_rate_is_gone_where_the_loss_stays(*, falls: bool, is_told: bool, tmp_path: Path) -> None:
    """It falls after the first fifth of the run: else it would be gone in any case."""
    model = network()
    optimizer = sgd(model, 1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 if step < 30 else 1e-3)
    noise = torch.randn(120)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False) as watcher:
        for step in range(120):
            optimizer.zero_grad()
            squares(model).backward()
            optimizer.step()
            schedule.step()
            watcher.log({"loss": 2 + 0.05 * float(noise[step]) - (min(step, 30) / 30 if falls else 0)})
    findings = open_run(str(tmp_path / "run")).model().findings()
    assert [one.step for one in findings if one.kind == "learning-rate-gone"] == ([30] if is_told else [])


# Modules made after the optimizer


class Lazy(nn.Module):
    """A layer is made when it is first needed."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)
        self.middle: nn.Module | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        values = self.first(inputs).relu()
        if self.middle is None:
            self.middle = nn.Linear(16, 16)
        result: Tensor = self.last(self.middle(values).relu())
        return result


@pytest.mark.parametrize("is_warmed_up", [False, True])
def test_a_layer_that_the_first_pass_makes_is_not_in_the_optimizer(is_warmed_up: bool, tmp_path: Path) -> None:
    model = Lazy()
    if is_warmed_up:
        model(torch.randn(1, 8))
    told = kinds(found(tmp_path, model, sgd(model), loss=squares))
    assert [one[:3] for one in told] == ([] if is_warmed_up else [("not-in-optimizer", "warning", "middle")])


@pytest.mark.parametrize(
    ("is_held", "has_left", "expected"),
    [
        pytest.param(False, False, [("not-in-optimizer", "warning", "0", 6)], id="frozen from the beginning"),
        pytest.param(False, True, [("not-in-optimizer", "warning", "0", 6)], id="with a gradient from before"),
        pytest.param(True, False, [], id="added to the optimizer"),
    ],
)
def test_a_layer_that_is_unfrozen_behind_the_back_of_the_optimizer_is_told(
    is_held: bool, has_left: bool, expected: list[tuple[str, str, str, int]], tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    if has_left:
        squares(model).backward()
    model[0].requires_grad_(False)
    optimizer = sgd(model[2])

    def after(step: int) -> None:
        if step == 5:
            model[0].requires_grad_(True)
            if is_held:
                optimizer.add_param_group({"params": [*model[0].parameters()]})

    told = kinds(found(tmp_path, model, optimizer, loss=squares, after=after))
    assert [one for one in told if one[0] == "not-in-optimizer"] == expected


class Silent(nn.Module):
    """Layers that run without a graph, and what is made of them."""

    def __init__(self, *, is_target: bool = False) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 3)
        self.target = nn.Linear(8, 3) if is_target else None

    def forward(self, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            values = self.first(inputs) if self.target is None else self.target(inputs)
        if self.target is None:
            result: Tensor = self.last(values.relu())
            return result
        return cast("Tensor", self.last(self.first(inputs).relu()) - values)


def trained_before(model: Silent) -> None:
    with torch.no_grad():
        model.first.weight.normal_(0, 0.3)


def left_out(model: Silent) -> None:
    model.first.requires_grad_(False)


@pytest.mark.parametrize(
    ("model", "change", "expected"),
    [
        pytest.param(Silent, lambda _: None, [("warning", "first")], id="new layers"),
        pytest.param(Silent, trained_before, [("info", "first")], id="layers that were trained before"),
        pytest.param(Silent, left_out, [], id="frozen layers"),
        pytest.param(lambda: Silent(is_target=True), lambda _: None, [("info", "target")], id="a target"),
    ],
)
def test_new_layers_that_run_without_a_graph_before_others_are_told(
    model: Callable[[], Silent],
    change: Callable[[Silent], None],
    expected: list[tuple[str, str]],
    tmp_path: Path,
) -> None:
    net = model()
    change(net)
    told = found(tmp_path, net, sgd(net), loss=squares)
    assert [(one.severity, one.module) for one in told if one.kind == "no-gradient"] == expected


@pytest.mark.parametrize(
    ("shift", "scale", "is_trained", "severity"),
    [
        pytest.param(2.0, 3.0, False, "warning", id="as it was made"),
        pytest.param(2.0, 3.0, True, "info", id="fitted"),
    ],
)
@pytest.mark.parametrize("log_freq", [1, 5])
def test_a_normalisation_that_never_saw_data_is_told_after_some_updates(
    shift: float, scale: float, is_trained: bool, severity: str, log_freq: int, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.BatchNorm1d(8, momentum=None), nn.Linear(8, 3))
    if is_trained:
        model(shift + scale * torch.randn(4096, 8))
    model.eval()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    told = found(
        tmp_path,
        model,
        optimizer,
        loss=lambda net: F.cross_entropy(net(shift + scale * torch.randn(64, 8)), torch.randint(3, (64,))),
        steps=40,
        log_freq=log_freq,
    )
    assert [one.severity for one in told if one.kind == "normalisation-in-eval"] == [severity]


def normal(layer: nn.Module) -> nn.Module:
    """A layer with other weights than torch makes, as of a network that was trained."""
    nn.init.normal_(cast("nn.Linear", layer).weight, 0, 0.3)
    return layer


@pytest.mark.parametrize(
    ("layers", "frozen", "expected"),
    [
        pytest.param(
            lambda: [normal(nn.Linear(8, 32)), nn.Linear(32, 32), nn.Linear(32, 3)],
            "024",
            ["2"],
            id="all of the head but its end",
        ),
        pytest.param(lambda: [normal(nn.Linear(8, 32)), nn.Linear(32, 32), nn.Linear(32, 3)], "02", ["2"], id="a part"),
        pytest.param(lambda: [normal(nn.Linear(8, 32)), nn.Linear(32, 32), nn.Linear(32, 3)], "0", [], id="none"),
        pytest.param(lambda: [nn.Linear(8, 32), nn.Linear(32, 32), nn.Linear(32, 3)], "02", [], id="random features"),
        pytest.param(
            lambda: [normal(nn.Linear(8, 32)), normal(nn.Linear(32, 32)), nn.Linear(32, 3)], "02", [], id="a backbone"
        ),
        pytest.param(
            lambda: [nn.Linear(8, 32), normal(nn.Linear(32, 32)), nn.Linear(32, 3)], "02", [], id="hardly trained"
        ),
    ],
)
def test_a_new_layer_that_is_frozen_with_the_backbone_is_told(
    layers: Callable[[], list[nn.Module]], frozen: str, expected: list[str], tmp_path: Path
) -> None:
    first, second, last = layers()
    model = nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), last, nn.Linear(3, 3))
    for name in frozen:
        model[int(name)].requires_grad_(False)
    told = found(tmp_path, model, sgd(model), loss=squares)
    assert [one.module for one in told if one.kind == "frozen-by-accident" and not one.causes] == expected


@pytest.mark.parametrize(
    ("dtype", "optimizer", "is_told"),
    [
        pytest.param(torch.float16, torch.optim.Adam, True, id="Adam in float16"),
        pytest.param(torch.float16, torch.optim.SGD, False, id="SGD in float16"),
        pytest.param(torch.float32, torch.optim.Adam, False, id="Adam in float32"),
    ],
)
def test_an_epsilon_that_is_zero_in_float16_is_named(
    dtype: torch.dtype, optimizer: type[torch.optim.Optimizer], *, is_told: bool, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).to(dtype)
    poisoned = dtype == torch.float32 or optimizer is torch.optim.SGD

    def after(step: int) -> None:
        if step == 3 and poisoned:
            next(model.parameters()).data[0, 0] = torch.nan

    def loss(net: nn.Module) -> Tensor:
        inputs = torch.randn(32, 8, dtype=dtype)
        inputs[:, 0] = 0
        return F.cross_entropy(net(inputs).float(), torch.randint(3, (32,)))

    told = found(tmp_path, model, optimizer(model.parameters(), lr=1e-3), loss=loss, after=after)  # type: ignore[call-arg]
    [advice] = [one.advice for one in told if one.kind == "nan"]
    assert ("`eps=1e-4`" in advice) == is_told


@pytest.mark.parametrize("is_unscaled", [False, True])
def test_a_gradient_that_is_clipped_with_its_scale_is_told_with_what_to_do(is_unscaled: bool, tmp_path: Path) -> None:
    model = nn.Linear(8, 3)
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu", init_scale=2.0**14)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(STEPS):
            optimizer.zero_grad()
            scaler.scale(squares(model)).backward()
            if is_unscaled:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    told = open_run(tmp_path / "run").model().findings()
    advice = [one.advice for one in told if one.kind == "clipping-always"]
    assert [one.partition(" before")[0] for one in advice] == (
        [] if is_unscaled else ["Call `scaler.unscale_(optimizer)`"]
    )


@pytest.mark.parametrize(
    ("classes", "loss", "is_told"),
    [
        pytest.param(1, lambda found: F.cross_entropy(found, torch.zeros(32, dtype=torch.long)), True, id="one class"),
        pytest.param(2, lambda found: F.cross_entropy(found, torch.zeros(32, dtype=torch.long)), False, id="two"),
        pytest.param(1, lambda found: F.mse_loss(found, torch.ones(32, 1)), False, id="one number"),
    ],
)
def test_a_softmax_over_one_class_is_told(
    classes: int, loss: Callable[[Tensor], Tensor], *, is_told: bool, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, classes))
    told = found(tmp_path, model, sgd(model), loss=lambda net: loss(net(torch.randn(32, 8))))
    assert [one.kind for one in told if not one.causes] == (["single-class"] if is_told else [])


def test_a_critic_that_is_not_the_smaller_one_at_any_sample_is_not_told_of_one_class(tmp_path: Path) -> None:
    critic, optimizer = (net := nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))), sgd(net)
    with watch(critic, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(STEPS):
            inputs = torch.randn(32, 8)
            torch.minimum(critic(inputs), torch.full((32, 1), -100.0)).mean().backward()
            F.mse_loss(critic.forward(inputs), inputs[:, :1]).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert "single-class" not in {one.kind for one in open_run(tmp_path / "run").model().findings()}


@pytest.mark.parametrize(
    ("words", "severity"),
    [
        pytest.param(WORDS, "warning", id="the same size"),
        pytest.param(WORDS + 4, "warning", id="more words"),
        pytest.param(None, "info", id="left out on purpose"),
    ],
)
def test_an_embedding_that_was_replaced_after_the_optimizer_was_made_is_no_backbone(
    words: int | None, severity: str, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Embedding(WORDS, 16), nn.Flatten(), nn.Linear(16 * LENGTH, 3))
    optimizer = sgd(model if words else model[2], 0.01)
    if words:
        model[0] = nn.Embedding(words, 16)
    told = found(
        tmp_path, model, optimizer, loss=lambda watched: watched(torch.randint(0, WORDS, (16, LENGTH))).square().mean()
    )
    assert kinds(told) == [("not-in-optimizer", severity, "0", 0)]
    assert ("module was replaced" in told[0].text) is (words is not None)


def test_an_optimizer_of_two_models_has_no_orphans(tmp_path: Path) -> None:
    """The other one gets gradients of its own, and its first layer is as large as the one that is left out."""
    model, other = network(), network()
    optimizer = torch.optim.SGD([*model[2].parameters(), *other.parameters()], 0.01)

    def loss(watched: Any) -> Tensor:
        return squares(watched) + squares(other)

    assert kinds(found(tmp_path, model, optimizer, loss=loss)) == [("not-in-optimizer", "info", "0", 0)]


def made_again(_: nn.Module) -> nn.Module:
    return network()


@pytest.mark.parametrize("change", [made_again, copy.deepcopy], ids=["made again", "copied"])
def test_a_model_of_which_the_optimizer_has_the_one_before_is_told(
    change: Callable[[nn.Module], nn.Module], tmp_path: Path
) -> None:
    first = network()
    optimizer = sgd(first)
    told = found(tmp_path, change(first), optimizer, loss=squares)
    assert kinds(told)[0] == ("not-in-optimizer", "error", "", 0)
    assert "it was made before the model was made again" in told[0].text
    assert [one.kind for one in told if not one.causes] == ["not-in-optimizer"]


class Remaking(nn.Module):
    """A layer whose weight is made by its forward pass, each time or once, or is swapped while it is called."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.weight = way, nn.Parameter(torch.randn(8, 8) / 4)

    def forward(self, values: Tensor) -> Tensor:
        if self.way == "each time":
            self.weight = nn.Parameter(torch.randn(8, 8) / 4)
        elif self.way == "swapped":
            result: Tensor = torch.func.functional_call(
                nn.Linear(8, 8, bias=False), {"weight": self.weight * 1.0}, (values,)
            )
            return result
        return values @ self.weight.T


@pytest.mark.parametrize("way", ["each time", "swapped", "once"])
def test_a_parameter_that_each_forward_pass_makes_is_told(way: str, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), Remaking(way), nn.ReLU(), nn.Linear(8, 3))
    told = [one for one in found(tmp_path, model, sgd(model), loss=squares) if one.kind == "not-in-optimizer"]
    assert [(one.severity, one.module) for one in told] == ([("warning", "1")] if way == "each time" else [])
    assert all("makes `weight` of" in one.text for one in told)


def test_other_one_hot_codes_are_no_repeated_batch(tmp_path: Path) -> None:
    model = network()

    def loss(watched: Any) -> Tensor:
        classes = torch.randint(8, (16,))
        return F.cross_entropy(watched(F.one_hot(classes, 8).float()), classes % 3)

    told = found(tmp_path, model, sgd(model), loss=loss)
    assert "repeated-batch" not in {one.kind for one in told}


def test_other_parameters_in_a_pass_between_two_updates_are_no_fault(tmp_path: Path) -> None:
    """As in tools that compute a Hessian. The step begins with that pass, so not with the parameters of the model."""
    model = network()

    def loss(watched: Any) -> Tensor:
        others = {name: one.detach().clone().requires_grad_() for name, one in watched.named_parameters()}
        torch.autograd.grad(squares(partial(torch.func.functional_call, watched, others)), list(others.values()))
        return squares(watched)

    assert kinds(found(tmp_path, model, sgd(model), loss=loss)) == []


@pytest.mark.parametrize(
    ("optimizer", "betas", "is_told"),
    [
        pytest.param(torch.optim.Adam, (0.999, 0.9), True, id="swapped"),
        pytest.param(torch.optim.AdamW, (0.99, 0.9), True, id="nearly so"),
        pytest.param(torch.optim.Adam, (0.9, 0.999), False, id="the default"),
        pytest.param(torch.optim.Adam, (0.9, 0.9), False, id="equal"),
        pytest.param(torch.optim.AdamW, (0.95, 0.9), False, id="the first is a little larger"),
        pytest.param(torch.optim.Adam, (0.0, 0.99), False, id="of a GAN"),
        pytest.param(torch.optim.Adamax, (0.999, 0.9), False, id="another optimizer"),
    ],
)
def test_betas_in_the_wrong_order_are_told(
    optimizer: Any, betas: tuple[float, float], is_told: bool, tmp_path: Path
) -> None:
    model = network()
    told = found(tmp_path, model, optimizer(model.parameters(), 1e-3, betas=betas), loss=squares)
    assert ("betas-swapped" in [one.kind for one in told]) is is_told


def teacher_loss(other: nn.Module) -> Callable[[Any], Tensor]:
    return lambda watched: squares(watched) + squares(other)


def updated_by_hand(model: nn.Module) -> Callable[[int], None]:
    def update(_: int) -> None:
        with torch.no_grad():
            for one in model.parameters():
                one.sub_(cast("Tensor", one.grad), alpha=0.01)
                one.grad = None

    return update


@pytest.mark.parametrize("case", ["another model is trained", "a model that is updated by hand"])
def test_an_optimizer_of_another_model_is_not_told(case: str, tmp_path: Path) -> None:
    model, other = network(), network()
    if case == "another model is trained":
        told = found(tmp_path, model, sgd(other), loss=teacher_loss(other))
    else:
        told = found(tmp_path, model, sgd(other), loss=squares, after=updated_by_hand(model))
    assert "not-in-optimizer" not in [one.kind for one in told]


class Own(nn.Module):
    """A linear layer of a user's own. With `runtime`, its output is scaled, as with an equalised learning rate."""

    def __init__(
        self, inputs: int, outputs: int, *, scale: float, runtime: float = 1.0, is_turned: bool = False
    ) -> None:
        super().__init__()
        shape = (outputs, inputs) if is_turned else (inputs, outputs)
        self.matrix, self.bias = nn.Parameter(torch.randn(shape) * scale), nn.Parameter(torch.zeros(outputs))
        self.runtime, self.is_turned = runtime, is_turned

    def forward(self, values: Tensor) -> Tensor:
        matrix = self.matrix.T if self.is_turned else self.matrix
        return values.flatten(1) @ (matrix * self.runtime) + self.bias


class TwoMatrices(nn.Module):
    """A network whose weights are parameters of its own."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(64, 100) * scale)
        self.second = nn.Parameter(torch.randn(100, 10) * scale)

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(images.reshape(-1, 64) @ self.first) @ self.second


class Codes(nn.Module):
    """What is nearest of a book of large codes."""

    def __init__(self) -> None:
        super().__init__()
        self.book = nn.Parameter(50 * torch.randn(20, 64))

    def forward(self, values: Tensor) -> Tensor:
        return values + self.book[torch.cdist(values.flatten(1), self.book).argmin(1)].view_as(values) * 1e-3


def three(**options: Any) -> nn.Module:
    sizes = ((64, 128), (128, 128), (128, 10))
    return nn.Sequential(*(part for pair in sizes for part in (Own(*pair, **options), nn.ReLU())))[:-1]


class Below(nn.Module):
    """Shifts what it takes, so that most of it is negative."""

    def forward(self, values: Tensor) -> Tensor:
        return values - 3


def positive(*before: nn.Module) -> nn.Module:
    """Layers whose weights are all positive: small, but they add up."""
    layers = [nn.Linear(64, 128), nn.Linear(128, 128), nn.Linear(128, 10)]
    for one in layers:
        nn.init.uniform_(one.weight)
    return nn.Sequential(nn.Flatten(), *before, layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])


@pytest.mark.parametrize(
    ("make", "is_told"),
    [
        pytest.param(lambda: three(scale=1.0), True, id="randn"),
        pytest.param(positive, True, id="numbers from 0 to 1"),
        pytest.param(lambda: positive(Below()), True, id="numbers from 0 to 1, which silence every unit"),
        pytest.param(lambda: three(scale=1.0, is_turned=True), True, id="randn, as Linear has its weights"),
        pytest.param(lambda: TwoMatrices(1.0), True, id="parameters of the model"),
        pytest.param(lambda: three(scale=0.1), False, id="scaled"),
        pytest.param(lambda: three(scale=1.0, runtime=0.1), False, id="an equalised learning rate"),
        pytest.param(lambda: TwoMatrices(0.1), False, id="scaled parameters of the model"),
        pytest.param(lambda: nn.Sequential(nn.Flatten(), Codes(), Codes(), nn.Linear(64, 10)), False, id="code books"),
    ],
)
def test_weights_of_ones_own_that_begin_too_large_are_told(
    make: Callable[[], nn.Module], is_told: bool, tmp_path: Path
) -> None:
    model = make()
    told = found(tmp_path, model, sgd(model, 1e-4), loss=lambda net: net(torch.randn(16, 1, 8, 8)).square().mean())
    assert ("bad-init-scale" in [one.kind for one in told]) is is_told


# What comes back to nothing


class Rounding(nn.Module):
    """A quantisation, which has no derivative by itself."""

    def __init__(self, *, is_straight_through: bool) -> None:
        super().__init__()
        self.is_straight_through = is_straight_through

    def forward(self, values: Tensor) -> Tensor:
        rounded = (16 * values).round() / 16
        return values + (rounded - values).detach() if self.is_straight_through else rounded


@pytest.mark.parametrize("is_straight_through", [True, False])
def test_a_quantisation_without_a_derivative_is_told(is_straight_through: bool, tmp_path: Path) -> None:
    rounding = Rounding(is_straight_through=is_straight_through)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), rounding, nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    told = found(tmp_path, net, sgd(net), loss=squares)
    if is_straight_through:
        assert told == []
    else:
        [one] = told
        assert (one.kind, one.module) == ("vanishing-gradient", "0")
        assert "a gradient of zeros" in one.text
        assert "straight-through" in one.advice


class Gated(nn.Module):
    """A layer, then a gate of two layers beside a third one that takes the same: as query and key beside value."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.query, self.key, self.value, self.last = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, values: Tensor) -> Tensor:
        weights = (self.scale * self.query(values) * self.key(values)).softmax(-1)
        return self.last(weights * self.value(values))


@pytest.mark.parametrize("is_frozen", [True, False])
def test_query_and_key_with_small_gradients_beside_a_value_lose_none_on_its_way(
    is_frozen: bool, tmp_path: Path
) -> None:
    first = [nn.Linear(8, 8).requires_grad_(False)] if is_frozen else []
    net = nn.Sequential(*first, Gated(1e-7), nn.Linear(8, 3))
    told = found(tmp_path, net, sgd(net), loss=squares)
    assert "vanishing-gradient" not in {one.kind for one in told}


@pytest.mark.parametrize(
    ("factor", "is_told"), [pytest.param(1e-3, False, id="hardly"), pytest.param(1e-7, True, id="altogether")]
)
def test_what_layers_beside_each_other_lose_at_once_is_told_where_it_is_far_more(
    factor: float, is_told: bool, tmp_path: Path
) -> None:
    class Small(Gated):
        def forward(self, values: Tensor) -> Tensor:
            weights = (self.query(values) * self.key(values)).softmax(-1)
            return self.last(1 + factor * weights * self.value(values))

    net = nn.Sequential(Small(1.0), nn.Linear(8, 3))
    told = found(tmp_path, net, sgd(net), loss=squares)
    assert ("vanishing-gradient" in {one.kind for one in told}) == is_told


class Adapted(nn.Module):
    """A frozen layer with an adapter beside it, and a layer after both."""

    def __init__(self, factor: float, *, begins_at_zero: bool) -> None:
        super().__init__()
        self.base = nn.Linear(8, 8).requires_grad_(False)
        self.down, self.up, self.last = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False), nn.Linear(8, 3)
        self.factor = factor
        if begins_at_zero:
            nn.init.zeros_(self.up.weight)

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.last(self.base(values) + self.factor * self.up(self.down(values)))
        return result


@pytest.mark.parametrize(
    ("factor", "begins_at_zero", "is_told"), [(0.01, True, False), (0.01, False, False), (1e-7, False, True)]
)
def test_an_adapter_gets_little_gradient_as_long_as_it_is_small(
    factor: float, begins_at_zero: bool, is_told: bool, tmp_path: Path
) -> None:
    model = nn.Sequential(Adapted(factor, begins_at_zero=begins_at_zero), nn.Tanh(), nn.Linear(3, 3))
    told = found(
        tmp_path, model, torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.01), loss=squares
    )
    assert ("vanishing-gradient" in {one.kind for one in told}) == is_told


class Relative(nn.Module):
    """Scores of relative positions, which views shift row by row, as in Transformer-XL; or a view for a transpose."""

    def __init__(self, columns: int, less: int | None) -> None:
        super().__init__()
        self.columns, self.less = columns, less
        self.scores = nn.Linear(8, 2 * columns)
        self.last = nn.Linear(6 if less is None else columns - less, 3)

    def forward(self, values: Tensor) -> Tensor:
        scores = self.scores(values).view(4, 6, 2, self.columns).transpose(1, 2)
        scores = scores.reshape(4, 2, self.columns, 6)
        if self.less is not None:
            scores = scores[:, :, self.less :].reshape(4, 2, 6, self.columns - self.less)
        result: Tensor = self.last(scores)
        return result


@pytest.mark.parametrize(
    ("columns", "less", "is_told"), [(11, 1, False), (11, 2, False), (7, None, False), (11, None, True)]
)
def test_a_shift_of_relative_positions_is_not_taken_for_a_transpose(
    columns: int, less: int | None, is_told: bool, tmp_path: Path
) -> None:
    net = Relative(columns, less)
    told = found(tmp_path, net, sgd(net), loss=lambda model: (model(torch.randn(4, 6, 8)) - 1).square().mean())
    assert ("view-for-transpose" in {one.kind for one in told}) == is_told


@pytest.mark.parametrize(
    ("first", "second", "is_told"),
    [
        pytest.param((6, 4, 5, 3), (4, 6, 5, 3), True, id="two sizes in another order"),
        pytest.param((32, 8, 4, 9), (8, 4, 32, 9), False, id="one is split, and two are joined"),
        pytest.param((6, 7, 5, 3), (7, 6, 5, 3), False, id="a shift, queries first, with as many keys but one"),
        pytest.param((6, 8, 5, 3), (8, 6, 5, 3), True, id="two more columns than rows"),
        pytest.param((6, 7, 4, 8), (6, 7, 8, 4), False, id="4 heads of 8 as 8 groups of 4"),
        pytest.param((6, 7, 4, 9), (6, 7, 9, 4), True, id="the last two of four"),
    ],
)
def test_a_view_that_splits_or_shifts_is_not_taken_for_a_transpose(
    first: tuple[int, ...], second: tuple[int, ...], *, is_told: bool, tmp_path: Path
) -> None:
    class Viewing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.last = nn.Linear(first[-1], first[-1]), nn.Linear(second[-1], 2)

        def forward(self, values: Tensor) -> Tensor:
            result: Tensor = self.last(self.body(values).reshape(second))
            return result

    net = Viewing()
    told = found(tmp_path, net, sgd(net), loss=lambda model: (model(torch.randn(first)) - 1).square().mean())
    assert ("view-for-transpose" in {one.kind for one in told}) == is_told


class Pooler(nn.Module):
    """What a library makes of the states, and many leave."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(8, 8)

    def forward(self, states: Tensor) -> Tensor:
        result: Tensor = self.dense(states[:, 0]).tanh()
        return result


class Base(nn.Module):
    """A model of a library, or one like it."""

    def __init__(self, *, calls: bool = True, words: bool = False) -> None:
        super().__init__()
        if words:
            self.words = nn.Embedding(5, 8)
        self.body, self.pooler, self.calls = nn.Linear(8, 8), Pooler(), calls
        self.more = nn.Sequential(*(part for _ in range(4) for part in (nn.Linear(8, 8), nn.Tanh())))

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        states = self.more(self.body(values))
        return states, self.pooler(states) if self.calls else states


class WithHead(nn.Module):
    def __init__(self, base: nn.Module, *, cuts: bool = False) -> None:
        super().__init__()
        self.base, self.head, self.cuts = base, nn.Linear(8, 3), cuts

    def forward(self, values: Tensor) -> Tensor:
        states, _ = self.base(values)
        result: Tensor = self.head((states.detach() if self.cuts else states).mean(1))
        return result


@pytest.mark.parametrize(
    ("options", "severity"),
    [
        pytest.param({"library": True}, {"info"}, id="a pooler of a library"),
        pytest.param({"library": True, "calls": False}, {"info"}, id="one that is not called"),
        pytest.param({"library": True, "words": True}, {"info"}, id="one of torch's that is not called"),
        pytest.param({"library": True, "adds": True}, {"info", "warning"}, id="one that was added, and is not called"),
        pytest.param({"library": True, "cuts": True}, {"warning"}, id="the whole model of a library"),
        pytest.param({"library": False}, {"warning"}, id="one of one's own"),
        pytest.param({"library": False, "calls": False}, {"warning"}, id="one of one's own that is not called"),
    ],
)
def test_what_is_left_of_the_model_of_a_library_is_no_warning(
    options: dict[str, bool], severity: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if options["library"]:
        for kind in (Base, Pooler):
            monkeypatch.setattr(kind, "__module__", "transformers.models.made")
    base = Base(calls=options.get("calls", True), words=options.get("words", False))
    if options.get("adds"):
        base.extra = nn.Linear(2, 2)
    net = WithHead(base, cuts=options.get("cuts", False))
    told = found(tmp_path, net, sgd(net), loss=lambda model: (model(torch.randn(4, 5, 8)) - 1).square().mean())
    assert {one.severity for one in told if one.kind in {"no-gradient", "unused-module"}} == severity


@pytest.mark.xdist_group("frameworks")  # which has transformers
def test_windows_of_attention_of_longformer_are_in_order(tmp_path: Path) -> None:
    """The places beside its windows get their own queries and keys, of which little depends at first."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = transformers.LongformerConfig(vocab_size=64, attention_window=8, max_position_embeddings=70, **sizes)
    net = transformers.LongformerForSequenceClassification(config)
    words, labels = torch.randint(0, 64, (8, 32)), torch.randint(0, 2, (8,))
    told = found(tmp_path, net, sgd(net), loss=lambda model: model(input_ids=words, labels=labels).loss, steps=6)
    assert not [one.kind for one in told if one.severity != "info"]


class WithPositions(nn.Module):
    """A decoder that begins with a frozen table."""

    def __init__(self, *, of_sines: bool) -> None:
        super().__init__()
        self.body, self.more = nn.Linear(8, 64), nn.Linear(64, 64)
        self.positions, self.head = nn.Embedding(50, 64), nn.Linear(64, 3)
        self.positions.requires_grad_(False)
        if of_sines:
            nn.init.uniform_(self.positions.weight, -1, 1).sin_()

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.head(self.more(self.body(values)) + self.positions(torch.arange(5)))
        return result


@pytest.mark.parametrize("of_sines", [True, False])
def test_positions_that_are_not_learned_are_frozen_on_purpose(tmp_path: Path, *, of_sines: bool) -> None:
    net = WithPositions(of_sines=of_sines)
    told = found(tmp_path, net, sgd(net), loss=lambda model: (model(torch.randn(4, 5, 8)) - 1).square().mean())
    assert ("frozen-by-accident" in {one.kind for one in told}) is not of_sines


class WithTable(nn.Module):
    """A branch that hardly counts yet beside what it is added to, and a table that is as large as that by chance."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.inside = nn.Embedding(9, 8), Branch()
        self.table = nn.Parameter(torch.full((6, 8), 0.5))
        nn.init.constant_(self.before.weight, 0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        values = self.before(tokens)
        result: Tensor = self.inside(values, values)
        return result + 0 * self.table.sum()


class Branch(nn.Module):
    """A small branch, which is added to what is given."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.last = nn.Linear(8, 8), nn.Linear(8, 3)
        for each in self.small.parameters():
            nn.init.normal_(each, std=1e-5)

    def forward(self, values: Tensor, beside: Tensor) -> Tensor:
        result: Tensor = self.last(self.small(values) + beside)
        return result


def test_a_table_that_is_as_large_by_chance_is_not_taken_for_what_is_added(tmp_path: Path) -> None:
    net = WithTable()
    told = found(tmp_path, net, sgd(net, 1e-6), loss=lambda model: model(torch.randint(0, 9, (4, 6))).square().mean())
    assert ("imbalanced-branches", "") not in {(one.kind, one.module) for one in told}


def detached(model: Any) -> Tensor:
    """As in a GAN whose generator is judged by what was detached for the discriminator."""
    model(torch.randn(4, 8))
    return torch.zeros((), requires_grad=True) * 1


@pytest.mark.parametrize(("loss", "is_told"), [(detached, True), (squares, False)])
def test_a_model_that_never_gets_a_gradient_is_told(
    loss: Callable[[Any], Tensor], *, is_told: bool, tmp_path: Path
) -> None:
    net = network()
    told = kinds(found(tmp_path, net, sgd(net, 0.01), loss=loss))
    assert told == ([("no-gradient", "warning", "", 0)] if is_told else [])


class Branches(nn.Module):
    """The second branch gets no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.first(values) + self.second(values).detach()
        return result


def test_a_part_without_gradient_that_is_watched_alone_is_not_taken_for_the_model(tmp_path: Path) -> None:
    net = Branches()
    optimizer = sgd(net, 0.01)
    with watch(net, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False, only="second"):
        for _ in range(STEPS):
            optimizer.zero_grad()
            squares(net).backward()
            optimizer.step()
    assert ("no-gradient", "") not in {(one.kind, one.module) for one in open_run(tmp_path / "run").model().findings()}


def test_a_rate_of_zero_is_not_taken_for_a_missing_gradient(tmp_path: Path) -> None:
    net = network()
    assert [one.kind for one in found(tmp_path, net, sgd(net, 0.0), loss=squares)] == ["update-too-small"]


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_layer_behind_a_frozen_one_is_not_taken_for_the_first(*, is_frozen: bool, tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 4) if is_frozen else nn.Identity(), nn.Linear(4, 2))
    net[0].requires_grad_(False)
    rows = torch.randn(32, 4) * (1.0 if is_frozen else 1e-3)
    for each in net[0].parameters():
        nn.init.normal_(each, std=1e-3)
    told = found(tmp_path, net, sgd(net, 0.01), loss=lambda model: (model(rows) - 1).square().mean())
    places = [one.module for one in told if one.kind == "input-not-normalised"]
    assert places == ([] if is_frozen else ["1"])


class Named(nn.Module):
    """A frozen layer, and a sum of which one part is small; `name` may be given to each tensor."""

    def __init__(self, name: Callable[[Tensor, nn.Module, str], Tensor]) -> None:
        super().__init__()
        self.name = name
        self.before = nn.Linear(4, 4).requires_grad_(False)
        self.first, self.second, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        for each in self.before.parameters():
            nn.init.normal_(each, std=1e-3)

    def forward(self, rows: Tensor) -> Tensor:
        rows = self.name(self.before(rows), self, "frozen") * 1000
        small = self.name(self.second(rows) * 1e-4, self, "small")
        result: Tensor = self.last(self.name(self.first(rows) + small, self, "sum"))
        return result


def unnamed(tensor: Tensor, _module: nn.Module, _name: str) -> Tensor:
    return tensor


@pytest.mark.parametrize("name", [unnamed, attach])
def test_a_name_on_the_way_changes_nothing_that_is_told(name: Any, tmp_path: Path) -> None:
    net = Named(name)
    with torch.no_grad():
        net.second.weight.mul_(1e-4)
        net.second.bias.mul_(1e-4)
    rows = torch.randn(32, 4)
    told = found(tmp_path, net, sgd(net, 0.01), loss=lambda model: (model(rows) - 1).square().mean())
    kinds = {(one.kind, one.module) for one in told} & {
        ("input-not-normalised", "first"),
        ("input-not-normalised", "second"),
        ("imbalanced-branches", "second"),
    }
    assert kinds == {("imbalanced-branches", "second")}


class Beside(nn.Module):
    """Layers that take the same data, or each its own."""

    def __init__(self, *, is_same: bool) -> None:
        super().__init__()
        self.is_same = is_same
        self.layers = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))

    def forward(self, rows: Tensor) -> Tensor:
        taken = [rows if self.is_same else rows * (1 + number) for number in range(3)]
        return torch.cat([layer(each) for layer, each in zip(self.layers, taken, strict=True)], 1)


@pytest.mark.parametrize("is_same", [True, False])
def test_data_that_several_layers_take_is_told_once(*, is_same: bool, tmp_path: Path) -> None:
    net, rows = Beside(is_same=is_same), torch.randn(32, 4) * 100
    told = found(tmp_path, net, sgd(net, 1e-6), loss=lambda model: model(rows).square().mean())
    here = [one for one in told if one.kind == "input-not-normalised"]
    assert [one.module for one in here] == (["layers.0"] if is_same else ["layers.0", "layers.1", "layers.2"])
    assert ("`layers.0`, the first layer, and into 2 others, has" in here[0].text) == is_same


def test_evaluations_of_the_same_data_with_small_activations_are_not_told(tmp_path: Path) -> None:
    embedding = nn.Embedding(9, 8)
    nn.init.normal_(embedding.weight, std=1e-3)
    net = nn.Sequential(embedding, nn.Linear(8, 8), nn.Linear(8, 2))
    rows, optimizer = torch.randint(0, 9, (16, 3)), sgd(net)
    options: dict[str, Any] = {"backend": "record", "logdir": str(tmp_path), "run": "run", "verbose": False}
    with watch(net, log_freq=1, phases=("train", "eval"), **options):
        for _ in range(STEPS):
            optimizer.zero_grad()
            net(torch.randint(0, 9, (16, 3))).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                net.eval()(rows)
            net.train()
    told = open_run(str(tmp_path / "run")).model("Sequential (eval)").findings()
    assert not {"repeated-batch", "input-not-normalised"} & {one.kind for one in told}


# Data beside embeddings


class Table(nn.Module):
    """Takes categories and numbers, as models of tables do."""

    def __init__(self, *, is_normalised: bool) -> None:
        super().__init__()
        self.category = nn.Embedding(5, 4)
        self.numbers = nn.LayerNorm(3) if is_normalised else nn.Identity()
        self.body = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        result: Tensor = self.body(torch.cat([self.category(categories), self.numbers(numbers)], 1))
        return result


@pytest.mark.parametrize(
    ("scale", "is_normalised", "is_told"), [(1000.0, False, True), (1.0, False, False), (1000.0, True, False)]
)
def test_raw_numbers_that_are_joined_to_embeddings_are_told(
    scale: float, *, is_normalised: bool, is_told: bool, tmp_path: Path
) -> None:
    net = Table(is_normalised=is_normalised)
    rows = torch.rand(32, 3) * scale, torch.randint(0, 5, (32,))

    def loss(model: Any) -> Tensor:
        return model(rows[1], rows[0]).square().mean()

    told = found(tmp_path, net, torch.optim.Adam(net.parameters(), 1e-3), loss=loss)
    places = [(one.module, one.path) for one in told if one.kind == "input-not-normalised"]
    assert places == ([("body.0", "input[0]")] if is_told else [])


# A sigmoid before a loss of logits, and what looks like it


class Mask(nn.Module):
    """A network for pictures with a value for each pixel, made a probability by a function or a module."""

    def __init__(self, end: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.body = nn.Conv2d(1, 2, 3, padding=1)
        self.end = end

    def forward(self, pictures: Tensor) -> Tensor:
        return self.end(self.body(pictures))


def same(values: Tensor) -> Tensor:
    return values


@pytest.mark.parametrize(
    ("end", "loss", "is_told"),
    [
        pytest.param(torch.sigmoid, F.binary_cross_entropy_with_logits, True, id="function, twice"),
        pytest.param(nn.Sigmoid(), F.binary_cross_entropy_with_logits, True, id="module, twice"),
        pytest.param(torch.sigmoid, F.binary_cross_entropy, False, id="function, once"),
        pytest.param(same, F.binary_cross_entropy_with_logits, False, id="logits"),
        pytest.param(torch.sigmoid, F.mse_loss, False, id="function, squared error"),
        pytest.param(nn.Sigmoid(), F.mse_loss, False, id="module, squared error"),
    ],
)
def test_a_sigmoid_before_a_loss_of_logits_is_told_by_the_loss(
    end: Callable[[Tensor], Tensor], loss: Callable[..., Tensor], *, is_told: bool, tmp_path: Path
) -> None:
    assert ("softmax-before-loss" in told_of_mask(tmp_path, Mask(end), loss, is_logged=True)) == is_told


@pytest.mark.parametrize(
    ("loss", "is_told"),
    [
        pytest.param(F.binary_cross_entropy_with_logits, True, id="twice"),
        pytest.param(F.mse_loss, False, id="squared error"),
    ],
)
def test_a_sigmoid_before_a_loss_that_is_not_logged_is_told_by_its_targets(
    loss: Callable[..., Tensor], *, is_told: bool, tmp_path: Path
) -> None:
    assert ("softmax-before-loss" in told_of_mask(tmp_path, Mask(nn.Sigmoid()), loss, is_logged=False)) == is_told


def told_of_mask(folder: Path, net: nn.Module, loss: Callable[..., Tensor], *, is_logged: bool) -> list[str]:
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    is_squared = loss is F.mse_loss
    with watch(net, log_freq=1, backend="record", logdir=str(folder), run="run", verbose=False) as watcher:
        for _ in range(STEPS):
            pictures = torch.randn(4, 1, 8, 8)
            # Targets of a squared error that leave it between those of a sigmoid applied twice.
            wanted = torch.rand(4, 2, 8, 8) if is_squared else (torch.cat([pictures, -pictures], 1) > 0).float()
            optimizer.zero_grad()
            value = loss(net(pictures), wanted)
            value.backward()
            optimizer.step()
            if is_logged:
                watcher.log({"loss": value.item()})
    return [one.kind for one in open_run(folder / "run").model().findings()]


# An activation before a loss that wants the logits of several classes


class Classes(nn.Module):
    """A classifier whose outputs go through a function or a module."""

    def __init__(self, end: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 32), nn.Linear(32, 5)
        self.end = end

    def forward(self, samples: Tensor) -> Tensor:
        return self.end(self.last(self.first(samples).relu()))


SIMPLEX = F.normalize(torch.eye(5) - 0.2)
"""Five directions that are as far from each other as they can be."""


def to_labels(outputs: Tensor, labels: Tensor) -> Tensor:
    """A squared error, of numbers that the outputs are to be for their class, and of zero for others."""
    return F.mse_loss(outputs, F.one_hot(labels, 5).float())


@pytest.mark.parametrize(
    ("end", "loss", "place"),
    [
        pytest.param(nn.ReLU(), F.cross_entropy, "end", id="ReLU"),
        pytest.param(F.relu, F.cross_entropy, "", id="function, ReLU"),
        pytest.param(nn.Sigmoid(), F.cross_entropy, "end", id="sigmoid"),
        pytest.param(torch.sigmoid, F.cross_entropy, "", id="function, sigmoid"),
        pytest.param(nn.Tanh(), F.cross_entropy, "end", id="tanh"),
        pytest.param(torch.tanh, F.cross_entropy, "", id="function, tanh"),
        pytest.param(lambda y: F.normalize(y) @ SIMPLEX, F.cross_entropy, "", id="cosines"),
        pytest.param(lambda y: 8 * (F.normalize(y) @ SIMPLEX), F.cross_entropy, None, id="cosines, scaled"),
        pytest.param(lambda y: y.softmax(1), F.cross_entropy, None, id="softmax, which is told as such"),
        pytest.param(same, F.cross_entropy, None, id="logits"),
        pytest.param(lambda values: values - values.amin(), F.cross_entropy, None, id="logits, one of which is zero"),
        pytest.param(lambda y: y - y.amin(1, keepdim=True), F.cross_entropy, None, id="logits, the least zero"),
        pytest.param(nn.Tanh(), lambda y, t: F.cross_entropy(8 * y, t), None, id="tanh, scaled by the loss"),
        pytest.param(nn.Tanh(), to_labels, None, id="tanh, squared error"),
        pytest.param(nn.ReLU(), to_labels, None, id="ReLU, squared error"),
        pytest.param(
            nn.Sigmoid(),
            lambda y, t: F.binary_cross_entropy(y, F.one_hot(t, 5).float()),
            None,
            id="sigmoid, a probability for each class",
        ),
    ],
)
def test_an_activation_before_a_cross_entropy_is_told(
    end: Callable[[Tensor], Tensor], loss: Callable[..., Tensor], place: str | None, tmp_path: Path
) -> None:
    net = Classes(end)
    with torch.no_grad():
        net.last.weight.mul_(0.5)  # nearly equal logits at first, as in a wide network
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    centres = torch.randn(5, 8)
    with watch(net, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False) as watcher:
        for _ in range(60):
            labels = torch.randint(0, 5, (64,))
            optimizer.zero_grad()
            value = loss(net(centres[labels] + 0.1 * torch.randn(64, 8)), labels)
            value.backward()
            optimizer.step()
            watcher.log({"loss": value.item()})
    told = open_run(tmp_path / "run").model().findings()
    assert [one.module for one in told if one.kind == "activation-before-loss"] == (
        [place] if place is not None else []
    )


@pytest.mark.parametrize(("factor", "expected"), [(0.0, ["it is given nothing but zeros."]), (1.0, [])])
def test_a_layer_that_is_given_zeros_is_told_so(factor: float, expected: list[str], tmp_path: Path) -> None:
    """As of a decoder whose input was never filled."""
    net = nn.ModuleDict({"source": nn.Linear(4, 8), "target": nn.Linear(2, 8), "out": nn.Linear(8, 2)})

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            result: Tensor = net["out"](torch.tanh(net["source"](x) + net["target"](factor * y)))
            return result

    def loss(watched: Any) -> Tensor:
        x, y = torch.randn(16, 4), torch.randn(16, 2)
        return cast("Tensor", (watched(x, y) - x[:, :2]).square().mean())

    model = Both()
    told = [one for one in found(tmp_path, model, sgd(model), loss=loss) if one.kind == "no-gradient"]
    assert [one.text.rpartition(": ")[2] for one in told if one.module == "net.target"] == expected


# Samples that are taken for the elements of a sequence


class Sequences(nn.Module):
    """A layer for sequences and a head: of its last element, of each, or of one number for each."""

    def __init__(self, layer: nn.Module, ahead: Callable[[Tensor], Tensor], head: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.ahead, self.head, self.out = layer, ahead, head, nn.Linear(8, 3)

    def forward(self, values: Tensor) -> Tensor:
        given = self.ahead(values)
        arguments = (given,) * (3 if isinstance(self.layer, nn.MultiheadAttention) else 1)
        return self.head(self.out(self.layer(*arguments)[0]))


def turned(values: Tensor) -> Tensor:
    return values.transpose(0, 1)


def last(values: Tensor) -> Tensor:
    return values[:, -1]


def some_rows(values: Tensor) -> Tensor:
    """Seven rows of five places each, of five samples."""
    return values.reshape(9, 5, 8)[:7]


def first(values: Tensor) -> Tensor:
    return values[0]


def attention(*, batch_first: bool = False) -> nn.Module:
    return nn.MultiheadAttention(8, 2, batch_first=batch_first)


def gru(*, batch_first: bool = False) -> nn.Module:
    return nn.GRU(8, 8, batch_first=batch_first)


@pytest.mark.parametrize(
    ("layer", "shapes", "ahead", "head", "is_told"),
    [
        pytest.param(gru(), [(5, 6, 8)], same, last, True, id="recurrent"),
        pytest.param(gru(), [(5, 6, 8), (3, 6, 8)], same, last, True, id="a smaller batch at the end"),
        pytest.param(gru(), [(5, 6, 8), (3, 9, 8)], same, last, True, id="lengths that vary"),
        pytest.param(gru(), [(5, 6, 8)], same, lambda out: out[:, -1, 0], True, id="one number for each sample"),
        pytest.param(attention(), [(5, 6, 8)], same, last, True, id="attention"),
        pytest.param(gru(batch_first=True), [(5, 6, 8)], same, last, False, id="recurrent, samples first"),
        pytest.param(attention(batch_first=True), [(5, 6, 8)], same, last, False, id="attention, samples first"),
        pytest.param(gru(), [(5, 6, 8)], turned, lambda out: out[-1], False, id="turned before"),
        pytest.param(gru(batch_first=True), [(5, 6, 8)], turned, lambda out: out[-1], True, id="turned for nothing"),
        pytest.param(attention(batch_first=True), [(5, 7, 8), (3, 8, 8)], turned, first, True, id="attention, turned"),
        pytest.param(gru(batch_first=True), [(5, 10, 8)], turned, lambda out: out[-1], False, id="parts of samples"),
        pytest.param(gru(batch_first=True), [(5, 9, 8)], some_rows, lambda out: out[:5, 0], False, id="chosen rows"),
        pytest.param(gru(), [(6, 5, 8)], same, lambda out: out[-1], False, id="length first everywhere"),
        pytest.param(gru(), [(5, 5, 8)], same, lambda out: out[-1], False, id="as many as the length"),
        pytest.param(gru(), [(6, 5, 8)], same, same, False, id="an output for each element"),
        pytest.param(gru(), [(6, 5, 8)], same, lambda out: out[..., 0], False, id="a number for each element"),
        pytest.param(gru(), [(6, 1, 8)], same, lambda out: out[:, 0], False, id="one sample"),
        pytest.param(gru(), [(6, 8)], lambda x: x[:, None], lambda out: out[:, 0], False, id="one sentence"),
        pytest.param(gru(), [(6, 8)], same, same, False, id="without samples"),
    ],
)
def test_samples_that_are_taken_for_a_sequence_are_told(
    layer: nn.Module,
    shapes: list[tuple[int, ...]],
    ahead: Callable[[Tensor], Tensor],
    head: Callable[[Tensor], Tensor],
    is_told: bool,
    tmp_path: Path,
) -> None:
    net, step = Sequences(layer, ahead, head), iter(range(STEPS))

    def loss(watched: Any) -> Tensor:
        return cast("Tensor", (watched(torch.randn(shapes[next(step) % len(shapes)])) - 1).square().mean())

    told = [one.module for one in found(tmp_path, net, sgd(net), loss=loss) if one.kind == "batch-as-sequence"]
    assert told == (["layer"] if is_told else [])


class RNN(nn.Module):
    """Has the name of a class of torch's, which takes the length of a sequence first, and takes samples first."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, values: Tensor) -> Tensor:
        return cast("Tensor", self.out(self.lstm(values)[0][:, -1]))


def test_a_class_of_the_users_is_not_taken_for_the_one_of_torch_that_has_its_name(tmp_path: Path) -> None:
    def loss(watched: Any) -> Tensor:
        return cast("Tensor", (watched(torch.randn(5, 6, 8)) - 1).square().mean())

    net = RNN()
    assert "batch-as-sequence" not in {one.kind for one in found(tmp_path, net, sgd(net), loss=loss)}


class FrameByFrame(nn.Module):
    """As the decoder of Tacotron: the first frame is zero, and the recurrence begins with it."""

    def __init__(self) -> None:
        super().__init__()
        self.prenet, self.cell, self.out = nn.Linear(4, 8, bias=False), nn.GRUCell(8, 4), nn.Linear(4, 4)

    def forward(self, frames: Tensor) -> Tensor:
        given = self.prenet(torch.cat([torch.zeros_like(frames[:1]), frames[:-1]])).relu()
        state, made = torch.zeros(frames.shape[1], 4), []
        for one in given:
            state = self.cell(one, state)
            made.append(self.out(state))
        return torch.stack(made)


def test_zeros_in_the_first_part_of_what_a_relu_gives_are_no_dead_units(tmp_path: Path) -> None:
    def loss(watched: Any) -> Tensor:
        frames = torch.randn(5, 6, 4)
        return cast("Tensor", (watched(frames) - frames).square().mean())

    net = FrameByFrame()
    assert "dead-units" not in {one.kind for one in found(tmp_path, net, sgd(net), loss=loss)}


@pytest.mark.parametrize(
    ("optimizer", "is_told"),
    [
        pytest.param(partial(torch.optim.Adam, lr=1e-3), False, id="Adam"),
        pytest.param(partial(torch.optim.SGD, lr=1e-9), True, id="SGD"),
    ],
)
def test_a_large_gradient_is_told_unless_the_optimizer_divides_by_its_size(
    optimizer: Any, *, is_told: bool, tmp_path: Path
) -> None:
    def loss(watched: Any) -> Tensor:
        return cast("Tensor", 1e4 * (watched(torch.randn(64, 8)) - 1).square().sum())

    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
    told = {one.kind for one in found(tmp_path, net, optimizer(net.parameters()), loss=loss)}
    assert ("exploding-gradient" in told) == is_told


@pytest.mark.parametrize(("decay", "is_told"), [(50.0, True), (0.05, False)])
def test_a_decay_is_told_that_takes_the_weights_away_within_a_few_steps(
    decay: float, *, is_told: bool, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    samples = torch.randn(64, 8)

    def of_classes(model: nn.Module) -> Tensor:
        return F.cross_entropy(model(samples), samples[:, :4].argmax(1))

    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=decay)
    told = found(tmp_path, model, optimizer, loss=of_classes, steps=200)
    assert [one.kind for one in told if one.kind == "weight-decay-dominates"] == is_told * ["weight-decay-dominates"]


@pytest.mark.parametrize(("decay", "is_told"), [(10.0, True), (0.1, False)])
def test_a_decay_that_takes_half_of_the_weights_is_told_of_few_recorded_steps(
    decay: float, *, is_told: bool, tmp_path: Path
) -> None:
    """Adam's steps move small weights further than the decay does, and keep them from shrinking."""
    model = nn.Sequential(nn.Linear(200, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(model.parameters(), 5e-2, weight_decay=decay)

    def of_noise(model: Any) -> Tensor:
        return F.cross_entropy(model(torch.randn(64, 200)), torch.randint(4, (64,)))

    told = found(tmp_path, model, optimizer, loss=of_noise, steps=100, log_freq=10)
    assert [one.kind for one in told if one.kind == "weight-decay-dominates"] == is_told * ["weight-decay-dominates"]


@pytest.mark.parametrize(
    ("every", "rate", "expected"),
    [
        pytest.param(20, 0.5, [("info", 20)], id="anew every twenty steps"),
        pytest.param(40, 0.5, [], id="anew once"),
        pytest.param(1000, 0.5, [], id="drawn once"),
        pytest.param(1000, 1e-4, [], id="hardly trained"),
    ],
)
def test_weights_that_are_drawn_anew_again_and_again_are_told(
    every: int, rate: float, expected: list[tuple[str, int]], tmp_path: Path
) -> None:
    layers = nn.Linear(8, 32), nn.Linear(32, 4)
    model = nn.Sequential(layers[0], nn.Tanh(), layers[1])
    samples = torch.randn(64, 8)

    def of_classes(model: nn.Module) -> Tensor:
        return F.cross_entropy(model(samples), samples[:, :4].argmax(1))

    def begin_again(step: int) -> None:
        if step % every == every - 1:
            for one in layers:
                one.reset_parameters()

    told = found(tmp_path, model, sgd(model, rate), loss=of_classes, after=begin_again, steps=70)
    assert [(one.severity, one.step) for one in told if one.kind == "weights-redrawn"] == expected


@pytest.mark.parametrize(
    ("answers", "is_told"),
    [
        pytest.param(lambda _: torch.randint(4, (64,)), True, id="nothing that could be learned"),
        pytest.param(lambda x: x[:, :4].argmax(1), False, id="learned"),
    ],
)
def test_a_loss_that_comes_down_to_that_of_equal_logits_alone_is_told(
    answers: Callable[[Tensor], Tensor], *, is_told: bool, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    with torch.no_grad():
        cast("Tensor", model[2].weight).mul_(8)
    optimizer = torch.optim.Adam(model.parameters(), 0.05, weight_decay=0.05)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False) as watcher:
        for _ in range(160):
            x = torch.randn(64, 8)
            loss = F.cross_entropy(model(x), answers(x))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watcher.log({"loss": loss})
    [told] = [one.text for one in open_run(tmp_path / "run").model().findings() if one.kind == "loss-not-falling"] or [
        ""
    ]
    assert ("equal logits" in told) == is_told


class Weighed(nn.Module):
    """The mean of places, weighed by a score of each."""

    def __init__(self, over: int, *, by_module: bool = False) -> None:
        super().__init__()
        self.score, self.out = nn.Linear(8, 1), nn.Linear(8, 3)
        self.weigh: Callable[[Tensor], Tensor] = nn.Softmax(over) if by_module else partial(torch.softmax, dim=over)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.out((self.weigh(self.score(x)) * x).sum(1))
        return result


class OneKey(nn.Module):
    """Attention of one place to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x[:, :1]
        result: Tensor = self.out(((self.query(x) @ self.key(x).mT).softmax(-1) @ x).sum(1))
        return result


@pytest.mark.parametrize(
    ("model", "place"),
    [
        pytest.param(partial(Weighed, -1), "", id="over one score"),
        pytest.param(partial(Weighed, -1, by_module=True), "weigh", id="by a module"),
        pytest.param(partial(Weighed, 1), None, id="over the places"),
        pytest.param(OneKey, None, id="a sequence of one place"),
    ],
)
def test_a_softmax_over_one_score_is_told(model: Callable[[], nn.Module], place: str | None, tmp_path: Path) -> None:
    net = model()
    told = found(tmp_path, net, sgd(net), loss=lambda watched: watched(torch.randn(16, 5, 8)).square().mean())
    assert [(one.severity, one.module) for one in told if one.kind == "single-class"] == (
        [] if place is None else [("warning", place)]
    )
