"""The names of arguments in the record, whatever it is that a module is called by."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer.capture.module_info import module_facts
from torchgraph_explorer.capture.signatures import Signatures


def double(x: Tensor) -> Tensor:
    return 2 * x


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Two(nn.Module):
    def forward(self, image: Tensor, *more: Tensor, scale: float = 1.0, **others: Tensor) -> Tensor:
        return image * scale


class Wrapped(nn.Module):
    @logged
    def forward(self, image: Tensor, /, mask: Tensor | None = None) -> Tensor:
        return image


class Refusing(nn.Module):
    @property
    def forward(self) -> Any:  # type: ignore[override]
        raise RuntimeError("not now")


class Untold:
    @property
    def __signature__(self) -> Any:
        raise RuntimeError("not now")

    def __call__(self, x: Tensor) -> Tensor:
        return x


def called_by(forward: Callable[..., Any]) -> nn.Module:
    module = nn.Linear(2, 2)
    module.forward = forward  # type: ignore[method-assign]
    return module


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[str, ...]]] = {
    "of torch": (lambda: nn.Conv2d(1, 2, 3), ("input",)),
    "with a state": (lambda: nn.LSTM(2, 3), ("input", "hx")),
    "any number": (Two, ("image", "*more")),
    "decorated": (Wrapped, ("image", "mask")),
    "a function": (lambda: called_by(double), ("x",)),
    "partial": (lambda: called_by(functools.partial(double)), ("x",)),
    "a compiled function": (lambda: called_by(torch.compile(double, backend="eager")), ("x",)),
    "a compiled module": (lambda: cast("nn.Module", torch.compile(Wrapped(), backend="eager")), ("image", "mask")),
    "a script": (lambda: torch.jit.script(nn.Linear(2, 2)), ("input",)),
    "a trace": (lambda: torch.jit.trace(nn.Linear(2, 2), torch.zeros(1, 2)), ("input",)),
    "a builtin": (lambda: called_by(torch.relu), ()),
    "a property that raises": (Refusing, ()),
    "a signature that raises": (lambda: called_by(Untold()), ()),
}


@pytest.mark.parametrize(("make", "names"), MODULES.values(), ids=MODULES)
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_the_parameters_of_forward_are_known(make: Callable[[], nn.Module], names: tuple[str, ...]) -> None:
    assert Signatures().of_forward(make()) == names


def test_two_modules_of_a_class_are_asked_once() -> None:
    signatures = Signatures()
    assert signatures.of_forward(nn.Linear(1, 2)) is signatures.of_forward(nn.Linear(3, 4))


class Scaled(nn.Module):
    """Says something of itself that only partly are its arguments."""

    def __init__(self, width: int, scale: float, note: str = "") -> None:
        super().__init__()
        self.width, self.factor = width, scale

    def extra_repr(self) -> str:
        return f"{self.width}, {self.factor}, none yet, factor={self.factor}"


@pytest.mark.parametrize(
    ("module", "facts"),
    [
        pytest.param(nn.Conv2d(1, 2, 3), {"in_channels": "1", "out_channels": "2", "kernel_size": "(3, 3)"}, id="conv"),
        pytest.param(nn.Embedding(5, 2), {"num_embeddings": "5", "embedding_dim": "2"}, id="embedding"),
        pytest.param(nn.BatchNorm2d(7), {"num_features": "7"}, id="norm"),
        pytest.param(nn.LayerNorm(7), {"normalized_shape": "(7,)"}, id="layer norm"),
        pytest.param(nn.LSTM(2, 3), {"input_size": "2", "hidden_size": "3"}, id="lstm"),
        pytest.param(nn.Softshrink(0.25), {"lambd": "0.25"}, id="softshrink"),
        pytest.param(Scaled(4, 0.5), {"width": "4", "factor": "0.5", "": "none yet"}, id="of its own"),
    ],
)
def test_positional_facts_have_the_names_of_the_class_arguments(module: nn.Module, facts: dict[str, str]) -> None:
    rows = module_facts(module)[0].extra_repr
    assert facts.items() <= dict(rows).items()


@pytest.mark.parametrize("batch_first", [False, True])
def test_an_attention_says_whether_samples_come_first(batch_first: bool) -> None:
    [facts, *_] = module_facts(nn.MultiheadAttention(4, 2, batch_first=batch_first))
    assert facts.extra_repr == (("batch_first", str(batch_first)),)
