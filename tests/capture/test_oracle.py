"""Every number of every series, held against plain code that saves the tensors by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.listening import Key, Listening, assert_row
from tests.models import Block, TwoInputs
from torchgraph_explorer import watch

Saved = dict[Key, Tensor]


class ByHand:
    """`TwoInputs` written out: saves every tensor, and each path that a gradient takes gets a copy of its own."""

    def __init__(self, model: TwoInputs) -> None:
        self.model = model
        self.values: Saved = {}
        self.paths: Saved = {}
        self.calls: dict[str, int] = {}

    def forward(self, x: Tensor, side: Tensor) -> Tensor:
        self.see("", 0, "input", "input[0]", x)
        self.see("", 0, "input", "input['side']", side)
        x = self.edge("", "stem -> @merged", self.output("stem", self.model.stem(self.input("stem", x)))).tanh()
        side = self.edge("", "side -> @merged", self.output("side", self.model.side(self.input("side", side))))
        merged = self.see("", 0, "attached", "merged", x + side)
        y = self.input("blocks", merged)
        for i, block in enumerate(self.model.blocks):
            y = self.block(f"blocks.{i}", block, y)
        y = self.see("", 0, "output", "output['states'][0]", self.see("blocks", 0, "output", "output", y))
        return self.see(
            "", 0, "output", "output['logits']", self.output("head", self.model.head(self.input("head", y)))
        )

    def block(self, name: str, block: Any, x: Tensor) -> Tensor:
        x = self.input(name, x)
        y = self.activation(name, self.output(f"{name}.first", block.first(self.input(f"{name}.first", x))))
        y = self.output(f"{name}.second", block.second(self.input(f"{name}.second", y)))
        y = self.edge(name, "second -> activation#2", y) + self.edge(name, ":input[0] -> activation#2", x)
        return self.see(name, 0, "output", "output", self.activation(name, y))

    def activation(self, name: str, x: Tensor) -> Tensor:
        name = f"{name}.activation"
        return self.output(name, torch.relu(self.input(name, x)), call=self.calls[name])

    def input(self, module: str, x: Tensor) -> Tensor:
        """What `module` is given: a copy, whose gradient is that which comes back through `module`."""
        call = self.calls[module] = self.calls.get(module, -1) + 1
        return self.see(module, call, "input", "input[0]", x.clone())

    def edge(self, module: str, path: str, x: Tensor) -> Tensor:
        """What goes along an edge: a copy, whose gradient is that which comes back along it."""
        copy = x.clone()
        copy.retain_grad()
        self.paths[module, 0, "edge", path, "grad_norm"] = copy
        return copy

    def output(self, module: str, x: Tensor, call: int = 0) -> Tensor:
        return self.see(module, call, "output", "output", x)

    def see(self, module: str, call: int, role: str, path: str, x: Tensor) -> Tensor:
        self.values[module, call, role, path, "value"] = x.detach().clone()
        if x.requires_grad:
            x.retain_grad()
            self.paths[module, call, role, path, "grad_norm"] = x
        return x


def loss_of(logits: Tensor) -> Tensor:
    return (logits * torch.arange(4, dtype=logits.dtype)).square().sum()


def by_hand(model: TwoInputs, x: Tensor, side: Tensor) -> dict[Key, np.ndarray[Any, Any]]:
    hand = ByHand(model)
    loss_of(hand.forward(x, side)).backward()
    expected = {key: value.numpy() for key, value in hand.values.items()}
    for key, tensor in hand.paths.items():
        assert tensor.grad is not None
        expected[key] = tensor.grad.flatten(1).norm(dim=1).numpy()
    for name, module in model.named_modules():
        for path, parameter in module.named_parameters(recurse=False):
            assert parameter.grad is not None
            expected[name, None, "param", path, "value"] = parameter.detach().numpy()
            expected[name, None, "param", path, "grad"] = parameter.grad.numpy()
    return expected


@pytest.mark.slow
def test_every_number_of_every_series_is_what_numpy_computes_from_hand_saved_tensors() -> None:
    model = TwoInputs().double()
    x, side = torch.randn(5, 6).double(), torch.randn(5, 3).double()
    expected = by_hand(model, x, side)
    model.zero_grad()
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, sample_n=None):
        loss_of(model(x, side=side)["logits"]).backward()
    assert heard.recorded() == set(expected)
    for key, values in expected.items():
        assert_row(heard.row(key), values, name=key)


def test_two_consumers_of_one_tensor_are_told_apart() -> None:
    block = Block(4)
    heard = Listening()
    x = torch.randn(3, 4, requires_grad=True)
    with watch(block, backend=heard, log_freq=1, sample_n=None):
        block(x).sum().backward()
    through_first = heard.row(("first", 0, "input", "input[0]", "grad_norm"))[0]["mean"]
    through_block = heard.row(("", 0, "input", "input[0]", "grad_norm"))
    assert x.grad is not None
    assert_row(through_block, x.grad.norm(dim=1).numpy())
    assert through_first != through_block[0]["mean"]


def with_full_hooks(make: Callable[[], torch.nn.Module], x: Tensor) -> tuple[Tensor, ...]:
    """What torch's own full backward hook reports for the input of a module that uses it twice."""
    seen: list[tuple[Tensor, ...]] = []
    model = make()
    model.register_full_backward_hook(lambda _m, gradients, _o: seen.append(gradients))
    (model(x) * x).sum().backward()
    return seen[0]


