"""Sound models of which one layer, its weights or what it is given is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.centres import CLASSES, FEATURES, batch, network, warned
from tests.findings.trainings import trained
from torchgraph_explorer import open_run, watch

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


class Convolutions(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(*layers), nn.Linear(8, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = self.head(self.body(inputs[:, None, :, None].expand(-1, 1, -1, 4)).relu().mean((2, 3)))
        return found


def convolution(inputs: int, outputs: int, **options: Any) -> nn.Module:
    return nn.Conv2d(inputs, outputs, 3, padding=1, **options)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param(
            lambda: nn.Sequential(nn.Linear(FEATURES, 24), nn.Dropout(0.2), nn.Linear(24, 16), nn.Linear(16, CLASSES)),
            [("0", "warning")],
            id="all, with dropout between",
        ),
        pytest.param(
            lambda: nn.Sequential(nn.Linear(FEATURES, 24), nn.ReLU(), nn.Linear(24, 16), nn.Linear(16, CLASSES)),
            [],
            id="two of a sequence",
        ),
        pytest.param(
            lambda: Convolutions(convolution(1, 8), convolution(8, 8)), [("body.0", "info")], id="convolutions"
        ),
        pytest.param(
            lambda: nn.Sequential(nn.Linear(FEATURES, 24), nn.Linear(24, 16), nn.Linear(16, CLASSES)),
            [("0", "info")],
            id="all, with nothing between",
        ),
        pytest.param(
            lambda: Convolutions(convolution(1, 8), nn.ReLU(), convolution(8, 8, groups=8), nn.Conv2d(8, 8, 1)),
            [],
            id="a convolution that is split",
        ),
        pytest.param(
            lambda: nn.Sequential(nn.Linear(FEATURES, 24), nn.ReLU(), nn.Linear(24, 3), nn.Linear(3, CLASSES)),
            [],
            id="a bottleneck",
        ),
        pytest.param(network, [], id="none"),
    ],
)
def test_layers_without_an_activation_between_them_are_told(
    model: Callable[[], nn.Module], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        inputs, labels = batch()
        return F.cross_entropy(model(inputs), labels)

    found = trained(tmp_path, model(), step)
    assert [(one.module, one.severity) for one in found if one.kind == "missing-nonlinearity"] == expected


@pytest.mark.parametrize(("low", "expected"), [(0.0, [("bad-init-scale", "0")]), (-0.2, [])])
def test_initial_weights_of_one_sign_are_told(low: float, expected: list[tuple[str, str]], tmp_path: Path) -> None:
    model = network()
    for one in model:
        if isinstance(one, nn.Linear):
            nn.init.uniform_(one.weight, low, 0.5 if low == 0 else 0.2)

    def step(model: nn.Module, _: int) -> Tensor:
        inputs, labels = batch()
        return F.cross_entropy(model(inputs), labels)

    assert warned(trained(tmp_path, model, step, rate=1e-3)) == expected


@pytest.mark.parametrize(("bias", "is_said"), [(0.0, True), (5.0, False)])
def test_small_initial_weights_are_not_said_to_let_much_through(bias: float, is_said: bool, tmp_path: Path) -> None:
    model = network()
    for one in model:
        if isinstance(one, nn.Linear):
            nn.init.normal_(one.weight, 0, 1e-4)
            nn.init.constant_(one.bias, bias)

    def step(model: nn.Module, _: int) -> Tensor:
        inputs, labels = batch()
        return F.cross_entropy(model(inputs), labels)

    [told] = [one.text for one in trained(tmp_path, model, step, rate=1e-3) if one.kind == "bad-init-scale"]
    assert ("the scale changes by" in told) is is_said


class Beside(nn.Module):
    """A layer whose result is added to its input, and that begins small."""

    def __init__(self, deviation: float) -> None:
        super().__init__()
        self.layer = nn.Linear(24, 24)
        nn.init.normal_(self.layer.weight, 0, deviation)
        nn.init.zeros_(self.layer.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = inputs + self.layer(inputs.relu())
        return found


@pytest.mark.parametrize("deviation", [0.0, 1e-10, 1e-5, 1e-3])
def test_updates_of_weights_that_begin_near_zero_are_not_too_large(deviation: float, tmp_path: Path) -> None:
    blocks = (Beside(deviation) for _ in range(4))
    model = nn.Sequential(nn.Linear(FEATURES, 24), *blocks, nn.Linear(24, CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="run", verbose=False):
        for _ in range(30):
            inputs, labels = batch()
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    assert "update-too-large" not in {one.kind for one in open_run(tmp_path / "run").model().findings()}


class Recurrent(nn.Module):
    def __init__(self, nonlinearity: str, scale: float) -> None:
        super().__init__()
        self.cell, self.head = nn.RNN(4, 16, nonlinearity=nonlinearity, batch_first=True), nn.Linear(16, 1)
        nn.init.normal_(self.cell.all_weights[0][1], 0, scale / 4)

    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = self.head(self.cell(inputs)[0][:, -1])
        return found


def fits_mean(model: nn.Module, _: int) -> Tensor:
    inputs = torch.randn(16, 12, 4)
    return F.mse_loss(model(inputs), inputs.mean((1, 2))[:, None])


@pytest.mark.parametrize(
    ("nonlinearity", "scale", "is_told"), [("relu", 4.0, True), ("relu", 1.4, False), ("tanh", 4.0, False)]
)
def test_a_recurrence_without_a_bound_needs_smaller_weights(
    nonlinearity: str, scale: float, is_told: bool, tmp_path: Path
) -> None:
    found = trained(tmp_path, Recurrent(nonlinearity, scale), fits_mean, rate=1e-3)
    assert ("bad-init-scale" in {one.kind for one in found}) == is_told


WORDS, LENGTH = 20, 10


class Words(nn.Module):
    def __init__(self, *, bidirectional: bool = False, decodes: bool = False) -> None:
        super().__init__()
        self.embedding, self.decodes = nn.Embedding(WORDS, 16), decodes
        self.cell = nn.LSTM(16, 16, batch_first=True, bidirectional=bidirectional)
        self.decoder, self.head = nn.LSTM(16, 16, batch_first=True), nn.Linear(32 if bidirectional else 16, WORDS)

    def forward(self, tokens: Tensor) -> Tensor:
        states = self.cell(self.embedding(tokens))[0]
        if self.decodes:
            states = self.decoder(states[:, -1:].expand(-1, LENGTH, -1))[0]
        found: Tensor = self.head(states)
        return found


@pytest.mark.parametrize(
    ("model", "shift", "expected"),
    [
        pytest.param(Words, 0, [("answers-in-inputs", "")], id="the same places"),
        pytest.param(Words, 1, [], id="the next places"),
        pytest.param(lambda: Words(decodes=True), 0, [], id="an autoencoder"),
    ],
)
def test_answers_that_a_recurrence_is_given_are_told(
    model: Callable[[], nn.Module], shift: int, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        begin = torch.randint(WORDS, (16, 1))
        every = (begin * (1 + torch.arange(LENGTH + 1)) + torch.randint(2, (16, LENGTH + 1))) % WORDS
        return F.cross_entropy(model(every[:, :LENGTH]).transpose(1, 2), every[:, shift : LENGTH + shift])

    found = warned(trained(tmp_path, model(), step, steps=20))
    assert [one for one in found if one[0] == "answers-in-inputs"] == expected


class Pooled(nn.Module):
    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.cell, self.scores = nn.GRU(3, 16, batch_first=True), nn.Linear(16, 1)
        self.head, self.dimension = nn.Linear(16, 4), dimension

    def forward(self, inputs: Tensor) -> Tensor:
        states = self.cell(inputs)[0]
        found: Tensor = self.head((self.scores(states).softmax(self.dimension) * states).sum(1))
        return found


@pytest.mark.parametrize(
    ("dimension", "usual", "expected"), [(0, 0.9, [("softmax-over-batch", "")]), (1, 0.9, []), (0, 0.1, [])]
)
def test_a_softmax_over_the_samples_is_told_beside_a_smaller_last_batch(
    dimension: int, usual: float, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    def step(model: nn.Module, number: int) -> Tensor:
        inputs = torch.randn(16 if number % 10 < 10 * usual else 5 + number % 10, 8, 3)
        return F.cross_entropy(model(inputs), inputs.sum((1, 2)).long().clamp(0, 3))

    assert warned(trained(tmp_path, Pooled(dimension), step)) == expected


class Positioned(nn.Module):
    """Tokens with positions, and an encoder that is also given a mask of the padding."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(WORDS, 16), nn.Parameter(scale * torch.randn(LENGTH, 16))
        self.encoder, self.head = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), nn.Linear(16, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        values = self.embedding(tokens) + self.positions
        found: Tensor = self.head(self.encoder(values, src_key_padding_mask=tokens == 0).mean(1))
        return found


@pytest.mark.parametrize(("scale", "expected"), [(1000.0, [("imbalanced-branches", "")]), (0.02, [])])
def test_positions_that_drown_the_tokens_are_told_beside_a_mask(
    scale: float, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        tokens = torch.randint(1, WORDS, (16, LENGTH))
        tokens[:, -2:] = 0
        return F.cross_entropy(model(tokens), tokens[:, 0] % 3)

    found = warned(trained(tmp_path, Positioned(scale), step))
    assert [one for one in found if one[0] == "imbalanced-branches"] == expected
