"""Where NaN and infinity are, as the chart is told: first of all, at each step, and in steps that it does not show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.troubled import Net, Spoilt, record_troubled
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_wandb.nonfinite_marks import GRADIENT_NAN, INSIDE, VALUE_INFINITY, VALUE_NAN
from torchgraph_wandb.nonfinite_search import NOT_SEARCHED, continue_search, read_search, write_search
from torchgraph_wandb.snapshot_process import chart_data
from torchgraph_wandb.table import FIELDS, table_rows
from torchgraph_wandb.text_encoding import ALPHABET, LIST_SEPARATOR

pytestmark = pytest.mark.slow


def lines(model: ModelRecord, part: str) -> list[dict[str, str]]:
    """The lines of a part of the table, by their fields."""
    rows = table_rows(chart_data(model, continue_search(model, NOT_SEARCHED), engine="rows"))
    text = "\n".join(packed for name, packed in rows if name == part)
    return [dict(zip(FIELDS[part], line.split("\t"), strict=True)) for line in text.split("\n")]


def troubled(logdir: Path, run: str) -> ModelRecord:
    record_troubled(logdir, run)
    return open_run(logdir / run).model()


@pytest.mark.parametrize(
    ("run", "step", "key", "inside", "told"),
    [
        pytest.param("all", 6, "stem#0", "#0", "First NaN at step 6: stem, parameter weight", id="parameters"),
        pytest.param(
            "deep", 3, "body.1.act#0", "body.1#0", "First NaN at step 3: body.1.act (call 1), output", id="deep"
        ),
        pytest.param(
            "gradient", 4, "body#0", "#0", "First NaN at step 4: body (call 1), gradient of output", id="gradient"
        ),
        pytest.param(
            "infinite",
            7,
            "body.0.act#0",
            "body.0#0",
            "First infinity at step 7: body.0.act (call 1), output",
            id="infinity",
        ),
    ],
)
def test_the_first_step_and_call_are_told(
    tmp_path: Path, run: str, step: int, key: str, inside: str, told: str
) -> None:
    [summary] = lines(troubled(tmp_path, run), "summary")
    assert summary["first_nonfinite"].split(LIST_SEPARATOR) == [str(step), str(step), key, inside, told]


@pytest.mark.parametrize("run", ["clean", "causal", "empty"])
def test_what_is_no_fault_is_not_told(tmp_path: Path, run: str) -> None:
    model = troubled(tmp_path, run)
    [summary] = lines(model, "summary")
    assert (summary["first_nonfinite"], summary["extent"], set(summary["nonfinite"])) == ("", "", {"0"})
    assert {letter for node in lines(model, "nodes") for letter in node["marks"]} == {"0"}


@pytest.mark.parametrize(
    ("run", "step", "marked"),
    [
        pytest.param(
            "deep", 3, {"#0": INSIDE, "body#0": INSIDE, "body.1#0": INSIDE, "body.1.act#0": VALUE_NAN}, id="deep"
        ),
        pytest.param("deep", 2, {}, id="before"),
        pytest.param("infinite", 7, {"body.0.act#0": VALUE_INFINITY, "body.0#0": INSIDE}, id="infinity"),
    ],
)
def test_a_call_is_marked_at_its_steps_and_so_are_those_around_it(
    tmp_path: Path, run: str, step: int, marked: dict[str, int]
) -> None:
    nodes = {node["key"]: ALPHABET.index(node["marks"][step]) for node in lines(troubled(tmp_path, run), "nodes")}
    assert {key: nodes[key] for key in marked} == marked
    if not marked:
        assert set(nodes.values()) == {0}


def test_a_gradient_is_told_apart_from_values(tmp_path: Path) -> None:
    nodes = {node["key"]: node["marks"] for node in lines(troubled(tmp_path, "gradient"), "nodes")}
    assert ALPHABET.index(nodes["stem#0"][4]) == GRADIENT_NAN
    assert ALPHABET.index(nodes["head#0"][4]) == 0


def long_run(logdir: Path, steps: int, bad: range) -> ModelRecord:
    """More steps than a chart shows, some of them spoilt."""
    model = Net(torch.nn.ReLU(), Spoilt(torch.nan, bad.start, bad.stop))
    with watch(model, log_freq=1, backend="record", logdir=logdir, run="long", verbose=False):
        for _ in range(steps):
            model(torch.randn(5, 4)).square().mean().backward()
    return open_run(logdir / "long").model()


def test_a_single_bad_step_that_thinning_would_leave_out_is_shown(tmp_path: Path) -> None:
    [summary] = lines(long_run(tmp_path, 150, range(77, 78)), "summary")
    steps = summary["steps"].split(LIST_SEPARATOR)
    assert summary["first_nonfinite"].split(LIST_SEPARATOR)[:2] == [str(steps.index("77")), "77"]
    assert len(steps) <= 48
    assert (summary["nonfinite"][steps.index("77")], summary["extent"]) == ("1", "1 of 150 recorded steps")


def test_bad_steps_that_are_not_shown_are_marked_at_the_next_one(tmp_path: Path) -> None:
    [summary] = lines(long_run(tmp_path, 150, range(70, 90)), "summary")
    steps = [int(step) for step in summary["steps"].split(LIST_SEPARATOR)]
    flags = dict(zip(steps, (ALPHABET.index(letter) for letter in summary["nonfinite"]), strict=True))
    after = min(step for step in steps if step >= 90)
    assert flags[70] == 1
    assert flags[after] == 2  # it is clean itself
    assert all(flags[step] == 0 for step in steps if step < 70 or step > after)


def test_a_search_goes_on_where_the_last_one_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = troubled(tmp_path, "deep")
    known = continue_search(model, NOT_SEARCHED)
    write_search(tmp_path / "known", known)
    again = read_search(tmp_path / "known")
    assert (again.found.tolist(), again.last_step) == (known.found.tolist(), known.last_step)
    monkeypatch.setattr(ModelRecord, "nonfinite", lambda *_: pytest.fail("all of it was looked at before"))
    assert continue_search(model, again).first == 3


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"something else"], ids=["empty", "torn", "other"])
def test_what_is_left_of_a_search_and_cannot_be_read_is_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "known").write_bytes(content)
    assert read_search(tmp_path / "known") is NOT_SEARCHED


def test_a_search_of_another_record_is_begun_anew(tmp_path: Path) -> None:
    other = continue_search(troubled(tmp_path, "all"), NOT_SEARCHED)
    found = continue_search(long_run(tmp_path, 5, range(2, 3)), other).found.tolist()
    assert found == [False, False, True, False, False]


def test_a_search_that_takes_too_long_is_told_of(tmp_path: Path) -> None:
    model = troubled(tmp_path, "deep")
    known = continue_search(model, NOT_SEARCHED)
    partly = type(known)(known.found[:3], 2)
    assert chart_data(model, partly, engine="rows").notes == (
        "Steps after 2 are still to be searched for NaN and infinity.",
    )
    assert np.array_equal(continue_search(model, partly).found, known.found)