class Twice(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(4, 4)
        self.b = torch.nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(x).tanh() * self.b(x) + x


def test_the_gradient_through_a_module_is_that_of_a_full_backward_hook() -> None:
    torch.manual_seed(1)
    model = Twice()
    x = torch.randn(3, 4, requires_grad=True)
    (expected,) = with_full_hooks(lambda: model, x)
    model._backward_hooks.clear()
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, sample_n=None):
        (model(x) * x).sum().backward()
    assert_row(heard.row(("", 0, "input", "input[0]", "grad_norm")), expected.norm(dim=1).numpy())


class Halves(torch.nn.Module):
    """Returns two tensors, each of a node of its own, that are computed from the same input."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.tanh(), x * 2


class Product(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.halves = Halves()

    def forward(self, x: Tensor) -> Tensor:
        one, other = self.halves(x)
        return one * other + x


def test_the_gradient_through_a_module_that_returns_two_tensors_counts_once() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    heard = Listening()
    with watch(model := torch.nn.Sequential(Product()), backend=heard, log_freq=1, sample_n=None):
        model(x).sum().backward()
    assert x.grad is not None
    for module in ("", "0"):
        assert_row(heard.row((module, 0, "input", "input[0]", "grad_norm")), x.grad.norm(dim=1).numpy(), name=module)


class Policy(torch.nn.Module):
    """Returns an object that has tensors, beside a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.logits, self.value, self.choose = torch.nn.Linear(4, 3), torch.nn.Linear(4, 1), Choosing()

    def forward(self, x: Tensor) -> tuple[torch.distributions.Distribution, Tensor]:
        return self.choose(self.logits(x)), self.value(x)


class Choosing(torch.nn.Module):
    def forward(self, logits: Tensor) -> torch.distributions.Distribution:
        return torch.distributions.Independent(torch.distributions.OneHotCategorical(logits=logits), 0)


def test_the_gradient_through_a_module_that_returns_an_object_counts_what_comes_through_that_too() -> None:
    x = torch.randn(5, 4, requires_grad=True)
    heard = Listening()
    with watch(model := Policy(), backend=heard, log_freq=1, sample_n=None):
        logits: list[Tensor] = []
        model.logits.register_forward_hook(lambda *call: logits.append(call[-1]))
        chosen, value = model(x)
        logits[0].retain_grad()
        (chosen.entropy().sum() + value.square().sum()).backward()
    expected = {"": x.grad, "choose": logits[0].grad}
    for module, gradient in expected.items():
        assert gradient is not None
        row = heard.row((module, 0, "input", "input[0]", "grad_norm"))
        assert_row(row, gradient.norm(dim=1).numpy(), name=module)


class Both(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.a(x), self.b(x)


@pytest.mark.slow
def test_a_gradient_of_which_a_backward_pass_gives_a_part_alone_is_replaced_by_that_of_the_next_one() -> None:
    model, heard = torch.nn.Sequential(Both()), Listening()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(3, 4, requires_grad=True)
    with watch(model, backend=heard, log_freq=1, sample_n=None, optimizer=optimizer):
        one, other = model(x)
        one.sum().backward(retain_graph=True)
        x.grad = None
        (one + other).sum().backward()
        optimizer.step()
    assert x.grad is not None
    assert_row(heard.row(("0", 0, "input", "input[0]", "grad_norm")), x.grad.norm(dim=1).numpy())


class Mixture(torch.nn.Module):
    """Is given tensors in every way there is, some of which need no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: Tensor, *, scale: Tensor, more: dict[str, list[Tensor]]) -> Tensor:
        [shift], [chosen] = more["shift"], more["chosen"]
        return (self.layer(x) * scale + shift)[chosen]


def leaf() -> Tensor:
    return torch.randn(4, 3, requires_grad=True)


def embedded() -> Tensor:
    """As what an embedding outside of the model, or the generator of a GAN, has made of its own input."""
    made = torch.nn.Embedding(5, 3)(torch.arange(4))
    made.retain_grad()
    return made


@pytest.mark.parametrize("frozen", [False, True], ids=["trained", "frozen"])
@pytest.mark.parametrize("make", [leaf, embedded])
def test_the_gradient_at_the_models_inputs_is_what_arrives_at_those_that_require_one(
    make: Callable[[], Tensor], frozen: bool
) -> None:
    model, heard = Mixture().requires_grad_(not frozen), Listening()
    x, scale, shift = make(), make(), torch.randn(4, 3)
    with watch(model, backend=heard, log_freq=1, sample_n=None):
        model(x, scale=scale, more={"shift": [shift], "chosen": [torch.tensor([2, 0])]}).square().sum().backward()
    at_inputs = {
        key[3]: key for key in heard.recorded() if key[0] == "" and key[2] == "input" and key[4] == "grad_norm"
    }
    assert set(at_inputs) == {"input[0]", "input['scale']"}
    for path, tensor in (("input[0]", x), ("input['scale']", scale)):
        assert tensor.grad is not None
        assert_row(heard.row(at_inputs[path]), tensor.grad.norm(dim=1).numpy())
    infos = {info.path: info.requires_grad for info in heard.graphs[0].calls[0].inputs}
    assert {path for path, requires_grad in infos.items() if requires_grad} == set(at_inputs)
