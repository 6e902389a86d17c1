"""The packed table: numbers as letters, histograms as strips, and what it must not hold."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from tests.findings.records import chain, module, recorded, weight
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.histogram import Histograms, drawn_range
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import COSTS, STATISTICS, Frame, Series
from torchgraph_wandb.heat_strips import (
    HAS_NAN,
    HAS_NO_HISTOGRAM,
    INNER,
    IS_MISSING,
    SMALLEST_NORMAL,
    heat_strips,
    range_over_time,
)
from torchgraph_wandb.node_statistics import node_statistics
from torchgraph_wandb.snapshot_process import chart_data
from torchgraph_wandb.table import (
    CELL_CHARACTERS,
    CHARACTERS_PER_STEP,
    COLUMNS,
    FIELDS,
    affordable_steps,
    table_rows,
    without_separators,
)
from torchgraph_wandb.tensor_rows import SIDES
from torchgraph_wandb.text_encoding import (
    ALPHABET,
    NOT_FINITE,
    NOT_RECORDED,
    SHARE_STEPS,
    SIZE_OCTAVES,
    TOP,
    ZERO,
    encode_codes,
    encode_flags,
    encode_floats,
    share_codes,
    size_codes,
)
from torchgraph_wandb.thinning import MAX_STEPS, ThinnedSequence, thinned_indices


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
    assert unpacked(encode_floats([value])) == [pytest.approx(value, rel=1.5e-3)]


def test_nan_stays_nan() -> None:
    assert math.isnan(unpacked(encode_floats([math.nan]))[0])


@pytest.mark.parametrize("share", [1.0, 0.5, 0.123, 1 / 16_384, 3 / 16_384, 0.0])
def test_a_share_comes_back_precisely_enough_to_count_with(share: float) -> None:
    code = int(share_codes(share))
    found = 0.0 if code == ZERO else 2.0 ** ((code - TOP) / SHARE_STEPS)
    assert found == pytest.approx(share, rel=2.1e-3)
    assert round(found * 16_384) == pytest.approx(share * 16_384, rel=2.1e-3, abs=0.01)


@pytest.mark.parametrize("size", [0.0, 1e-19, 0.004, 1.0, 123.0, 9e18], ids=str)
def test_a_size_comes_back_to_two_per_cent(size: float) -> None:
    code = int(size_codes(size))
    found = 0.0 if code == ZERO else 2.0 ** ((code - 1) / (TOP - 1) * SIZE_OCTAVES - SIZE_OCTAVES / 2)
    assert found == pytest.approx(size, rel=0.02)


def test_zero_not_finite_and_not_recorded_are_three_things() -> None:
    assert size_codes([0.0, math.inf, math.nan]).tolist() == [ZERO, NOT_FINITE, NOT_RECORDED]


def test_a_code_takes_two_letters_and_a_flag_one() -> None:
    codes = np.array([[ZERO, 65], [NOT_FINITE, NOT_RECORDED]])
    assert encode_codes(codes) == "00" + ALPHABET[1] * 2 + ALPHABET[63] + ALPHABET[62] + ALPHABET[63] * 2
    assert encode_flags(np.array([0, 5, 63])) == "05" + ALPHABET[63]


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
    drawn = heat_strips(frames, model.series, reject=0.1)
    for series in range(len(model.series)):
        low, high = drawn.axes[series]
        below = counted(frames[-1], series, low + (high - low) * np.linspace(0, 1, INNER + 1))
        total = counted(frames[-1], series, np.array([math.inf]))[0]
        shares = np.diff([0.0, *below, total]) / total
        codes = drawn.cells[series, -1]
        found = np.where(codes == ZERO, 0.0, 2.0 ** ((codes - TOP) / SHARE_STEPS))
        assert found.tolist() == pytest.approx(shares.tolist(), rel=2e-2, abs=2e-4), model.series[series]


RANGES = json.loads((Path(__file__).parents[1] / "contracts" / "ranges.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", RANGES, ids=lambda case: str(case["name"]))
def test_the_range_over_time_is_that_of_the_viewer(case: dict[str, Any]) -> None:
    ends = np.array([case["ends"]], dtype=np.float64)  # null becomes NaN
    expected = [[math.nan, math.nan]] if case["range"] is None else [case["range"]]
    assert np.array_equal(range_over_time(ends, reject=case["reject"]), expected, equal_nan=True)


def test_an_axis_leaves_out_the_outliers_that_are_farthest_from_the_median(model: ModelRecord) -> None:
    frame = model.frame(0)
    drawn = heat_strips([frame], model.series, reject=0.3)
    low, high = (frame.statistics[:, STATISTICS.index(name)] for name in ("min", "max"))
    expected = drawn_range(frame.histograms, 0.3, low=low, high=high)[frame.rows]
    # The axis of a constant is wider, and that of a series that is nearly all zeros shows the others.
    varies = (expected[:, 0] < expected[:, 1]) & (np.abs(expected).max(axis=1) > SMALLEST_NORMAL)
    assert np.count_nonzero(varies) > 10
    assert np.array_equal(drawn.axes[frame.series][varies], expected[varies].astype(np.float32))


def test_an_axis_of_nearly_all_zeros_shows_the_others(tmp_path: Path) -> None:
    dropped = np.where(np.arange(1000) % 20 == 0, np.arange(1000), 0)
    key = ("fc1", "output", "output", "value")
    record = recorded(tmp_path, chain(module("fc1", "Linear", weight(2, 2))), [{key: dropped}, {key: 2 * dropped}])
    drawn = heat_strips([record.frame(0), record.frame(1)], record.series, reject=0.1)
    assert drawn.axes.tolist() == [[0, 1960]]


def changed(frame: Frame, **columns: float) -> Frame:
    """The frame, with its first series' statistics changed."""
    statistics = frame.statistics.copy()
    for name, value in columns.items():
        statistics[int(frame.rows[0]), STATISTICS.index(name)] = value
    return replace(frame, statistics=statistics)


