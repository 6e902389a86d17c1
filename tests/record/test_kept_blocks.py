"""Which blocks of kept tensors are compressed: docs/format.md, Kept tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from torchgraph_explorer.record.tensors.encoding import encode_step
from torchgraph_explorer.schema import KeptArray, KeptStep

RANDOM = np.random.default_rng(0)
NORMAL = RANDOM.normal(size=50_000).astype(np.float32)


def bytes_of(values: npt.NDArray[Any]) -> int:
    """What a step takes that keeps one tensor with these elements, without what is known of it besides them."""

    def size(elements: npt.NDArray[Any]) -> int:
        data = np.frombuffer(elements.tobytes(), np.uint8)
        array = KeptArray(("a", 0, "output", "", "value"), str(values.dtype), values.shape, None, (), data, None)
        return len(encode_step(KeptStep(1, 0.0, None, (array,))))

    return size(values) - size(values[:0])


@pytest.mark.parametrize(
    ("values", "share"),
    [
        pytest.param(np.maximum(NORMAL, 0), 0.6, id="a ReLU's output"),
        pytest.param(NORMAL * (RANDOM.random(NORMAL.shape) > 0.5), 0.7, id="dropout"),
        pytest.param(RANDOM.integers(0, 5_000, 50_000), 0.4, id="token numbers"),
        pytest.param(RANDOM.random(50_000) > 0.5, 0.3, id="a mask"),
        pytest.param(np.zeros(50_000, np.float32), 0.01, id="zeros"),
        pytest.param(np.ones(200, np.float32), 0.1, id="ones, in a small tensor"),
    ],
)
def test_a_tensor_with_zeros_takes_less_than_its_elements(values: npt.NDArray[Any], share: float) -> None:
    assert bytes_of(values) < share * values.nbytes


@pytest.mark.parametrize("size", [100, 1_000, 50_000])
def test_numbers_that_are_hardly_shorter_compressed_are_written_as_they_are(size: int) -> None:
    assert abs(bytes_of(NORMAL[:size]) - 4 * size) <= 16, "padding"
