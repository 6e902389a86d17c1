"""Updates that are rounded away, told without `optimizer=`: held against the weights before and after an update."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from torchgraph_explorer import open_run, watch


@pytest.mark.parametrize(
    ("dtype", "rate", "is_told"),
    [
        pytest.param("bfloat16", 1e-4, True, id="too small"),
        pytest.param("bfloat16", 1e-2, False, id="large enough"),
        pytest.param("float32", 1e-4, False, id="too small for bfloat16, in float32"),
    ],
)
def test_updates_that_round_to_nothing_are_told_by_the_ratio_of_update_to_weight(
    dtype: str, rate: float, is_told: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(64, 64, bias=False).to(getattr(torch, dtype))
    optimizer = torch.optim.SGD(layer.parameters(), lr=rate)
    with watch(layer, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(8):
            optimizer.zero_grad()
            layer(torch.randn(32, 64, dtype=layer.weight.dtype)).square().sum(1).mean().backward()
            before = layer.weight.detach().clone()
            optimizer.step()
    unchanged = (before == layer.weight).float().mean().item()
    [found, *_] = [*open_run(str(tmp_path / "run")).model().findings(), None]
    assert (found is not None and found.kind == "update-lost-to-rounding") == is_told
    if found is not None:
        assert 0.75 <= found.evidence["unchanged"] <= unchanged + 0.02
