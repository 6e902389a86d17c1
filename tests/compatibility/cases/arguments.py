"""What modules are given and what they return."""

from __future__ import annotations

import math
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence

from tests.compatibility.case import Table, Training, module, sgd, trained

case = Table("inputs and outputs")

Pair = namedtuple("Pair", ["left", "right"])


def _x(*shape: int) -> Any:
    return lambda: torch.randn(*(shape or (4, 6)))


@case("keyword-only arguments")
def _() -> Any:
    def outer(self: Any, *, x: Tensor, mask: Tensor) -> Tensor:
        return self.inner(value=self.a(x), mask=mask)

    def inner(self: Any, *, value: Tensor, mask: Tensor) -> Tensor:
        return value * mask

    model = module(outer, a=nn.Linear(6, 3), inner=module(inner))
    return model, lambda: {"x": torch.randn(4, 6), "mask": torch.rand(4, 3)}


@case("arguments called self, module, args and hook")
def _() -> Any:
    def outer(this: Any, x: Tensor, **kwargs: Tensor) -> Tensor:
        return this.inner(x, **kwargs)

    def inner(this: Any, x: Tensor, *, module: Tensor, args: Tensor, kwargs: Tensor, name: Tensor) -> Tensor:
        return this.a(x) * module + args * kwargs - name

    model = module(outer, inner=module(inner, a=nn.Linear(6, 3)))
    names = ("module", "args", "kwargs", "name")
    return model, lambda: {"x": torch.randn(4, 6)} | {name: torch.randn(3) for name in names}


@case("any number of arguments")
def _() -> Any:
    def several(self: Any, *tensors: Tensor, **more: Tensor) -> Tensor:
        return self.sum(*(self.a(tensor) for tensor in (*tensors, *more.values())))

    def total(self: Any, *tensors: Tensor) -> Tensor:
        return torch.stack(tensors).sum(0)

    return module(several, a=nn.Linear(6, 3), sum=module(total)), lambda: tuple(torch.randn(3, 4, 6))


@case("nested dicts, lists and tuples")
def _() -> Any:
    def outer(self: Any, batch: Any) -> Any:
        y = self.inner({"deep": [(batch["x"][0], {"z": batch["y"]})]})
        return {"a": [y["a"], (y["b"][0],)], "n": 3}

    def inner(self: Any, tree: Any) -> Any:
        x, rest = tree["deep"][0]
        return OrderedDict(a=self.a(x), b=[self.a(rest["z"]), None])

    model = module(outer, inner=module(inner, a=nn.Linear(6, 3)))
    return model, lambda: ({"x": [torch.randn(4, 6)], "y": torch.randn(4, 6)},)


@dataclass
class Output:
    logits: Tensor
    hidden: tuple[Tensor, ...] | None = None
    steps: int = 0


@dataclass(frozen=True)
class Frozen:
    value: Tensor


@case("dataclasses, one frozen")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Output:
        inner = self.inner(Frozen(x))
        return Output(self.a(inner.value), hidden=(inner.value, x))

    def inner(self: Any, one: Frozen) -> Frozen:
        return Frozen(self.a(one.value))

    return module(outer, a=nn.Linear(6, 6), inner=module(inner, a=nn.Linear(6, 6))), _x()


@case("a named tuple")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Pair:
        pair = self.inner(Pair(left=x, right=x * 2))
        return Pair(left=pair.right, right=self.a(pair.left))

    def inner(self: Any, pair: Pair) -> Pair:
        return Pair(self.a(pair.left), self.a(pair.right))

    return module(outer, a=nn.Linear(6, 6), inner=module(inner, a=nn.Linear(6, 6))), _x()


