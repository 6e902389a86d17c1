"""The index of cells, from which the x-ray is drawn, against the steps themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.record.examples import SESSION, write
from torchgraph_explorer import open_run
from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.record.cells import writing
from torchgraph_explorer.record.cells.codes import decode, encode, is_bad
from torchgraph_explorer.record.cells.reading import CellCache, CellReader, Columns, Wanted
from torchgraph_explorer.record.cells.statistics import STATISTIC_NAMES, CellTable
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import STATISTICS, Finished, Frame, Record, Series

STEPS = 150
SERIES = (
    Series(0, "", 0, "output", "output", "value"),
    Series(1, "a", 0, "output", "output", "value"),
    Series(2, "a", 1, "output", "output", "value"),
    Series(3, "a", 0, "output", "output", "grad_norm"),
    Series(4, "a", None, "param", "weight", "value"),
    Series(5, "a", None, "param", "bias", "value"),
    Series(6, "a", None, "param", "weight", "update_ratio"),
    Series(7, "b", 0, "output", "output", "value"),
)


def frame(step: int, *, bad: Sequence[int] = (), time: float = 0.0) -> Frame:
    """Row `i` has mean `i + step / 100`; the series `bad` have a NaN."""
    rows = len(SERIES)
    numbers: dict[str, npt.NDArray[Any]] = dict.fromkeys(STATISTICS, np.zeros(rows))
    mean = np.arange(rows) + step / 100
    numbers |= {"count": np.full(rows, 10.0), "sampled": np.full(rows, 8.0), "zeros": np.full(rows, 2.0)}
    numbers |= {"mean": mean, "absolute_mean": mean, "std": mean, "l2_norm": mean, "min": -mean, "max": mean}
    numbers["nan"] = np.isin(np.arange(rows), bad).astype(float)
    statistics = np.stack([numbers[name] for name in STATISTICS], axis=1).astype(np.float32)
    ids = np.arange(rows, dtype=np.uint32)
    empty = Histograms(np.zeros(rows + 1, np.uint32), np.zeros(0, np.int16), np.zeros(0, np.uint32))
    return Frame(step, time or 2_000.0 + step, None, None, ids, ids, statistics, empty)


def frames(steps: Sequence[int]) -> list[Frame]:
    return [frame(step, bad=(7,) if step == 77 else ()) for step in steps]


def recorded(folder: Path, *records: Record, session: str = "5f1a") -> ModelRecord:
    write(folder, SERIES, *records, session=replace(SESSION, id=session))
    return open_run(folder).model()


def cells(model: ModelRecord, statistic: str, **wanted: int) -> Columns:
    return model.cells(Wanted(statistic, **wanted))


def from_steps(model: ModelRecord, statistic: str, monkeypatch: pytest.MonkeyPatch) -> Columns:
    """The same without the index."""
    with monkeypatch.context() as patch:
        patch.setattr(model._index.cells, "blocks", [])
        return cells(model, statistic)


@pytest.mark.parametrize(
    "value", [0.0, 1e-38, 3e-5, 0.5, 1.0, 123.0, 3.3e38], ids=["zero", "least", "small", "half", "one", "large", "most"]
)
def test_a_code_has_its_number_within_half_a_percent(value: float) -> None:
    codes = encode(np.array([value]), np.array([False]))
    assert decode(codes)[0] == pytest.approx(value, rel=0.004)
    assert not is_bad(codes)[0]


def test_the_largest_code_is_that_of_the_largest_number_and_tells_what_is_not_finite() -> None:
    codes = encode(np.array([math.nan, 0.0, 2.0, math.nan]), np.array([False, False, False, True]))
    assert codes[0] < codes[1] < codes[2] < codes[3]
    assert is_bad(codes).tolist() == [False, False, False, True]
    assert np.isnan(decode(codes)[[0, 3]]).all()


@pytest.mark.parametrize(
    ("statistic", "module", "expected"),
    [
        pytest.param("output_std", "", 0.1, id="one output"),
        pytest.param("output_std", "a", math.sqrt((1.1**2 + 2.1**2) / 2), id="two calls"),
        pytest.param("output_magnitude", "a", 1.6, id="magnitude"),
        pytest.param("output_gradient", "a", 3.1, id="gradient"),
        pytest.param("parameter_norm", "a", math.hypot(4.1, 5.1), id="two parameters"),
        pytest.param("update_ratio", "a", 6.1, id="update ratio"),
        pytest.param("zeros", "b", 0.25, id="zeros"),
        pytest.param("parameter_gradient", "a", math.nan, id="not recorded"),
    ],
)
def test_a_cell_has_the_statistic_of_its_module(tmp_path: Path, statistic: str, module: str, expected: float) -> None:
    found = cells(recorded(tmp_path, *frames(range(64))), statistic)
    assert found.modules == ("", "a", "b")
    assert decode(found.codes)[10, found.modules.index(module)] == pytest.approx(expected, rel=0.004, nan_ok=True)


def codes_of(name: str, series: Sequence[Series], *rows: Mapping[str, float]) -> npt.NDArray[np.uint16]:
    """One statistic of the modules at one step, from those of each series; what a row does not tell is 0."""
    statistics = np.array([[[row.get(one, 0.0) for row in rows]] for one in STATISTICS], dtype=np.float32)
    return CellTable(series).cells(statistics)[STATISTIC_NAMES.index(name), 0]


def test_a_series_that_a_step_does_not_have_adds_nothing_to_a_cell() -> None:
    absent = dict.fromkeys(STATISTICS, math.nan)
    codes = codes_of("output_std", SERIES[1:3], {"count": 10, "sampled": 8, "std": 2.0}, absent)
    assert decode(codes).tolist() == pytest.approx([2.0], rel=0.004)


@pytest.mark.parametrize(
    ("output", "share"),
    [
        pytest.param({"count": 10, "sampled": 10}, 0.0, id="a mask"),
        pytest.param({"count": 10, "sampled": 9, "nan": 1}, 0.3, id="NaN comes of it"),
    ],
)
def test_what_masks_is_no_part_of_what_is_not_finite(output: dict[str, float], share: float) -> None:
    series = [Series(0, "m", 0, "input", "input[0]", "value"), Series(1, "m", 0, "output", "output", "value")]
    codes = codes_of("nonfinite", series, {"count": 10, "sampled": 5, "negative_infinity": 5}, output)
    assert decode(codes).tolist() == pytest.approx([share], rel=0.004)
    assert is_bad(codes).tolist() == [share > 0]


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 64, STEPS])
def test_the_index_has_the_same_cells_as_the_steps(tmp_path: Path, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = recorded(tmp_path, *frames(range(steps)), Finished(3_000.0))
    assert model._index.cells.blocks
    for statistic in STATISTIC_NAMES:
        found = cells(model, statistic)
        assert np.array_equal(found.codes, from_steps(model, statistic, monkeypatch).codes)
        assert found.is_complete


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> ModelRecord:
    """A run that has not ended: its last steps are in no block."""
    return recorded(tmp_path_factory.mktemp("growing"), *frames(range(STEPS)))


def largest(codes: npt.NDArray[np.uint16], first: int, last: int) -> list[int]:
    return codes[first : last + 1].max(axis=0).tolist()


@pytest.mark.parametrize("unit", [1, 2, 16, 64, 128, 256])
@pytest.mark.parametrize(("first", "stop"), [(0, STEPS), (5, 140), (64, 128), (77, 78)])
def test_a_column_of_several_steps_has_the_largest_cell_and_hides_none_that_is_not_finite(
    growing: ModelRecord, unit: int, first: int, stop: int
) -> None:
    every = cells(growing, "output_std").codes
    found = cells(growing, "output_std", first_frame=first, stop_frame=stop, unit=unit)
    assert (found.first[0], found.last[-1]) == (first, stop - 1)
    for at, (begin, end) in enumerate(zip(found.first.tolist(), found.last.tolist(), strict=True)):
        assert found.codes[at].tolist() == largest(every, begin, end)
    has_bad = is_bad(found.codes).any()
    assert has_bad == (first <= 77 < stop)


def test_steps_that_a_resumed_session_wrote_again_are_those_of_the_later_one(tmp_path: Path) -> None:
    recorded(tmp_path, *frames(range(70)), Finished(3_000.0))
    again = [replace(frame(step, time=9_000.0 + step), statistics=2 * frame(step).statistics) for step in (30, 31)]
    model = recorded(tmp_path, *again, Finished(9_999.0), session="b2")
    found = decode(cells(model, "output_std").codes)[:, 2]
    assert found[29:33] == pytest.approx([7.29, 14.6, 14.62, 7.32], rel=0.004)


def test_a_damaged_block_is_computed_from_the_steps(tmp_path: Path) -> None:
    model = recorded(tmp_path, *frames(range(64)), Finished(3_000.0))
    expected = cells(model, "output_std").codes
    (block,) = model._index.cells.blocks
    data = bytearray(block.path.read_bytes())
    data[block.body : block.body + 600] = bytes(600)
    block.path.write_bytes(data)
    assert np.array_equal(cells(model, "output_std").codes, expected)


def test_steps_may_be_as_large_as_a_record_holds(tmp_path: Path) -> None:
    model = recorded(tmp_path, *frames([0, 2**52, 2**53]), Finished(3_000.0))
    assert len(model._index.cells.blocks) == 1
    assert cells(model, "zeros").is_complete


def test_what_was_computed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, reader = recorded(tmp_path, *frames(range(20))), CellReader()
    first = model.cells(Wanted("zeros"), reader)
    monkeypatch.setattr(type(model), "statistics", None)  # nothing is read again
    assert np.array_equal(model.cells(Wanted("zeros"), reader).codes, first.codes)


@pytest.mark.slow
def test_readers_that_share_a_cache_keep_no_more_together_than_it_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [recorded(tmp_path / str(number), *frames(range(STEPS))) for number in range(3)]
    expected = cells(models[0], "output_std").codes
    cache = CellCache(most_bytes=10_000)
    readers = [CellReader(cache) for _ in models]
    for model, reader in zip(models * 2, readers * 2, strict=True):
        monkeypatch.setattr(model._index.cells, "blocks", [])
        assert model.cells(Wanted("output_std"), reader).codes.tolist() == expected.tolist()
        assert 0 < cache.size <= 10_000
    cache.drop(readers[0]._owner)
    assert models[0].cells(Wanted("output_std"), readers[0]).codes.tolist() == expected.tolist()


@pytest.mark.parametrize("new_at", [1, 5, 8, 11, 40, 64, 70])
def test_cells_that_are_computed_together_are_those_of_each_step(new_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(at_once: int) -> bytes:
        monkeypatch.setattr(writing, "AT_ONCE", at_once)
        writer, blocks = writing.CellWriter(0), []
        writer.define(SERIES[:4])
        for one in frames(range(STEPS)):
            if one.step == new_at:
                writer.define(SERIES[4:])
            known = 4 if one.step < new_at else 8
            blocks.append(writer.add(replace(one, series=one.series[:known], rows=one.rows[:known])))
        return b"".join([*blocks, writer.flush()])

    assert written(8) == written(1)
