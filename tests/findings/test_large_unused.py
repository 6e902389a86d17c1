"""Parts that are never called, whose parameters are so large that statistics are of a sample."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from torchgraph_explorer import open_run, watch


class Spare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(8, 8)
        self.spare = nn.Sequential(nn.Linear(200, 200), nn.LayerNorm(200))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.used(x)
        return result


def test_a_large_part_that_is_never_called_is_told_as_one(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Spare()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="run", verbose=False):
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
    found = open_run(tmp_path / "run").model().findings()
    assert [(one.module, one.evidence["parameters"]) for one in found if one.kind == "unused-module"] == [("spare", 4)]
