"""The arithmetic of each rule, on records made by hand: what is told, where, and since when."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from tests.findings.records import Values, assert_outside_band, chain, module, recorded, weight
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.causes import FOLLOWS, in_order
from torchgraph_explorer.findings.engine import find
from torchgraph_explorer.findings.places import Places
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import ModuleGraph, StepFacts, TrainingFacts, Units

NORMAL = np.random.default_rng(0).standard_normal(64)
LAYERS = ("fc1", "fc2", "fc3")
SKIPPED = StepFacts("skipped", 1, 1)


def perceptron(**changes: str) -> ModuleGraph:
    """`fc1`, `relu`, `fc2`, `fc3`; `changes` give another class."""
    made = {"fc1": "Linear", "relu": "ReLU", "fc2": "Linear", "fc3": "Linear", **changes}
    return chain(*(module(name, of, *([weight(8, 8)] if of == "Linear" else [])) for name, of in made.items()))


def healthy(step: int) -> dict[Any, Any]:
    """A step at which all is well."""
    values: dict[Any, Any] = {("", "input", "input[0]", "value"): NORMAL}
    taken = NORMAL
    for name in ("fc1", "relu", "fc2", "fc3"):
        values[name, "input", "input[0]", "value"] = taken
        taken = np.maximum(taken, 0) if name == "relu" else NORMAL * (1 + step / 100)
        values[name, "output", "output", "value"] = taken
        if name != "relu":
            values[name, "param", "weight", "value"] = NORMAL * (0.3 + step / 1000)
            values[name, "param", "weight", "grad"] = NORMAL / (10 + step)
            values[name, "param", "weight", "update_ratio"] = [1e-3]
    values["", "output", "output", "value"] = taken
    return values


def steps(change: Callable[[int, dict[Any, Any]], object] = lambda step, values: None, count: int = 8) -> list[Values]:
    """Steps of the perceptron; `change` makes something wrong at each."""
    made = [healthy(step) for step in range(count)]
    for step, values in enumerate(made):
        change(step, values)
    return list(made)


def put(*key: str, value: Callable[[int], object], since: int = 0) -> Callable[[int, dict[Any, Any]], None]:
    """A series has `value` from a step on."""

    def change(step: int, values: dict[Any, Any]) -> None:
        if step >= since:
            values[key] = value(step)

    return change


def together(*changes: Callable[[int, dict[Any, Any]], object]) -> Callable[[int, dict[Any, Any]], None]:
    def change(step: int, values: dict[Any, Any]) -> None:
        for one in changes:
            one(step, values)

    return change


def without(*kinds: str, module: str) -> Callable[[int, dict[Any, Any]], None]:
    def change(_step: int, values: dict[Any, Any]) -> None:
        for key in [key for key in values if key[0] == module and key[3] in kinds]:
            del values[key]

    return change


NAN = np.array([1.0, np.nan, 2.0, 3.0])
ZEROS = np.zeros(64)

CASES = [
    pytest.param(
        together(
            put("fc2", "output", "output", "value", value=lambda _: NAN, since=3),
            put("fc3", "input", "input[0]", "value", value=lambda _: NAN, since=3),
            put("fc3", "output", "output", "value", value=lambda _: NAN, since=3),
        ),
        ("nan", "fc2", 3),
        id="nan of finite inputs",
    ),
    pytest.param(
        put("fc2", "param", "weight", "value", value=lambda _: NAN, since=4), ("nan", "fc2", 4), id="nan in a weight"
    ),
    pytest.param(
        put("fc1", "param", "weight", "grad", value=lambda _: NAN, since=2), ("nan", "fc1", 2), id="nan in backward"
    ),
    pytest.param(
        put("", "input", "input[0]", "value", value=lambda _: NAN, since=1), ("nan", "", 1), id="nan in the data"
    ),
    pytest.param(
        put("fc2", "param", "weight", "grad", value=lambda step: NORMAL * 100.0**step),
        ("exploding-gradient", "fc2", 2),
        id="a gradient that grows a hundredfold each step",
    ),
    pytest.param(
        put("fc3", "output", "output", "value", value=lambda step: NORMAL * 20.0**step),
        ("exploding-activation", "fc3", 3),
        id="an output that grows",
    ),
    pytest.param(
        put("fc1", "param", "weight", "grad", value=lambda _: NORMAL * 1e-7),
        ("vanishing-gradient", "fc1", 0),
        id="a first layer without gradient",
    ),
    pytest.param(
        put("relu", "output", "output", "value", value=lambda _: ZEROS, since=5), ("dead-units", "relu", 5), id="zeros"
    ),
    pytest.param(
        put("", "output", "output", "value", value=lambda _: np.full(64, 0.3), since=2),
        ("constant-output", "", 2),
        id="the same output everywhere",
    ),
    pytest.param(
        together(
            put("fc2", "param", "weight", "value", value=lambda step: np.full(64, 0.5 + step)),
            put("fc2", "param", "weight", "update_ratio", value=lambda _: [0.0]),
        ),
        ("zero-init", "fc2", 0),
        id="weights that are all alike",
    ),
    pytest.param(
        together(
            put("fc1", "input", "input[0]", "value", value=lambda _: NORMAL * 0.1),
            put("fc2", "param", "weight", "value", value=lambda step: NORMAL * (20 + step)),
            put("fc3", "output", "output", "value", value=lambda _: NORMAL * 50),
        ),
        ("bad-init-scale", "fc2", 0),
        id="a layer that scales up",
    ),
    pytest.param(
        put("fc1", "input", "input[0]", "value", value=lambda _: NORMAL * 60 + 120),
        ("input-not-normalised", "fc1", 0),
        id="pixels from 0 to 255",
    ),
    pytest.param(
        together(
            without("grad", "update_ratio", module="fc1"),
            put("fc1", "param", "weight", "value", value=lambda _: NORMAL),
        ),
        ("no-gradient", "fc1", 0),
        id="a layer that never gets a gradient",
    ),
    pytest.param(
        put("fc3", "param", "weight", "value", value=lambda _: NORMAL),
        ("not-in-optimizer", "fc3", 0),
        id="a layer that never changes",
    ),
    pytest.param(
        together(*(put(name, "param", "weight", "update_ratio", value=lambda _: [1e-7]) for name in LAYERS)),
        ("update-too-small", None, 0),
        id="small updates",
    ),
    pytest.param(
        together(*(put(name, "param", "weight", "update_ratio", value=lambda _: [1.2], since=2) for name in LAYERS)),
        ("update-too-large", None, 2),
        id="large updates",
    ),
]


def told(model: Model) -> list[tuple[str, str | None, int]]:
    """The root causes."""
    return [(one.kind, one.module, one.step) for one in model.findings() if not one.causes]


@pytest.mark.parametrize(("change", "expected"), CASES)
def test_a_fault_is_told_with_its_place_and_step(
    change: Callable[[int, dict[Any, Any]], object], expected: tuple[str, str | None, int], tmp_path: Path
) -> None:
    assert told(recorded(tmp_path, perceptron(), steps(change))) == [expected]


BANDS = ("constant-output", "bad-init-scale", "input-not-normalised", "dead-units", "exploding-activation")


@pytest.mark.parametrize(("change", "expected"), [one for one in CASES if cast(Any, one.values[1])[0] in BANDS])
def test_what_a_finding_is_about_is_not_within_its_band(
    change: Callable[[int, dict[Any, Any]], object], expected: tuple[str, str | None, int], tmp_path: Path
) -> None:
    model = recorded(tmp_path, perceptron(), steps(change))
    found = next(one for one in model.findings() if one.kind == expected[0])
    assert_outside_band(model, found)


@pytest.mark.parametrize("every", [1, 50])
def test_a_healthy_record_has_no_finding(every: int, tmp_path: Path) -> None:
    assert recorded(tmp_path, perceptron(), steps(), every=every).findings() == ()


def test_saturation_is_counted_from_the_histogram(tmp_path: Path) -> None:
    wide = put("relu", "input", "input[0]", "value", value=lambda _: NORMAL * 30)
    model = recorded(tmp_path, perceptron(relu="Tanh"), steps(wide))
    [one] = model.findings()
    assert (one.kind, one.module, one.evidence["limit"]) == ("saturated-activation", "relu", 3.0)
    assert one.evidence["saturated"] == pytest.approx((np.abs(NORMAL * 30) > 3).mean(), abs=0.02)


def softmax(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Over 4 classes, as many as the last dimension of the tensors of `chain` has."""
    rows = values.reshape(-1, 4)
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    found: npt.NDArray[np.float64] = (powers / powers.sum(axis=1, keepdims=True)).ravel()
    return found


