"""`tensors.c` finds of the units of an output what torch finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.units import MOST_OUTPUTS, UnitRows, UnitWindows
from torchgraph_explorer.capture.no_dispatch import NoDispatch
from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.reduce.device_batch import DeviceBatch
from torchgraph_explorer.reduce.row_buffer import RowBuffer, exchange, tensor_functions
from torchgraph_explorer.reduce.sampling import Sampler

STEPS = 10

ODD = torch.tensor([[0.0, -0.0, 1.0, float("nan")], [-0.0, 0.0, float("inf"), 2.0], [-0.0, -0.0, -float("inf"), 3.0]])

OUTPUTS: dict[str, Tensor] = {
    "a matrix": torch.randn(5, 7),
    "one unit": torch.randn(5, 1),
    "sequences": torch.randn(3, 4, 6),
    "images": torch.randn(4, 3, 5, 6),
    "more positions than are looked at": torch.randn(9, 40, 33, 17),
    "more samples than are looked at": torch.randn(70_000, 2),
    "more of all": torch.randn(3000, 3, 5, 64),
    "very many units": torch.randn(2, 1 << 14),
    "zeros with signs, and what is not finite": ODD,
    "not in order": torch.randn(6, 5).t(),
    "half precision": torch.randn(5, 7).to(torch.bfloat16),
    "too many units": torch.randn(2, (1 << 14) + 1),
    "one sample": torch.randn(1, 7),
    "no dimension": torch.tensor(1.0),
    "nothing": torch.zeros(0, 7),
}


def found(output: Tensor, *, has_channels: bool, in_c: bool) -> list[npt.NDArray[Any]]:
    """The rows of some steps, in each of which the output is another one."""
    windows, rows = UnitWindows(), RowBuffer()
    all_rows: list[npt.NDArray[Any]] = []
    for step in range(STEPS):
        batch = Batch(Sampler(1000), rows, DeviceBatch(), step=step)
        if not in_c:
            batch._native = None
        units = UnitRows(batch, windows, {"conv": "Conv2d", "act": "ReLU"})
        with NoDispatch():
            if has_channels:
                units.begin("conv", 0, [])
            units.end("act", 0, [output * (step - 4)])
        part = batch.finish()()
        all_rows += [part.statistics, part.fingerprints, part.histograms.counts]
    return all_rows


@pytest.mark.parametrize("has_channels", [False, True])
@pytest.mark.parametrize("name", OUTPUTS)
def test_units_are_measured_in_c_as_in_torch(name: str, has_channels: bool) -> None:
    if tensor_functions() is None:
        pytest.skip("tensors.c is not built for this system")
    ways = (found(OUTPUTS[name], has_channels=has_channels, in_c=in_c) for in_c in (True, False))
    for one, other in zip(*ways, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("output", "is_taken"), [(torch.randn(4, 3), True), (torch.randn(4, 3).double(), False)])
def test_ordinary_outputs_are_taken_in_c(output: Tensor, is_taken: bool) -> None:
    if tensor_functions() is None or exchange() is None:
        pytest.skip("tensors.c is not built for this system")
    batch, peaks = Batch(Sampler(1000), RowBuffer(), DeviceBatch()), torch.zeros(3)
    rows = batch.units(output, peaks, is_second=False, is_new=True)
    assert (rows is not None) is is_taken
    assert torch.equal(peaks, output.abs().amax(0)) is is_taken


def test_no_more_outputs_than_the_most_are_looked_at() -> None:
    batch, names = Batch(Sampler(1000), RowBuffer(), DeviceBatch()), [str(at) for at in range(MOST_OUTPUTS + 5)]
    units = UnitRows(batch, UnitWindows(), dict.fromkeys(names, "ReLU"))
    looked_at = units.looked_at[1]
    for name in names:
        if name in looked_at:
            units.end(name, 0, [torch.ones(2, 3)])
    assert len(units.units(batch.finish()().statistics)) == MOST_OUTPUTS
