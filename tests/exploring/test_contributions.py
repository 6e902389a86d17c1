"""Contributions are the Jacobian times the gradient, by an oracle that replaces tensors by hooks."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.functional import jacobian

from tests.exploring.models import FLOWS, Attention, Convolutions, Flow, UsedBefore, mlp
from torchgraph_explorer.exploring import products
from torchgraph_explorer.exploring.session import Session

FLOW = pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS.keys())


def loss(output: Tensor) -> Tensor:
    return (output * torch.linspace(-1, 2, output.numel(), dtype=output.dtype).reshape(output.shape)).tanh().sum()


def first_of(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


class Oracle:
    """The model as a function of one tensor in it, with the same random numbers each time."""

    def __init__(self, model: nn.Module, x: Tensor, flow: Flow) -> None:
        self.model, self.x, self.flow = model, x, flow

    def run(self, given: Tensor | None = None, *, at: tuple[str, int] | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """What `a` and `b` are, and the loss, if the tensor `at` is `given`."""
        seen: dict[tuple[str, int], Tensor] = {}
        calls: dict[str, int] = {}
        handles = [
            self.model.get_submodule(name).register_forward_hook(self._hook(name, calls, seen, given, at))
            for name in {self.flow.a[0], self.flow.b[0]}
        ]
        torch.manual_seed(3)
        end = loss(self.model(self.x.clone()))
        for handle in handles:
            handle.remove()
        return seen[self.flow.a], seen[self.flow.b], end

    def _hook(self, name: str, calls: Any, seen: Any, given: Any, at: Any) -> Any:
        def hook(_module: nn.Module, _args: object, output: Any) -> Any:
            key = name, calls.get(name, 0)
            calls[name] = key[1] + 1
            replaced = first_of(output)
            if at == key:
                replaced = given.clone()
            seen[key] = replaced.clone()
            return (replaced, *output[1:]) if isinstance(output, tuple) else replaced

        return hook

    def contributions(self) -> tuple[Tensor, Tensor]:
        """The matrix, and the gradient of `a`."""
        a, b, _ = (one.detach() for one in self.run())
        flow = self.flow
        j = jacobian(lambda given: self.run(given, at=flow.a)[1], a)
        g_b = jacobian(lambda given: self.run(given, at=flow.b)[2], b)
        g_a = jacobian(lambda given: self.run(given, at=flow.a)[2], a)
        found = j * g_b.reshape(*b.shape, *(1 for _ in a.shape))
        return found.permute(*range(b.dim(), found.dim()), *range(b.dim())), g_a


@FLOW
def test_contributions_are_the_jacobian_times_the_gradient(flow: Flow) -> None:
    model, x = flow.make(), torch.randn(flow.shape, dtype=flow.dtype)
    expected, g_a = Oracle(model, x, flow).contributions()
    torch.manual_seed(3)
    session = Session(model, x, loss=loss)
    torch.testing.assert_close(session.matrix(*flow.names), expected)
    torch.testing.assert_close(session.gradient(flow.names[0]), g_a)


@FLOW
def test_a_row_and_a_column_are_those_of_the_matrix(flow: Flow) -> None:
    session = Session(flow.make(), torch.randn(flow.shape, dtype=flow.dtype), loss=loss)
    a, b = flow.names
    matrix = session.matrix(a, b)
    i = tuple(size // 2 for size in session.value(a).shape)
    j = tuple(size // 2 for size in session.value(b).shape)
    torch.testing.assert_close(
        session.contributions(a, b, to=j), matrix.movedim(tuple(range(-len(j), 0)), tuple(range(len(j))))[j]
    )
    torch.testing.assert_close(session.contributions(a, b, from_=i), matrix[i])
    torch.testing.assert_close(session.contributions(a, b, from_=i, to=j), matrix[i + j])


@FLOW
def test_rows_and_what_goes_past_add_up_to_the_gradient(flow: Flow) -> None:
    session = Session(flow.make(), torch.randn(flow.shape, dtype=flow.dtype), loss=loss)
    a, b = flow.names
    rows = session.matrix(a, b).flatten(session.value(a).dim()).sum(-1)
    torch.testing.assert_close(rows + session.past(a, b), session.gradient(a))


def test_a_skip_leads_past_the_module_beside_it() -> None:
    session = Session(Convolutions(), torch.randn(2, 2, 8, 8), loss=loss)
    torch.testing.assert_close(session.past("act#0", "second"), session.gradient("act#1:input"))
    torch.testing.assert_close(session.past("first", "norm"), torch.zeros(2, 4, 4, 4))


def test_linear_chains_compose() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3), nn.Linear(3, 2)).double()
    session = Session(model, torch.randn(1, 5, dtype=torch.float64), loss=loss)
    through = session.matrix("input", "0").reshape(5, 4) / session.gradient("0").reshape(1, 4)
    whole = through @ session.matrix("0", "1").reshape(4, 3)
    torch.testing.assert_close(whole, session.matrix("input", "1").reshape(5, 3))


def test_several_elements_are_taken_as_their_sum() -> None:
    session = Session(mlp(), torch.randn(3, 6), loss=loss)
    matrix = session.matrix("0", "2")
    expected = matrix[..., 0, 1] + matrix[..., 2, 3]
    torch.testing.assert_close(session.contributions("0", "2", to=[(0, 1), (2, 3)]), expected)
    torch.testing.assert_close(session.contributions("0", "2", to=(slice(1, 3), 0)), matrix[..., 1:3, 0].sum(-1))


def test_groups_are_sums_of_the_matrix() -> None:
    from torchgraph_explorer.exploring.grouping import Grouping

    session = Session(Attention(), torch.randn(2, 5, 8), loss=loss)
    by = Grouping((2, 5, 24), (1,)), Grouping((2, 2, 5, 4), (1, 2))
    flows, past = session.groups("project", "mixed", by=by)
    expected = session.matrix("project", "mixed").sum((0, 2)).sum((1, 4))
    torch.testing.assert_close(flows, expected.reshape(5, 10))
    torch.testing.assert_close(past, session.past("project", "mixed").sum((0, 2)))


def test_the_target_may_be_any_scalar_of_the_output() -> None:
    model, x = mlp(), torch.randn(3, 6)
    session = Session(model, x, loss=loss)
    session.aim(lambda output: output[1, 2])
    expected = jacobian(lambda given: model(given)[1, 2], x)
    torch.testing.assert_close(session.gradient("input"), expected)


def test_what_a_module_returns_may_have_been_used_before() -> None:
    """`doubling` has used its second result before it returns it: a second pass that changes it comes too late."""
    session = Session(UsedBefore(), torch.randn(3, 4), loss=loss)
    matrix = session.matrix("doubling:output[1]", "head")
    column = session.contributions("doubling:output[1]", "head", from_=(1, 2))
    torch.testing.assert_close(column, matrix[1, 2])


def test_progress_is_told_and_can_cancel() -> None:
    session = Session(mlp(), torch.randn(40, 6), loss=loss)
    told: list[tuple[int, int]] = []
    session.matrix("0", "2", progress=lambda done, count: told.append((done, count)))
    assert told[0] == (0, 160)
    assert told[-1] == (160, 160)

    def cancel(_done: int, _count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.matrix("0", "2", progress=cancel)


def test_sessions_in_several_threads_take_turns_with_forward_mode_derivatives() -> None:
    began, ends, found = threading.Event(), threading.Event(), list[object]()
    tensor: Any = SimpleNamespace(value=torch.ones(1), place=None)

    def wait(_visit: Any) -> None:
        began.set()
        assert ends.wait(20)

    def push() -> None:
        found.append(products.push_forward(tensor, torch.ones(1), [], rerun=wait))

    def prepare() -> None:
        products.prepare()
        found.append("prepared")

    first, second = threading.Thread(target=push), threading.Thread(target=prepare)
    first.start()
    assert began.wait(20)
    second.start()
    second.join(0.05)
    assert second.is_alive()
    ends.set()
    first.join(20)
    second.join(20)
    assert sorted(map(str, found)) == ["[]", "prepared"]
