"""The gradient along each edge, held against plain code in which each edge has a copy of its tensor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # as everybody calls it

from tests.listening import Listening
from torchgraph_explorer import attach, watch
from torchgraph_explorer.schema import ModuleGraph, Node

NOT_RECORDED: float | None = None


class Wired(nn.Module):
    """A model whose `forward` says where its edges are.

    Attributes:
        copies: What goes along each edge, as copies of their own; None to make none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))
        self.same = nn.Identity()
        self.cell = nn.LSTMCell(4, 4)
        self.copies: dict[str, list[Tensor]] | None = None

    def along(self, edge: str, tensor: Tensor) -> Tensor:
        if self.copies is None:
            return tensor
        copy = tensor.clone()
        copy.retain_grad()
        self.copies.setdefault(edge, []).append(copy)
        return copy

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        raise NotImplementedError


class Chain(Wired):
    def forward(self, x: Tensor) -> Tensor:
        y = self.along("a -> b", self.a(self.along("input[0] -> a", x)))
        return self.along("b -> output", self.b(y))


class SkipIntoAddition(Wired):
    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.along("a -> b", self.a(self.along("input[0] -> a", x))))
        y = self.along("b -> output", self.b(y))
        y += self.along("input[0] -> output", x)
        return F.relu(y)


class SkipIntoModule(Wired):
    def forward(self, x: Tensor) -> Tensor:
        y = self.a(self.along("input[0] -> a", x))
        return self.along("b -> output", self.b(self.along("a -> b", y) * 2 + self.along("input[0] -> b", x)))


class Gate(Wired):
    def forward(self, x: Tensor) -> Tensor:
        gate = self.along("a -> output", self.a(self.along("input[0] -> a", x))).sigmoid()
        x = self.along("input[0] -> output", x)
        return x * gate + x


class Concatenation(Wired):
    def forward(self, x: Tensor) -> Tensor:
        left = self.along("a -> output", self.a(self.along("input[0] -> a", x)))
        return torch.cat([left, self.along("input[0] -> output", x)], dim=1)


class JointActivation(Wired):
    """The gradients of two edges are added up before they reach their source: each is that of what `relu` returned."""

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.a(self.along("input[0] -> a", x)))
        left, right = self.b(self.along("a -> b", y)), self.c(self.along("a -> c", y))
        left, right = self.along("b -> output", left), self.along("c -> output", right)
        return left + right + self.along("a -> output", y)


class HandedOn(Wired):
    """A shortcut that returns what it is given."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.along("a -> output", self.a(self.along("input[0] -> a", x)))
        return y + self.same(self.along("same -> output", self.along("input[0] -> same", x)))


class Attached(Wired):
    def forward(self, x: Tensor) -> Tensor:
        y = attach(self.along("a -> middle", self.a(self.along("input[0] -> a", x))).tanh(), self, "middle")
        return self.along("b -> output", self.b(self.along("middle -> b", y))) + self.along("middle -> output", y)


class TwoTensors(Wired):
    """Both tensors that the cell returns go to its second call."""

    def forward(self, x: Tensor) -> Tensor:
        h, c = self.cell(self.along("input[0] -> cell", x))
        h, _ = self.cell(
            self.along("input[0] -> cell#2", x), (self.along("cell -> cell#2", h), self.along("cell -> cell#2", c))
        )
        return self.along("cell#2 -> output", h)


class Broadcast(Wired):
    def forward(self, x: Tensor) -> Tensor:
        y = self.along("a -> output", self.a(self.along("input[0] -> a", x)))
        return y.mean(0, keepdim=True) + self.along("input[0] -> output", x)


class UsedAndReturned(Wired):
    """What comes back to `a` from outside is not told apart from what comes back through `b`."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.a(self.along("input[0] -> a", x))
        return y, self.along("b -> output[1]", self.b(self.along("a -> b", y)))


