"""Parts that are never called, whose parameters are so large that statistics are of a sample."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from tests.findings.trainings import trained


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
    found = trained(
        tmp_path, Spare(), lambda model, _: model(torch.randn(4, 8)).square().mean(), steps=6, rate=0.01, logs=False
    )
    assert [(one.module, one.evidence["parameters"]) for one in found if one.kind == "unused-module"] == [("spare", 4)]
