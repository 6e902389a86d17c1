"""The blocks of kept tensors, and which of them are packed: docs/format.md, Kept tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.kept import KeptArray, together
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.tensors import blocks
from torchgraph_explorer.record.tensors.blocks import (
    FEW_BYTES,
    LOOKED_AT,
    ROW_BYTES,
    RUNS,
    SPARE,
    WORD_BYTES,
    Block,
    Body,
    block_at,
    body_in_c,
    body_in_python,
    body_of,
    decode_block,
)
from torchgraph_explorer.record.tensors.encoding import LayoutEncoder, encode_step
from torchgraph_explorer.reused_memory import Pieces
from torchgraph_explorer.schema import KeptArrays, KeptForm, KeptStep

HEAD = 0xFFFF_FFF8
"""The crc32 of a head, so large that its sum with the number of a row exceeds 32 bits."""

RANDOM = np.random.default_rng(0)
NORMAL = RANDOM.normal(size=50_000).astype(np.float32)


def bytes_of(values: npt.NDArray[Any]) -> int:
    """What a step takes that keeps one tensor with these elements, without what is known of it besides them."""

    def size(elements: npt.NDArray[Any]) -> int:
        data = np.frombuffer(elements.tobytes(), np.uint8)
        array = KeptArray(("a", 0, "output", "", "value"), str(values.dtype), values.shape, None, (), data, None)
        return len(
            encode_step(KeptStep(1, 0.0, None, together(array)), layouts=LayoutEncoder(), pieces=Pieces(), mark=0)
        )

    return size(values) - size(values[:0])


@pytest.mark.parametrize(
    ("values", "share"),
    [
        pytest.param(np.maximum(NORMAL, 0), 0.55, id="a ReLU's output"),
        pytest.param(NORMAL * (RANDOM.random(NORMAL.shape) > 0.5), 0.7, id="dropout, which leaves zeros of both signs"),
        pytest.param(RANDOM.integers(0, 5_000, 50_000), 0.4, id="token numbers"),
        pytest.param(RANDOM.random(50_000) > 0.5, 0.7, id="a mask"),
        pytest.param(np.zeros(50_000, np.float32), 0.02, id="zeros"),
        pytest.param(np.ones(200, np.float32), 0.6, id="ones, in a small tensor"),
    ],
)
def test_a_tensor_with_zeros_takes_less_than_its_elements(values: npt.NDArray[Any], share: float) -> None:
    assert bytes_of(values) < share * values.nbytes


@pytest.mark.parametrize("size", [100, 1_000, 50_000])
def test_numbers_without_zeros_are_written_as_they_are(size: int) -> None:
    assert abs(bytes_of(NORMAL[:size]) - 4 * size) <= 16, "padding"


def written(body: Body | None) -> bytes:
    """Its bytes, which are written over others."""
    assert body is not None
    memory = np.full(body.size + SPARE, 99, np.uint8)
    body.write(memory, HEAD)
    return memory[: body.size].tobytes()


def some_blocks(rng: np.random.Generator, sizes: list[int], tensors: int = 5) -> KeptArrays:
    """Blocks of these sizes in two memories, with some zeros or many, which as many tensors share."""
    memories = [rng.integers(1, 256, 2 * sum(sizes) + 1, np.uint8) for _ in range(2)]
    for number, memory in enumerate(memories):
        words = memory[: len(memory) // 8 * 8].view(f"u{rng.choice(WORD_BYTES)}")
        words[rng.random(len(words)) < rng.choice([0, 0.1, 0.2, 0.3, 0.9, 1])] = 0
        memories[number] = np.roll(memory, 1)
    starts = np.cumsum([1, *sizes])[:-1]  # at odd addresses, too
    places = [(rng.integers(2), start, size) for start, size in zip(starts, sizes, strict=True)]
    form = KeptForm("uint8", (1,), None)
    return KeptArrays(
        keys=[(str(number), 0, "output", "", "value") for number in range(tensors)],
        forms=[form] * tensors,
        samples=[()] * tensors,
        losses=[""] * tensors,
        categories=[()] * tensors,
        kinds=["intermediate"] * tensors,
        nodes=[""] * tensors,
        blocks=rng.integers(-1, len(sizes), (tensors, 2)),
        places=np.array(places, np.int64).reshape(-1, 3),
        memories=memories,
    )


SIZES = [
    pytest.param([], id="no block"),
    pytest.param([0, 4, 0], id="empty ones"),
    pytest.param([FEW_BYTES - 1, FEW_BYTES, FEW_BYTES + 1], id="nearly too small to be packed"),
    pytest.param([LOOKED_AT - 1, LOOKED_AT, LOOKED_AT + 1], id="nearly so large that a sample is looked at"),
    pytest.param([3 * LOOKED_AT + each for each in range(RUNS)], id="not a multiple of the runs"),
    pytest.param([1, 7, 8, 9, 63, 64, 65, 100_000], id="of any size"),
]


@pytest.mark.parametrize("sizes", SIZES)
def test_what_is_read_of_a_block_is_what_was_kept(sizes: list[int]) -> None:
    for seed in range(20):
        arrays = some_blocks(np.random.default_rng(seed), sizes)
        body = written(body_in_python(arrays))
        first = arrays.blocks.size * ROW_BYTES
        numbers = arrays.blocks.ravel()
        for row in np.flatnonzero(numbers >= 0).tolist():
            memory, start, size = arrays.places[numbers[row]].tolist()
            block = block_at(body, row)
            data = body[first + block.start :][: block.size]
            expected = arrays.memories[memory][start : start + size].tobytes()
            assert decode_block(data, block, size, head_check=HEAD, row=row) == expected
            for head, place in ((HEAD, row + 1), (HEAD + 1, row)):
                with pytest.raises(DamageError):
                    decode_block(data, block, size, head_check=head, row=place)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", 8, id="nothing"),
        pytest.param(b"\4", 1 << 40, id="far more elements than bits"),
        pytest.param(b"\3\0", 24, id="words of three bytes"),
        pytest.param(b"\4\1\1\1\1", 32, id="a part of a word"),
        pytest.param(b"\4\1\1\1\1\1\1", 32, id="more than the bits tell of"),
        pytest.param(b"\4\0", 33, id="without the last byte"),
    ],
)
def test_a_block_that_contradicts_itself_is_damaged(data: bytes, expected: int) -> None:
    block = Block(0, len(data), blocks._check(0, data))
    with pytest.raises(DamageError):
        decode_block(data, block, expected, head_check=None, row=0)


@pytest.fixture
def _is_built() -> None:
    if blocks._functions() is None:
        pytest.skip("blocks.c is not built for this system")


@pytest.mark.usefixtures("_is_built")
@pytest.mark.parametrize("sizes", SIZES)
def test_c_makes_the_bytes_that_python_makes(sizes: list[int]) -> None:
    for seed in range(20):
        arrays = some_blocks(np.random.default_rng(seed), sizes)
        assert written(body_in_c(arrays)) == written(body_in_python(arrays))


@pytest.mark.usefixtures("_is_built")
def test_a_step_without_tensors_has_an_empty_body() -> None:
    assert written(body_in_c(together())) == written(body_in_python(together())) == b""


@pytest.fixture
def _is_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "BUILT", tmp_path / "built" / "blocks.so")
        blocks._functions.cache_clear()
        yield
    blocks._functions.cache_clear()


@pytest.mark.usefixtures("_is_not_built")
def test_where_it_is_not_built_python_encodes() -> None:
    arrays = some_blocks(np.random.default_rng(1), [100, 1_000, 10_000])
    assert body_in_c(arrays) is None
    assert written(body_of(arrays)) == written(body_in_python(arrays))
