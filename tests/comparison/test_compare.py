"""`compare` on runs made by hand."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.comparison.records import Change, Elements, Key, net, recorded
from tests.record.examples import GRAPH, SERIES, SESSION, clean, flip, labelled, logged, segment, write
from torchgraph_explorer import NotFoundError, OptionError, RecordError, TorchgraphWarning, compare
from torchgraph_explorer.comparison.matching import match_series, module_map, rename_rules
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import STATISTICS, Frame, Series

pytestmark = pytest.mark.slow

STEPS = range(0, 400, 10)


def changing(
    since: int, *wanted: tuple[str, str, str], by: float = 0.1, spreads_to: Iterable[tuple[str, str, str]] = ()
) -> Change:
    """Add `by` to the series `wanted`, as (module, role, kind), from a step on, and to the others from the next one."""
    targets, later = set(wanted), set(spreads_to)

    def change(step: int, key: Key, elements: Elements) -> Elements:
        place = key[0], key[2], key[4]
        return elements + np.float32(by) if step >= since and (place in targets or place in later) else elements

    return change


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """The run that others are held against."""
    return recorded(tmp_path_factory.mktemp("plain"), STEPS)


WEIGHT, OUT, IN = ("second", "param", "value"), ("second", "output", "value"), ("third", "input", "value")

PARTINGS = {
    "an output": ([OUT, IN, ("", "output", "value")], ("computation", "second", 0, "output")),
    "a parameter and what is computed with it": ([OUT, IN, WEIGHT], ("parameter", "second", None, "weight")),
    "the input of the model": ([("", "input", "value"), ("first", "input", "value"), OUT], ("data", "", 0, "input[0]")),
    "between two calls": ([IN, ("third", "output", "value")], ("computation", "", 0, "input[0]")),
    "a gradient of the last module's output": (
        [("third", "output", "grad_norm"), ("second", "output", "grad_norm")],
        ("gradient", "third", 0, "output"),
    ),
    "a gradient in the middle": (
        [("second", "input", "grad_norm"), ("first", "param", "grad")],
        ("gradient", "second", 0, "input[0]"),
    ),
    "an update": ([("third", "param", "update"), ("first", "param", "update")], ("update", "first", None, "weight")),
}


@pytest.mark.parametrize("parting", PARTINGS)
def test_the_first_divergence_is_the_first_place_in_the_order_of_execution(
    parting: str, plain: Model, tmp_path: Path
) -> None:
    wanted, expected = PARTINGS[parting]
    a, b = plain, recorded(tmp_path / "b", STEPS, changing(130, *wanted))
    found = compare(a, b).first_divergence
    assert found is not None
    assert (found.kind, found.module, found.call, found.path) == expected
    assert (found.last_equal_step, found.step, found.is_rounding) == (120, 130, False)
    assert found.differing == len(wanted)
    assert 0 <= found.distance <= 1


@pytest.mark.parametrize("has_fingerprints", [True, False])
def test_equal_runs_do_not_part(has_fingerprints: bool, tmp_path: Path) -> None:
    a, b = (recorded(tmp_path / name, STEPS, has_fingerprints=has_fingerprints) for name in "ab")
    found = compare(a, b)
    assert found.first_divergence is None
    assert found.first_beyond_rounding is None
    assert found.is_equal
    assert all(one.first_different is None and one.distance == one.gap == 0 for one in found.series)


def test_last_bits_that_differ_are_found_and_called_rounding(plain: Model, tmp_path: Path) -> None:
    def change(step: int, key: Key, elements: Elements) -> Elements:
        is_wanted = (key[0], key[2], key[4]) == OUT and step >= 50
        return np.nextafter(elements, np.float32(99)) if is_wanted else elements

    found = compare(plain, recorded(tmp_path / "b", STEPS, change))
    assert found.first_divergence is not None
    assert (found.first_divergence.step, found.first_divergence.is_rounding) == (50, True)
    assert found.first_beyond_rounding is None
    assert not found.is_equal
    [differs] = [one for one in found.series if one.first_different is not None]
    assert (differs.series.module, differs.first_different, differs.first_beyond_rounding) == ("second", 50, None)


def test_a_record_without_fingerprints_is_compared_by_its_statistics(plain: Model, tmp_path: Path) -> None:
    a = plain
    b = recorded(tmp_path / "b", STEPS, changing(50, OUT, by=0.001), has_fingerprints=False)
    found = compare(a, b).first_divergence
    assert found is not None
    assert (found.step, found.module) == (50, "second")


@pytest.mark.parametrize(("by", "expected"), [(0.01, None), (1.0, 100)], ids=["within", "beyond"])
def test_fluctuation_is_what_the_series_does_from_step_to_step(by: float, expected: int | None, tmp_path: Path) -> None:
    def noisy(change: Change) -> Change:
        def both(step: int, key: Key, elements: Elements) -> Elements | None:
            moved = np.float32(0.05 * np.random.default_rng(step).standard_normal())
            return change(step, key, elements + moved)

        return both

    a = recorded(tmp_path / "a", STEPS, noisy(changing(10_000)))
    b = recorded(tmp_path / "b", STEPS, noisy(changing(100, OUT, by=by)))
    [found] = [one for one in compare(a, b).series if one.series.module == "second" and one.first_different is not None]
    assert found.first_beyond_rounding == 100
    assert found.first_beyond_fluctuation == expected


def test_runs_of_other_frequencies_are_compared_at_the_steps_that_both_logged(tmp_path: Path) -> None:
    a = recorded(tmp_path / "a", range(0, 400, 10))
    b = recorded(tmp_path / "b", range(0, 400, 35), changing(200, OUT))
    found = compare(a, b)
    assert found.steps.tolist() == [[step, step] for step in range(0, 400, 70)]
    assert found.first_divergence is not None
    assert (found.first_divergence.last_equal_step, found.first_divergence.step) == (140, 210)


def test_runs_without_a_common_step_are_held_against_the_nearest_and_not_said_to_part(tmp_path: Path) -> None:
    a, b = recorded(tmp_path / "a", range(0, 400, 20)), recorded(tmp_path / "b", range(3, 400, 10))
    found = compare(a, b)
    assert found.alignment == "nearest"
    assert found.steps[:3].tolist() == [[0, 3], [20, 23], [40, 43]]
    assert found.first_divergence is None
    assert not found.is_equal


def test_another_number_of_elements_is_more_than_rounding(tmp_path: Path) -> None:
    for name, count in (("a", 2.0**23), ("b", 2.0**23 + 1)):
        one = clean(0)
        one.statistics[:, [STATISTICS.index("count"), STATISTICS.index("sampled")]] = count
        write(tmp_path / name, GRAPH, SERIES, one)
    assert compare(tmp_path / "a", tmp_path / "b").first_beyond_rounding is not None


def test_of_two_steps_that_are_equally_near_the_earlier_one_is_taken(tmp_path: Path) -> None:
    a, b = recorded(tmp_path / "a", range(20, 400, 40)), recorded(tmp_path / "b", range(15, 400, 10))
    assert compare(a, b).steps[:3].tolist() == [[20, 15], [60, 55], [100, 95]]


def test_a_resumed_run_is_compared_with_one_that_was_not_interrupted(plain: Model, tmp_path: Path) -> None:
    a = plain
    recorded(tmp_path / "b", range(0, 250, 10))
    b = recorded(
        tmp_path / "b", range(200, 400, 10), changing(300, OUT), session=replace(SESSION, id="again", created=2_000)
    )
    found = compare(a, b)
    assert len(found.steps) == len(STEPS)
    assert found.first_divergence is not None
    assert (found.first_divergence.last_equal_step, found.first_divergence.step) == (290, 300)


def test_nan_in_one_run_alone_is_a_difference_beyond_all(plain: Model, tmp_path: Path) -> None:
    def change(step: int, key: Key, elements: Elements) -> Elements:
        is_bad = (key[0], key[2], key[4]) == OUT and step >= 60
        return np.where(np.arange(len(elements)) < 64, np.float32(math.nan), elements) if is_bad else elements

    a, b = plain, recorded(tmp_path / "b", STEPS, change)
    found = compare(a, b)
    assert found.first_beyond_rounding is not None
    assert (found.first_beyond_rounding.step, found.first_beyond_rounding.gap) == (60, math.inf)
    assert (found.series[0].distance, found.series[0].gap, found.series[0].series.module) == (1.0, math.inf, "second")
    assert compare(b, b).is_equal


def test_another_number_of_elements_is_a_difference_and_no_nan(plain: Model, tmp_path: Path) -> None:
    def change(step: int, key: Key, elements: Elements) -> Elements:
        return np.tile(elements, 2) if (key[0], key[2], key[4]) == OUT and step >= 60 else elements

    found = compare(plain, recorded(tmp_path / "b", STEPS, change))
    assert found.first_beyond_rounding is not None
    assert (found.first_beyond_rounding.step, found.first_beyond_rounding.module) == (60, "second")
    assert found.series[0].gap == pytest.approx(0.5, abs=0.1)


EDGES = (
    ("", "layer1 -> layer2#2", "", "stage1 -> stage2#2"),
    ("", "@mask -> layer1", "", "@mask -> stage1"),
    ("layer1", ":input[0] -> 0 #2", "stage1", ":input[0] -> 0 #2"),
    ("layer1", "0 -> /head", "stage1", "0 -> /head"),
    ("head", "/layer1.0 -> :output", "head", "/stage1.0 -> :output"),
)


@pytest.mark.parametrize(("module", "path", "other", "other_path"), EDGES, ids=[path for _, path, _, _ in EDGES])
def test_a_rename_map_renames_the_container_and_the_ends_of_edges(
    module: str, path: str, other: str, other_path: str
) -> None:
    names = ["", "layer1", "layer1.0", "layer2", "head"], ["", "stage1", "stage1.0", "stage2", "head"]
    modules = module_map(*names, rename_rules({"layer1.*": "stage1.*", "layer2.*": "stage2.*"}))
    assert [modules[name] for name in names[0]] == names[1]
    ours, theirs = (Series(0, *one, "grad_norm") for one in ((module, 0, "edge", path), (other, 0, "edge", other_path)))
    assert match_series((ours,), (theirs,), modules).a.tolist() == [0]


@pytest.mark.parametrize("path", ["", " -> ", "#1 -> #2", "/ -> /#1", "#", "/#", "first -> #2 #3"])
def test_edges_whose_ends_have_no_name_are_matched(path: str) -> None:
    ours, theirs = (Series(0, module, 0, "edge", path, "grad_norm") for module in ("net", "net"))
    assert match_series((ours,), (theirs,), {"net": "net"}).a.tolist() == [0]


def test_renamed_modules_are_matched_and_named_as_in_their_own_run(tmp_path: Path) -> None:
    a = recorded(tmp_path / "a", STEPS, graph=net("layer1.conv", "layer2.conv"))
    b = recorded(
        tmp_path / "b", STEPS, changing(70, ("stage2.conv", "output", "value")), graph=net("stage1.conv", "stage2.conv")
    )
    apart = compare(a, b).structure
    assert (apart.only_a, apart.only_b) == (("layer1.conv", "layer2.conv"), ("stage1.conv", "stage2.conv"))
    found = compare(a, b, rename={"layer*.conv": "stage*.conv"})
    assert found.structure.is_same
    assert found.first_divergence is not None
    assert (found.first_divergence.module, found.first_divergence.step) == ("layer2.conv", 70)
    assert found.series[0].other.module == "stage2.conv"


def test_of_models_of_another_depth_what_is_new_is_told(tmp_path: Path) -> None:
    a, b = (
        recorded(tmp_path / "a", STEPS),
        recorded(tmp_path / "b", STEPS, graph=net("first", "second", "third", "fourth")),
    )
    found = compare(a, b).structure
    assert (found.only_a, found.only_b) == ((), ("fourth",))
    assert {one.module for one in found.series_only_b} == {"fourth"}
    assert not found.series_only_a


def test_a_layer_of_another_shape_is_told(plain: Model, tmp_path: Path) -> None:
    other = net("first", "second", "third")
    changed = replace(other.modules[2], params=(replace(other.modules[2].params[0], shape=(4, 8)),))
    b = recorded(tmp_path / "b", STEPS, graph=replace(other, modules=(*other.modules[:2], changed, *other.modules[3:])))
    [found] = compare(plain, b).structure.changed
    assert (found.name, found.a, found.b) == ("second: weight", "float32 [4, 4]", "float32 [4, 8]")


def test_of_parameters_that_all_differ_after_unlogged_steps_the_one_that_moved_too_far_is_named(tmp_path: Path) -> None:
    def change(step: int, key: Key, elements: Elements) -> Elements:
        if step < 50:
            return elements
        by = 3.0 if (key[0], key[2], key[4]) == WEIGHT else 0.001
        return elements + np.float32(by)

    a, b = recorded(tmp_path / "a", (0, 50)), recorded(tmp_path / "b", (0, 50), change)
    found = compare(a, b).first_divergence
    assert found is not None
    assert (found.kind, found.last_equal_step, found.step) == ("data", 0, 50)  # since the data differ, too


@pytest.mark.parametrize(
    ("others", "words"), [(0.001, "difference is most likely in"), (0.0, "difference is in")], ids=["all", "one"]
)
def test_that_a_parameter_is_the_likeliest_of_several_is_said(others: float, words: str, tmp_path: Path) -> None:
    def change(step: int, key: Key, elements: Elements) -> Elements:
        if step < 50 or key[2] != "param":
            return elements
        return elements + np.float32(3.0 if (key[0], key[2], key[4]) == WEIGHT else others)

    found = compare(recorded(tmp_path / "a", (0, 50)), recorded(tmp_path / "b", (0, 50), change)).first_divergence
    assert found is not None
    assert (found.kind, found.module) == ("parameter", WEIGHT[0])
    assert words in found.text


def test_scalars_and_settings_that_differ_are_told(tmp_path: Path) -> None:
    losses = np.linspace(3, 1, len(STEPS))
    other = np.where(np.arange(len(STEPS)) < 5, losses, losses * 2)
    a = recorded(tmp_path / "a", STEPS, scalars={"loss": losses.tolist(), "lr": losses.tolist()})
    versions = {**SESSION.versions, "torch": "2.14.0"}
    b = recorded(tmp_path / "b", STEPS, scalars={"loss": other.tolist()}, session=replace(SESSION, versions=versions))
    found = compare(a, b)
    [loss] = found.scalars.both
    assert (loss.name, loss.first_different) == ("loss", 50)
    assert loss.largest == pytest.approx(0.5)
    assert (found.scalars.only_a, found.scalars.only_b) == (("lr",), ())
    assert [(one.name, one.a, one.b) for one in found.settings] == [("version of torch", "2.13.0", "2.14.0")]


def test_scalars_are_compared_label_by_label(tmp_path: Path) -> None:
    found = [tmp_path / "a", tmp_path / "b"]
    for folder, values in zip(found, ([1.0, 2.0], [1.0, 3.0]), strict=True):
        write(folder, logged([0, 1], loss=[1.0, 2.0]), labelled("eval", logged([0, 1], loss=values)))
    compared = compare(*found)
    assert [(one.name, one.first_different) for one in compared.scalars.both] == [("loss (eval)", 1), ("loss", None)]
    assert not compared.is_equal


def test_runs_are_given_by_path_or_as_read(plain: Model, tmp_path: Path) -> None:
    a = plain
    recorded(tmp_path / "b", STEPS)
    assert compare(a, tmp_path / "b").is_equal
    with pytest.raises(NotFoundError):
        compare(a, tmp_path / "c")
    with pytest.raises(NotFoundError, match="other"):
        compare(tmp_path / "b", tmp_path / "b", model="other")


@pytest.mark.parametrize("rename", [{"a*": "b"}, {"a": 3}, "a=b"], ids=str)
def test_a_rename_map_that_is_none_is_refused_with_advice(rename: dict[str, str], tmp_path: Path) -> None:
    a = recorded(tmp_path / "a", [0])
    with pytest.raises(OptionError, match=r"Give \{'layer1"):
        compare(a, a, rename=rename)


def test_a_run_without_steps_is_compared_with_nothing(tmp_path: Path) -> None:
    a, b = recorded(tmp_path / "a", []), recorded(tmp_path / "b", STEPS)
    found = compare(a, b)
    assert (found.alignment, found.first_divergence, len(found.steps)) == ("none", None, 0)
    assert [one.distance_step for one in found.series] == [None] * len(found.series)


def test_a_damaged_fingerprint_is_no_divergence(plain: Model, tmp_path: Path) -> None:
    b = recorded(tmp_path, STEPS)
    [series] = b.find("second", role="param", kind="value")
    found = b.frame(4)
    assert found.fingerprints is not None
    written = found.fingerprints[found.rows[series.id]].tobytes()
    flip(segment(tmp_path), segment(tmp_path).read_bytes().rindex(written))
    with warnings.catch_warnings(action="ignore", category=TorchgraphWarning):
        assert compare(plain, tmp_path).first_divergence is None


def test_a_run_that_is_gone_before_it_was_compared_is_told(
    plain: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compare(plain, recorded(tmp_path / "b", STEPS, changing(3, OUT)))
    read, times = Model.frame, iter(range(9))

    def going(model: Model, index: int) -> Frame:
        if next(times) > 1:
            raise RecordError("It is gone.")
        return read(model, index)

    monkeypatch.setattr(Model, "frame", going)
    with pytest.raises(RecordError, match=r"It is gone\."):
        _ = found.first_divergence


def test_of_more_than_can_be_read_the_first_difference_is_still_found_exactly(
    plain: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchgraph_explorer.comparison import models

    a, b = plain, recorded(tmp_path / "b", STEPS, changing(170, OUT))
    monkeypatch.setattr(models, "MOST_CELLS", 5 * len(a.series))
    found = compare(a, b).first_divergence
    assert found is not None
    assert (found.last_equal_step, found.step) == (160, 170)
