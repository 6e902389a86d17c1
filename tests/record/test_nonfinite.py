"""Where NaN and infinity are found in a record, and where they are said to have come up first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.record.examples import GRAPH, SERIES, SESSION, clean, flip, frame, other_session, quietly, segment, write
from tests.troubled import STEPS, TROUBLED, record_troubled
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.nonfinite import are_nonfinite, traits
from torchgraph_explorer.record.origin import first_of
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import (
    STATISTICS,
    Call,
    Edge,
    Kind,
    Module,
    ModuleGraph,
    Node,
    Role,
    Series,
    TensorInfo,
)

AT = {name: column for column, name in enumerate(STATISTICS)}


WHERE: dict[str, tuple[list[int], tuple[str, str, str, str] | None]] = {
    "all": ([6, 7, 8, 9], ("stem", "param", "weight", "value")),
    "deep": ([3, 4], ("body.1.act", "output", "output", "value")),
    "gradient": ([4], ("body", "output", "output", "grad_norm")),
    "parameter": ([2, 3, 4, 5, 6, 7, 8, 9], ("words", "param", "weight", "value")),
    "infinite": ([7, 8, 9], ("body.0.act", "output", "output", "value")),
    "clean": ([], None),
    "causal": ([], None),
    "empty": ([], None),
}
"""By run: the bad steps, and where the first one began."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModelRecord]:
    """Records one of `TROUBLED`."""
    logdir = tmp_path_factory.mktemp("troubled")

    def record(run: str) -> ModelRecord:
        record_troubled(logdir, run)
        return open_run(logdir / run).model()

    return record


@pytest.mark.slow
@pytest.mark.parametrize("run", TROUBLED)
def test_the_bad_steps_of_a_training_are_found_and_where_they_began(
    run: str, recorded: Callable[[str], ModelRecord]
) -> None:
    model, (steps, origin) = recorded(run), WHERE[run]
    bad = model.nonfinite()
    assert np.flatnonzero(bad).tolist() == steps
    assert [bool(model.nonfinite_series(model.frame(at))) for at in range(STEPS)] == bad.tolist()
    first = first_of(model.nonfinite_series(model.frame(steps[0])), model.graphs[0]) if steps else None
    assert (first and (first.module, first.role, first.path, first.kind)) == origin


@pytest.mark.parametrize("name", ["nan", "positive_infinity", "negative_infinity"])
def test_each_kind_counts_at_the_frame_that_has_it(tmp_path: Path, name: str) -> None:
    write(tmp_path, GRAPH, SERIES, clean(0), clean(1, **{name: 2}), clean(2))
    model = open_run(tmp_path).model()
    assert model.nonfinite().tolist() == [False, True, False]
    assert model.nonfinite(1, 2).tolist() == [True]
    assert model.nonfinite(2).tolist() == [False]


def test_a_damaged_row_is_not_taken_for_nan(tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, clean(0, nan=1))
    place = open_run(tmp_path).model()._index.frames.frames["body"][0]
    row = 4 * (len(STATISTICS) + 3)
    flip(segment(tmp_path), int(place) + 2 * row + 4 * AT["mean"])
    assert quietly(tmp_path).model().nonfinite().tolist() == [False]


def test_a_series_that_no_record_explains_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES[:-1], clean(0, nan=1))
    assert open_run(tmp_path).model().nonfinite().tolist() == [False]


def test_one_rank_is_enough(tmp_path: Path) -> None:
    ranks = [replace(other_session(f"r{rank}", rank=rank, world_size=2), created=SESSION.created) for rank in range(2)]
    write(tmp_path, GRAPH, SERIES, clean(0), clean(1), session=ranks[0])
    write(tmp_path, GRAPH, SERIES, clean(0), clean(1, nan=1), session=ranks[1])
    assert open_run(tmp_path).model().nonfinite().tolist() == [False, True]


def test_frames_without_any_row_are_clean(tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, frame(0, series=()))
    assert open_run(tmp_path).model().nonfinite().tolist() == [False]


# −∞ on purpose -----------------------------------------------------------------------------------------------------

LOW = {"negative_infinity": 3.0}
BARE_INPUT = Series(0, "attention", 0, "input", "mask", "value")
OUTPUT = Series(1, "attention", 0, "output", "output", "value")
MASK = {**LOW, "zeros": 5.0, "sampled": 5.0}
SCORES = {**LOW, "zeros": 1.0, "sampled": 5.0}