@pytest.mark.parametrize(
    ("squash", "is_told"),
    [
        pytest.param(np.tanh, True, id="tanh"),
        pytest.param(lambda x: 1 / (1 + np.exp(-x)), True, id="sigmoid"),
        pytest.param(lambda x: 0.9 * np.tanh(x), False, id="never near 1"),
        pytest.param(lambda x: np.clip(x, -1.5, 1.5), False, id="beyond 1"),
        pytest.param(lambda x: 1 / (1 + np.exp(-x[::2])), False, id="not of each element"),
        pytest.param(softmax, False, id="softmax"),
    ],
)
def test_a_function_in_forward_that_saturates_is_told_at_the_layer_before_it(
    squash: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]], is_told: bool, tmp_path: Path
) -> None:
    graph = chain(module("fc1", "Linear", weight(8, 8)), module("fc2", "Linear", weight(8, 8)))
    wide = NORMAL * 30
    values = {("fc1", "output", "output", "value"): wide, ("fc2", "input", "input[0]", "value"): squash(wide)}
    found = [(one.kind, one.module) for one in recorded(tmp_path, graph, [values] * 8).findings()]
    assert (("saturated-activation", "fc1") in found) == is_told


def test_the_network_s_last_sigmoid_may_saturate(tmp_path: Path) -> None:
    graph = chain(module("fc1", "Linear", weight(8, 8)), module("act", "Sigmoid"))
    values = [{("act", "input", "input[0]", "value"): NORMAL * 90} for _ in range(4)]
    assert recorded(tmp_path, graph, values).findings() == ()


