"""Autograd graphs so long that torch could not free them after Python code has looked at all of their nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests import warm
from tests.capture.test_call_spread import Looping, trained
from tests.shared import FORKED
from torchgraph_explorer import TorchgraphWarning, open_run, watch
from torchgraph_explorer.capture import graph_length

TURNS = 20

LONG = """
import torch
from torch import nn
from torchgraph_explorer import watch

class Long(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        x = self.layer(x)
        for _ in range(80_000):
            x = x.neg()
        return x

model = Long()
watch(model, backend="record", log_freq=1, logdir="runs", verbose=False)
for _ in range(2):
    model(torch.ones(1, 2)).sum().backward()
print("alive")
"""


@pytest.mark.slow
@FORKED
def test_a_graph_that_torch_could_not_free_after_a_look_ends_no_training(tmp_path: Path) -> None:
    """On a usual stack, the process would die as soon as the graph is freed."""
    done = warm.run("-c", LONG, cwd=tmp_path, frees_all=True)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
    assert "autograd graph is so long" in done.stderr


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few nodes are taken for many."""
    monkeypatch.setattr(graph_length, "NODES_ON_USUAL_STACK", 30)


def recorded(model: nn.Module, folder: Path, expected: str | None) -> list[Tensor]:
    torch.manual_seed(0)
    with watch(model, backend="record", log_freq=1, logdir=str(folder), run="run", verbose=False):
        if expected is None:
            return trained(model)
        with pytest.warns(TorchgraphWarning, match=expected):
            return trained(model)


@pytest.mark.usefixtures("short")
def test_values_of_all_calls_are_recorded_and_gradients_of_the_first(tmp_path: Path) -> None:
    torch.manual_seed(0)
    unwatched, watched = Looping(TURNS), Looping(TURNS)
    watched.load_state_dict(unwatched.state_dict())
    expected = trained(unwatched)
    assert all(map(torch.equal, recorded(watched, tmp_path, "autograd graph is so long"), expected))
    model = open_run(tmp_path / "run").model()
    calls = {
        kind: {one.call for one in model.series if (one.module, one.kind) == ("cell", kind)}
        for kind in ("value", "grad_norm")
    }
    first = calls["grad_norm"]
    assert calls["value"] == set(range(TURNS)) > first
    assert first == set(range(len(first))) != set()
    weights = [one for one in model.series if (one.role, one.kind) == ("param", "grad")]
    assert len(weights) == len(expected)


@pytest.mark.usefixtures("short")
def test_data_is_seen_to_go_through_all_calls(tmp_path: Path) -> None:
    recorded(Looping(TURNS), tmp_path, "autograd graph is so long")
    graph = open_run(tmp_path / "run").model().graphs[-1]
    top = {at for at, node in enumerate(graph.nodes) if node.inside == 0}
    led_to = {edge.target for edge in graph.edges if edge.target in top}
    assert len(led_to) == len(top) - 1  # all but the input
    assert all(edge.gradient for edge in graph.edges if edge.target in top and graph.nodes[edge.source].kind == "call")


@pytest.mark.usefixtures("short")
def test_after_a_backward_pass_the_graph_is_a_new_one(tmp_path: Path) -> None:
    model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(8)))
    with watch(model, backend="record", log_freq=1, logdir=str(tmp_path), run="run", verbose=False) as watcher:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            for _ in range(4):
                model(torch.randn(2, 3)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert watcher.run_dir is not None
    found = {
        one.call for one in open_run(watcher.run_dir).model().series if (one.module, one.kind) == ("7", "grad_norm")
    }
    assert found == set(range(4))
