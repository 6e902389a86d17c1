"""A module that one step calls very often: which of its calls are recorded, and that the rest costs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import TorchgraphWarning, open_run, watch
from torchgraph_explorer.capture import call_spread
from torchgraph_explorer.capture.call_spread import is_recorded


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param(999, 999, id="all of a few"),
        pytest.param(1_024, 1_024, id="all up to the bound"),
        pytest.param(2_048, 1_088, id="one doubling"),
        pytest.param(20_000, 1_024 + 4 * 64 + 15, id="a long sequence"),
        pytest.param(1 << 20, 1_024 + 10 * 64, id="a million"),
    ],
)
def test_of_very_many_calls_a_bounded_number_is_recorded_at_even_distances(calls: int, expected: int) -> None:
    assert sum(map(is_recorded, range(calls))) == expected


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).tanh()


class Looping(nn.Module):
    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns, self.cell, self.head = turns, Inner(), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.turns):
            x = self.cell(x)
        return self.head(x)


def trained(model: nn.Module) -> list[Tensor]:
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(2, 3)).square().mean().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in model.parameters()]


def test_calls_between_are_left_out_with_all_in_them_and_data_goes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_spread, "EVERY_CALL_UP_TO", 16)
    monkeypatch.setattr(call_spread, "CALLS_A_DOUBLING", 4)
    torch.manual_seed(0)
    unwatched = Looping(100)
    watched = Looping(100)
    watched.load_state_dict(unwatched.state_dict())
    with (
        pytest.warns(TorchgraphWarning, match="called a module more than"),
        watch(watched, log_freq=1, backend="record", logdir=tmp_path, run="run", verbose=False),
    ):
        found = trained(watched)
    assert all(torch.equal(*pair) for pair in zip(found, trained(unwatched), strict=True))
    graph = open_run(tmp_path / "run").model().graphs[0]
    expected = [*range(16), *range(16, 32, 4), *range(32, 64, 8), *range(64, 100, 16)]
    for name in ("cell", "cell.linear"):
        assert [call.call for call in graph.calls if call.module == name] == expected
    names = [graph.calls[node.call].module if node.call is not None else node.kind for node in graph.nodes]
    chain = [(names[e.source], names[e.target]) for e in graph.edges if graph.nodes[e.source].inside == 0]
    assert chain.count(("cell", "cell")) == len(expected) - 1
    assert ("cell", "head") in chain
