"""Tensors that are changed after they were made."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.compatibility.case import Table, module

case = Table("in-place")


def _x(*shape: int) -> Any:
    return lambda: torch.randn(*(shape or (4, 6)))


@case("activations and a residual addition")
def _() -> Any:
    def residual(self: Any, x: Tensor) -> Tensor:
        y = self.relu(self.norm(self.conv(x)))
        y = self.conv2(y)
        y += x
        return self.relu(y).mean((2, 3))

    parts = {"conv": nn.Conv2d(3, 3, 3, padding=1), "norm": nn.BatchNorm2d(3), "relu": nn.ReLU(inplace=True)}
    return module(residual, **parts, conv2=nn.Conv2d(3, 3, 1)), _x(2, 3, 5, 5)


@case("every in-place activation in a chain")
def _() -> Any:
    chain: list[nn.Module] = [nn.Linear(6, 6)]
    for make in (nn.ReLU6, nn.ELU, nn.SiLU, nn.Hardswish, nn.LeakyReLU, nn.CELU, nn.Mish, nn.SELU):
        chain += [make(inplace=True), nn.Linear(6, 6)]
    return nn.Sequential(*chain, nn.Dropout(0.2, inplace=True)), _x()


@case("a chain of in-place arithmetic on a module's output")
def _() -> Any:
    def chain(self: Any, x: Tensor) -> Tensor:
        return self.b(self.a(x).mul_(2).add_(x).sub_(0.1).clamp_(-0.9).tanh_())

    return module(chain, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case("a write into a view of a module's output")
def _() -> Any:
    def view(self: Any, x: Tensor) -> Tensor:
        y = self.a(x).tanh() + 0
        y[:, :2].mul_(3)
        y[0].zero_()
        return self.b(y)

    return module(view, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case("a write into the base after a module saw the view")
def _() -> Any:
    def base(self: Any, x: Tensor) -> Tensor:
        y = self.a(x) * 1
        z = self.same(y[:, :3])
        y.mul_(2)
        return self.b(torch.cat([y, z], 1))

    return module(base, a=nn.Linear(6, 6), same=nn.Identity(), b=nn.Linear(9, 2)), _x()


def _summed(self: Any, view: Tensor, base: Tensor) -> Tensor:
    """Uses the base three times before the view, so that the order in which their gradients are added shows."""
    scaled = (base * 1.7).tanh().sum() * 0.77
    return base.sin().sum() + base.cos().sum() * 1.3 + scaled + view.exp().square().sum()


@case("a view given to a module after its memory was written to")
def _() -> Any:
    def stale(self: Any, x: Tensor) -> Tensor:
        y = self.a(x)
        view = y[:, :5]
        y.mul_(1.1)
        return self.sum(view, y)

    return module(stale, a=nn.Linear(7, 7), sum=module(_summed)), lambda: torch.randn(64, 7)


@case("a view returned by a module after its memory was written to")
def _() -> Any:
    def stale(self: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.a(x)
        view = y[:, :5]
        y.mul_(1.1)
        return view, y

    halves = module(stale, a=nn.Linear(7, 7))
    return module(lambda self, x: self.sum(*self.halves(x)), halves=halves, sum=module(_summed)), _x(64, 7)


@case("a model that returns only a view after its memory was written to")
def _() -> Any:
    def stale(self: Any, x: Tensor) -> Tensor:
        y = self.a(x)
        view = y[:, :5]
        y.mul_(1.1)
        return view

    return module(stale, a=nn.Linear(7, 7)), _x(64, 7)


@case("a module that writes into its input")
def _() -> Any:
    def writes(self: Any, x: Tensor) -> Tensor:
        y = self.a(x) * 1
        self.inner(y)
        return self.b(y)

    def fill(self: Any, x: Tensor) -> None:
        x[:, 0] = self.lin(x[:, 1:3].clone())[:, 0]

    return module(writes, a=nn.Linear(6, 6), inner=module(fill, lin=nn.Linear(2, 1)), b=nn.Linear(6, 2)), _x()


@case("chunks, splits and unbound parts that are changed later")
def _() -> Any:
    def parts(self: Any, x: Tensor) -> Tensor:
        a, b = self.halves(self.a(x))
        c, d = self.a(x).unsafe_split(3, 1)
        rows = self.a(x).clone().unsafe_chunk(2, 0)
        rows[0].mul_(2)
        return self.b(torch.cat([a * 2, b.relu(), c.mul_(2), d.sigmoid_()], 1)).sum() + rows[0].sum() + rows[1].sum()

    def halves(self: Any, x: Tensor) -> tuple[Tensor, ...]:
        return x.chunk(2, 1)

    return module(parts, a=nn.Linear(6, 6), halves=module(halves), b=nn.Linear(12, 2)), _x()


@case("out= of a buffer kept by the module")
def _() -> Any:
    def out(self: Any, x: Tensor) -> Tensor:
        with torch.no_grad():
            torch.mul(x, 2, out=self.scratch)
        return self.a(self.scratch) + self.a(x)

    model = module(out, a=nn.Linear(6, 2))
    model.register_buffer("scratch", torch.zeros(4, 6))
    return model, _x()


@case("a buffer and a frozen weight updated within forward")
def _() -> Any:
    def average(self: Any, x: Tensor) -> Tensor:
        y = self.a(x)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(y.mean(0), alpha=0.1)
            self.slow.weight.lerp_(self.a.weight, 0.1)
        self.count += 1
        return y - self.mean + self.slow(x)

    model = module(average, a=nn.Linear(6, 6), slow=nn.Linear(6, 6).requires_grad_(False))
    model.register_buffer("mean", torch.zeros(6))
    model.register_buffer("count", torch.tensor(0))
    return model, _x()


@case("an index assignment, a masked fill and a scatter")
def _() -> Any:
    def assign(self: Any, x: Tensor) -> Tensor:
        y = self.a(x).clone()
        y[torch.tensor([0, 2])] = self.b(x)[:2]
        y = y.masked_fill_(x > 1, 0.0)
        z = torch.zeros(4, 6).scatter_(1, torch.arange(6).expand(4, 6), y)
        z.index_add_(0, torch.tensor([1]), self.b(x)[:1])
        return z

    return module(assign, a=nn.Linear(6, 6), b=nn.Linear(6, 6)), _x()


@case("requires_grad_ switched on within forward")
def _() -> Any:
    def energy(self: Any, x: Tensor) -> Tensor:
        x = x.requires_grad_()
        value = self.a(x).tanh().sum()
        (force,) = torch.autograd.grad(value, x, create_graph=True)
        return self.b(force)

    return module(energy, a=nn.Linear(6, 6), b=nn.Linear(6, 1)), _x()


@case("detach_ and data")
def _() -> Any:
    def detach(self: Any, x: Tensor) -> Tensor:
        y = (self.a(x) * 2).detach_()
        z = self.a(x)
        z.data.mul_(0.5)
        return self.b(y) + self.b(z)

    return module(detach, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case("an in-place activation right on the model's input")
def _() -> Any:
    return nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 2)), _x()


@case("a preallocated result filled step by step")
def _() -> Any:
    def fill(self: Any, x: Tensor) -> Tensor:
        result = x.new_zeros(3, 4, 6)
        for i in range(3):
            x = self.cell(x)
            result[i] = x
        return result

    return module(fill, cell=nn.Linear(6, 6)), _x()


@case("functional in-place with normalisation")
def _() -> Any:
    def norm(self: Any, x: Tensor) -> Tensor:
        x = functional.normalize(self.a(x), dim=1, out=None)
        return self.b(functional.relu_(functional.layer_norm(x, (6,))))

    return module(norm, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()
