"""The awkward models of `tests/models.py`."""

from __future__ import annotations

from tests.compatibility.case import Case, Training, call, loss_of, sgd, trained
from tests.models import CASES


def _training(name: str) -> Training:
    make, arguments = CASES[name]
    args, _ = arguments()
    model = make()
    if len(args) == 1 and not arguments()[1]:
        return trained(model, lambda: arguments()[0])
    return trained_with_keywords(name)


def trained_with_keywords(name: str) -> Training:
    make, arguments = CASES[name]
    model = make()
    optimizer = sgd(model.parameters())

    def step(_number: int) -> object:
        args, kwargs = arguments()
        loss = loss_of(call(lambda *positional: model(*positional, **kwargs), args))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(model, step, [optimizer])


TABLE = [Case("awkward models", name, lambda name=name: _training(name)) for name in CASES]  # type: ignore[misc]