def test_a_loss_that_ranks_return_alike_is_not_a_constant_output(tmp_path: Path) -> None:
    made = steps(put("", "output", "output", "value", value=lambda step: [2.0 / (1 + step)] * 2))
    graph = perceptron()
    loss = replace(graph.calls[0], outputs=(replace(graph.calls[0].outputs[0], shape=()),))
    of_loss = replace(graph, calls=(loss, *graph.calls[1:]))
    assert recorded(tmp_path / "loss", of_loss, made).findings() == ()
    assert "constant-output" in {one.kind for one in recorded(tmp_path / "logits", graph, made).findings()}


@pytest.mark.parametrize(
    ("role", "is_told"),
    [pytest.param("predicted", True, id="the loss uses it"), pytest.param("length", False, id="not")],
)
def test_a_constant_output_is_one_that_gradients_come_back_to(role: str, is_told: bool, tmp_path: Path) -> None:
    graph = perceptron()
    outputs = tuple(replace(graph.calls[0].outputs[0], path=f"output.{name}") for name in ("predicted", "length"))
    graph = replace(graph, calls=(replace(graph.calls[0], outputs=outputs), *graph.calls[1:]))
    values = together(
        put("", "output", "output.predicted", "value", value=lambda _: NORMAL),
        put("", "output", "output.predicted", "grad_norm", value=lambda _: NORMAL),
        put("", "output", f"output.{role}", "value", value=lambda _: [20.0] * 64),
    )
    found = recorded(tmp_path, graph, steps(values)).findings()
    assert ("constant-output" in {one.kind for one in found}) == is_told


