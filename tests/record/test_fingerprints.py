"""Fingerprints in a record: they are read as written, and those of parts add up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.record.examples import SERIES as FOUR
from tests.record.examples import SESSION, flip, frame, quietly, segment, write
from torchgraph_explorer import TorchgraphWarning, open_run
from torchgraph_explorer.schema import Extent, Frame, Series, Session

WHOLE, SAMPLED = Extent.ALL, Extent.SAMPLE
MOST = (1 << 62) - 1
"""The largest sum of hashes."""


def of(extent: Extent, *hashes: int) -> npt.NDArray[np.uint64]:
    return np.array([4 * one + extent for one in hashes], np.uint64)


def with_fingerprints(step: int, found: npt.NDArray[np.uint64]) -> Frame:
    """A frame of three rows, the first of which two series share."""
    return replace(frame(step), fingerprints=found)


def test_they_are_read_as_they_were_written(tmp_path: Path) -> None:
    written = [of(WHOLE, 5, MOST, 0), of(SAMPLED, 1, 1 << 40, 7)]
    write(tmp_path, FOUR, *(with_fingerprints(step, one) for step, one in enumerate(written)))
    model = quietly(tmp_path).model()
    for step, expected in enumerate(written):
        found = model.frame(step)
        assert found.fingerprints is not None
        np.testing.assert_array_equal(found.fingerprints[found.rows], expected[[0, 0, 1, 2]])
        np.testing.assert_array_equal(found.statistics, frame(step).statistics)
    np.testing.assert_array_equal(model.rows([1, 0]).fingerprints, [one[[0, 0, 1, 2]] for one in written[::-1]])


def test_a_record_without_them_has_none_and_may_be_continued_with_them(tmp_path: Path) -> None:
    write(tmp_path, FOUR, frame(0), with_fingerprints(1, of(WHOLE, 1, 2, 3)), frame(2))
    model = quietly(tmp_path).model()
    assert [model.frame(at).fingerprints is None for at in range(3)] == [True, False, True]
    assert model.rows([0, 1, 2]).fingerprints.any(axis=1).tolist() == [False, True, False]


def test_a_damaged_row_has_none(tmp_path: Path) -> None:
    write(tmp_path, FOUR, with_fingerprints(0, of(WHOLE, 1, 2, 3)))
    place = segment(tmp_path).read_bytes().rindex(of(WHOLE, 2).tobytes())
    flip(segment(tmp_path), place)
    with pytest.warns(TorchgraphWarning, match="damaged in part"):
        found = open_run(tmp_path).model().frame(0)
    assert found.fingerprints is not None
    assert sorted(found.fingerprints.tolist()) == [0, *of(WHOLE, 1, 3).tolist()]


def part_of(rank: int) -> Session:
    return replace(SESSION, id=str(rank), rank=rank, world_size=2, created=1_000.0 + rank / 8)


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        pytest.param((of(WHOLE, 5), of(WHOLE, 7)), of(WHOLE, 12), id="both whole"),
        pytest.param((of(WHOLE, MOST), of(WHOLE, 2)), of(WHOLE, 1), id="beyond the largest"),
        pytest.param((of(SAMPLED, 5), of(SAMPLED, 7)), of(SAMPLED, 12), id="both sampled"),
        pytest.param((of(WHOLE, 5), of(SAMPLED, 7)), np.zeros(1), id="one sampled"),
        pytest.param((of(WHOLE, 5), of(Extent.NONE, 0)), np.zeros(1), id="one without"),
    ],
)
@pytest.mark.parametrize("part", [None, 0])
def test_those_of_parts_add_up_and_a_copy_counts_once(
    part: int | None, ranks: tuple[npt.NDArray[np.uint64], ...], expected: npt.NDArray[np.uint64], tmp_path: Path
) -> None:
    series = Series(0, "fc", None, "param", "weight", "value", part=part)
    for rank, found in enumerate(ranks):
        one = frame(0, series=[0], graph=None, seed=1)
        write(tmp_path, (series,), replace(one, fingerprints=found), session=part_of(rank))
    model = quietly(tmp_path).model()
    wanted = expected if part is None else ranks[0]
    np.testing.assert_array_equal(model.rows([0]).fingerprints[0], wanted)
    read = model.frame(0).fingerprints
    np.testing.assert_array_equal(np.zeros(1) if read is None else read, wanted)
