"""`api/tensors`, `api/tensor` and `api/tensor-line`, with numpy as the oracle."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.kept import KeptArray, together
from tests.record.examples import GRAPH, SERIES, SESSION, frame
from tests.server.asking import ask, unpack
from torchgraph_explorer.record.folder import TENSORS, plugin_folder
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import KeptStep, NamedTensor, Record, TensorEdge, TensorGraph
from torchgraph_explorer.server import selection, tensors
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app
from torchgraph_explorer.server.selection import merged, selected, sendable, spans_of, summary

Array = npt.NDArray[Any]
Key = tuple[str, int | None, str, str, str]

OUTPUT: Key = ("fc", 0, "output", "output", "value")
GRADIENT: Key = ("fc", 0, "output", "output", "grad_norm")
LATER: Key = ("fc", 1, "output", "output", "value")
WEIGHT: Key = ("fc", None, "param", "weight", "value")
BATCH = 6
STEPS = (0, 10, 20)


def values_at(step: int, key: Key = OUTPUT) -> npt.NDArray[np.float32]:
    """What the run keeps of three samples of `[6, 4, 5]`."""
    rng = np.random.default_rng((step, len(key[4]), key[1] or 0))
    return rng.normal(size=(3, 4, 5)).astype(np.float32)


def batched(key: Key, values: Array) -> KeptArray:
    """Every second sample of a batch, with statistics that count upwards."""
    statistics = np.arange(3 * values[0].size, dtype=np.float32)
    kept = np.frombuffer(values.tobytes(), np.uint8)
    shape = (BATCH, *values.shape[1:])
    return KeptArray(key, str(values.dtype), shape, 0, tuple(range(0, BATCH, 2)), kept, statistics)


def whole(key: Key, values: Array, dtype: str = "") -> KeptArray:
    kept = np.frombuffer(values.tobytes(), np.uint8)
    return KeptArray(key, dtype or str(values.dtype), values.shape, None, (), kept, None)


def write(run: Path, *steps: KeptStep) -> App:
    writer = RecordWriter(run)
    records: list[Record] = [SESSION, GRAPH, SERIES, *(frame(step.step) for step in steps)]
    for record in records:
        writer.write(record)
    for step in steps:
        writer.keep(step, 1 << 30)
    writer.close()
    return app(Runs(run))


def kept(step: int, *more: KeptArray) -> KeptStep:
    arrays = (batched(key, values_at(step, key)) for key in (OUTPUT, GRADIENT, LATER))
    return KeptStep(step, 1_000.0 + step, None, together(*arrays, *more))


@pytest.fixture
def served(tmp_path: Path) -> App:
    return write(tmp_path, *(kept(step) for step in STEPS))


def query(key: Key = OUTPUT, **more: Any) -> dict[str, Any]:
    module, call, role, path, kind = key
    named = {"run": ".", "model": "net", "module": module, "role": role, "path": path, "kind": kind, "step": 10}
    return {**named, **({} if call is None else {"call": call}), **more}


def asked(served: App, path: str = "/api/tensor", **wanted: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    answer = ask(served, path, query(**wanted))
    assert answer.status == 200, answer.json
    return unpack(answer.body)


def refused(served: App, path: str = "/api/tensor", **wanted: Any) -> tuple[int, str]:
    answer = ask(served, path, query(**wanted))
    return answer.status, answer.json["error"]


def test_a_client_learns_which_tensors_were_kept_at_which_steps(served: App) -> None:
    wanted = {"run": ".", "model": "net"}
    found = ask(served, "/api/tensors", wanted).json
    assert (found["steps"], found["layout"], found["layouts"]) == ([0, 10, 20], [0, 0, 0], [[0, 1, 2]])
    assert (found["ranks"], found["left_out"]) == ([0], 0)
    assert found["tensors"][0] == {
        "module": "fc",
        "call": 0,
        "role": "output",
        "path": "output",
        "kind": "value",
        "dtype": "float32",
        "shape": [6, 4, 5],
        "kept_shape": [3, 4, 5],
        "batch_dim": 0,
        "samples": [0, 2, 4],
        "categories": [],
        "loss": "",
        "named": "intermediate",
        "node": "",
    }
    again = ask(served, "/api/tensors", {**wanted, "version": found["version"]}).json
    assert again == {"version": found["version"], "is_same": True}


def test_a_run_that_keeps_nothing_says_so(tmp_path: Path) -> None:
    found = ask(write(tmp_path), "/api/tensors", {"run": ".", "model": "net"}).json
    assert (found["steps"], found["tensors"]) == ([], [])


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param("", np.s_[:], id="everything"),
        pytest.param("1,:,:", np.s_[1:2], id="one sample"),
        pytest.param(":,2,1:4", np.s_[:, 2:3, 1:4], id="a range"),
        pytest.param("0:0,:,:", np.s_[0:0], id="nothing"),
    ],
)
def test_the_elements_that_are_selected_are_sent(served: App, at: str, expected: Any) -> None:
    meta, arrays = asked(served, at=at)
    assert arrays["values"].tolist() == values_at(10)[expected].tolist()
    assert (meta["kept_shape"], meta["samples"], meta["factors"]) == ([3, 4, 5], [0, 2, 4], [1, 1, 1])
    assert meta["summary"]["low"] == values_at(10).min()


@pytest.mark.parametrize(
    ("what", "first"), [pytest.param("mean", 0), pytest.param("std", 20), pytest.param("largest", 40)]
)
def test_statistics_of_each_neuron_are_sent(served: App, what: str, first: int) -> None:
    meta, arrays = asked(served, what=what)
    assert arrays["values"].tolist() == np.arange(first, first + 20.0).reshape(4, 5).tolist()
    assert (meta["kept_shape"], meta["batch_dim"]) == ([4, 5], None)


def test_a_gradient_is_a_tensor_of_its_own(served: App) -> None:
    _, arrays = asked(served, key=GRADIENT)
    assert arrays["values"].tolist() == values_at(10, GRADIENT).tolist()


@pytest.mark.parametrize(
    ("values", "dtype", "sent"),
    [
        pytest.param(np.array([1.5, -2.0], np.float16), "", "float32", id="half"),
        pytest.param(np.array([True, False]), "", "uint8", id="bool"),
        pytest.param(np.array([0, 255], np.uint8), "", "uint8", id="bytes"),
        pytest.param(np.array([-(2**31), 7], np.int32), "", "float64", id="int32"),
        pytest.param(np.array([1e300, -1e-300]), "", "float64", id="double"),
        pytest.param(np.zeros((), np.float32), "", "float32", id="scalar"),
        pytest.param(np.zeros((3, 0), np.float32), "", "float32", id="empty"),
    ],
)
def test_every_type_arrives_with_its_values(tmp_path: Path, values: Array, dtype: str, sent: str) -> None:
    served = write(tmp_path, kept(10, whole(WEIGHT, values, dtype)))
    meta, arrays = asked(served, key=WEIGHT)
    assert (arrays["values"].dtype.name, meta["dtype"]) == (sent, str(values.dtype))
    assert arrays["values"].astype(values.dtype).tolist() == values.tolist()


def test_integers_that_are_rounded_are_said_to_be(tmp_path: Path) -> None:
    served = write(tmp_path, kept(10, whole(WEIGHT, np.array([2**53 + 1, 1]))))
    assert asked(served, key=WEIGHT)[0]["is_rounded"] is True


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param("abs", [5.0, 1.0]),
        pytest.param("real", [3.0, 0.0]),
        pytest.param("imag", [4.0, -1.0]),
        pytest.param("angle", [math.atan2(4, 3), -math.pi / 2]),
    ],
)
def test_a_part_of_complex_numbers_is_sent(tmp_path: Path, part: str, expected: list[float]) -> None:
    served = write(tmp_path, kept(10, whole(WEIGHT, np.array([3 + 4j, -1j]))))
    assert asked(served, key=WEIGHT, part=part)[1]["values"].tolist() == expected


def test_of_a_large_tensor_an_overview_is_sent_and_exact_values_on_demand(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(300, 1001)).astype(np.float32)
    values[7, 9] = np.nan
    values[250, 1000] = 1e6
    served = write(tmp_path, kept(10, whole(WEIGHT, values)))
    meta, arrays = asked(served, key=WEIGHT, shrink="0,1", most=10_000)
    assert (meta["factors"], arrays["mean"].shape) == ([4, 8], (75, 126))
    block = values[4:8, 8:16]
    cell = {name: float(arrays[name][1, 1]) for name in ("mean", "low", "high", "bad")}
    assert cell["bad"] == 1
    assert cell["mean"] == pytest.approx(np.nanmean(block.astype(np.float64)), rel=1e-6)
    assert [cell["low"], cell["high"]] == [float(np.nanmin(block)), float(np.nanmax(block))]
    assert arrays["top.index"][:2].tolist() == [7 * 1001 + 9, 250 * 1001 + 1000]
    exact = asked(served, key=WEIGHT, at="4:8,8:16", shrink="0,1", most=10_000)[1]
    np.testing.assert_array_equal(exact["values"], block)


@pytest.mark.parametrize("shape", [(5, 7), (1, 40), (40, 1), (3, 6, 10)], ids=str)
@pytest.mark.parametrize("slab", [1, 16, 10_000])
def test_blocks_are_merged_alike_whatever_is_read_at_a_time(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], slab: int
) -> None:
    monkeypatch.setattr(selection, "SLAB", slab)
    values = np.random.default_rng(1).normal(size=shape)
    values.flat[::6] = np.inf
    factors = (2,) * len(shape)
    found = merged(values, factors)
    for at in np.ndindex(found["mean"].shape):
        block = values[tuple(slice(2 * i, 2 * i + 2) for i in at)]
        good = block[np.isfinite(block)]
        assert found["bad"][at] == block.size - good.size
        expected = [good.mean(), good.min(), good.max()] if good.size else [math.nan] * 3
        np.testing.assert_allclose([found[name][at] for name in ("mean", "low", "high")], expected, rtol=1e-6)


def test_a_summary_is_that_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "SLAB", 7)
    values = np.random.default_rng(2).normal(size=(9, 11)) * 3 + 100
    values[0, :3] = [np.nan, np.inf, -np.inf]
    good = values[np.isfinite(values)]
    found = summary(values)
    assert (found["count"], found["nan"], found["positive_infinity"], found["negative_infinity"]) == (99, 1, 1, 1)
    assert (found["low"], found["high"]) == (good.min(), good.max())
    assert found["mean"] == pytest.approx(good.mean(), rel=1e-12)
    assert found["std"] == pytest.approx(good.std(), rel=1e-9)


def test_nothing_finite_has_no_mean() -> None:
    found = summary(np.full(3, np.nan, np.float32))
    assert [found[name] for name in ("low", "high", "mean", "std", "typical")] == [None] * 5


def test_an_element_is_followed_over_the_kept_steps(served: App) -> None:
    meta, arrays = asked(served, "/api/tensor-line", index="1,2,3")
    assert arrays["step"].tolist() == list(STEPS)
    assert arrays["value"].tolist() == [values_at(step)[1, 2, 3] for step in STEPS]
    assert (meta["next"], meta["skipped"]) == (None, 0)


def test_an_element_is_followed_over_the_calls_of_a_step(served: App) -> None:
    _, arrays = asked(served, "/api/tensor-line", index="1,2,3", over="calls")
    assert arrays["call"].tolist() == [0, 1]
    assert arrays["value"].tolist() == [values_at(10, key)[1, 2, 3] for key in (OUTPUT, LATER)]


def test_a_whole_tensor_is_followed_by_its_facts(served: App) -> None:
    _, arrays = asked(served, "/api/tensor-line")
    np.testing.assert_allclose(arrays["std"], [values_at(step).astype(np.float64).std() for step in STEPS])
    assert arrays["bad"].tolist() == [0, 0, 0]


def test_samples_are_followed_by_category(tmp_path: Path) -> None:
    """One number for each sample, as a loss, and categories that come and go; NaN counts for nothing."""
    key: Key = ("fc", 0, "output", "output", "value")
    steps = {0: ("cat", "dog", "cat"), 10: ("dog", "dog", "dog"), 20: ("cat", "ant", "dog")}
    of_step = {step: values_at(step, key) for step in steps}
    of_step[20][2, 0, :2] = np.nan
    served = write(
        tmp_path,
        *(
            KeptStep(step, 1.0, None, together(batched(key, of_step[step])._replace(categories=names)))
            for step, names in steps.items()
        ),
    )
    meta, arrays = asked(served, "/api/tensor-line", key=key, by="category")
    assert meta["categories"] == ["cat", "dog", "ant"]
    found = [
        (step, meta["categories"][int(number)], count)
        for step, number, count in zip(arrays["step"], arrays["category"], arrays["count"], strict=True)
    ]
    assert found == [(0, "cat", 2), (0, "dog", 1), (10, "dog", 3), (20, "cat", 1), (20, "ant", 1), (20, "dog", 1)]
    for row, (step, category, _) in enumerate(found):
        samples = [one for one, name in zip(of_step[step], steps[step], strict=True) if name == category]
        means = [np.nanmean(one.astype(np.float64)) for one in samples]
        np.testing.assert_allclose((arrays["mean"][row], arrays["std"][row]), (np.mean(means), np.std(means)))


@pytest.mark.parametrize("wanted", [{"by": "size"}, {"by": "category", "index": "0,0,0"}], ids=str)
def test_a_line_by_something_else_is_refused(wanted: dict[str, str], served: App) -> None:
    status, error = refused(served, "/api/tensor-line", **wanted)
    assert (status, "category is allowed, without an index" in error) == (400, True)


def test_samples_without_categories_have_no_lines(served: App) -> None:
    meta, arrays = asked(served, "/api/tensor-line", by="category")
    assert (meta["skipped"], len(arrays["mean"])) == (3, 0)


def test_a_line_that_takes_long_is_continued_by_the_client(served: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "SECONDS", -1.0)
    found: list[float] = []
    following = 0
    while following is not None:
        meta, arrays = asked(served, "/api/tensor-line", index="0,0,0", **{"from": following})
        found, following = [*found, *arrays["step"].tolist()], meta["next"]
    assert found == list(STEPS)


def test_a_step_that_is_damaged_is_left_out_of_a_line_and_refused_by_itself(tmp_path: Path) -> None:
    served = write(tmp_path, *(kept(step) for step in STEPS))
    place = plugin_folder(tmp_path, TENSORS) / "000000.tgraph"
    data = bytearray(place.read_bytes())
    data[data.index(values_at(10).tobytes()) + 5] ^= 1
    place.write_bytes(data)
    status, sentence = refused(served)
    assert (status, "is damaged in" in sentence) == (422, True)
    meta, arrays = asked(served, "/api/tensor-line", index="1,2,3")
    assert (arrays["step"].tolist(), meta["skipped"]) == ([0, 20], 1)


@pytest.mark.parametrize(
    ("wanted", "status", "sentence"),
    [
        pytest.param({"step": 5}, 404, "No tensor was kept at step 5", id="a step that keeps nothing"),
        pytest.param({"key": WEIGHT}, 404, "was not kept at step 10", id="a tensor that was not kept"),
        pytest.param({"rank": 3}, 404, "Rank 3 kept no tensor", id="a rank"),
        pytest.param({"what": "median"}, 400, "what='median' is not one of values, mean", id="a statistic"),
        pytest.param({"at": "1,2"}, 400, "selects along 2 dimensions; the tensor has 3", id="too few dimensions"),
        pytest.param({"at": "9,:,:"}, 400, "'9' is not an index or range of a dimension of size 3", id="beyond"),
        pytest.param({"at": "-1,:,:"}, 400, "'-1' is not an index", id="a negative index"),
        pytest.param({"at": "2:1,:,:"}, 400, "'2:1' is not an index", id="a range backwards"),
        pytest.param({"most": 7}, 400, "60 elements are selected; at most 7 can be sent", id="too many"),
        pytest.param({"shrink": "3"}, 400, "shrink=3 is not a dimension", id="a dimension"),
    ],
)
def test_a_wrong_question_is_answered_in_words(served: App, wanted: dict[str, Any], status: int, sentence: str) -> None:
    answered, said = refused(served, **wanted)
    assert (answered, sentence in said) == (status, True), said


def test_a_tensor_that_is_too_large_is_not_read(served: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "MOST_BYTES", 100)
    status, said = refused(served)
    assert (status, "takes 240 bytes; at most 100 can be shown" in said) == (400, True)


def test_a_statistic_of_a_tensor_without_a_batch_is_refused(tmp_path: Path) -> None:
    served = write(tmp_path, kept(10, whole(WEIGHT, np.zeros(3, np.float32))))
    assert refused(served, key=WEIGHT, what="std")[1].startswith("The tensor has no batch dimension")


def test_layouts_beyond_the_bound_are_left_out_with_their_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "MOST_LISTED", 5)
    served = write(tmp_path, kept(0), kept(10, whole(WEIGHT, np.zeros(3, np.float32))), kept(20))
    found = ask(served, "/api/tensors", {"run": ".", "model": "net"}).json
    assert (found["steps"], found["left_out"]) == ([20], 2)


def test_labels_reasons_categories_and_named_losses_are_told(tmp_path: Path) -> None:
    output = batched(OUTPUT, values_at(0))._replace(categories=("cat", "dog", "cat"))
    actor = batched(GRADIENT, values_at(1))._replace(loss="actor")
    critic = batched(GRADIENT, values_at(2))._replace(loss="critic")
    served = write(tmp_path, KeptStep(10, 1.0, None, together(output, actor, critic), "eval", ("loss above 3",)))
    found = ask(served, "/api/tensors", {"run": ".", "model": "net"}).json
    assert (found["labels"], found["reasons"]) == (["eval"], {"10": ["loss above 3"]})
    assert [one["loss"] for one in found["tensors"]] == ["", "actor", "critic"]
    assert asked(served)[0]["categories"] == ["cat", "dog", "cat"]
    assert asked(served, key=GRADIENT, loss="critic")[1]["values"].tolist() == values_at(2).tolist()
    line = asked(served, "/api/tensor-line", key=GRADIENT, loss="actor", index="0,0,0")[1]
    assert line["value"].tolist() == [values_at(1)[0, 0, 0]]


def test_the_dependency_graph_of_a_step_is_sent(tmp_path: Path) -> None:
    named = NamedTensor("fc", None, "param", "weight", "parameter"), NamedTensor("fc", 0, "output", "output")
    graph = TensorGraph(named, (TensorEdge(0, 1, True),))
    served = write(tmp_path, KeptStep(10, 1.0, None, together(batched(OUTPUT, values_at(0))), graph=graph))
    found = ask(served, "/api/tensor-graph", {"run": ".", "model": "net", "step": 10}).json
    assert found["edges"] == [[0, 1, 1]]
    assert [(one["key"], one["kind"], one["tensors"]) for one in found["nodes"]] == [
        ("fc:param", "parameter", [0]),
        ("fc@0", "intermediate", [1]),
    ]
    missing = ask(served, "/api/tensor-graph", {"run": ".", "model": "net", "step": 11})
    assert (missing.status, "No tensor was kept at step 11" in missing.json["error"]) == (404, True)


def test_selections_of_no_dimensions_and_of_none_at_all() -> None:
    assert spans_of("", ()) == ()
    assert selected(np.zeros((), np.float32), (), shrink=()).arrays["values"].shape == ()
    assert sendable(np.zeros((2, 0), np.int64)).shape == (2, 0)
