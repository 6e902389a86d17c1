"""Masks of padding the wrong way round are told, and right ones are not."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchgraph_explorer import open_run, watch

pytestmark = pytest.mark.slow

WORDS, WIDTH, LENGTH, SAMPLES = 12, 16, 10, 8

Hide = Callable[[Tensor], Tensor]
"""Which places of some tokens are hidden."""


def padding(tokens: Tensor) -> Tensor:
    return tokens == 0


def words(tokens: Tensor) -> Tensor:
    return tokens != 0


def minus_infinity(tokens: Tensor) -> Tensor:
    return torch.zeros(tokens.shape).masked_fill(tokens != 0, -math.inf)


class Reader(nn.Module):
    """Says something of a text: by layers of torch's, or by attention that is written out."""

    def __init__(self, hide: Hide, *, inner: nn.Module | None = None, flags: bool = False) -> None:
        super().__init__()
        self.embed, self.hide, self.flags = nn.Embedding(WORDS, WIDTH), hide, flags
        self.kind = nn.Embedding(3, WIDTH)
        self.inner = inner or nn.TransformerEncoder(
            nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True), 2, enable_nested_tensor=False
        )
        self.last = nn.Linear(WIDTH, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        if self.flags:
            x = x + self.kind((tokens == 0).long())
        hidden = self.hide(tokens)
        x = self.inner(x, src_key_padding_mask=hidden) if not isinstance(self.inner, Own) else self.inner(x, hidden)
        result: Tensor = self.last(x[:, 0])
        return result


class Own(nn.Module):
    """Attention by functions."""

    def __init__(self, *, later: bool = True) -> None:
        super().__init__()
        self.qkv, self.later = nn.Linear(WIDTH, 3 * WIDTH), later

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        logits = (query @ key.mT / 4).masked_fill(hidden[:, None], -math.inf)
        result: Tensor = logits.softmax(-1) @ value
        return result


def texts(longest: int) -> Tensor:
    tokens = torch.randint(1, WORDS, (SAMPLES, LENGTH))
    lengths = torch.randint(3, longest, (SAMPLES, 1))
    return tokens.masked_fill(torch.arange(LENGTH) >= lengths, 0)


def told(model: nn.Module, folder: Path, *, longest: int = LENGTH, **options: Any) -> list[tuple[str, str | None]]:
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with watch(model, backend="record", logdir=str(folder), run="run", verbose=False, **options):
        for _ in range(12):
            optimizer.zero_grad()
            F.cross_entropy(model(texts(longest)), torch.randint(3, (SAMPLES,))).backward()
            optimizer.step()
    found = open_run(str(folder / "run")).model().findings()
    return [(one.severity, one.module) for one in found if one.kind == "padding-mask-inverted"]


@pytest.mark.parametrize(
    ("model", "place"),
    [
        pytest.param(lambda: Reader(words), "inner", id="torch's attention"),
        pytest.param(lambda: Reader(minus_infinity), "inner", id="torch's attention, by numbers"),
        pytest.param(lambda: Reader(words, inner=Own()), "inner", id="one's own"),
        pytest.param(lambda: Reader(padding), None, id="torch's attention, right"),
        pytest.param(lambda: Reader(padding, flags=True), None, id="with an embedding of flags, right"),
        pytest.param(lambda: Reader(padding, inner=Own()), None, id="one's own, right"),
        pytest.param(lambda: Reader(lambda tokens: tokens < 0, inner=Own()), None, id="one's own, without a mask"),
    ],
)
@pytest.mark.parametrize("log_freq", [1, 4])
def test_a_mask_of_padding_the_wrong_way_round_is_told(
    model: Callable[[], nn.Module], place: str | None, log_freq: int, tmp_path: Path
) -> None:
    found = told(model(), tmp_path, log_freq=log_freq)
    assert found == ([("warning", place)] if place else [])


def test_as_much_padding_as_words_tells_nothing(tmp_path: Path) -> None:
    class Half(Reader):
        def forward(self, tokens: Tensor) -> Tensor:
            half = tokens.masked_fill(torch.arange(LENGTH) >= LENGTH // 2, 0)
            return super().forward(half.masked_fill((half == 0) & (torch.arange(LENGTH) < LENGTH // 2), 1))

    assert told(Half(words), tmp_path) == told(Half(words, inner=Own()), tmp_path / "own") == []