def test_a_dropout_that_drops_nearly_all_is_told(tmp_path: Path) -> None:
    graph = chain(module("drop", "Dropout", p="0.95"), module("half", "Dropout", p="0.5"))
    assert told(recorded(tmp_path, graph, steps(count=1))) == [("dropout-extreme", "drop", 0)]


def test_a_module_that_is_not_called_is_told_once_with_all_its_insides(tmp_path: Path) -> None:
    inside = tuple(module(name, "Linear", weight(2, 2)) for name in ("spare.up", "spare.down"))
    graph = perceptron()
    graph = replace(graph, modules=(*graph.modules, module("spare", "Sequential"), *inside))
    assert told(recorded(tmp_path, graph, steps())) == [("unused-module", "spare", 0)]


def test_a_frozen_layer_is_not_told(tmp_path: Path) -> None:
    graph = perceptron()
    frozen = replace(graph.modules[1], params=(weight(8, 8, requires_grad=False),))
    graph = replace(graph, modules=(graph.modules[0], frozen, *graph.modules[2:]))
    assert told(recorded(tmp_path, graph, steps(without("grad", "update_ratio", module="fc1")))) == []


def test_updates_that_are_skipped_again_and_again_are_told(tmp_path: Path) -> None:
    infinite = put("fc1", "param", "weight", "grad", value=lambda _: [np.inf])
    model = recorded(tmp_path, perceptron(), steps(infinite), facts=[SKIPPED] * 8, scale=0.5)
    assert told(model) == [("loss-scale-loop", None, 0)]


def test_a_scaler_that_skips_two_updates_is_not_told(tmp_path: Path) -> None:
    def infinite(step: int, values: dict[Any, Any]) -> None:
        if step < 2:
            values["fc1", "param", "weight", "grad"] = [np.inf]

    facts = [SKIPPED, SKIPPED, *[StepFacts("update", 1, 1)] * 6]
    assert told(recorded(tmp_path, perceptron(), steps(infinite), facts=facts, scale=1024.0)) == []


def test_what_grows_towards_the_limit_of_its_dtype_is_told(tmp_path: Path) -> None:
    graph = chain(module("fc1", "Linear", weight(8, 8)), dtype="float16")
    values = [{("fc1", "output", "output", "value"): [100.0 * 2.0**step, -1.0]} for step in range(8)]
    [one] = recorded(tmp_path, graph, values).findings()
    assert (one.kind, one.evidence["limit"]) == ("overflow-ahead", 65504.0)
    assert one.evidence["steps_left"] == pytest.approx(np.log2(65504 / 12800), abs=0.01)
    assert "float32 or bfloat16" in one.advice


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_other_dtype_is_advised_for_what_exceeds_the_widest_one(dtype: str, tmp_path: Path) -> None:
    graph = chain(module("fc1", "Linear", weight(8, 8)), dtype=dtype)
    values = [{("fc1", "output", "output", "value"): [2.0 ** (100 + 3 * step), -1.0]} for step in range(8)]
    found = recorded(tmp_path, graph, values).findings()
    assert ["Another dtype does not help" in one.advice for one in found if one.kind == "overflow-ahead"] == [True]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_least_number_of_a_dtype_that_masks_is_not_told(dtype: str, tmp_path: Path) -> None:
    least = {"float32": -3.4028235e38, "float16": -65504.0, "bfloat16": -3.3895314e38}[dtype]
    graph = chain(module("fc1", "Linear", weight(8, 8)), dtype=dtype)
    rounded = [least, np.nextafter(np.float32(least), np.float32(0))]
    values = [{("fc1", "output", "output", "value"): [rounded[step < 4], -1.0]} for step in range(8)]
    assert recorded(tmp_path, graph, values).findings() == ()


