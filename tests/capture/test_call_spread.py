"""A module that one step calls very often: which of its calls are recorded, and that the rest costs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import TorchgraphWarning, open_run, watch
from torchgraph_explorer.capture import call_spread, trace
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::torchgraph_explorer.TorchgraphWarning")
def test_a_step_that_is_not_traced_records_the_same_of_many_calls() -> None:
    """Such calls are noted in C, and those that may be left out are not."""
    turns, heard = 1_030, Listening()
    model = Looping(turns)
    with watch(model, log_freq=1, backend=heard, verbose=False):
        trained(model)
    assert [set(frame.series.tolist()) for frame in heard.frames[1:]] == [set(heard.frames[0].series.tolist())]
    assert {key[1] for key in heard.recorded() if key[0] == "cell"} == set(filter(is_recorded, range(turns)))


class Layer(nn.Module):
    def __init__(self, is_given: bool) -> None:
        super().__init__()
        self.key, self.out, self.is_given, self.kept = nn.Linear(3, 3), nn.Linear(3, 3), is_given, list[Tensor]()

    def forward(self, x: Tensor, cache: list[Tensor] | None = None) -> Tensor:
        earlier = self.kept if cache is None else cache
        earlier.append(self.key(x))
        return (x + self.out(torch.stack(earlier).mean(0))).tanh()


class Decoder(nn.Module):
    """Each token attends to all earlier ones, by a cache that the layer is given, or keeps."""

    def __init__(self, tokens: int, is_given: bool) -> None:
        super().__init__()
        self.tokens, self.is_given, self.layer = tokens, is_given, Layer(is_given)

    def forward(self, x: Tensor) -> Tensor:
        cache: list[Tensor] = []
        self.layer.kept = []
        for _ in range(self.tokens):
            x = self.layer(x, cache) if self.is_given else self.layer(x)
        return x


def decoded(tokens: int, is_given: bool, folder: Path | None) -> list[Tensor]:
    torch.manual_seed(0)
    model = Decoder(tokens, is_given)
    if folder is None:
        return trained(model)
    with watch(model, log_freq=1, backend="record", logdir=folder, run=str(tokens), verbose=False):
        return trained(model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*gave a module more tensors")
@pytest.mark.parametrize("is_given", [pytest.param(True, id="given"), pytest.param(False, id="kept in an attribute")])
def test_a_cache_that_grows_takes_no_more_of_the_record_for_each_token(
    is_given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "MOST_SOURCES", 20)
    monkeypatch.setattr(call_spread, "MOST_INPUTS", 20)
    parts: list[int] = []
    for tokens in (40, 80):
        found, unwatched = (decoded(tokens, is_given, folder) for folder in (tmp_path, None))
        assert all(torch.equal(*pair) for pair in zip(found, unwatched, strict=True))
        model = open_run(tmp_path / str(tokens)).model()
        graph = model.graphs[0]
        parts.append(len(graph.nodes) + len(graph.edges) + len(model.series))
        calls = {at: graph.calls[node.call] for at, node in enumerate(graph.nodes) if node.call is not None}
        last = next(at for at, call in calls.items() if (call.module, call.call) == ("layer", tokens - 1))
        into = [calls[edge.source].call for edge in graph.edges if edge.target == last and edge.source in calls]
        assert len(into) <= 16
        assert {tokens - 2, tokens - 3} <= set(into)
    assert parts[1] < 2.3 * parts[0]
