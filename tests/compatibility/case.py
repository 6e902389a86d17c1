"""What a case is: a model, and the training step that is run on it."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from tests.compatibility.walk import tensors_in


@dataclass
class Training:
    """A model that is ready to be trained, and how.

    Attributes:
        model: What is watched, and compared in the end.
        step: Does one step; what it returns is compared too.
        optimizers: Whose state is compared.
        after_watch: Called once the model is watched, before the first step.
        close: Called after the last step.
        counted: What must not be more watched than unwatched, such as compilations.
        inner: The module that the record's names start from, where that is not `model` itself but what it wraps.
        options: For `watch`, always: what only this training has, such as its optimizer.
    """

    model: nn.Module
    step: Callable[[int], object]
    optimizers: Sequence[Any] = ()
    after_watch: Callable[[], object] = lambda: None
    close: Callable[[], object] = lambda: None
    counted: Callable[[], object] = lambda: None
    inner: nn.Module | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        theme: What it is about, as a heading.
        name: What is awkward about it.
        make: Builds it, after the random generators were seeded.
        steps: How many training steps are run.
        first: The number of the first step: how many updates are made before the model is watched.
        watchers: How many watch the model: each says once what it does not record.
        slow: It takes more than a second.
        needs: Optional packages that it imports.
        lacks: What else it needs and is not there; empty where all is.
        loads: What takes seconds to load, where that is not in `needs`: the cases that load it run in one process.
        traced: An oracle may run the model anew with poisoned inputs, to see which outputs are computed from them.
        options: For `watch`, where training is compared.
        hookable: Whether the test's own hooks may be there in a step; not where they would be compiled too.
        cannot: For a promise that cannot hold (`P1`, `P2`, `P3`): the reason, and what the user sees instead.
    """

    theme: str
    name: str
    make: Callable[[], Training]
    steps: int = 4
    first: int = 0
    watchers: int = 1
    slow: bool = False
    needs: tuple[str, ...] = ()
    lacks: str = ""
    loads: str = ""
    traced: bool = True
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    hookable: bool = True
    cannot: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def missing(self) -> str:
        """Why it cannot be run here; empty where it can."""
        absent = [name for name in self.needs if importlib.util.find_spec(name) is None]
        return f"{', '.join(absent)} is not installed" if absent else self.lacks

    def why_not(self, promise: str) -> str:
        """Why a promise cannot hold; empty where it can. A training that is disturbed is so with tensors kept, too."""
        return self.cannot.get("P1" if promise == "kept" else promise, "")

    @property
    def id(self) -> str:
        return f"{self.theme}: {self.name}"


class Table:
    """Collects the cases of one theme, in the order in which they are written."""

    def __init__(self, theme: str) -> None:
        self.theme = theme
        self.cases: list[Case] = []

    def __call__(self, name: str, **options: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        """Decorate a function that makes a `Training`, or makes a model and its arguments for `trained`."""

        def add(make: Callable[[], Any]) -> Callable[[], Any]:
            self.cases.append(Case(self.theme, name, lambda: _as_training(make()), **options))
            return make

        return add


def _as_training(made: Any) -> Training:
    return made if isinstance(made, Training) else trained(*made)


def trained(
    model: nn.Module,
    arguments: Callable[[], Any],
    *,
    optimizer: Callable[..., Any] | None = None,
    loss: Callable[[Any], Tensor] | None = None,
) -> Training:
    """The usual step: forward, loss, backward, optimizer.

    Args:
        model: The model.
        arguments: Makes the step's arguments: one tensor, a tuple of positional ones, or a dict of keyword ones.
        optimizer: Its class or maker; SGD with momentum by default. Made in the first step, if parameters are lazy.
        loss: Of what the model returned; by default the mean square of all that has a gradient.
    """
    optimizers: list[Any] = []
    if not any(map(is_lazy, model.parameters())):
        optimizers.append((optimizer or sgd)([p for p in model.parameters() if p.requires_grad]))

    def step(_number: int) -> Tensor:
        out = call(model, arguments())
        found = (loss or loss_of)(out)
        if not optimizers:
            optimizers.append((optimizer or sgd)([p for p in model.parameters() if p.requires_grad]))
        optimizers[0].zero_grad()
        found.backward()
        optimizers[0].step()
        return found.detach()

    return Training(model, step, optimizers)


def call(model: Callable[..., Any], arguments: Any) -> Any:
    """Call `model` with one argument, a tuple of positional ones, or a dict of keyword ones."""
    if isinstance(arguments, dict):
        return model(**arguments)
    plain_tuple = type(arguments) is tuple
    return model(*arguments) if plain_tuple else model(arguments)


def sgd(parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
    """What most cases are trained with."""
    return torch.optim.SGD(list(parameters), lr=0.05, momentum=0.9)


def loss_of(output: object) -> Tensor:
    """The mean square of every tensor in `output` that has a gradient."""
    with_gradient = [tensor for _, tensor in tensors_in(output) if tensor.requires_grad]
    return sum((mean_square(tensor) for tensor in with_gradient), torch.zeros(()))


def mean_square(tensor: Tensor) -> Tensor:
    """Of a tensor of any layout or type."""
    if tensor.is_nested:
        tensor = torch.cat([part.reshape(-1) for part in tensor.unbind()])
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.float().square().mean() if tensor.numel() else tensor.float().sum()


def module(forward: Callable[..., Any], **parts: Any) -> Any:
    """A module with `parts` and a `forward(self, ...)`, for cases of a line or two."""

    class Made(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

    Made.forward = forward
    Made.__qualname__ = Made.__name__ = _title(forward)
    return Made()


def _title(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "Made")
    return "Made" if name == "<lambda>" or not inspect.isfunction(function) else name.strip("_").title()
