"""An optimizer that calls a closure, as Lightning has it: the same is recorded as of the loop without one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Key, Listening
from torchgraph_explorer import watch
from torchgraph_explorer.schema import STATISTICS

STEPS = 3


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))


def recorded(*, before: int, within: int, in_closure: bool, measures_update: bool = False) -> Listening:
    """A training with so many passes before `optimizer.step`, and so many in its closure or right before it."""
    torch.manual_seed(0)
    model, heard = network(), Listening()
    optimizer: Any = torch.optim.Adam(model.parameters(), 0.01)

    def passes(number: int) -> None:
        for _ in range(number):
            model(torch.randn(5, 4)).square().sum().backward()

    def closure() -> Tensor:
        passes(within)
        return nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    options = {"optimizer": optimizer} if measures_update else {}
    with watch(model, backend=heard, log_freq=1, sample_n=None, verbose=False, **options):
        for _ in range(STEPS):
            optimizer.zero_grad(set_to_none=False)
            passes(before)
            if in_closure:
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
    return heard


def numbers(heard: Listening, frame: int) -> dict[Key, tuple[float, ...]]:
    """The statistics of each series of a frame."""
    return {key: tuple(heard.row(key, frame)[0][name] for name in STATISTICS) for key in heard.recorded(frame)}


@pytest.mark.parametrize("measures_update", [False, True], ids=["from a sample", "exactly"])
@pytest.mark.parametrize(
    ("before", "within"),
    [
        pytest.param(0, 1, id="one pass"),
        pytest.param(1, 1, id="accumulated, the last one in the closure"),
        pytest.param(0, 2, id="accumulated in the closure"),
        pytest.param(4, 1, id="more than are recorded, the last one in the closure"),
        pytest.param(0, 6, id="more than are recorded, in the closure"),
    ],
)
def test_an_update_in_a_closure_is_recorded_as_one_after_the_same_passes(
    before: int, within: int, measures_update: bool
) -> None:
    found, expected = (
        recorded(before=before, within=within, in_closure=in_closure, measures_update=measures_update)
        for in_closure in (True, False)
    )
    for frame in range(STEPS):
        assert numbers(found, frame) == numbers(expected, frame)
        assert found.frames[frame].training == expected.frames[frame].training
    ratio = ("0", None, "param", "weight", "update_ratio")
    assert all(ratio in found.recorded(frame) for frame in range(STEPS))


def test_gradients_of_all_optimizers_of_an_update_are_those_before_clipping() -> None:
    model, heard = network(), Listening()
    first, second = (torch.optim.SGD(part.parameters(), 0.1) for part in (model[0], model[2]))
    with watch(model, backend=heard, log_freq=1, sample_n=None, verbose=False):
        model(torch.randn(5, 4)).square().sum().backward()
        unclipped = [float(parameter.grad.norm()) for parameter in model.parameters() if parameter.grad is not None]
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        first.step()
        second.step()
    keys: list[Key] = [(name, None, "param", path, "grad") for name in "02" for path in ("weight", "bias")]
    assert [heard.row(key)[0]["l2_norm"] for key in keys] == pytest.approx(unclipped)
