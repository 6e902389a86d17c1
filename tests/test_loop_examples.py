"""The programs in examples/loops of which the development environment has the packages; `make examples` runs all."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from examples.loops import __main__ as loops
from examples.loops.__main__ import Told, differences, faults
from tests import warm
from torchgraph_explorer.run import Run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "modules"),
    [
        pytest.param("maml", warm.TORCH, id="maml"),
        pytest.param("lightning_by_hand", (*warm.TORCH, "lightning"), id="Lightning, by hand"),
    ],
)
def test_a_program_trains_the_same_and_nothing_is_missing(program: str, modules: tuple[str, ...]) -> None:
    for each in modules:
        pytest.importorskip(each)
    assert faults(program, partial(warm.run, modules=modules)) == []


@pytest.mark.slow
def test_whatever_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def tampered(run: Run, plain: Told, watched: Told) -> list[str]:
        plain = replace(plain, updates=11, called=["4", "5"], moved=["4.bias", "5.bias"])
        return list(differences(run, plain, replace(watched, weights="", warnings=["a warning"])))

    monkeypatch.setattr(loops, "differences", tampered)
    assert faults("maml", partial(warm.run, modules=warm.TORCH)) == [
        "the weights are not those of the unwatched training",
        "a warning",
        "10 steps were counted, and the program made 11 updates",
        "no output of '5'",
        "no gradient of '5.bias'",
    ]