@pytest.mark.parametrize("of", ["Linear", "Conv2d", "LSTM", "RNNCell", "LSTMCell", "GRUCell"])
def test_data_that_is_not_normalised_is_told_at_each_class_with_weights(of: str, tmp_path: Path) -> None:
    data = {(name, "input", "input[0]", "value"): NORMAL * 60 + 120 for name in ("", "fc1")}
    [one] = recorded(tmp_path, chain(module("fc1", of, weight(8, 8))), [dict(data) for _ in range(4)]).findings()
    assert (one.kind, one.module) == ("input-not-normalised", "fc1")


def test_minus_infinity_that_masks_is_not_told(tmp_path: Path) -> None:
    masked = put("fc2", "input", "input[1]", "value", value=lambda _: [0.0, -np.inf])
    assert told(recorded(tmp_path, perceptron(), steps(masked))) == []


@pytest.mark.parametrize(
    ("ratio", "median"),
    [pytest.param(0.5, "50.0%.", id="large"), pytest.param(20.0, "20 times the weights.", id="very large")],
)
def test_what_follows_is_folded_below_its_cause(ratio: float, median: str, tmp_path: Path) -> None:
    moved = (put(name, "param", "weight", "value", value=lambda step: NORMAL * (1 + ratio) ** step) for name in LAYERS)
    large = together(
        *moved, *(put(name, "param", "weight", "update_ratio", value=lambda _: [ratio]) for name in LAYERS)
    )
    dead = put("relu", "output", "output", "value", value=lambda _: ZEROS, since=3)
    nan = put("fc3", "output", "output", "value", value=lambda _: NAN, since=6)
    model = recorded(tmp_path, perceptron(), steps(together(large, dead, nan)))
    first, *others = model.findings()
    assert first.kind == "update-too-large"
    assert f"the median is {median}" in first.text
    assert [(one.kind, one.causes) for one in others] == [("dead-units", (first,)), ("nan", (first,))]


def unmeasured(*changes: Callable[[int, dict[Any, Any]], object]) -> Callable[[int, dict[Any, Any]], None]:
    """No update is recorded, as without `optimizer=`."""
    return together(*(without("update_ratio", module=name) for name in LAYERS), *changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "count", "expected"),
    [
        pytest.param(lambda step: NORMAL * (0.3 + step / 1000), 40, [], id="usual"),
        pytest.param(lambda step: NORMAL * 1.5**step, 26, ["update-too-large"], id="large"),
        pytest.param(lambda step: NORMAL * 1.5**step, 25, [], id="large, over few steps"),
        pytest.param(lambda step: NORMAL * (1 + 1e-7 * step), 40, ["update-too-small"], id="small"),
        pytest.param(lambda step: NORMAL * (1 + 1e-7 * step), 8, [], id="small, over few steps"),
    ],
)
def test_updates_are_bounded_from_the_weights_where_they_are_not_recorded(
    change: Callable[[int], object], count: int, expected: list[str], tmp_path: Path
) -> None:
    moved = unmeasured(*(put(name, "param", "weight", "value", value=change) for name in LAYERS))
    model = recorded(tmp_path, perceptron(), steps(moved, count=count))
    assert [one.kind for one in model.findings() if one.kind.startswith("update")] == expected


def test_a_gradient_that_explodes_is_the_cause_of_the_update_that_it_makes(tmp_path: Path) -> None:
    exploded = together(
        *(put(name, "param", "weight", "grad", value=lambda _: NORMAL * 1e5, since=3) for name in LAYERS)
    )
    large = together(*(put(name, "param", "weight", "update_ratio", value=lambda _: [2.0], since=3) for name in LAYERS))
    found = recorded(tmp_path, perceptron(), steps(together(exploded, large))).findings()
    assert [(one.kind, [cause.kind for cause in one.causes]) for one in found] == [
        ("exploding-gradient", []),
        ("update-too-large", ["exploding-gradient"]),
    ]


