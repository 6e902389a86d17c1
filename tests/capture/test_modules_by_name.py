"""The modules of a model by name are those that torch's own walk gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from torchgraph_explorer.capture.modules_by_name import modules_by_name


class Renaming(nn.Module):
    """A module that has its own walk, as those do that hide what they wrap."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def named_modules(self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[Any]:
        for name, module in super().named_modules(memo, prefix, remove_duplicate):
            yield name.replace("inner", "wrapped"), module


def shared() -> nn.Module:
    layer = nn.Linear(2, 2)
    return nn.Sequential(layer, nn.Sequential(nn.ReLU(), layer), layer)


def cyclic() -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].owner = model
    return model


def with_own_walk() -> nn.Module:
    layer = nn.Linear(2, 2)
    return nn.Sequential(layer, Renaming(nn.Sequential(nn.ReLU(), layer, nn.Linear(2, 1))), nn.Sequential(layer))


def patched() -> nn.Module:
    inner: Any = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model = nn.Sequential(inner, nn.Tanh())
    inner.named_modules = lambda memo, prefix, *_: iter([(f"{prefix}.only", inner[0])])
    return model


def without_some() -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model.register_module("none", None)
    return model


def scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made: nn.Module = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU())))
    return made


MODELS: dict[str, Callable[[], nn.Module]] = {
    "nested": lambda: nn.Sequential(nn.TransformerEncoderLayer(8, 2, 8), nn.LSTM(8, 8)),
    "one module": nn.Tanh,
    "a layer at several places": shared,
    "a module within itself": cyclic,
    "a module with its own walk": with_own_walk,
    "an object with its own walk": patched,
    "a place without a module": without_some,
    "scripted": scripted,
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_they_are_those_of_torchs_walk(make: Callable[[], nn.Module]) -> None:
    model = make()
    expected = list(nn.Module.named_modules(model))
    found = list(modules_by_name(model).items())
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert all(one is other for (_, one), (_, other) in zip(found, expected, strict=True))


class Equal(nn.Linear):
    """Equal to all of its class, which torch's walk takes for the same one."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("wrap", [lambda one: one, Renaming], ids=["", "within a module with its own walk"])
def test_modules_that_are_equal_or_have_no_hash_are_each_found(wrap: Callable[[nn.Module], nn.Module]) -> None:
    layers = [Equal(2, 2), Equal(2, 2)]
    found = modules_by_name(nn.Sequential(wrap(nn.Sequential(*layers)))).values()
    assert sum(one is layer for one in found for layer in layers) == len(layers)
