"""Tensors of types that torch only stores, gradients that are None, and parameters that torch swaps with others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import Keep, watch

STORED_ONLY = [name for name in ("float4_e2m1fn_x2", "bits8", "bits16") if hasattr(torch, name)]


class Storing(nn.Module):
    """Returns its input, and bytes that are called elements of some type."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, torch.zeros(4, 8, dtype=torch.uint8).view(self.dtype)


class WithoutGradient(torch.autograd.Function):
    """Uses two tensors, and has a gradient for the first one only."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor, _mask: Tensor) -> Tensor:
        return x * 1

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(_ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.mask = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Any:
        return WithoutGradient.apply(self.a(x), self.mask(x))  # type: ignore[no-untyped-call]


class First(nn.Module):
    def forward(self, found: tuple[Tensor, ...]) -> Tensor:
        return found[0]


class Eighths(Tensor):
    """Numbers of which eighths are stored. They can be copied into others of this class only."""

    stored: Tensor

    @staticmethod
    def __new__(cls: Any, stored: Tensor) -> Any:
        made = Tensor._make_wrapper_subclass(cls, stored.shape)
        made.stored = stored
        return made

    def dequantize(self) -> Tensor:
        return self.stored.float() / 8

    @classmethod
    def __torch_dispatch__(cls, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        if function is torch.ops.aten.copy_.default and not isinstance(args[0], cls):
            raise AttributeError("'Tensor' object has no attribute 'stored'")
        if function in {torch.ops.aten.detach.default, torch.ops.aten.view.default}:
            return cls(function(args[0].stored, *args[1:]))
        return function(*[each.dequantize() if isinstance(each, cls) else each for each in args], **(kwargs or {}))


class Coarse(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, Eighths((x.detach() * 8).round().to(torch.int8))


def heard(model: nn.Module) -> Listening:
    """Two steps. A warning fails the test."""
    listening = Listening()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, backend=listening, log_freq=1, verbose=False):
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
    return listening


@pytest.mark.parametrize("name", STORED_ONLY)
def test_elements_that_torch_only_stores_are_left_out_and_all_else_is_recorded(name: str) -> None:
    recorded = heard(nn.Sequential(nn.Linear(3, 3), Storing(getattr(torch, name)), First(), nn.Linear(3, 1))).recorded()
    assert ("1", 0, "output", "output[0]", "value") in recorded
    assert ("1", 0, "output", "output[1]", "value") not in recorded
    assert ("3", 0, "output", "output", "grad_norm") in recorded


def test_a_wrapper_that_cannot_be_copied_into_an_ordinary_tensor_is_measured_as_what_it_stands_for() -> None:
    listening = heard(nn.Sequential(nn.Linear(3, 3), Coarse(), First(), nn.Linear(3, 1)))
    exact, coarse = (listening.row(("1", 0, "output", f"output[{i}]", "value"))[0] for i in range(2))
    assert abs(coarse["mean"] - exact["mean"]) <= 1 / 16
    assert coarse["max"] * 8 == round(exact["max"] * 8)


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.mixing = nn.Linear(3, 3), nn.Parameter(torch.eye(4).to_sparse())

    def forward(self, x: Tensor) -> Tensor:
        return torch.sparse.mm(self.mixing, self.a(x))


def test_a_sparse_parameter_leaves_the_facts_about_others_whole() -> None:
    listening = heard(Sparse())
    assert listening.finished.notes == ()
    assert all(frame.training is not None for frame in listening.frames)


def test_a_gradient_that_is_none_is_left_out_and_all_else_is_recorded() -> None:
    recorded = heard(Masked()).recorded()
    assert ("a", 0, "output", "output", "grad_norm") in recorded
    assert ("mask", 0, "output", "output", "value") in recorded
    assert ("mask", 0, "output", "output", "grad_norm") not in recorded


@pytest.fixture
def _swapping() -> Iterator[None]:
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


@pytest.mark.usefixtures("_swapping")
@pytest.mark.parametrize("log_freq", [1, 2, 50])
@pytest.mark.parametrize("keep", [None, Keep("*", "*.weight"), Keep("*", when="flagged", before=2)], ids=str)
def test_a_watched_model_is_converted_by_swapping_its_parameters(
    log_freq: int, keep: Keep | None, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    weight, optimizer = model[0].weight, torch.optim.SGD(model.parameters(), lr=0.1)
    options: dict[str, Any] = {"backend": "record", "logdir": str(tmp_path), "verbose": False}
    with watch(model, log_freq=log_freq, keep=keep, **options):
        model.double().float()
        for _ in range(4):
            model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
            model.double().float()
            optimizer.zero_grad()
    assert model[0].weight is weight


def test_of_backward_passes_that_vmap_makes_at_once_the_gradients_of_the_last_are_recorded() -> None:
    """As of several backward passes one after the other. Their samples are not taken for those of the batch."""
    model, heard = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), Listening()
    x, weights = torch.randn(5, 3), torch.randn(3, 5, 2)
    with watch(model, backend=heard, log_freq=1, verbose=False):
        for _ in range(2):
            out, parameters = model(x), tuple(model.parameters())
            torch.vmap(lambda each: torch.autograd.grad(out, parameters, each, retain_graph=True))(weights)  # noqa: B023
    assert not heard.finished.notes
    statistics, _ = heard.row(("2", 0, "output", "output", "grad_norm"))
    assert statistics["count"] == len(x)
    assert statistics["mean"] == pytest.approx(weights[-1].norm(dim=1).mean().item(), rel=1e-5)