class Views(Wired):
    """Parts of one tensor, one of which is written into."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.along("a -> b", self.a(self.along("input[0] -> a", x)))
        left, right = y.chunk(2, dim=1)
        return self.along("b -> output", self.b(torch.cat([right, left.mul(3)], dim=1)))


MODELS = [
    pytest.param(model, id=model.__name__)
    for model in (
        Chain,
        SkipIntoAddition,
        SkipIntoModule,
        Gate,
        Concatenation,
        JointActivation,
        HandedOn,
        Attached,
        TwoTensors,
        Broadcast,
        UsedAndReturned,
        Views,
    )
]


def loss_of(output: Tensor | tuple[Tensor, ...]) -> Tensor:
    outputs = output if isinstance(output, tuple) else (output,)
    return torch.stack([one.square().sum() for one in outputs]).sum()


def expected(model: Wired, x: Tensor) -> dict[str, float]:
    """The norm of what comes back along each edge, from its copies."""
    model.copies = {}
    loss_of(model(x)).backward()
    copies, model.copies = model.copies, None
    model.zero_grad()
    return {edge: joined([one.grad for one in all_of_it]) for edge, all_of_it in copies.items()}


def joined(gradients: list[Tensor | None]) -> float:
    return float(torch.cat([one.flatten() for one in gradients if one is not None]).norm())


def recorded(graph: ModuleGraph, heard: Listening, at: int = -1) -> dict[str, float | None]:
    """The same, from the record; None if no series is known."""
    found: dict[str, float | None] = {}
    for edge in graph.edges:
        if graph.nodes[edge.target].inside is not None:
            norms = [heard.row(key, at)[0]["l2_norm"] for key in edge.series]
            name = f"{name_of(graph, graph.nodes[edge.source])} -> {name_of(graph, graph.nodes[edge.target])}"
            found[name] = sum(one**2 for one in norms) ** 0.5 if norms else NOT_RECORDED
    return found


def name_of(graph: ModuleGraph, node: Node) -> str:
    if node.call is None:
        assert node.tensor is not None
        return node.tensor.path
    call = graph.calls[node.call]
    return call.module + (f"#{call.call + 1}" if call.call else "")


@pytest.mark.parametrize("make", MODELS)
def test_what_comes_back_along_each_edge_is_recorded(make: Callable[[], Wired]) -> None:
    torch.manual_seed(0)
    model, x = make().double(), torch.randn(3, 4).double().requires_grad_()
    wanted: dict[str, float | None] = {**expected(model, x)}
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, sample_n=None, verbose=False):
        for _ in range(2):
            loss_of(model(x)).backward()
    for at in (0, -1):
        found = recorded(heard.graphs[0], heard, at)
        unknown = {edge for edge, norm in found.items() if norm is NOT_RECORDED}
        assert unknown == ({"a -> output[0]"} if make is UsedAndReturned else set())
        assert {edge: norm for edge, norm in found.items() if edge not in unknown} == pytest.approx(wanted, rel=1e-6)


def test_models_that_are_called_one_after_the_other_have_the_edge_between_them() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.maker, self.judge = Chain(), Chain()

    model, x, heard = Pair(), torch.randn(3, 4), Listening()
    with watch(model, backend=heard, log_freq=1, sample_n=None, verbose=False):
        made = model.maker(x)
        made.retain_grad()
        model.judge(made * 2).sum().backward()
    graph = heard.graphs[0]
    (edge,) = [each for each in graph.edges if graph.nodes[each.target].inside is None]
    assert edge.series == (("judge", 0, "input", "input[0]", "grad_norm"),)


def test_edges_have_no_series_without_gradients_of_tensors() -> None:
    model, heard = SkipIntoAddition(), Listening()
    with watch(model, ["io", "params"], backend=heard, log_freq=1, verbose=False):
        model(torch.randn(3, 4)).sum().backward()
    assert all(edge.series == () for edge in heard.graphs[0].edges)
    assert not any(role == "edge" for _, _, role, _, _ in heard.recorded())
