"""Losses that leave out what is hidden, or count padding that no embedding names, are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.trainings import trained

pytestmark = pytest.mark.slow

WORDS, HIDDEN, LENGTH = 12, 12, 16


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(WORDS + 1, 16), nn.Parameter(torch.randn(LENGTH, 16) / 10)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, WORDS + 1)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        logits: Tensor = self.head(self.layer(self.embed(tokens) + self.places, src_mask=mask))
        return logits


def entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def masked(model: nn.Module, *, asks: str, others: float = 0.0) -> Tensor:
    """Of hidden tokens, of those that are not, or of all; of the hidden ones, some have another token."""
    tokens = torch.randint(1, WORDS, (16, LENGTH))
    is_hidden = torch.rand(tokens.shape) < 0.2
    given = tokens.masked_fill(is_hidden, HIDDEN)
    given = torch.where(is_hidden & (torch.rand(tokens.shape) < others), tokens.roll(1, 0), given)
    left_out = {"hidden": ~is_hidden, "others": is_hidden, "all": torch.zeros_like(is_hidden)}[asks]
    return entropy(model(given), tokens.masked_fill(left_out, -100))


def shortened(model: nn.Module, *, is_counted: bool, left: bool = False) -> Tensor:
    """An autoencoder of padded sequences."""
    tokens = padded(LENGTH, left=left)
    return entropy(model(tokens), tokens if is_counted else tokens.masked_fill(tokens == 0, -100))


def padded(length: int, *, left: bool = False) -> Tensor:
    tokens = torch.randint(1, WORDS, (16, length))
    tokens = tokens.masked_fill(torch.arange(length) > torch.randint(2, 8, (16, 1)), 0)
    return tokens.flip(1) if left else tokens


def following(model: nn.Module, tokens: Tensor, *, is_counted: bool = True) -> Tensor:
    targets = tokens[:, 1:]
    causal = nn.Transformer.generate_square_subsequent_mask(LENGTH)
    return entropy(model(tokens[:, :-1], causal), targets if is_counted else targets.masked_fill(targets == 0, -100))


def told(folder: Path, step: Callable[[nn.Module], Tensor], kind: str) -> list[str]:
    found = trained(folder, Reader(), lambda model, _: step(model), steps=24)
    return [one.severity for one in found if one.kind == kind]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(lambda model: masked(model, asks="others"), ["warning"], id="the others"),
        pytest.param(lambda model: masked(model, asks="others", others=0.2), ["warning"], id="some have another token"),
        pytest.param(lambda model: masked(model, asks="hidden"), [], id="the hidden ones"),
        pytest.param(lambda model: masked(model, asks="all"), [], id="all"),
        pytest.param(lambda model: shortened(model, is_counted=False), [], id="an autoencoder without padding"),
        pytest.param(lambda model: shortened(model, is_counted=False, left=True), [], id="padding on the left"),
        pytest.param(lambda model: shortened(model, is_counted=True), [], id="an autoencoder with padding"),
    ],
)
def test_a_loss_that_leaves_out_what_is_hidden_is_told(
    step: Callable[[nn.Module], Tensor], expected: list[str], tmp_path: Path
) -> None:
    assert told(tmp_path, step, "answers-in-inputs") == expected


def since_seen(model: nn.Module) -> Tensor:
    """Whether a token was there before: once it is so, it stays so."""
    tokens = torch.randint(1, WORDS, (16, LENGTH))
    return entropy(model(tokens), ((tokens == 1).cumsum(1) > 0).long())


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(lambda model: following(model, padded(LENGTH + 1)), ["warning"], id="padding"),
        pytest.param(lambda model: following(model, padded(LENGTH + 1), is_counted=False), [], id="padding left out"),
        pytest.param(lambda model: following(model, torch.randint(3, (16, LENGTH + 1))), [], id="few words"),
        pytest.param(since_seen, [], id="answers that stay"),
    ],
)
def test_padding_that_no_embedding_names_is_told(
    step: Callable[[nn.Module], Tensor], expected: list[str], tmp_path: Path
) -> None:
    assert told(tmp_path, step, "padding-in-loss") == expected
