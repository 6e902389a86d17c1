"""The first value of a logged scalar that is not finite makes the next step a recorded one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import watch


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        pytest.param(math.nan, [0, 5, 10], id="NaN"),
        pytest.param(-math.inf, [0, 5, 10], id="infinity"),
        pytest.param(torch.tensor(math.nan), [0, 5, 10], id="a tensor"),
        pytest.param(np.float64("nan"), [0, 5, 10], id="of numpy"),
        pytest.param(torch.tensor(math.nan, requires_grad=True), [0, 5, 10], id="a loss"),
        pytest.param(2, [0, 10], id="a whole number"),
    ],
)
def test_the_step_after_a_bad_value_is_recorded_once(bad: object, expected: list[int]) -> None:
    model, heard = nn.Linear(2, 1), Listening()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, log_freq=10, backend=heard, verbose=False) as watcher:
        for step in range(15):
            optimizer.zero_grad()
            model(torch.randn(3, 2)).square().mean().backward()
            optimizer.step()
            watcher.log({"loss": bad if step >= 4 else 0.5, "rate": 0.1})
    assert [frame.step for frame in heard.frames] == expected
