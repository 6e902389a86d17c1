"""How the model is put together, and how that changes while it trains."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune

from tests.compatibility.case import Table, Training, module, sgd, trained

case = Table("structure")


def _x(*shape: int) -> Any:
    return lambda: torch.randn(*(shape or (4, 6)))


@case("one module under two names, and called twice")
def _() -> Any:
    shared = nn.Linear(6, 6)
    return module(lambda self, x: self.b(self.a(x).relu()), a=shared, b=shared), _x()


class Recursive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 6)

    def forward(self, x: Tensor, depth: int = 0) -> Tensor:
        y = self.a(x)
        return self(y.tanh(), depth + 1) if depth < 2 else y


@case("a model that calls itself")
def _() -> Any:
    return Recursive(), _x()


@case("a submodule that calls itself")
def _() -> Any:
    return nn.Sequential(nn.Linear(6, 6), Recursive()), _x()


@case("tied embeddings")
def _() -> Any:
    def tied(self: Any, tokens: Tensor) -> Tensor:
        return self.head(self.mix(self.embed(tokens)))

    model = module(tied, embed=nn.Embedding(11, 6), mix=nn.Linear(6, 6), head=nn.Linear(6, 11, bias=False))
    model.head.weight = model.embed.weight
    return model, lambda: torch.randint(0, 11, (3, 5))


@case("a ModuleList by index and a ModuleDict by key")
def _() -> Any:
    def pick(self: Any, x: Tensor) -> Tensor:
        for i in (2, 0):
            x = self.list[i](x)
        return self.dict["one"](x) + self.dict["two"](x)

    parts = nn.ModuleDict({"one": nn.Linear(6, 2), "two": nn.Linear(6, 2)})
    return module(pick, list=nn.ModuleList(nn.Linear(6, 6) for _ in range(3)), dict=parts), _x()


@case("names with dots' cousins: empty containers, digits, spaces")
def _() -> Any:
    def odd(self: Any, x: Tensor) -> Tensor:
        return self.get_submodule("with space")(x) + getattr(self, "ünïcode<b>")(x) + getattr(self, "a/b")(x)

    parts: dict[str, nn.Module] = {name: nn.Linear(6, 2) for name in ("with space", "ünïcode<b>", "a/b")}
    return module(odd, **parts, empty=nn.ModuleList(), none=nn.Sequential()), _x()


@case("a submodule that is None")
def _() -> Any:
    model = module(lambda self, x: self.a(x) if self.down is None else self.down(x), a=nn.Linear(6, 2))
    model.register_module("down", None)
    model.register_parameter("bias", None)
    return model, _x()


@case("lazy modules")
def _() -> Any:
    model = nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.LazyBatchNorm1d(), nn.LazyLinear(2))
    return trained(model, _x())


@case("weight norm and spectral norm by parametrization")
def _() -> Any:
    model = nn.Sequential(
        parametrizations.weight_norm(nn.Linear(6, 6)),
        nn.Tanh(),
        parametrizations.spectral_norm(nn.Linear(6, 6)),
        parametrizations.orthogonal(nn.Linear(6, 6)),
    )
    return model, _x()


class Symmetric(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.triu() + x.triu(1).transpose(-1, -2)


@case("a parametrization of the user's own, cached")
def _() -> Any:
    model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6))
    parametrize.register_parametrization(model[0], "weight", Symmetric())
    training = trained(model, _x())
    plain = training.step

    def step(number: int) -> object:
        with parametrize.cached():
            return plain(number)

    training.step = step
    return training


@case("weight norm and spectral norm by hooks")
def _() -> Any:
    from torch.nn.utils import spectral_norm, weight_norm

    return nn.Sequential(weight_norm(nn.Linear(6, 6)), spectral_norm(nn.Linear(6, 2))), _x()


@case("pruned weights")
def _() -> Any:
    model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 2))
    prune.random_unstructured(model[0], "weight", amount=0.3)
    return model, _x()


@case("a ParameterList and a ParameterDict")
def _() -> Any:
    def pick(self: Any, x: Tensor) -> Tensor:
        return x @ self.list[0] @ self.list[1] + self.dict["bias"]

    weights = nn.ParameterList([nn.Parameter(torch.randn(6, 6)), nn.Parameter(torch.randn(6, 2))])
    return module(pick, list=weights, dict=nn.ParameterDict({"bias": nn.Parameter(torch.zeros(2))})), _x()


def _changing(model: nn.Module, change: Any) -> Training:
    """Trains, and lets `change` act on the model before each step."""

    def step(number: int) -> object:
        change(model, number)
        for parameter in model.parameters():
            parameter.grad = None
        loss = model(torch.randn(4, 6)).square().mean()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad, alpha=0.1)
        return loss.detach()

    return Training(model, step)


@case("modules added while training", steps=6)
def _() -> Any:
    def change(model: Any, number: int) -> None:
        if number in (2, 4):
            model.append(nn.Linear(6, 6))

    return _changing(nn.Sequential(nn.Linear(6, 6)), change)


@case("modules replaced while training", steps=6)
def _() -> Any:
    def change(model: Any, number: int) -> None:
        if number == 3:
            model[1] = nn.Sequential(nn.Linear(6, 6), nn.Tanh())

    return _changing(nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6)), change)


@case("modules removed while training", steps=6)
def _() -> Any:
    def change(model: Any, number: int) -> None:
        if number == 3:
            del model[1]

    return _changing(nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)), change)


@case("a module made, called and dropped within forward", steps=3)
def _() -> Any:
    def grow(self: Any, x: Tensor) -> Tensor:
        fresh = nn.Linear(6, 6)
        self.fresh = fresh
        y = self.a(fresh(x))
        del self.fresh
        return y

    return _changing(module(grow, a=nn.Linear(6, 2)), lambda *_: None)


@case("layers frozen and thawed between steps", steps=6)
def _() -> Any:
    def change(model: Any, number: int) -> None:
        model[0].requires_grad_(number % 2 == 0)
        model[2].weight.requires_grad_(number % 3 == 0)

    return _changing(nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2)), change)


@case("layers unfrozen one after the other, from the last one", steps=6)
def _() -> Any:
    def change(model: Any, number: int) -> None:
        for at, layer in enumerate(model):
            layer.requires_grad_(at >= len(model) - 1 - number)

    return _changing(nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, 2)), change)


@case("parameters replaced between steps", steps=6)
def _() -> Any:
    def change(model: Any, number: int) -> None:
        model[0].weight = nn.Parameter(torch.randn(6, 6))

    return _changing(nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 2)), change)


@case("moved to another type while training", steps=6)
def _() -> Any:
    model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 2))

    def step(number: int) -> object:
        dtype = torch.float64 if number % 2 else torch.float32
        model.to(dtype)
        model.zero_grad()
        loss = model(torch.randn(4, 6, dtype=dtype)).square().mean()
        loss.backward()
        return loss.detach()

    return Training(model, step)


@case("a module whose forward is called directly")
def _() -> Any:
    return module(lambda self, x: self.b(self.a.forward(x)), a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case("a module with a __call__ of its own")
def _() -> Any:
    class Called(nn.Linear):
        def __call__(self, x: Tensor) -> Tensor:
            return super().__call__(x) * 2

    return nn.Sequential(Called(6, 6), nn.Linear(6, 2)), _x()


@case("modules that are false, raise in extra_repr or in __getattr__")
def _() -> Any:
    class False_(nn.Linear):
        def __bool__(self) -> bool:
            return False

        def extra_repr(self) -> str:
            raise RuntimeError("unprintable")

        def __repr__(self) -> str:
            return "False_()"

    class Strict(nn.Linear):
        def __getattr__(self, name: str) -> Any:
            if name in ("__wrapped__", "_orig_mod", "module"):
                raise RuntimeError(f"nobody asks for {name}")
            return super().__getattr__(name)

    return nn.Sequential(False_(6, 6), Strict(6, 2)), _x()


@case("modules that draw random numbers in extra_repr")
def _() -> Any:
    class Drawn(nn.Linear):
        def extra_repr(self) -> str:
            return f"such as {torch.rand(()).item():.1f}, {random.random():.1f} and {np.random.rand():.1f}"

        def forward(self, x: Tensor) -> Tensor:
            noise = torch.rand(()).item() + random.random() + np.random.rand()
            return super().forward(x) * noise

    return nn.Sequential(Drawn(6, 6), nn.Dropout(), Drawn(6, 2)), _x()


class Noisy(nn.Linear):
    """As in a Bayesian network, the bias is drawn each time it is read. torch prints whether there is one."""

    def __init__(self) -> None:
        super().__init__(6, 6, bias=False)
        self.is_made = True

    def __getattr__(self, name: str) -> Any:
        return torch.randn(6) if name == "bias" and "is_made" in self.__dict__ else super().__getattr__(name)


@case("a module whose attribute draws random numbers, also when torch prints it")
def _() -> Any:
    return nn.Sequential(Noisy(), nn.Linear(6, 2)), _x()


@case("a model without submodules")
def _() -> Any:
    return nn.Linear(6, 2), _x()


@case("sixty levels deep")
def _() -> Any:
    model: nn.Module = nn.Linear(6, 6)
    for _ in range(60):
        model = nn.Sequential(model)
    return model, _x()


@case("a hundred calls of one module", steps=2)
def _() -> Any:
    def loop(self: Any, x: Tensor) -> Tensor:
        for _ in range(100):
            x = x + 0.01 * self.a(x)
        return x

    return module(loop, a=nn.Linear(6, 6)), _x()


@case("a module called by another that does not own it")
def _() -> Any:
    class Borrower(nn.Module):
        def __init__(self, owner: list[Any]) -> None:
            super().__init__()
            self.owner = owner

        def forward(self, x: Tensor) -> Tensor:
            return self.owner[0].a(x)

    model = module(lambda self, x: self.borrower(self.a(x)), a=nn.Linear(6, 6))
    model.borrower = Borrower([model])
    return model, _x()


@case("a module outside of the model called within it")
def _() -> Any:
    outside = [nn.Linear(6, 6)]
    return module(lambda self, x: self.a(outside[0](x)), a=nn.Linear(6, 2)), _x()


@case("only a part of the model is watched")
def _() -> Any:
    whole = nn.Sequential(nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True)), nn.Linear(6, 2))
    optimizer = sgd(whole.parameters())

    def step(_number: int) -> object:
        optimizer.zero_grad()
        loss = whole(torch.randn(4, 6)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(whole[1], step, [optimizer])


@case("a tensor left in an attribute of a sibling, across steps", steps=4, traced=False)
def _() -> Any:
    def memory(self: Any, x: Tensor) -> Tensor:
        before = getattr(self, "kept", None)
        y = self.a(x) if before is None else self.a(x + before)
        self.kept = y.detach()
        return self.b(y)

    return module(memory, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()