@pytest.mark.slow
def test_a_loss_that_does_not_fall_follows_from_what_keeps_the_network_from_learning(tmp_path: Path) -> None:
    dead = put("relu", "output", "output", "value", value=lambda _: ZEROS, since=5)
    flat = (2.3 + 0.02 * np.random.default_rng(1).standard_normal(60)).tolist()
    model = recorded(tmp_path, perceptron(), steps(dead, count=60), scalars={"loss": flat})
    first, second = model.findings()
    assert (first.kind, second.kind, second.causes) == ("dead-units", "loss-not-falling", (first,))


@pytest.mark.parametrize(
    ("zero", "constant", "are_dead"),
    [
        pytest.param([0] * 6, 10, True, id="all units, before the end of the window"),
        pytest.param([0] * 8 + [7] * 4, 9, True, id="most units, by the window after it"),
        pytest.param([0] * 8 + [5] * 4, 9, False, id="half of the units, by the window after it"),
        pytest.param([0] * 8 + [7] * 3, 9, False, id="most units, by a window of too few steps"),
    ],
)
def test_units_are_dead_by_what_was_looked_at_since_they_died(
    zero: list[int], constant: int, *, are_dead: bool, tmp_path: Path
) -> None:
    """Of 10 units, so many are zero over windows of 8 steps, and so many constant at each step but the first.

    A sample has one and a half element above zero in the mean, as in a sparse layer.
    """
    sparse = np.arange(400) % 64 == 1
    dead = put("relu", "output", "output", "value", value=lambda _: sparse, since=1)
    measured = [
        Units("relu", 0, 10, of_window, step % 8 + 1, constant if step else 0, 0.5)
        for step, of_window in enumerate(zero)
    ]
    facts = [TrainingFacts(units=(one,)) for one in measured]
    graph = perceptron()
    wide = tuple(replace(call, outputs=(replace(call.outputs[0], shape=(4, 100)),)) for call in graph.calls)
    model = recorded(tmp_path, replace(graph, calls=wide), steps(dead, count=len(zero)), training=facts)
    assert ("dead-units" in {one.kind for one in model.findings()}) is are_dead


def test_matrices_that_do_not_change_at_a_step_hide_no_update(tmp_path: Path) -> None:
    still = together(*(put(name, "param", "weight", "update_ratio", value=lambda _: [0.0]) for name in LAYERS[1:]))
    assert recorded(tmp_path, perceptron(), steps(still)).findings() == ()


def test_a_gradient_explodes_at_the_only_step_before_nan(tmp_path: Path) -> None:
    exploded = put("fc2", "param", "weight", "grad", value=lambda _: NORMAL * 1e6)
    nan = put("fc2", "param", "weight", "value", value=lambda _: NAN, since=1)
    assert told(recorded(tmp_path, perceptron(), steps(together(exploded, nan), count=3)))[0] == (
        "exploding-gradient", None, 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("every", "since", "advice"),
    [
        pytest.param(50, 2, "Train again with `log_freq=lambda step: step >= 50`: ", id="after a gap"),
        pytest.param(50, 1, "Train again with `log_freq=1`: ", id="after a gap from the first step on"),
        pytest.param(1, 2, "Lower the learning rate", id="the step after"),
    ],
)
def test_nan_in_weights_says_first_which_steps_to_record(every: int, since: int, advice: str, tmp_path: Path) -> None:
    nan = put("fc2", "param", "weight", "value", value=lambda _: NAN, since=since)
    [one] = recorded(tmp_path, perceptron(), steps(nan, count=4), every=every).findings()
    assert (one.kind, one.step) == ("nan", since * every)
    assert one.advice.startswith(advice)


def test_numbers_of_thousands_are_written_out(tmp_path: Path) -> None:
    grown = put("fc2", "output", "output", "value", value=lambda step: NORMAL * (1 if step < 4 else 20_000))
    told = [
        one for one in recorded(tmp_path, perceptron(), steps(grown)).findings() if one.kind == "exploding-activation"
    ]
    assert [re.findall(r"square of ([^ ]+), ([^ ]+) times", one.text) for one in told] == [[("18,300", "20,000")]]


