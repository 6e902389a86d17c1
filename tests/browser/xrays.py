"""The README's three x-rays beside each other: a healthy training, one with vanishing gradients, and one with NaN."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.browser.runs import watching
from torchgraph_explorer import open_run
from torchgraph_explorer.xray.picture import XrayMark, xray_svg

STEPS, DEPTH, WIDTH = 300, 10, 48
GAP = 12


class Block(nn.Module):
    """A layer of a deep network. From step `breaks_at` on, it divides by the spread of a unit that is constant."""

    def __init__(self, *, is_sound: bool, breaks_at: int | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.act: nn.Module = nn.ReLU() if is_sound else nn.Sigmoid()
        self.norm: nn.Module = nn.LayerNorm(WIDTH) if is_sound else nn.Identity()
        self.is_sound, self.breaks_at, self.passes = is_sound, breaks_at, 0

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.norm(self.linear(x)))
        self.passes += 1
        if self.breaks_at is not None and self.passes > self.breaks_at:
            y = y / (y - y).sum()
        return x + y if self.is_sound else y


class Network(nn.Module):
    """`DEPTH` blocks between two layers."""

    def __init__(self, *, is_sound: bool = True, breaks_at: int | None = None) -> None:
        super().__init__()
        self.stem = nn.Linear(16, WIDTH)
        breaks = {6: breaks_at}
        blocks = (Block(is_sound=is_sound, breaks_at=breaks.get(at)) for at in range(DEPTH))
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)))


RUNS = {
    "healthy": {},
    "vanishing gradients": {"is_sound": False},
    "NaN from step 190": {"breaks_at": 190},
}


def record_xrays(logdir: Path) -> None:
    """The runs `RUNS`, each of a network that learns the sign of a sum."""
    for name, options in RUNS.items():
        torch.manual_seed(0)
        model = Network(**options)  # type: ignore[arg-type]
        data = torch.randn(4096, 16)
        noise = 0.7 * torch.randn(4096)  # so that the loss, and with it the gradient, does not go to 0
        targets = (data[:, :4].sum(1) + noise > 0).long()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        with watching(model, logdir, name) as watcher:
            for _ in range(STEPS):
                at = torch.randint(len(data), (64,))
                loss = functional.cross_entropy(model(data[at]), targets[at])
                watcher.log({"loss": loss.item()})
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def beside(pictures: list[str]) -> str:
    """The SVG files `pictures` in one, from left to right."""
    inner, at, heights = [], 0, []
    for picture in pictures:
        size = re.search(r'width="(\d+)" height="([\d.]+)"', picture)
        assert size
        inner.append(picture.replace("<svg ", f'<svg x="{at}" ', 1))
        at += int(size[1]) + GAP
        heights.append(float(size[2]))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {at - GAP} {max(heights):g}">'
    return "\n".join([head, *inner, "</svg>", ""])


def draw_xrays(logdir: Path) -> str:
    """The README's picture of the runs that `record_xrays` made."""
    pictures = []
    for name in RUNS:
        model = open_run(logdir / name).model()
        marks = [XrayMark(one.module, one.step, one.severity, one.text) for one in model.findings()]
        pictures.append(xray_svg(model, "output_gradient", marks=marks, title=name[0].upper() + name[1:], width=400))
    return beside(pictures)
