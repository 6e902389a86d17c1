"""The packed table: numbers as letters, histograms as strips, and what it must not hold."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from torchgraph_explorer import open_run
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.records import STATISTICS, Frame, Series
from torchgraph_wandb.keeping import STEPS, Thinned, thinned_numbers
from torchgraph_wandb.letters import ALPHABET, packed_levels, packed_numbers
from torchgraph_wandb.looks import LOOKS, looks
from torchgraph_wandb.snapshot_process import state_of
from torchgraph_wandb.strips import INNER, MARKED, ROWS, TOLD, strips
from torchgraph_wandb.table import COLUMNS, FIELDS, PIECE, SIDES, affordable_steps, clean, table_rows


def unpacked(text: str) -> list[float]:
    """The numbers in `text`, read slowly."""
    codes = [
        sum(ALPHABET.index(letter) << shift for letter, shift in zip(text[at : at + 3], (12, 6, 0), strict=True))
        for at in range(0, len(text), 3)
    ]
    bits = np.array([code << 14 for code in codes], dtype=np.uint32)
    return [float(value) for value in bits.view(np.float32)]


@pytest.mark.parametrize(
    "value", [0.0, 1.0, -1.0, 3.14159, -2.5e-30, 1e-38, 6.02e23, 3e38, math.inf, -math.inf], ids=str
)
def test_a_number_comes_back_with_three_digits(value: float) -> None:
    assert unpacked(packed_numbers([value])) == [pytest.approx(value, rel=1.5e-3)]


def test_nan_stays_nan() -> None:
    assert math.isnan(unpacked(packed_numbers([math.nan]))[0])


def test_two_rows_share_a_letter_step_by_step() -> None:
    levels = np.array([[1, 0], [2, 7], [0, 3], [5, 0]])
    assert packed_levels(levels) == ALPHABET[8 + 2] + ALPHABET[0 + 5] + ALPHABET[0 + 7] + ALPHABET[3 * 8]


@pytest.fixture
def model(recorded_run: object) -> ModelRecord:
    return open_run(str(recorded_run)).model()


def counted(frame: Frame, series: int, edges: npt.NDArray[np.float64]) -> list[float]:
    """Elements below each of `edges`, bucket by bucket."""
    row = int(frame.rows[frame.series.tolist().index(series)])
    low, high = (float(frame.statistics[row, STATISTICS.index(name)]) for name in ("min", "max"))
    one = frame.histograms.row(row)
    found = []
    for edge in edges:
        below = 0.0
        for bucket, count in zip(one.buckets.tolist(), one.counts.tolist(), strict=True):
            lower, upper = sorted((bits(bucket), bits(bucket + 1 if bucket >= 0 else bucket - 1)))
            lower, upper = max(lower, low), min(upper, high)
            share = (
                float(edge > 0)
                if bucket == 0
                else (edge - lower) / (upper - lower)
                if upper > lower
                else float(edge > lower)
            )
            below += count * min(max(share, 0.0), 1.0)
        found.append(below)
    return found


def bits(bucket: int) -> float:
    """The value at which the bucket with this number, or the mirror image of it, begins."""
    return math.copysign(float(np.array([abs(bucket) << 21], dtype=np.uint32).view(np.float32)[0]), bucket)


def test_a_column_of_a_strip_counts_each_row(model: ModelRecord) -> None:
    frames = [model.frame(number) for number in range(len(model))]
    drawn = strips(frames, len(model.series), reject=0.1)
    for series in range(len(model.series)):
        low, high = drawn.axes[series]
        below = counted(frames[-1], series, low + (high - low) * np.linspace(0, 1, INNER + 1))
        total = counted(frames[-1], series, np.array([math.inf]))[0]
        counts = np.diff([0.0, *below, total])
        expected = np.ceil(7 * (counts / counts.max()) ** 0.6 - 1e-6).clip(0, 7)
        expected[-1] = min(expected[-1], MARKED - 1)
        assert drawn.levels[series, -1].tolist() == pytest.approx(expected.tolist(), abs=1), model.series[series]


def test_a_step_with_nan_is_marked_and_one_without_the_series_is_empty(model: ModelRecord) -> None:
    frames = [model.frame(0), model.frame(1)]
    series = int(frames[0].series[0])
    statistics = frames[0].statistics.copy()
    statistics[int(frames[0].rows[0]), STATISTICS.index("nan")] = 2
    marked = Frame(**{**{name: getattr(frames[0], name) for name in frames[0].__slots__}, "statistics": statistics})
    without = frames[1].series != series
    left = {**{name: getattr(frames[1], name) for name in frames[1].__slots__}}
    absent = Frame(**{**left, "series": frames[1].series[without], "rows": frames[1].rows[without]})
    drawn = strips([marked, absent], len(model.series), reject=0.1)
    assert drawn.levels[series, 0, ROWS - 1] == MARKED
    assert not drawn.levels[series, 1].any()
    assert np.isnan(drawn.told[series, 1]).all()


def test_nan_at_an_early_step_still_colours_its_node(model: ModelRecord) -> None:
    drawn = strips([model.frame(0), model.frame(1)], len(model.series), reject=0.1)
    drawn.told[0, 0, TOLD.index("nonfinite")] = 3
    at = list(LOOKS).index("NaN and infinity")
    assert max(row[at] for row in looks(model.series, drawn).by_owner.values()) == 3


def test_the_table_has_few_rows_of_text_and_no_column_that_wandb_overwrites(model: ModelRecord) -> None:
    rows = table_rows(state_of(model))
    assert [part for part, _ in rows] == list(FIELDS)
    assert all(isinstance(packed, str) for _, packed in rows)
    assert {"id", "name", "color", "_defaultColorIndex"}.isdisjoint(COLUMNS)


@pytest.mark.parametrize("series", [1, 200, 5_000, 30_000])
def test_a_table_of_very_many_series_stays_below_wandbs_limits(series: int) -> None:
    steps = affordable_steps(series, STEPS)
    letters = 3 * 2 + steps * (ROWS // 2 + 3 * len(TOLD))
    assert 8 <= steps <= STEPS
    assert series * letters < 25e6 / 2
    assert series * letters / PIECE < 10_000 / 2


def test_every_line_has_the_fields_of_its_part(model: ModelRecord) -> None:
    for part, packed in table_rows(state_of(model)):
        assert {len(line.split("\t")) for line in packed.split("\n")} == {len(FIELDS[part])}


def test_every_kind_of_series_has_its_place() -> None:
    kinds = Series.__dataclass_fields__["kind"].type
    assert kinds == "Kind"
    assert set(SIDES) == {"value", "grad_norm", "grad", "optimizer_grad", "update", "update_ratio"}


def test_text_of_the_users_own_cannot_break_a_line() -> None:
    assert clean("a\tb\nc\rd") == "a b c d"


@pytest.mark.parametrize("count", [1, 2, 47, 48, 49, 100, 1000, 5001])
def test_steps_are_thinned_evenly_and_the_ends_kept(count: int) -> None:
    kept = thinned_numbers(count, 48)
    assert (kept[0], kept[-1]) == (0, count - 1)
    assert len(kept) <= 48
    assert len(set(np.diff(kept[:-1]).tolist())) <= 1
    assert len(kept) >= min(count, 24)


def test_a_thinned_sequence_counts_what_it_was_given() -> None:
    thinned: Thinned[str] = Thinned(4)
    for letter in "abcdefgh":
        thinned.add(letter)
    assert (len(thinned), thinned.kept) == (8, ["a", "e", "h"])