class ModelOutput(OrderedDict[str, Any]):
    """Like Hugging Face's: a dict whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@case("a dict whose entries are attributes")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> ModelOutput:
        return ModelOutput(logits=self.a(x), none=None)

    return module(outer, a=nn.Linear(6, 3)), _x()


@case("a default dict, which must not grow by being looked at")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        found = self.inner(x)
        return [found[key] for key in sorted(found)]

    def inner(self: Any, x: Tensor) -> Any:
        found: defaultdict[str, Tensor] = defaultdict(lambda: torch.randn(2))
        found["y"] = self.a(x)
        return found

    return module(outer, inner=module(inner, a=nn.Linear(6, 3))), _x()


class Drawing(dict[str, Any]):
    """A dict that draws a random number whenever it is iterated over."""

    def items(self) -> Any:
        torch.rand(1)
        return super().items()

    def __iter__(self) -> Iterator[str]:
        torch.rand(1)
        return super().__iter__()


class DrawingList(list[Any]):
    """As `Drawing`."""

    def __iter__(self) -> Iterator[Any]:
        torch.rand(1)
        return super().__iter__()


@case("a dict and a list that draw random numbers when they are iterated over")
def _() -> Any:
    def wrap(self: Any, x: Tensor) -> Any:
        return Drawing(y=DrawingList([self.a(x)]))

    inner = module(wrap, a=nn.Linear(6, 6))
    return module(lambda self, x: self.b(self.inner(x)["y"][0]), inner=inner, b=nn.Linear(6, 2)), _x()


@case("a UserDict and an object of the user's own")
def _() -> Any:
    class Holder:
        def __init__(self, tensor: Tensor) -> None:
            self.tensor = tensor

    def outer(self: Any, x: Tensor) -> Tensor:
        return self.inner(UserDict(x=x)).tensor

    def inner(self: Any, batch: UserDict[str, Tensor]) -> Holder:
        return Holder(self.a(batch["x"]))

    return module(outer, inner=module(inner, a=nn.Linear(6, 3))), _x()


@case("a generator, which must not be used up")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Tensor:
        return torch.stack(list(self.inner(iter([x, x * 2])))).sum(0)

    def inner(self: Any, several: Iterator[Tensor]) -> Iterator[Tensor]:
        return (self.a(each) for each in several)

    return module(outer, inner=module(inner, a=nn.Linear(6, 3))), _x()


@case("None among tensors, and nothing returned")
def _() -> Any:
    def outer(self: Any, x: Tensor, mask: Tensor | None = None, other: Any = None) -> Any:
        self.nothing(x)
        return None, self.a(x), [None, self.b(x)]

    parts = {"a": nn.Linear(6, 3), "b": nn.Linear(6, 3)}
    return module(outer, **parts, nothing=module(lambda self, x: None)), lambda: (torch.randn(4, 6), None)


@case("the same tensor twice")
def _() -> Any:
    def outer(self: Any, x: Tensor, y: Tensor) -> Any:
        z = self.inner(self.a(x), self.a(y))
        return z[0], z[0], z[1]

    def inner(self: Any, x: Tensor, y: Tensor) -> Any:
        return x + y, x

    def arguments() -> Any:
        x = torch.randn(4, 6)
        return x, x

    return module(outer, a=nn.Linear(6, 3), inner=module(inner)), arguments


@case("one tensor given twice to one module")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Tensor:
        y = self.a(x)
        return self.inner(y, y)

    def inner(self: Any, x: Tensor, y: Tensor) -> Tensor:
        return x * y.tanh()

    return module(outer, a=nn.Linear(6, 3), inner=module(inner)), _x()


@case("inputs handed back as outputs")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        y = self.same(self.drop(self.a(x)))
        return y, x, self.same(x)

    return module(outer, a=nn.Linear(6, 3), same=nn.Identity(), drop=nn.Dropout(0.0)), _x()


@case("an input that requires gradient, handed back")
def _() -> Any:
    model = module(lambda self, x: (self.a(x), x), a=nn.Linear(6, 3))
    return model, lambda: torch.randn(4, 6).requires_grad_()


@case("numbers, strings, slices, functions and types")
def _() -> Any:
    def outer(self: Any, x: Tensor, scale: float, how: str, keep: slice, act: Any) -> Any:
        return self.inner(x[keep], scale, how, dtype=torch.float32, act=act)

    def inner(self: Any, x: Tensor, scale: float, how: str, *, dtype: Any, act: Any) -> Any:
        return act(self.a(x) * scale).to(dtype), how, {1, 2}, x.shape, torch.device("cpu")

    model = module(outer, inner=module(inner, a=nn.Linear(6, 3)))
    return model, lambda: (torch.randn(4, 6), 2.0, "how", slice(1, None), torch.tanh)


@case("no arguments at all")
def _() -> Any:
    def outer(self: Any) -> Tensor:
        return self.a(self.start) * self.inner()

    model = module(outer, a=nn.Linear(6, 3), inner=module(lambda self: torch.randn(())))
    model.register_parameter("start", nn.Parameter(torch.randn(2, 6)))
    return model, lambda: ()


@case("no parameters")
def _() -> Any:
    model = nn.Sequential(nn.Flatten(), nn.Softmax(1))
    return trained(model, lambda: torch.randn(2, 3, 4).requires_grad_(), optimizer=lambda _: sgd([torch.zeros(1)]))


@case("a packed sequence")
def _() -> Any:
    def outer(self: Any, packed: PackedSequence) -> Any:
        y, _ = self.rnn(packed)
        padded, lengths = pad_packed_sequence(y)
        return self.a(padded), y, lengths

    def arguments() -> Any:
        return ([pack_sequence([torch.randn(n, 6) for n in (5, 3, 2)])],)

    return module(lambda self, many: outer(self, many[0]), rnn=nn.GRU(6, 4), a=nn.Linear(4, 2)), arguments


@case("a sparse matrix")
def _() -> Any:
    def outer(self: Any, adjacency: Tensor, x: Tensor) -> Tensor:
        return self.b(self.spread(adjacency, self.a(x)).relu())

    def spread(self: Any, adjacency: Tensor, x: Tensor) -> Tensor:
        return torch.sparse.mm(adjacency, x)

    model = module(outer, a=nn.Linear(6, 6), spread=module(spread), b=nn.Linear(6, 2))
    return model, lambda: (torch.eye(4).to_sparse(), torch.randn(4, 6))


@case("a compressed sparse matrix")
def _() -> Any:
    def outer(self: Any, adjacency: Tensor, x: Tensor) -> Tensor:
        return self.spread(adjacency, self.a(x))

    def spread(self: Any, adjacency: Tensor, x: Tensor) -> Tensor:
        return adjacency @ x

    model = module(outer, a=nn.Linear(6, 6), spread=module(spread))
    return model, lambda: (torch.eye(4).to_sparse_csr(), torch.randn(4, 6))


@case("sparse gradients of an embedding")
def _() -> Any:
    model = nn.Sequential(nn.Embedding(20, 6, sparse=True), nn.Linear(6, 2))
    return trained(
        model, lambda: torch.randint(0, 20, (4, 3)), optimizer=lambda params: torch.optim.SGD(params, lr=0.1)
    )


@case("a jagged nested tensor")
def _() -> Any:
    def arguments() -> Any:
        return torch.nested.nested_tensor([torch.randn(2, 6), torch.randn(3, 6)], layout=torch.jagged)

    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    return trained(model, arguments, loss=lambda out: out.values().square().mean())


@case("attention over jagged nested tensors, whose heads are views")
def _() -> Any:
    def arguments() -> Any:
        return torch.nested.nested_tensor([torch.randn(n, 6) for n in (9, 3, 12)], layout=torch.jagged)

    def heads(projected: Any) -> Any:
        return projected.unflatten(-1, [2, 3]).transpose(1, 2)

    def attend(self: Any, x: Any) -> Any:
        query, key, value = heads(self.q(x)), heads(self.k(x)), heads(self.v(x))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.o(mixed.transpose(1, 2).flatten(-2) + x)

    parts = {name: nn.Linear(6, 6) for name in "qkvo"}
    return trained(module(attend, **parts), arguments, loss=lambda out: out.values().square().mean())


@case("a strided nested tensor")
def _() -> Any:
    def arguments() -> Any:
        return torch.nested.nested_tensor([torch.randn(2, 6), torch.randn(3, 6)])

    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    return trained(model, arguments, loss=lambda out: torch.nested.to_padded_tensor(out, 0.0).square().mean())


class Named(Tensor):
    """A subclass that carries metadata through operations."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]


