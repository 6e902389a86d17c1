"""`finite.c` finds NaN and infinity in ordinary tensors, and leaves all others to torch."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from torchgraph_explorer.reduce.finite import is_finite

if (found := is_finite()) is None:
    pytest.skip("finite.c is not built for this system, or torch is older than 2.10", allow_module_level=True)
FINITE = found

DTYPES = torch.float32, torch.float64, torch.float16, torch.bfloat16
VALUES = {"nan": math.nan, "-nan": -math.nan, "inf": math.inf, "-inf": -math.inf, "0": 0.0, "-1": -1.0}


@pytest.mark.parametrize("may_mask", [False, True], ids=["", "minus infinity is meant"])
@pytest.mark.parametrize("at", [0, 5_000, 69_999])
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_element_decides(dtype: torch.dtype, value: float, at: int, may_mask: bool) -> None:
    tensor = torch.full((70_000,), torch.finfo(dtype).max, dtype=dtype)
    tensor[at] = value
    is_meant = may_mask and value == -math.inf
    assert FINITE(tensor, may_mask) is (is_meant or bool(tensor.isfinite().all()))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_every_number_of_16_bits_is_told_as_by_torch(dtype: torch.dtype) -> None:
    every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
    assert [FINITE(one, False) for one in every.split(1)] == every.isfinite().tolist()


def in_float64(*sizes: int) -> Tensor:
    return torch.full(sizes, math.nan, dtype=torch.float64)


OTHERS = {
    "whole numbers": torch.ones(3, dtype=torch.int64),
    "transposed": in_float64(2, 3).t(),
    "empty": torch.ones(0),
    "negated": torch.full((2,), 1j).conj().imag,
    "complex": torch.tensor([3 + 4j]),
    "sparse": in_float64(3).to_sparse(),
    "meta": torch.ones(3, device="meta"),
    "a subclass": in_float64(2).as_subclass(type("Mine", (Tensor,), {})),
}


@pytest.mark.parametrize("tensor", OTHERS.values(), ids=OTHERS)
def test_other_tensors_are_left_to_torch(tensor: Tensor) -> None:
    assert FINITE(tensor, False) is None


def test_freed_memory_is_not_read() -> None:
    tensor = torch.ones(1000)
    tensor.untyped_storage().resize_(0)
    assert FINITE(tensor, False) is None


def test_a_parameter_is_read() -> None:
    assert FINITE(torch.nn.Parameter(torch.tensor([1.0, math.nan])), False) is False
