"""What is kept, held against hooks and copies that are written by hand; and training is as without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from tests.capture.test_oracle import ByHand, loss_of
from tests.listening import Key
from tests.models import Chunked, Shared, TwoInputs
from torchgraph_explorer import Keep, attach, open_run, watch
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import Series

pytestmark = pytest.mark.slow

SAMPLES = 3
Truth = dict[tuple[str, "int | None", str, str, str], Tensor]


class Frozen(nn.Module):
    """A frozen part, an integer result, a scalar, an empty tensor, and a part that is not trained by its output."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(5, 5).requires_grad_(False)
        self.best = Best()
        self.odd = Odd()
        self.head = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.frozen(x)
        scale, _, mask, _ = self.odd(x)
        return self.head(x * scale * mask) + self.best(x).unsqueeze(-1)


class Best(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.argmax(-1)


class Odd(nn.Module):
    """Returns a scalar, an empty tensor, a mask and complex numbers."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return x.square().mean(), x[:, :0], x > 0, torch.complex(x, -x).conj()


class Overwritten(nn.Module):
    """What a module returned is overwritten after it was seen, and what it was given, too."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        z = y * 2
        y.mul_(0)
        named = attach(z + 1, self, "named")
        named += 1
        return self.second(named)


class Sparse(nn.Module):
    """An embedding with sparse gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 3, sparse=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.embed(x).sum(1)


class Half(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6).bfloat16()

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.bfloat16()).float()


@dataclass(frozen=True)
class Kind:
    """A model, with its batches.

    Attributes:
        make: Makes the model.
        batch: Makes the arguments of a call.
        passes: Forward and backward passes in a step.
        compiled: The model is compiled.
    """

    make: Callable[[], nn.Module]
    batch: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]
    passes: int = 1
    compiled: bool = False


def floats(*shape: int) -> Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]:
    return lambda: ((torch.randn(shape),), {})


KINDS = {
    "in place, reused, attached": Kind(
        TwoInputs, lambda: ((torch.randn(7, 6),), {"side": torch.randn(7, 3)}), passes=1
    ),
    "views and slices": Kind(Chunked, floats(5, 6)),
    "tied weights, three calls": Kind(Shared, lambda: ((torch.randint(0, 11, (4, 5)),), {})),
    "frozen, integer, scalar, empty, bool, complex": Kind(Frozen, floats(8, 5)),
    "overwritten": Kind(Overwritten, floats(6, 4)),
    "sparse gradients": Kind(Sparse, lambda: ((torch.randint(0, 7, (4, 2)),), {})),
    "bfloat16": Kind(Half, floats(9, 6)),
    "two micro-batches": Kind(TwoInputs, lambda: ((torch.randn(4, 6),), {"side": torch.randn(4, 3)}), passes=2),
    "a batch of one": Kind(Overwritten, floats(1, 4)),
    "fewer samples than asked for": Kind(Overwritten, floats(2, 4)),
    "compiled": Kind(Overwritten, floats(6, 4), compiled=True),
    "double": Kind(lambda: Overwritten().double(), lambda: ((torch.randn(6, 4, dtype=torch.float64),), {})),
}


def total(value: object) -> Tensor:
    found = list(leaves(value))
    return sum((one.float().square().sum() for one in found if one.is_floating_point()), torch.zeros(()))


def leaves(value: object) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [one for each in value.values() for one in leaves(each)]
    return [one for each in value for one in leaves(each)] if isinstance(value, (list, tuple)) else []


def train(kind: Kind, model: nn.Module, steps: int = 2) -> list[float]:
    """Losses of a short training; plain SGD, so that sparse gradients work."""
    called = torch.compile(model, backend="eager") if kind.compiled else model
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.01)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(kind.passes):
            args, kwargs = kind.batch()
            loss = total(called(*args, **kwargs))
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    return losses


def made(kind: Kind) -> nn.Module:
    torch.manual_seed(1)
    model = kind.make()
    torch.manual_seed(2)
    return model


def by_hand(kind: Kind) -> Truth:
    """What hooks of torch see in the second step: outputs and their gradients, parameters, and theirs."""
    model, truth = made(kind), Truth()
    train(kind, model, steps=1)
    for name, module in model.named_modules():
        listen(name, module, truth)
    parameters = [
        (name, path, one) for name, each in model.named_modules() for path, one in each.named_parameters(recurse=False)
    ]
    for name, path, parameter in parameters:
        truth[name, None, "param", path, "value"] = parameter.detach().clone()
    train(replace(kind, compiled=False), model, steps=1)
    for name, path, parameter in parameters:
        if parameter.grad is not None:
            truth[name, None, "param", path, "gradient"] = parameter.grad.clone()
    return truth


def listen(name: str, module: nn.Module, truth: Truth) -> None:
    """Save what `module` is given and returns from now on."""
    calls = -1

    def before(_module: nn.Module, args: object) -> None:
        nonlocal calls
        calls += 1
        for number, one in enumerate(leaves(args)):
            truth[name, calls, "input", str(number), "value"] = one.detach().clone()

    def after(_module: nn.Module, _args: object, output: object) -> None:
        for number, one in enumerate(leaves(output)):
            truth[name, calls, "output", str(number), "value"] = one.detach().clone()
            if one.requires_grad:
                one.register_hook(saving(truth, (name, calls, "output", str(number), "gradient")))

    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)


def saving(truth: Truth, key: tuple[str, int, str, str, str]) -> Callable[[Tensor], None]:
    def save(gradient: Tensor) -> None:
        truth[key] = gradient.clone()

    return save


of_each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def kept(kind: Kind, folder: Path, keep: Keep) -> tuple[Model, nn.Module, list[float]]:
    model = made(kind)
    with watch(model, log_freq=1, backend="record", logdir=folder, keep=keep, verbose=False) as watcher:
        losses = train(kind, model)
    return open_run(str(watcher.run_dir)).model(), model, losses


@of_each_kind
@pytest.mark.filterwarnings("ignore:.*is not kept", "ignore:.*selects no tensor")
def test_training_is_bit_for_bit_as_without_it(kind: Kind, tmp_path: Path) -> None:
    expected = made(kind)
    losses = train(kind, expected)
    state = torch.get_rng_state()
    _, model, found = kept(kind, tmp_path, Keep("*", "*:input"))
    assert found == losses
    assert torch.equal(torch.get_rng_state(), state)
    for one, other in zip(model.parameters(), expected.parameters(), strict=True):
        assert torch.equal(one, other)
        assert type(one.grad) is type(other.grad)
        assert one.grad is None or torch.equal(one.grad.to_dense(), other.grad.to_dense())  # type: ignore[union-attr]


@of_each_kind
@pytest.mark.filterwarnings("ignore:.*is not kept", "ignore:.*selects no tensor")
def test_what_is_kept_is_what_hooks_see(kind: Kind, tmp_path: Path) -> None:
    model, _, _ = kept(kind, tmp_path, Keep("*", "*:input", samples=SAMPLES))
    truth = by_hand(kind)
    checked = set()
    for series in model.kept.series:
        if series.kind != "value" or series.role == "attached":
            continue
        number = {one.path: str(n) for n, one in enumerate(of_call(model, series))}[series.path]
        path = series.path if series.role == "param" else number
        if "[" in series.path and series.role == "input" and "'" in series.path:
            continue  # a keyword, which a hook is not given
        tensor = model.tensor(series, 1)
        checked.add((series.module, series.call, series.role, path, "value"))
        assert_kept(tensor, truth[series.module, series.call, series.role, path, "value"])
        gradient = truth.get((series.module, series.call, series.role, path, "gradient"))
        if gradient is not None:
            assert_kept(tensor.gradient, gradient.to_dense())
        elif series.role != "input":
            assert tensor.gradient is None
    assert {key for key in truth if key[4] == "value"} == checked


def of_call(model: Model, series: Any) -> list[Any]:
    """The tensors of the same role of a call, in the order in which they are found."""
    return list(
        dict.fromkeys(
            one
            for one in model.kept.series
            if (one.module, one.call, one.role, one.kind) == (series.module, series.call, series.role, "value")
        )
    )


def assert_kept(found: Any, tensor: Tensor) -> None:
    """All that was kept of `tensor`, whose samples are along dimension 0, if it has one."""
    whole = np_of(tensor)
    assert (found.dtype, found.shape) == (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
    if found.series.role == "param" or tensor.dim() == 0:
        assert (found.batch_dim, found.mean, found.std, found.largest) == (None, None, None, None)
        np.testing.assert_array_equal(found.values, whole)
        return
    batch = len(whole)
    samples = [at * batch // min(batch, SAMPLES) for at in range(min(batch, SAMPLES))]
    assert found.samples.tolist() == samples
    np.testing.assert_array_equal(found.values, whole[samples])
    numbers = np.abs(whole) if np.iscomplexobj(whole) else whole.astype(np.float64)
    np.testing.assert_allclose(found.mean, numbers.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.std, numbers.std(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.largest, np.abs(numbers).max(0), rtol=1e-5, atol=1e-6)


def np_of(tensor: Tensor) -> npt.NDArray[Any]:
    tensor = tensor.resolve_conj()
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


def test_gradients_of_inputs_are_those_through_each_call(tmp_path: Path) -> None:
    x, side = torch.randn(7, 6, requires_grad=True), torch.randn(7, 3)
    torch.manual_seed(1)
    model = TwoInputs()
    hand = ByHand(model)
    loss_of(hand.forward(x, side)).backward()
    expected = {key: tensor.grad.clone() for key, tensor in hand.paths.items() if tensor.grad is not None}
    expected = {key: gradient for key, gradient in expected.items() if key[2] != "edge"}  # which are not kept
    model.zero_grad()
    with watch(
        model, log_freq=1, backend="record", logdir=tmp_path, keep=Keep("*", "*:input", samples=None), verbose=False
    ) as watcher:
        loss_of(model(x, side=side)["logits"]).backward()
    read = open_run(str(watcher.run_dir)).model()
    kept_gradients: dict[Key, Series] = {one.key: one for one in read.kept.series if one.kind == "grad_norm"}
    assert set(expected) <= set(kept_gradients)
    for key, gradient in expected.items():
        found = read.tensor(kept_gradients[key], 0)
        np.testing.assert_allclose(found.values, gradient.numpy(), rtol=1e-5, atol=1e-6)
