"""A copy of a watched model, made at any moment of a step, carries nothing of ours and trains like any other."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

from tests.compatibility.case import call, loss_of, sgd
from tests.compatibility.walk import fingerprint
from tests.listening import Listening
from tests.models import CASES
from torchgraph_explorer import watch

pytestmark = pytest.mark.slow

Copy = Callable[[nn.Module], nn.Module]

MOMENTS = ("within forward", "between forward and backward", "within backward", "between steps")
MODELS = ("two inputs, in-place, reused", "residual CNN", "attention and LSTM", "reentrant checkpoint")


def saved_and_loaded(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    assert b"torchgraph_explorer" not in file.getvalue()
    file.seek(0)
    loaded: nn.Module = torch.load(file, weights_only=False)
    return loaded


def pickled(model: nn.Module) -> nn.Module:
    data = pickle.dumps(model)
    assert b"torchgraph_explorer" not in data
    loaded: nn.Module = pickle.loads(data)
    return loaded


WAYS: dict[str, Copy] = {"deepcopy": copy.deepcopy, "pickle": pickled, "torch.save": saved_and_loaded}


def nothing() -> None:
    """What the hook does from the second time on."""


class Once:
    """A hook of the test's, which copies the model the first time that it is called, and is copied as nothing."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    def __call__(self, *_: object) -> None:
        act, self.act = self.act, nothing
        act()

    def __reduce__(self) -> tuple[Any, ...]:
        return Once, (nothing,)


def step(model: nn.Module, arguments: Callable[[], Any], optimizer: Any, between: Callable[[], None]) -> object:
    args, kwargs = arguments()
    loss = loss_of(call(lambda *positional: model(*positional, **kwargs), args))
    between()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return fingerprint(loss.detach())


@contextmanager
def hooked(model: nn.Module, hook: Once, moment: str) -> Iterator[None]:
    """Have `hook` called at `moment`, if that is within forward or backward."""
    if moment == "within forward":
        last = [module for module in model.modules() if not list(module.children())][-1]
        handle = last.register_forward_hook(hook)
    elif moment == "within backward":
        handle = next(each for each in model.parameters() if each.requires_grad).register_hook(hook)
    else:
        yield
        return
    yield
    handle.remove()


def trained_copy(name: str, way: Copy, moment: str, *, watched: bool) -> object:
    """What comes of three steps of a copy that is made in the second step of the model, or after it."""
    torch.manual_seed(5)
    make, arguments = CASES[name]
    model, copies = make(), []
    watcher = watch(model, backend=Listening(), log_freq=1, verbose=False) if watched else None
    optimizer = sgd(model.parameters())

    def copy_now() -> None:
        copies.append(way(model))

    step(model, arguments, optimizer, nothing)
    with hooked(model, Once(copy_now), moment):
        step(model, arguments, optimizer, copy_now if moment == "between forward and backward" else nothing)
    if moment == "between steps":
        copy_now()
    if watcher is not None:
        watcher.close()
    assert not _ours(copies[0])
    again = sgd(copies[0].parameters())
    losses = [step(copies[0], arguments, again, nothing) for _ in range(3)]
    return losses, fingerprint(copies[0].state_dict()), repr(copies[0]), fingerprint(torch.get_rng_state())


def _ours(model: nn.Module) -> list[object]:
    """Whatever is left of this package on the modules and parameters."""
    kept = [each for module in model.modules() for value in vars(module).values() for each in _values(value)]
    kept += [each for parameter in model.parameters() for each in _values(parameter._backward_hooks)]
    return [each for each in kept if type(each).__module__.startswith("torchgraph_explorer")]


def _values(value: object) -> list[object]:
    return [value, *value.values()] if isinstance(value, dict) else [value]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", [pytest.param(way, id=name) for name, way in WAYS.items()])
@pytest.mark.parametrize("name", MODELS)
def test_a_copy_of_a_watched_model_trains_by_bytes_like_one_of_an_unwatched_model(
    name: str, way: Copy, moment: str
) -> None:
    assert trained_copy(name, way, moment, watched=True) == trained_copy(name, way, moment, watched=False)


def test_the_search_for_what_is_ours_finds_it_on_the_watched_model_itself() -> None:
    model = nn.Linear(2, 2)
    with watch(model, backend=Listening(), log_freq=1, verbose=False):
        assert _ours(model)
    assert not _ours(model)