LOG: list[str] = []


@case("a tensor subclass that counts the operations on it")
def _counted() -> Training:
    LOG.clear()
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    optimizer = sgd(model.parameters())

    def step(_number: int) -> Any:
        optimizer.zero_grad()
        loss = model(torch.randn(4, 6).as_subclass(Named)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach().as_subclass(Tensor), list(LOG)

    return Training(model, step, [optimizer])


@case("a tensor subclass that counts the operations on it, every third step logged", steps=5)
def _() -> Any:
    training = _counted()
    training.options = {"log_freq": 3}
    return training


class Wrapped(Tensor):
    """A subclass without values of its own, as DTensor and quantized weights are."""

    held: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Any:  # noqa: ANN001
        made = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)
        made.held = inner
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Wrapped({self.held.shape})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        from torch.utils._pytree import tree_map_only

        out = func(
            *tree_map_only(Wrapped, lambda t: t.held, args), **tree_map_only(Wrapped, lambda t: t.held, kwargs or {})
        )
        return tree_map_only(Tensor, Wrapped, out)


@case("a wrapper subclass whose operations are dispatched in Python")
def _() -> Any:
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    optimizer = sgd(model.parameters())

    def step(_number: int) -> Any:
        optimizer.zero_grad()
        loss = model(Wrapped(torch.randn(4, 6))).square().mean()
        loss.backward()
        for parameter in model.parameters():
            if isinstance(parameter.grad, Wrapped):
                parameter.grad = parameter.grad.held
        optimizer.step()
        return loss.detach().held

    return Training(model, step, [optimizer])


