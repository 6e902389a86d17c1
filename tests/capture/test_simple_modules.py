"""Modules of torch whose inside is not traced: the graph is as if it were. And what is forgotten with a tensor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils.parametrizations import weight_norm

from tests.capture.test_graph import graph_of
from tests.listening import edges_by_name
from torchgraph_explorer.capture import trace
from torchgraph_explorer.capture.by_tensor import ByStorage, ByTensor
from torchgraph_explorer.capture.simple_modules import SIMPLE, is_simple
from torchgraph_explorer.schema import ModuleGraph


class Hypernetwork(nn.Module):
    """The weight of a layer is computed by another; a part works in place, and one layer is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.maker, self.used, self.twice = nn.Linear(4, 16), nn.Linear(4, 4), nn.Linear(4, 4)
        self.rectify, self.same, self.parts = nn.ReLU(inplace=True), nn.Identity(), nn.Sequential(nn.Tanh(), nn.ELU())

    def forward(self, x: Tensor) -> Tensor:
        weight = self.maker(x).mean(0).reshape(4, 4)
        made = functional_call(self.used, {"weight": weight}, (x,))
        view = made[:, :2]
        self.rectify(view)
        with torch.no_grad():
            mask = self.same(x) > 0
        return self.twice(self.parts(made)) + self.twice(x * mask)


def test_the_graph_is_as_if_simple_modules_were_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    def graph() -> ModuleGraph:
        torch.manual_seed(0)
        return graph_of(Hypernetwork(), torch.randn(3, 4))

    untraced = graph()
    monkeypatch.setattr(trace, "SIMPLE", frozenset())
    assert graph() == untraced


class Positions(nn.Module):
    """A buffer goes to several layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4)), nn.Bilinear(4, 4, 4)
        self.register_buffer("positions", torch.ones(2, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.first(self.positions) + self.second(self.positions) + self.third(self.positions, x)


def test_a_tensor_that_no_call_has_made_connects_none() -> None:
    assert edges_by_name(graph_of(Positions(), torch.ones(2, 4))) == {
        ("input[0]", "third#0", False),
        ("first#0", "output", True),
        ("second#0", "output", True),
        ("third#0", "output", True),
    }


def hooked(module: nn.Module) -> nn.Module:
    for _ in range(2):  # ours may be one of them
        module.register_forward_pre_hook(lambda *_: None)
    return module


def patched(module: nn.Module) -> nn.Module:
    module.forward = module.forward
    return module


def given_a_weight(module: nn.Module) -> nn.Module:
    del module.weight
    module.weight = torch.ones(4, 4)
    return module


def with_a_part(module: nn.Module) -> nn.Module:
    module.adapter = nn.Tanh()
    return module


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda: nn.Linear(4, 4), True, id="as torch has it"),
        pytest.param(lambda: hooked(nn.Linear(4, 4)), False, id="with hooks of the user's"),
        pytest.param(lambda: patched(nn.Linear(4, 4)), False, id="with another forward"),
        pytest.param(lambda: given_a_weight(nn.Linear(4, 4)), False, id="with a weight that is no parameter"),
        pytest.param(lambda: with_a_part(nn.Linear(4, 4)), False, id="with a module in it"),
        pytest.param(lambda: weight_norm(nn.Linear(4, 4)), False, id="parametrized"),
        pytest.param(lambda: type("Own", (nn.Linear,), {})(4, 4), False, id="a class derived from it"),
        pytest.param(lambda: nn.ReLU(inplace=True), False, id="in place"),
        pytest.param(lambda: nn.BatchNorm1d(4), False, id="with buffers that it writes into"),
    ],
)
def test_a_module_is_simple_only_as_torch_has_it(make: Callable[[], nn.Module], expected: bool) -> None:
    assert is_simple(make(), [torch.ones(2, 4)]) is expected


def test_no_module_is_simple_whose_class_was_given_another_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Linear, "forward", lambda module, x: x @ module.weight)
    assert not is_simple(nn.Linear(4, 4), [torch.ones(2, 4)])


def test_no_module_is_simple_while_its_parameters_are_converted() -> None:
    with torch.autocast("cpu"):
        assert not is_simple(nn.Linear(4, 4), [torch.ones(2, 4)])


def test_simple_modules_write_into_nothing() -> None:
    inside = {one.__module__ for one in SIMPLE}
    assert all(name.startswith("torch.nn.modules.") for name in inside)
    assert not {nn.BatchNorm2d, nn.LSTM, nn.MultiheadAttention, nn.Embedding} & SIMPLE


def test_a_tensor_or_memory_that_is_gone_has_no_value_at_its_address() -> None:
    by_tensor, by_storage = ByTensor[int](), ByStorage[int]()
    for _ in range(50):
        tensor = torch.zeros(3)
        assert by_tensor.get(tensor) is by_storage.get(tensor) is None, "that of an earlier tensor"
        by_tensor[tensor] = by_storage[tensor] = 1
        assert by_tensor.get(tensor) == by_storage.get(tensor[1:]) == 1
        del tensor
