"""torch.compile, before and after the model is watched.

Every other step is logged, and what dynamo counted in the end is part of what is compared: not one graph break and not
one compilation more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tests.compatibility.case import Table, Training, module, sgd, trained

case = Table("compiled")

OPTIONS: dict[str, Any] = {"slow": True, "hookable": False, "traced": False, "options": {"log_freq": 2}}

LATE = {
    "P2": "The hook that begins a step is compiled into the model, where it may do nothing. Nothing is recorded; the "
    "warning at the end says so, and to watch what torch.compile returned."
}


def _net() -> Any:
    """Not a Sequential: dynamo leaves one alone that has no hooks and is compiled in place."""

    def net(self: Any, x: Tensor) -> Tensor:
        return self.c(self.b(self.a(x)))

    return module(net, a=nn.Linear(6, 6), b=nn.ReLU(inplace=True), c=nn.Linear(6, 2))


def _compiled(
    model: nn.Module, *, late: bool = False, inner: nn.Module | None = None, compiling: Callable[..., Any] | None = None
) -> Training:
    """Trains what `compiling` makes of `model`: before it is watched, or after if `late`."""
    import torch._dynamo

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiling = compiling or (lambda model: torch.compile(model, backend="aot_eager"))
    called = [model if late else compiling(model)]
    optimizer = sgd(model.parameters())

    def step(_number: int) -> object:
        optimizer.zero_grad()
        loss = called[0](torch.randn(4, 6)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def compile_now() -> None:
        if late:
            called[0] = compiling(model)

    watched = model if late or not isinstance(called[0], nn.Module) else called[0]
    return Training(watched, step, [optimizer], after_watch=compile_now, counted=_counted, inner=inner or model)


def _counted() -> object:
    """Graph breaks, and graphs that were compiled."""
    from torch._dynamo.utils import counters

    return dict(counters["graph_break"]), counters["stats"]["unique_graphs"]


@case("the whole model, then watched", **OPTIONS)
def _() -> Any:
    return _compiled(_net())


@case("watched, then the whole model", cannot=LATE, **OPTIONS)
def _() -> Any:
    return _compiled(_net(), late=True)


@case("the whole model, fullgraph", **OPTIONS)
def _() -> Any:
    return _compiled(_net(), compiling=lambda model: torch.compile(model, backend="aot_eager", fullgraph=True))


@case("a part of the model", **OPTIONS)
def _() -> Any:
    model = module(lambda self, x: self.a(self.b(x)), a=nn.Linear(2, 2))
    model.b = torch.compile(_net(), backend="aot_eager")
    return _compiled(model, late=True, compiling=lambda model: model)


@case("in place, with module.compile()", cannot=LATE, **OPTIONS)
def _() -> Any:
    def compiling(model: nn.Module) -> nn.Module:
        model.compile(backend="aot_eager")
        return model

    return _compiled(_net(), compiling=compiling)


@case("watched, then compiled in place with module.compile()", cannot=LATE, **OPTIONS)
def _() -> Any:
    def compiling(model: nn.Module) -> nn.Module:
        model.compile(backend="aot_eager")
        return model

    return _compiled(_net(), late=True, compiling=compiling)


@case("a compiled function within the model", **OPTIONS)
def _() -> Any:
    @torch.compile(backend="aot_eager")
    def gelu(x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.7 * x)

    model = module(lambda self, x: self.b(gelu(self.a(x))), a=nn.Linear(6, 6), b=nn.Linear(6, 2))
    return _compiled(model, late=True, compiling=lambda model: model)


@case("a model with a graph break", **OPTIONS)
def _() -> Any:
    def broken(self: Any, x: Tensor) -> Tensor:
        y = self.a(x)
        torch._dynamo.graph_break()
        return self.b(y.relu())

    return _compiled(module(broken, a=nn.Linear(6, 6), b=nn.Linear(6, 2)))


@case("a second instance of a class that is compiled already", **OPTIONS)
def _() -> Any:
    first: Any = torch.compile(_net(), backend="aot_eager")
    training = _compiled(_net())
    plain = training.step

    def step(number: int) -> object:
        first(torch.ones(4, 6)).sum().backward()
        return plain(number)

    training.step = step
    return training


@case("exported by torch.export while it is watched", slow=True, hookable=False, traced=False)
def _() -> Any:
    training = trained(_net(), lambda: torch.randn(4, 6))
    plain = training.step

    def step(number: int) -> object:
        exported = torch.export.export(training.model, (torch.ones(2, 6),))
        return plain(number), str(exported.graph), exported.module()(torch.ones(2, 6)).detach()

    training.step = step
    return training