@case("complex tensors")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        spectrum = self.spectrum(self.a(x))
        return torch.fft.irfft(spectrum * self.weight), spectrum

    model = module(outer, a=nn.Linear(6, 6), spectrum=module(lambda self, x: torch.fft.rfft(x)))
    model.register_parameter("weight", nn.Parameter(torch.randn(4, dtype=torch.complex64)))
    return model, _x()


@case("conjugated and negated views")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        z = torch.view_as_complex(self.a(x).view(4, 3, 2))
        return self.same(z.conj()), self.same(z.conj().imag)

    return module(outer, a=nn.Linear(6, 6), same=nn.Identity()), _x()


@case("integers, booleans and bytes")
def _() -> Any:
    def outer(self: Any, tokens: Tensor, mask: Tensor, raw: Tensor) -> Any:
        x = self.embed(tokens) * self.same(mask).unsqueeze(-1)
        return self.a(x), self.same(tokens * 2), self.same(raw), self.same(mask)

    def arguments() -> Any:
        return torch.randint(0, 9, (3, 5)), torch.rand(3, 5) > 0.5, torch.randint(0, 255, (4,), dtype=torch.uint8)

    return module(outer, embed=nn.Embedding(9, 6), a=nn.Linear(6, 2), same=nn.Identity()), arguments


@case("half, bfloat16, double and float8")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        y = self.a(x)
        low = self.same(y.to(torch.bfloat16)), self.same(y.half()), self.same(y.double())
        return *low, self.same(y.detach().to(torch.float8_e4m3fn))

    return trained(
        module(outer, a=nn.Linear(6, 3), same=nn.Identity()),
        _x(),
        loss=lambda out: sum((o.float().square().mean() for o in out[:3]), torch.zeros(())),
    )


@case("quantized tensors")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        quantized = self.same(torch.quantize_per_tensor(x.detach(), 0.1, 0, torch.qint8))
        return self.a(quantized.dequantize())

    return module(outer, a=nn.Linear(6, 3), same=nn.Identity()), _x()


