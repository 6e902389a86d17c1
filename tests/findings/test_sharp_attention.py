"""Attention whose softmax is saturated from the beginning is told, where its weights go through a module."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import open_run, watch

pytestmark = pytest.mark.slow

WORDS, FEATURES, LENGTH = 50, 128, 16


class Attention(nn.Module):
    """A head whose weights go through a dropout."""

    def __init__(self, scale: float, window: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(FEATURES, FEATURES) for _ in range(3))
        self.dropout = nn.Dropout(0.1)
        self.scale, self.window = scale, window

    def forward(self, inputs: Tensor) -> Tensor:
        logits = self.query(inputs) @ self.key(inputs).transpose(1, 2) * self.scale
        is_seen = torch.ones(LENGTH, LENGTH).tril().triu(1 - self.window).bool()
        self.weights = logits.masked_fill(~is_seen, -math.inf).softmax(-1)
        result: Tensor = self.dropout(self.weights) @ self.value(inputs)
        return result


class Returning(nn.Sequential):
    """Also returns the weights of attention, as a list that whoever calls it hands on."""

    def forward(self, inputs: Tensor) -> Any:
        result = super().forward(inputs)  # type: ignore[no-untyped-call]  # of torch
        return result, [one.weights for one in self if isinstance(one, Attention)]


class Outer(nn.Module):
    """Hands on what the module in it returns."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, inputs: Tensor) -> Any:
        return self.inner(inputs)


def told(
    folder: Path,
    *,
    scale: float = 1.0,
    window: int = LENGTH,
    deviation: float | None = None,
    around: Callable[..., nn.Module] = nn.Sequential,
) -> list[str | None]:
    torch.manual_seed(0)
    model = around(
        nn.Embedding(WORDS, FEATURES), Attention(scale, window), Attention(scale, window), nn.Linear(FEATURES, WORDS)
    )
    for one in model.modules():
        if deviation and isinstance(one, nn.Linear):
            nn.init.normal_(one.weight, std=deviation)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with watch(model, log_freq=1, backend="record", logdir=folder, run="run", verbose=False):
        for _ in range(6):
            words = torch.randint(0, WORDS, (8, LENGTH + 1))
            optimizer.zero_grad()
            outputs = model(words[:, :-1])
            logits: Tensor = outputs[0] if isinstance(outputs, tuple) else outputs
            nn.functional.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten()).backward()
            optimizer.step()
    return [one.module for one in open_run(folder / "run").model().findings() if one.kind == "attention-saturated"]


def test_attention_without_its_scale_is_told(tmp_path: Path) -> None:
    assert told(tmp_path, scale=1.5) == ["1.dropout"]


def test_attention_that_modules_around_it_hand_on_is_told_once(tmp_path: Path) -> None:
    assert told(tmp_path, scale=1.5, around=lambda *layers: Outer(Returning(*layers))) == ["inner.1.dropout"]


@pytest.mark.parametrize(
    ("scale", "window", "deviation"),
    [
        pytest.param(1 / math.sqrt(FEATURES), LENGTH, None, id="with its scale"),
        pytest.param(1.0, LENGTH, 0.02, id="without it, and with small weights"),
        pytest.param(1.5, 2, None, id="of two keys"),
        pytest.param(1.5, LENGTH, 0.08, id="with weights that may be of a pretrained network"),
    ],
)
def test_attention_that_may_well_be_sharp_is_not_told(
    scale: float, window: int, deviation: float | None, tmp_path: Path
) -> None:
    assert told(tmp_path, scale=scale, window=window, deviation=deviation) == []


class Pixels(nn.Sequential):
    """Gives each pixel of a square image the probabilities of its classes."""

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = super().forward(images)  # type: ignore[no-untyped-call]  # of torch
        return found.unflatten(1, (2, LENGTH)).softmax(1)


def test_probabilities_of_classes_at_each_pixel_are_no_attention(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Pixels(nn.Flatten(2), nn.Conv1d(3, 2 * LENGTH, 1), nn.Linear(LENGTH**2, LENGTH))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="run", verbose=False):
        for _ in range(6):
            images = torch.randn(8, 3, LENGTH, LENGTH)
            optimizer.zero_grad()
            nn.functional.nll_loss(model(images).log(), (images.mean(1) > 0).long()).backward()
            optimizer.step()
    assert "attention-saturated" not in [one.kind for one in open_run(tmp_path / "run").model().findings()]
