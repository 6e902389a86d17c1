"""Control flow that changes from step to step."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import Tensor, nn

from tests.compatibility.case import Table, module

case = Table("control flow")


def _x(*shape: int) -> Any:
    return lambda: torch.randn(*(shape or (4, 6)))


@case("branches that alternate", steps=8)
def _() -> Any:
    def branch(self: Any, x: Tensor) -> Tensor:
        self.count += 1
        return self.a(x) if self.count % 2 else self.b(self.b(x))

    model = module(branch, a=nn.Linear(6, 6), b=nn.Linear(6, 6))
    model.count = 0
    return model, _x()


@case("loops of varying length", steps=10)
def _() -> Any:
    def loop(self: Any, x: Tensor) -> Tensor:
        for _ in range(random.randint(1, 3)):
            x = self.cell(x).tanh()
        return self.head(x)

    return module(loop, cell=nn.Linear(6, 6), head=nn.Linear(6, 2)), _x()


@case("sequences and batches of varying length", steps=8)
def _() -> Any:
    return module(lambda self, x: self.b(self.a(x)[0]), a=nn.GRU(6, 4), b=nn.Linear(4, 2)), lambda: torch.randn(
        random.randint(2, 7), random.randint(1, 5), 6
    )


@case("early exit", steps=8)
def _() -> Any:
    def early(self: Any, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x).relu()
            if x.mean() > 0.25:
                return x
        return self.head(x)

    layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
    return module(early, layers=layers, head=nn.Linear(6, 6)), _x()


@case("a mixture of experts, some of them idle", steps=8)
def _() -> Any:
    def experts(self: Any, x: Tensor) -> Tensor:
        weight, chosen = self.gate(x).softmax(-1).topk(1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (chosen == i).any(-1).nonzero().squeeze(-1)
            if len(rows):
                out.index_add_(0, rows, expert(x[rows]) * weight[rows])
        return out

    return module(experts, gate=nn.Linear(6, 4), experts=nn.ModuleList(nn.Linear(6, 6) for _ in range(4))), _x(3, 6)


@case("experts that are given nothing")
def _() -> Any:
    def experts(self: Any, x: Tensor) -> Tensor:
        chosen = self.gate(x).argmax(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            out[chosen == i] = expert(x[chosen == i])
        return out

    return module(experts, gate=nn.Linear(6, 9), experts=nn.ModuleList(nn.Linear(6, 6) for _ in range(9))), _x(3, 6)


@case("layers dropped at random", steps=8)
def _() -> Any:
    def drop(self: Any, x: Tensor) -> Tensor:
        for layer in self.layers:
            if not self.training or torch.rand(()) > 0.4:
                x = x + layer(x)
        return self.head(x)

    return module(drop, layers=nn.ModuleList(nn.Linear(6, 6) for _ in range(3)), head=nn.Linear(6, 2)), _x()


@case("a way that is never taken again", steps=5)
def _() -> Any:
    def once(self: Any, x: Tensor) -> Tensor:
        self.count += 1
        return self.a(x) + (self.b(x) if self.count == 3 else 0)

    model = module(once, a=nn.Linear(6, 6), b=nn.Linear(6, 6))
    model.count = 0
    return model, _x()


@case("modules called in an order that changes", steps=8)
def _() -> Any:
    def order(self: Any, x: Tensor) -> Tensor:
        for i in torch.randperm(3).tolist():
            x = self.layers[i](x).tanh()
        return x

    return module(order, layers=nn.ModuleList(nn.Linear(6, 6) for _ in range(3))), _x()


@case("torch.cond, whose branches read parameters and tensors of the model", slow=True)
def _() -> Any:
    def conditional(self: Any, x: Tensor) -> Tensor:
        h, side = self.a(x), self.side(x)
        y = torch.cond(h.sum() > 0, lambda h: h.sin() * self.a.bias, lambda h: (h + side).cos(), (h,))
        with torch.no_grad():
            shift = torch.cond(x.sum() > 0, lambda x: x + side, lambda x: x - side, (x,))
        return self.b(y + shift)

    return module(conditional, a=nn.Linear(6, 6), side=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case("torch.while_loop, which reads a parameter", slow=True)
def _() -> Any:
    def loop(self: Any, x: Tensor) -> Tensor:
        from torch._higher_order_ops.while_loop import while_loop

        h = self.a(x)
        with torch.no_grad():
            start = (torch.zeros((), dtype=torch.long), h.detach())
            _, turned = while_loop(lambda i, _h: i < 3, lambda i, h: (i + 1, (h @ self.a.weight).tanh()), start)
        return self.b(h + turned)

    return module(loop, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case(
    "torch.cond, whose branches call modules",
    slow=True,
    hookable=False,
    cannot={
        "P2": "torch compiles the branches, even if nothing else is compiled. The modules called in them are not "
        "nodes of the graph; the data is drawn as it goes into torch.cond and comes out."
    },
)
def _() -> Any:
    def conditional(self: Any, x: Tensor) -> Tensor:
        h = self.a(x)
        return self.c(torch.cond(h.sum() > 0, lambda h: self.a(h).sin(), lambda h: self.b(h).cos(), (h,)))

    return module(conditional, a=nn.Linear(6, 6), b=nn.Linear(6, 6), c=nn.Linear(6, 2)), _x()


@case(
    "the data takes another way through the same calls",
    steps=8,
    cannot={
        "P2": "Data is followed once for each way of calling the modules. Where the same modules are called in the "
        "same order and only the data between them changes, the graph shows the edges of the first such step."
    },
)
def _() -> Any:
    def swap(self: Any, x: Tensor) -> Tensor:
        self.count += 1
        a, b = self.a(x), self.b(x)
        return self.head(a if self.count % 2 else b)

    model = module(swap, a=nn.Linear(6, 6), b=nn.Linear(6, 6), head=nn.Linear(6, 2))
    model.count = 0
    return model, _x()