def test_large_weights_are_told_despite_normalisation(tmp_path: Path) -> None:
    graph = perceptron(relu="LayerNorm", norm2="LayerNorm")
    large = together(
        *(put(name, "param", "weight", "value", value=lambda step: NORMAL * (9 + step)) for name in LAYERS)
    )
    found = recorded(tmp_path, graph, steps(large)).findings()
    assert found[0].kind == "bad-init-scale"


def test_a_vanishing_gradient_names_the_layers_over_which_it_is_lost(tmp_path: Path) -> None:
    lost = put("fc1", "param", "weight", "grad", value=lambda _: NORMAL * 1e-7)
    less = put("fc2", "param", "weight", "grad", value=lambda _: NORMAL * 1e-3)
    [one] = recorded(tmp_path, perceptron(), steps(together(lost, less))).findings()
    assert one.text.startswith("1 of 3 layers, `fc1`, gets less than 0.0001 of the gradient of others")
    assert one.text.endswith("It gets lost on its way back from `fc3` to `fc1`.")
    assert one.evidence["lost_over_layers"] == 2


def test_a_gradient_has_not_vanished_beside_that_of_weights_that_began_at_zero(tmp_path: Path) -> None:
    adapter = together(
        put("fc3", "param", "weight", "value", value=lambda step: NORMAL * 1e-6 * step),
        put("fc3", "param", "weight", "grad", value=lambda _: NORMAL * 1e-2),
    )
    found = recorded(tmp_path, perceptron(), steps(adapter)).findings()
    assert "vanishing-gradient" not in {one.kind for one in found}


@pytest.mark.parametrize("steps_apart", [0, 5])
def test_no_findings_are_lost_as_causes_of_each_other(steps_apart: int) -> None:
    kinds = sorted({*FOLLOWS, *(cause for causes in FOLLOWS.values() for cause in causes)})
    for first, second in combinations(kinds, 2):
        pair = [
            Finding(kind=kind, severity="warning", step=steps_apart * at, text="")
            for at, kind in enumerate((first, second))
        ]
        assert {one.kind for one in in_order(pair, Places([]))} == {first, second}
    everything = [Finding(kind=kind, severity="warning", step=0, text="") for kind in kinds]
    assert len(in_order(everything, Places([]))) == len(kinds)


def test_a_rule_that_raises_does_not_hide_the_others(tmp_path: Path) -> None:
    def broken(_evidence: object) -> list[Finding]:
        raise ValueError("no such thing")

    def sound(_evidence: object) -> list[Finding]:
        return [Finding(kind="mine", module="fc1", step=0, last_step=1, text="Text.")]

    model = recorded(tmp_path, perceptron(), steps())
    found = find(model, {"broken": broken, "sound": sound})
    assert {(one.kind, one.severity) for one in found} == {("mine", "warning"), ("rule-failed", "info")}
    assert "'broken' failed: ValueError: no such thing" in next(one.text for one in found if one.kind == "rule-failed")


def test_a_run_without_steps_has_no_finding(tmp_path: Path) -> None:
    assert recorded(tmp_path, perceptron(), []).findings() == ()


@pytest.mark.parametrize(
    ("growing", "ends"),
    [
        (("fc3",), "times what was usual at the beginning."),
        (("fc2", "fc3"), "at the beginning. The outputs of 1 other module grow, too."),
        (("fc1", "fc2", "fc3"), "at the beginning. The outputs of 2 other modules grow, too."),
    ],
    ids=["one", "two", "three"],
)
def test_growing_outputs_are_counted_in_words_that_fit(growing: tuple[str, ...], ends: str, tmp_path: Path) -> None:
    changes = [put(name, "output", "output", "value", value=lambda step: NORMAL * 20.0**step) for name in growing]
    model = recorded(tmp_path, perceptron(), steps(together(*changes)))
    [found] = [one for one in model.findings() if one.kind == "exploding-activation"]
    assert found.text.endswith(ends)
