"""torch.compile, before and after the model is watched.

Every other step is logged, and what dynamo counted in the end is part of what is compared: not one graph break and not
one compilation more.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from tests.compatibility.case import Table, Training, module, sgd, trained

case = Table("compiled")

OPTIONS: dict[str, Any] = {"slow": True, "hookable": False, "traced": False, "options": {"log_freq": 2}}

IN_A_FUNCTION = {
    "P2": "The user's function around the model is compiled, and it cannot be changed for a step that is to be "
    "logged. Nothing is recorded; the warning at the end says so, and advises to compile the model instead."
}

NO_COMPILER = "" if any(map(shutil.which, ("g++", "clang++", "c++"))) else "no C++ compiler is installed"

DEFAULT_BACKEND: dict[str, Any] = {**OPTIONS, "lacks": NO_COMPILER, "loads": "default backend"}


def net() -> Any:
    """A small one. Not a Sequential: dynamo leaves one alone that has no hooks and is compiled in place."""

    def forward(self: Any, x: Tensor) -> Tensor:
        return self.c(self.b(self.a(x)))

    return module(forward, a=nn.Linear(6, 6), b=nn.ReLU(inplace=True), c=nn.Linear(6, 2))


Compiling: TypeAlias = "Callable[[Any], Any]"
"""Compiles a module; returns what is called in its place."""


def wrapped(model: Any, **options: Any) -> Any:
    """By `torch.compile`, by default with the fastest backend that computes the same by bytes."""
    return torch.compile(model, **{"backend": "eager", "fullgraph": True, **options})


def with_autograd(model: Any) -> Any:
    """With the backend that computes the same and, as the default one does, traces backward ahead of time."""
    return wrapped(model, backend="aot_eager")


def in_place(model: Any) -> Any:
    """By `Module.compile`."""
    model.compile(backend="eager", fullgraph=True)
    return model


Forward: TypeAlias = "Callable[[Any, int], Tensor]"
"""Calls what was compiled, in a numbered step."""


def four_samples(called: Any, _number: int) -> Any:
    """A batch that is always as large."""
    return called(torch.randn(4, 6))


def compiled(
    model: nn.Module,
    compiling: Compiling = wrapped,
    *,
    late: bool = False,
    watched: nn.Module | None = None,
    forward: Forward = four_samples,
) -> Training:
    """Trains what `compiling` makes of `model`: before it is watched, or after if `late`.

    What is watched is `watched`, by default what is called.
    """
    import torch._dynamo

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    called = [model if late else compiling(model)]
    optimizer = sgd(model.parameters())

    def step(number: int) -> object:
        optimizer.zero_grad()
        loss = forward(called[0], number).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def compile_now() -> None:
        if late:
            called[0] = compiling(model)

    inner = watched or model
    return Training(watched or called[0], step, [optimizer], after_watch=compile_now, counted=_counted, inner=inner)


def _counted() -> object:
    """Graph breaks, and graphs that were compiled."""
    from torch._dynamo.utils import counters

    return dict(counters["graph_break"]), counters["stats"]["unique_graphs"]


@case("the whole model, then watched", **OPTIONS)
def _() -> Any:
    return compiled(net(), with_autograd)


@case("the whole model, then watched itself, not what torch.compile returned", **OPTIONS)
def _() -> Any:
    model = net()
    return compiled(model, watched=model)


@case("watched, then the whole model", **OPTIONS)
def _() -> Any:
    return compiled(net(), with_autograd, late=True)


@case("in place, then watched", **OPTIONS)
def _() -> Any:
    return compiled(net(), in_place)


@case("watched, then in place", **OPTIONS)
def _() -> Any:
    return compiled(net(), in_place, late=True)


@case("watched, then a larger module around it", **OPTIONS)
def _() -> Any:
    model = net()
    larger = module(lambda self, x: self.model(self.first(x)), first=nn.Linear(6, 6), model=model)
    return compiled(larger, late=True, watched=model)


@case("watched, then a larger module around it in place", **OPTIONS)
def _() -> Any:
    model = net()
    larger = module(lambda self, x: self.model(self.first(x)), first=nn.Linear(6, 6), model=model)
    return compiled(larger, in_place, late=True, watched=model)


def with_part() -> Any:
    """A model of which a part can be compiled."""
    return module(lambda self, x: self.a(self.b(x)), a=nn.Linear(2, 2), b=net())


def part(model: Any) -> Any:
    """Compiles a submodule only."""
    model.b = wrapped(model.b)
    return model


def part_in_place(model: Any) -> Any:
    """The same in place."""
    in_place(model.b)
    return model


@case("a part of the model", **OPTIONS)
def _() -> Any:
    return compiled(with_part(), part)


@case("watched, then a part of the model", **OPTIONS)
def _() -> Any:
    return compiled(with_part(), part, late=True)


@case("a part of the model in place", **OPTIONS)
def _() -> Any:
    return compiled(with_part(), part_in_place)


@case("watched, then a part of the model in place", **OPTIONS)
def _() -> Any:
    return compiled(with_part(), part_in_place, late=True)


@case("its forward method only", **OPTIONS)
def _() -> Any:
    def compiling(model: Any) -> Any:
        model.forward = wrapped(model.forward)
        return model

    training = compiled(net(), compiling, late=True)
    training.close = lambda: delattr(training.model, "forward")
    return training


@case("a function that calls the model", cannot=IN_A_FUNCTION, **OPTIONS)
def _() -> Any:
    def compiling(model: Any) -> Any:
        def predict(x: Tensor) -> Any:
            return model(x)

        return wrapped(predict)

    return compiled(net(), compiling, late=True)


@case("a compiled function within the model", **OPTIONS)
def _() -> Any:
    @torch.compile(backend="eager")
    def gelu(x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.7 * x)

    model = module(lambda self, x: self.b(gelu(self.a(x))), a=nn.Linear(6, 6), b=nn.Linear(6, 2))
    return compiled(model, lambda model: model)


def broken() -> Any:
    """A model that dynamo compiles in two pieces."""

    def forward(self: Any, x: Tensor) -> Tensor:
        y = self.a(x)
        torch._dynamo.graph_break()
        return self.b(y.relu())

    return module(forward, a=nn.Linear(6, 6), b=nn.Linear(6, 2))


@case("a model with a graph break", **OPTIONS)
def _() -> Any:
    return compiled(broken(), lambda model: wrapped(model, fullgraph=False))


@case("watched, then a model with a graph break", **OPTIONS)
def _() -> Any:
    return compiled(broken(), lambda model: wrapped(model, fullgraph=False), late=True)


def _after_another(another: Any) -> Forward:
    """Calls `another` before each step."""

    def forward(called: Any, number: int) -> Any:
        another(torch.ones(4, 6)).sum().backward()
        return four_samples(called, number)

    return forward


@case("a second instance of a class that is compiled already", **OPTIONS)
def _() -> Any:
    return compiled(net(), forward=_after_another(wrapped(net())))


@case("watched, then a second instance of a class that is compiled already", **OPTIONS)
def _() -> Any:
    return compiled(net(), late=True, forward=_after_another(wrapped(net())))


@case("watched, then a second instance in place", **OPTIONS)
def _() -> Any:
    return compiled(net(), in_place, late=True, forward=_after_another(in_place(net())))


@case("batches of varying length", **OPTIONS)
def _() -> Any:
    return compiled(net(), late=True, forward=lambda called, number: called(torch.randn(2 + number, 6)))


def evaluating(called: Any, number: int) -> Any:
    """An evaluation, and a batch to train on."""
    called.eval()
    with torch.no_grad():
        four_samples(called, number)
    called.train()
    return four_samples(called, number)


@case("evaluation between the steps", **OPTIONS)
def _() -> Any:
    return compiled(net(), late=True, forward=evaluating)


@case("an exception in a step that is logged", **OPTIONS)
def _() -> Any:
    def forward(called: Any, number: int) -> Any:
        with suppress(RuntimeError):
            called(torch.randn(4, 5))
        return four_samples(called, number)

    return compiled(net(), late=True, forward=forward)


def _as_logged(called: Any, number: int) -> Any:
    """Every other step runs as it was written, as it does when it is logged: compiled code rounds differently."""
    with torch.compiler.set_stance("default" if number % 2 else "force_eager"):
        return four_samples(called, number)


@case("the default backend, whose logged steps run as written unwatched, too", **DEFAULT_BACKEND)
def _() -> Any:
    return compiled(net(), lambda model: wrapped(model, backend="inductor"), forward=_as_logged)


@case("watched, then with the default backend, as in the last case", **DEFAULT_BACKEND)
def _() -> Any:
    return compiled(net(), lambda model: wrapped(model, backend="inductor"), late=True, forward=_as_logged)


@case("exported by torch.export while it is watched", slow=True, hookable=False, traced=False)
def _() -> Any:
    training = trained(net(), lambda: torch.randn(4, 6))
    plain = training.step

    def step(number: int) -> object:
        exported = torch.export.export(training.model, (torch.ones(2, 6),))
        return plain(number), str(exported.graph), exported.module()(torch.ones(2, 6)).detach()

    training.step = step
    return training