def test_nan_no_finite_value_and_no_series_are_told_apart_step_by_step(model: ModelRecord) -> None:
    frame = model.frame(0)
    series = int(frame.series[0])
    lost = {"nan": 2, "sampled": 0, "min": math.nan, "max": math.nan, "mean": math.nan}
    kept = frame.series != series
    absent = replace(frame, series=frame.series[kept], rows=frame.rows[kept])
    drawn = heat_strips([frame, changed(frame, nan=2), changed(frame, **lost), absent], model.series, reject=0.1)
    assert drawn.flags[series].tolist() == [0, HAS_NAN, HAS_NAN, IS_MISSING]
    assert (drawn.cells[series, :2] <= TOP).all()
    assert (drawn.cells[series, 2] == NOT_FINITE).all()
    assert (drawn.cells[series, 3] == NOT_RECORDED).all()
    assert np.isnan(drawn.statistics[series, 3]).all()


def test_a_mask_of_minus_infinity_is_no_fault(model: ModelRecord) -> None:
    frame = model.frame(0)
    mask = next(one for one in model.series if one.role == "input" and one.kind == "value" and one.module == "")
    first = np.argsort(frame.series != mask.id, kind="stable")
    frame = replace(frame, series=frame.series[first], rows=frame.rows[first])
    drawn = heat_strips([changed(frame, negative_infinity=3)], model.series, reject=0.1)
    assert drawn.flags[mask.id].tolist() == [0]


def test_a_statistic_that_is_not_finite_is_no_gap(model: ModelRecord) -> None:
    frame = model.frame(0)
    output = next(one.id for one in model.series if (one.role, one.kind) == ("output", "value"))
    first = np.argsort(frame.series != output, kind="stable")
    frame = replace(frame, series=frame.series[first], rows=frame.rows[first])
    drawn = heat_strips([frame, changed(frame, nan=4, sampled=0, std=math.nan)], model.series, reject=0.1)
    series = model.series[output]
    values = node_statistics(model.series, drawn).by_owner[f"{series.module}#{series.call}"][:, 0]
    assert math.isfinite(values[0])
    assert math.isinf(values[1])


def test_the_table_has_few_rows_of_text_and_no_column_that_wandb_overwrites(model: ModelRecord) -> None:
    rows = table_rows(chart_data(model))
    # Nothing is wrong in it, and every edge is a line.
    assert [part for part, _ in rows] == [part for part in FIELDS if part not in {"findings", "stubs"}]
    assert all(isinstance(packed, str) for _, packed in rows)
    assert {"id", "name", "color", "_defaultColorIndex"}.isdisjoint(COLUMNS)


@pytest.mark.parametrize("series", [1, 200, 5_000, 30_000])
def test_a_table_of_very_many_series_stays_below_wandbs_limits(series: int) -> None:
    steps = affordable_steps(series, MAX_STEPS)
    letters = 3 * 2 + steps * CHARACTERS_PER_STEP
    assert 4 <= steps <= MAX_STEPS
    assert series * letters < 25e6 / 2
    assert series * letters / CELL_CHARACTERS < 10_000 / 2