@pytest.mark.parametrize(
    ("found", "gradient", "expected"),
    [
        pytest.param([MASK, {}], False, [False, False], id="an additive mask"),
        pytest.param([MASK, {"nan": 1}], False, [False, True], id="an additive mask where the output is NaN"),
        pytest.param([MASK, LOW], True, [True, True], id="zeros and infinity that gradient reaches, and goes on"),
        pytest.param([SCORES, {}], True, [False, False], id="masked scores before a softmax"),
        pytest.param([SCORES, LOW], True, [True, True], id="goes on to the output"),
        pytest.param([LOW, {"nan": 1}], False, [True, True], id="all masked makes NaN"),
        pytest.param([{**MASK, "nan": 1}, {}], False, [True, False], id="NaN in a mask"),
        pytest.param([{"positive_infinity": 1}, {}], False, [True, False], id="plus infinity goes in"),
        pytest.param([{}, LOW], False, [False, True], id="an output of minus infinity"),
        pytest.param([{}, MASK], False, [False, False], id="a module that makes masks"),
    ],
)
def test_minus_infinity_that_masks_something_does_not_count(
    found: list[dict[str, float]], gradient: bool, expected: list[bool]
) -> None:
    statistics = np.zeros((2, len(STATISTICS)), dtype=np.float32)
    for row, counts in enumerate(found):
        for name, count in counts.items():
            statistics[row, AT[name]] = count
    graded = [replace(one, id=at + 2, kind="grad_norm") for at, one in enumerate((BARE_INPUT, OUTPUT))]
    of = traits([BARE_INPUT, OUTPUT, *(graded if gradient else [])])
    assert are_nonfinite(np.array([0, 1]), statistics, of).tolist() == expected


# The order of execution --------------------------------------------------------------------------------------------


def tensor(path: str) -> TensorInfo:
    return TensorInfo(path, (2,), "float32", True)


NAMES = ["", "a", "a.fc", "b", "spare"]
NET = ModuleGraph(
    id=0,
    first_step=0,
    modules=tuple(Module(name, "M", "m.M", (), (), 0, 0, 0) for name in NAMES),
    calls=tuple(
        Call(module, call, parent, (), ())
        for module, call, parent in [("", 0, None), ("a", 0, 0), ("a.fc", 0, 1), ("b", 0, 0), ("a.fc", 1, 0)]
    ),
    nodes=(
        Node("attached", 0, tensor=tensor("between")),
        Node("call", 0, call=3),
        Node("attached", 0, tensor=tensor("late")),
    ),
    edges=(Edge(0, 1, True),),
)


def series(text: str) -> Series:
    """`a.fc 1 output value`, `a.fc - param grad`; of the root `. 0 input value`."""
    module, call, role, kind, *path = text.split()
    return one_series(module.strip("."), None if call == "-" else int(call), role, kind, path[0] if path else role)  # type: ignore[arg-type]


def one_series(module: str, call: int | None, role: Role, kind: Kind, path: str) -> Series:
    return Series(0, module, call, role, path, kind)


ORDER = [
    "a.fc - param value",
    "b - param value",
    "spare - param value",
    ". 0 input value",
    "a 0 input value",
    "a.fc 0 input value",
    "a.fc 0 output value",
    "a 0 output value",
    ". 0 attached value between",
    "b 0 input value",
    "b 0 output value",
    "a.fc 1 input value",
    "a.fc 1 output value",
    ". 0 attached value late",
    ". 0 output value",
    "elsewhere 0 output value",
    ". 0 output grad_norm",
    "a.fc 1 output grad_norm",
    "b 0 output grad_norm",
    "b - param grad",
    "b 0 input grad_norm",
    "a 0 output grad_norm",
    "a.fc - param grad",
    "a 0 input grad_norm",
    ". 0 input grad_norm",
    "a.fc - param optimizer_grad",
    "b - param optimizer_grad",
    "a.fc - param update",
    "a.fc - param update_ratio",
]
"""From the first to the last in a step."""


@pytest.mark.parametrize("at", range(len(ORDER)), ids=ORDER)
def test_what_comes_first_in_the_order_of_execution_is_the_origin(at: int) -> None:
    later = [series(text) for text in reversed(ORDER[at:])]
    assert first_of(later, NET) == series(ORDER[at])


def test_without_a_graph_and_without_anything_found_there_is_an_answer() -> None:
    assert first_of([], NET) is None
    assert first_of([series("b 0 output value"), series("a - param value")], None) == series("a - param value")
