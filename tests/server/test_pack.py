"""Binary answers are what http_api.md says, byte by byte; the viewer's tests read the same file."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from tests.contracts import pack as contract
from torchgraph_explorer.server.pack import pack


def test_the_files_are_what_their_generator_writes() -> None:
    assert contract.FILE.read_bytes() == contract.binary()
    assert contract.CONTENT.read_text(encoding="utf-8") == contract.content()


@pytest.mark.parametrize("order", ["little", "big"])
def test_arrays_are_packed_as_the_contract_says_whatever_their_byte_order(order: Literal["little", "big"]) -> None:
    arrays = {
        name: np.array(values, dtype=np.dtype(dtype).newbyteorder(order)).reshape(shape)
        for name, (dtype, shape, values) in contract.ARRAYS.items()
    }
    assert pack(contract.META, arrays) == contract.FILE.read_bytes()


def test_an_array_that_is_not_contiguous_is_packed_as_if_it_were() -> None:
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert pack({}, {"a": table[:, ::2]}) == pack({}, {"a": table[:, ::2].copy()})


def test_meta_data_has_no_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack({"loss": float("nan")}, {})