@case("empty tensors")
def _() -> Any:
    def outer(self: Any, x: Tensor, none: Tensor) -> Any:
        return self.a(x), self.a(none), self.same(torch.empty(0))

    return module(outer, a=nn.Linear(6, 3), same=nn.Identity()), lambda: (torch.randn(4, 6), torch.randn(0, 6))


@case("zero-dimensional tensors")
def _() -> Any:
    def outer(self: Any, x: Tensor, scale: Tensor) -> Any:
        return self.norm(self.a(x)) * self.same(scale)

    parts = {"a": nn.Linear(6, 3), "norm": module(lambda self, x: x.norm()), "same": nn.Identity()}
    return module(outer, **parts), lambda: (torch.randn(4, 6), torch.tensor(2.0))


@case("NaN and infinite values")
def _() -> Any:
    def arguments() -> Tensor:
        x = torch.randn(4, 6)
        x[0, 0], x[1, 1], x[2, 2] = math.nan, math.inf, -math.inf
        return x

    return trained(
        nn.Sequential(nn.Linear(6, 6), nn.Sigmoid(), nn.Linear(6, 2)),
        arguments,
        loss=lambda out: out.square().mean(),
    )


@case("huge, tiny and denormal values")
def _() -> Any:
    scale = torch.tensor([1e38, 1e-38, 1e-44, 0.0, -0.0, 1.0])
    return nn.Sequential(nn.Linear(6, 2)), lambda: torch.randn(4, 6) * scale * 1e-38


@case("expanded, transposed and channels-last tensors")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        y = self.conv(x.to(memory_format=torch.channels_last))
        return self.same(y.transpose(1, 3)), self.same(y[:1].expand(4, -1, -1, -1)), self.same(y[:, ::2, 1:])

    return module(outer, conv=nn.Conv2d(3, 4, 3), same=nn.Identity()), _x(2, 3, 6, 6)


@case("tensors of eleven dimensions")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        return self.same(self.a(x).view(4, *([1] * 9), 3))

    return module(outer, a=nn.Linear(6, 3), same=nn.Identity()), _x()


@case("meta tensors on the side")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        self.same(torch.empty(3, device="meta"))
        return self.a(x)

    return module(outer, a=nn.Linear(6, 3), same=nn.Identity()), _x()


@case("a list that the model changes after it was handed over")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        many = [x]
        result = self.inner(many)
        many.append(result)
        return many

    def inner(self: Any, many: list[Tensor]) -> Tensor:
        many[0] = self.a(many[0])
        return many[0].tanh()

    return module(outer, inner=module(inner, a=nn.Linear(6, 3))), _x()


@case("a structure that contains itself")
def _() -> Any:
    def outer(self: Any, x: Tensor) -> Any:
        return self.inner(x)["y"]

    def inner(self: Any, x: Tensor) -> Any:
        found: dict[str, Any] = {"y": self.a(x)}
        found["self"] = found
        return found

    return module(outer, inner=module(inner, a=nn.Linear(6, 3))), _x()


@case("a model that returns its loss")
def _() -> Any:
    def outer(self: Any, x: Tensor, y: Tensor) -> Any:
        logits = self.a(x)
        return {"loss": nn.functional.cross_entropy(logits, y), "logits": logits.detach()}

    return trained(
        module(outer, a=nn.Linear(6, 3)),
        lambda: (torch.randn(4, 6), torch.randint(0, 3, (4,))),
        loss=lambda out: out["loss"],
    )


@case("a loss that is a module of the model")
def _() -> Any:
    def outer(self: Any, x: Tensor, y: Tensor) -> Any:
        return self.loss(self.a(x), y)

    return trained(
        module(outer, a=nn.Linear(6, 3), loss=nn.CrossEntropyLoss()),
        lambda: (torch.randn(4, 6), torch.randint(0, 3, (4,))),
        loss=lambda out: out,
    )