def test_every_line_has_the_fields_of_its_part(model: ModelRecord) -> None:
    for part, packed in table_rows(chart_data(model)):
        assert {len(line.split("\t")) for line in packed.split("\n")} == {len(FIELDS[part])}


class Halves(nn.Module):
    """Calls what is in a list, with a keyword argument."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(4, 2), nn.ReLU()])

    def forward(self, features: Tensor) -> Tensor:
        return self.parts[1](self.parts[0](input=features))


def test_modules_tensors_and_shapes_are_worded_as_in_the_viewer(tmp_path: Path) -> None:
    model = Halves()
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="r", verbose=False):
        for batch in (3, 5):
            model(features=torch.randn(batch, 4)).sum().backward()
    rows = table_rows(chart_data(open_run(tmp_path / "r").model(), engine="rows"))
    fields = {
        part: [dict(zip(FIELDS[part], line.split("\t"), strict=True)) for line in text.split("\n")]
        for part, text in rows
    }
    nodes = {node["key"]: (node["label"], node["shape"]) for node in fields["nodes"]}
    assert nodes["parts.0#0"] == ("parts.0", "N×2")
    assert nodes["#0@input['features']"] == ("features", "N×4")
    tensors = {(one["owner"], one["path"]): (one["name"], one["shape"]) for one in fields["tensors"]}
    assert tensors["parts.0#0", "input['input']"] == ("input", "N×4")
    assert tensors["parts.0#*", "weight"] == ("weight", "2×4")


def test_the_description_counts_one_as_one(tmp_path: Path) -> None:
    model = nn.Linear(1, 1, bias=False)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="r", verbose=False):
        model(torch.ones(1, 1)).sum().backward()
    [summary] = [text for part, text in table_rows(chart_data(open_run(tmp_path / "r").model())) if part == "summary"]
    description = dict(zip(FIELDS["summary"], summary.split("\t"), strict=True))["description"]
    assert description.startswith("Linear: 1 module, 1 parameter; 1 step recorded, 1 shown")


def test_every_kind_of_series_has_its_place() -> None:
    kinds = Series.__dataclass_fields__["kind"].type
    assert kinds == "Kind"
    assert set(SIDES) == {"value", "grad_norm", "grad", "optimizer_grad", "update", "update_ratio", *COSTS}


def test_text_of_the_users_own_cannot_break_a_line() -> None:
    assert without_separators("a\tb\nc\rd") == "a b c d"


@pytest.mark.parametrize("count", [1, 2, 47, 48, 49, 100, 1000, 5001])
def test_steps_are_thinned_evenly_and_the_ends_kept(count: int) -> None:
    kept = thinned_indices(count, 48)
    assert (kept[0], kept[-1]) == (0, count - 1)
    assert len(kept) <= 48
    assert len(set(np.diff(kept[:-1]).tolist())) <= 1
    assert len(kept) >= min(count, 24)


def test_a_thinned_sequence_counts_what_it_was_given() -> None:
    thinned: ThinnedSequence[str] = ThinnedSequence(4)
    for letter in "abcdefgh":
        thinned.add(letter)
    assert (len(thinned), thinned.kept) == (8, ["a", "e", "h"])


def test_a_strip_without_histograms_is_strong_around_the_mean_and_reaches_to_the_extremes() -> None:
    statistics = np.full((1, len(STATISTICS)), 0.0, np.float32)
    for name, value in {"count": 100, "sampled": 100, "min": -4, "max": 7, "mean": 1, "std": 1}.items():
        statistics[0, STATISTICS.index(name)] = value
    none = Histograms(np.zeros(2, np.uint32), np.zeros(0, np.int16), np.zeros(0, np.uint32))
    one = np.zeros(1, np.uint32)
    frame = Frame(0, 0.0, None, None, one, one, statistics, none)
    drawn = heat_strips([frame], [Series(0, "", 0, "output", "output", "value")], reject=0.1)
    assert drawn.axes.tolist() == [[-4.0, 7.0]]
    assert drawn.flags.tolist() == [[HAS_NO_HISTOGRAM]]
    codes = drawn.cells[0, 0]
    inner = 0.5 * np.arange(-8, 14)  # where the inner rows begin
    near = {distance: (inner + 0.5 >= 1 - distance) & (inner <= 1 + distance) for distance in (1, 2)}
    expected = np.where(near[1], share_codes(1.0), np.where(near[2], share_codes(0.3), share_codes(0.05)))
    assert codes[1:-1].tolist() == expected.tolist()
    assert codes[[0, -1]].tolist() == [ZERO, ZERO]
