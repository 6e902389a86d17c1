"""What is told of batches, branches, experts, attention, outputs and low precision, on records made by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.findings.records import assert_outside_band, chain, module, recorded, tensor, weight
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import Call, Edge, ModuleGraph, Node, StepFacts, TensorInfo

RNG = np.random.default_rng(5)
NORMAL = RNG.standard_normal(64)
BATCHES = RNG.standard_normal((80, 64))

Frames = list[Mapping[Any, Any]]


def kinds(model: Model) -> list[tuple[str, str, str | None, int]]:
    return [(one.kind, one.severity, one.module, one.step) for one in model.findings()]


# Batches

INPUT = ("", "input", "input[0]", "value")


EARLY_THEN_EVERY_50 = (0, 1, 10, 25, *range(50, 400, 50))
"""The steps that are recorded by default."""


def batched(
    folder: Path, batch: Callable[[int], int], *, samples: int = 32, at: Sequence[int] = range(40), **options: Any
) -> Model:
    """A run whose input at each of the steps `at` is one of `BATCHES`."""
    graph = chain(module("fc1", "Linear", weight(2, 2)))
    data = TensorInfo("input[0]", (samples, 2), "float32", False)
    graph = replace(graph, calls=(replace(graph.calls[0], inputs=(data,)), *graph.calls[1:]))
    return recorded(folder, graph, [{INPUT: BATCHES[batch(step)]} for step in at], at=at, **options)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        pytest.param(lambda step: step, [], id="new ones"),
        pytest.param(lambda step: step % 5, [], id="the same order in each epoch"),
        pytest.param(lambda step: step // 2, [], id="each twice, as with two updates a batch"),
        pytest.param(lambda _: 0, [("repeated-batch", "info", "", 0)], id="one"),
        pytest.param(lambda step: min(step, 12), [("repeated-batch", "warning", "", 12)], id="stuck"),
        pytest.param(lambda step: min(step, 20), [("repeated-batch", "warning", "", 20)], id="stuck for half of it"),
        pytest.param(lambda step: min(step, 21), [], id="stuck for less"),
        pytest.param(lambda step: step // 8, [("repeated-batch", "warning", "", 0)], id="each eight times"),
    ],
)
def test_repeated_batches_are_told(
    batch: Callable[[int], int], expected: list[tuple[str, str, str, int]], tmp_path: Path
) -> None:
    assert kinds(batched(tmp_path, batch)) == expected


@pytest.mark.parametrize(
    ("batch", "is_told"),
    [
        pytest.param(lambda step: step % 50, False, id="rounds of 50 batches"),
        pytest.param(lambda step: (step + 7) % 50, False, id="rounds that began before"),
        pytest.param(lambda step: step % 25, False, id="rounds of 25 batches"),
        pytest.param(lambda step: min(step, 30), True, id="stuck"),
        pytest.param(lambda step: step if step < 30 else 1, True, id="stuck at an earlier one"),
    ],
)
def test_a_batch_that_comes_in_each_round_through_the_data_is_not_told(
    batch: Callable[[int], int], is_told: bool, tmp_path: Path
) -> None:
    told = {one[0] for one in kinds(batched(tmp_path, batch, at=EARLY_THEN_EVERY_50))}
    assert ("repeated-batch" in told) is is_told


def test_a_whole_data_set_at_each_step_is_not_told(tmp_path: Path) -> None:
    assert kinds(batched(tmp_path, lambda _: 0, samples=178)) == []


def test_a_batch_of_several_epochs_of_reinforcement_learning_is_not_told(tmp_path: Path) -> None:
    assert kinds(batched(tmp_path, lambda step: step // 8, scalars={"reward": [1.0] * 40})) == []


# Branches


def joined(*names: str) -> ModuleGraph:
    """Modules side by side on the model's input, whose outputs come together in `head`."""
    called = [Call("", 0, None, (tensor("input[0]", requires_grad=False),), (tensor("output"),))]
    called += [Call(name, 0, 0, (tensor("input[0]"),), (tensor("output"),)) for name in (*names, "head")]
    nodes = [Node("call", None, call=0), *(Node("call", 0, call=at) for at in range(1, len(called)))]
    edges = [Edge(at, len(names) + 1, True) for at in range(1, len(names) + 1)]
    modules = [module(name, "Linear", weight(2, 2)) for name in (*names, "head")]
    return ModuleGraph(0, 0, (module("", "Net"), *modules), tuple(called), tuple(nodes), tuple(edges))


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        pytest.param(lambda _: 1e-4, [("imbalanced-branches", "warning", "deep", 0)], id="far apart"),
        pytest.param(lambda _: 0.02, [], id="apart"),
        pytest.param(lambda step: 1e-4 * 1.3**step, [], id="coming up"),
        pytest.param(lambda step: 1e-4 * min(1 + step, 5), [], id="a scale that was learned"),
        pytest.param(lambda _: 0.0, [], id="switched off"),
        pytest.param(lambda step: 1e-4 * step, [], id="growing from zero"),
        pytest.param(
            lambda step: 1e-4 * min(step, 1), [("imbalanced-branches", "warning", "deep", 1)], id="stuck near zero"
        ),
    ],
)
def test_a_branch_that_hardly_counts_is_told(
    scale: Callable[[int], float], expected: list[tuple[str, str, str, int]], tmp_path: Path
) -> None:
    frames: Frames = [
        {
            ("deep", "output", "output", "value"): NORMAL * scale(step),
            ("wide", "output", "output", "value"): NORMAL,
        }
        for step in range(12)
    ]
    model = recorded(tmp_path, joined("deep", "wide"), frames)
    assert kinds(model) == expected
    for one in model.findings():
        assert_outside_band(model, one)


@pytest.mark.parametrize(("steps", "is_told"), [(10, False), (11, True)])
def test_a_branch_has_ten_updates_to_come_up(steps: int, is_told: bool, tmp_path: Path) -> None:
    frames: Frames = [
        {("deep", "output", "output", "value"): NORMAL * 1e-4, ("wide", "output", "output", "value"): NORMAL}
    ] * steps
    found = {one.kind for one in recorded(tmp_path, joined("deep", "wide"), frames).findings()}
    assert ("imbalanced-branches" in found) == is_told


@pytest.mark.parametrize(
    ("result", "is_told"),
    [
        pytest.param(NORMAL, True, id="a sum"),
        pytest.param(np.concatenate([NORMAL, 1e-4 * NORMAL]), True, id="joined"),
        pytest.param(1e-4 * NORMAL**2, False, id="a product"),
    ],
)
def test_a_small_factor_is_no_branch(result: npt.NDArray[np.float64], is_told: bool, tmp_path: Path) -> None:
    frames: Frames = [
        {
            ("deep", "output", "output", "value"): NORMAL * 1e-4,
            ("wide", "output", "output", "value"): NORMAL,
            ("head", "input", "input[0]", "value"): result,
        }
        for _ in range(12)
    ]
    found = {one.kind for one in recorded(tmp_path, joined("deep", "wide"), frames).findings()}
    assert ("imbalanced-branches" in found) == is_told


@pytest.mark.parametrize(
    ("shape", "is_told"),
    [
        pytest.param((4, 4), True, id="as large as the sum"),
        pytest.param((None, 50), True, id="of varying size"),
        pytest.param((32, 50), False, id="larger than the sum, as weights of a weighted sum"),
    ],
)
def test_what_is_larger_than_the_sum_is_no_branch(shape: tuple[int | None, ...], is_told: bool, tmp_path: Path) -> None:
    graph = joined("deep", "wide")
    output = (replace(tensor("output"), shape=shape),)
    calls = [replace(one, outputs=output) if one.module in ("deep", "wide") else one for one in graph.calls]
    frames: Frames = [
        {
            ("deep", "output", "output", "value"): np.abs(NORMAL) * 1e-4,
            ("wide", "output", "output", "value"): NORMAL,
            ("head", "input", "input[0]", "value"): NORMAL / 5,
        }
        for _ in range(12)
    ]
    found = {one.kind for one in recorded(tmp_path, replace(graph, calls=tuple(calls)), frames).findings()}
    assert ("imbalanced-branches" in found) == is_told


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        pytest.param(200.0, [("imbalanced-branches", "warning", "", 0)], id="larger by far"),
        pytest.param(20.0, [], id="larger"),
    ],
)
def test_positions_that_drown_what_they_are_added_to_are_told(
    positions: float, expected: list[tuple[str, str, str, int]], tmp_path: Path
) -> None:
    graph = joined("embed")
    root = replace(graph.modules[0], params=(TensorInfo("position", (8, 8), "float32", True),))
    graph = replace(graph, modules=(root, *graph.modules[1:]))
    place = RNG.standard_normal(64) * positions
    frames: Frames = [
        {
            ("", "param", "position", "value"): place,
            ("embed", "output", "output", "value"): NORMAL,
            ("head", "input", "input[0]", "value"): NORMAL + place,
        }
        for _ in range(12)
    ]
    found = [one for one in kinds(recorded(tmp_path, graph, frames)) if one[0] == "imbalanced-branches"]
    assert found == expected


def test_a_mask_that_comes_in_is_no_branch(tmp_path: Path) -> None:
    graph = joined("deep")
    mask = Node("input", 0, tensor=tensor("input[0]", requires_grad=False))
    graph = replace(graph, nodes=(*graph.nodes, mask), edges=(*graph.edges, Edge(len(graph.nodes), 2, False)))
    frames: Frames = [
        {
            ("deep", "output", "output", "value"): NORMAL,
            ("", "input", "input[0]", "value"): np.where(NORMAL > 1, 0, -1e9 - step),
        }
        for step in range(12)
    ]
    found = recorded(tmp_path, graph, frames).findings()
    assert "imbalanced-branches" not in [one.kind for one in found]


# Experts


def routed(folder: Path, shares: list[list[int]]) -> Model:
    """A run in which each expert gets so many samples at each step."""
    names = [f"experts.{number}" for number in range(len(shares[0]))]
    modules = [replace(module(name, "Linear", weight(2, 2)), total_params=4) for name in names]
    frames: Frames = [
        {
            (name, "input", "input[0]", "value"): RNG.standard_normal(count)
            for name, count in zip(names, taken, strict=True)
            if count
        }
        for taken in shares
    ]
    return recorded(folder, chain(*modules), frames)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        pytest.param(
            [[60, 2, 1, 1], [61, 1, 1, 1]] * 4,
            [("expert-imbalance", "warning", "experts", 0)],
            id="one gets nearly all",
        ),
        pytest.param([[30, 14, 12, 8]] * 8, [], id="shared out"),
        pytest.param([[64, 64, 64, 64]] * 8, [], id="layers one after the other"),
        pytest.param([[4096, 256, 16, 1]] * 8, [], id="layers for several sizes of an image"),
        pytest.param([[20, 44], [44, 20]] * 4, [], id="only two"),
        pytest.param(
            [[64, 0, 0, 0], [60, 4, 0, 0]] + [[64, 0, 0, 0]] * 6,
            [("expert-imbalance", "warning", "experts", 0)],
            id="one gets all but at first",
        ),
        pytest.param([[64, 0, 0, 0]] * 8, [("expert-imbalance", "warning", "experts", 0)], id="one gets all"),
        pytest.param([[64, 0, 0, 0], [0, 64, 0, 0]] + [[64, 0, 0, 0]] * 6, [], id="heads of tasks in turn"),
        pytest.param([[64, 64, 0, 0], [0, 0, 32, 32]] + [[64, 64, 0, 0]] * 6, [], id="pairs in turn"),
    ],
)
def test_experts_that_get_nothing_are_told(
    shares: list[list[int]], expected: list[tuple[str, str, str, int]], tmp_path: Path
) -> None:
    assert kinds(routed(tmp_path, shares)) == expected


# Attention


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        pytest.param(1.3, [("attention-logits-growing", "warning", "attend", 5)], id="grow"),
        pytest.param(1.02, [], id="do not"),
    ],
)
@pytest.mark.parametrize("names", [("q_proj", "k_proj"), ("query", "key"), ("to_q", "to_k")], ids=lambda one: one[0])
def test_growing_logits_of_attention_are_told(
    growth: float, expected: list[tuple[str, str, str, int]], names: tuple[str, str], tmp_path: Path
) -> None:
    graph = chain(*(module(f"attend.{name}", "Linear", weight(2, 2)) for name in names))
    frames: Frames = [
        {(f"attend.{name}", "output", "output", "value"): NORMAL * growth**step for name in names} for step in range(20)
    ]
    assert kinds(recorded(tmp_path, graph, frames)) == expected


def test_normalised_queries_and_keys_may_grow_before_that(tmp_path: Path) -> None:
    names = ("q_proj", "k_proj", "q_norm", "k_norm")
    graph = chain(*(module(f"attend.{name}", "Linear", weight(2, 2)) for name in names))
    frames: Frames = [
        {(f"attend.{name}", "output", "output", "value"): NORMAL * 1.3**step for name in names} for step in range(20)
    ]
    assert kinds(recorded(tmp_path, graph, frames)) == []


def test_logits_of_fused_attention_are_estimated_from_its_weights(tmp_path: Path) -> None:
    graph = chain(module("attend", "MultiheadAttention", TensorInfo("in_proj_weight", (24, 8), "float32", True)))
    frames: Frames = [
        {
            ("attend", "param", "in_proj_weight", "value"): NORMAL * 1.3**step,
            ("attend", "input", "input[0]", "value"): NORMAL,
        }
        for step in range(20)
    ]
    [one] = recorded(tmp_path, graph, frames).findings()
    assert (one.kind, one.module) == ("attention-logits-growing", "attend")


# Softmax and sigmoid at the end


def probabilities(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    powers = np.exp(values)
    return np.asarray(powers / powers.sum(1, keepdims=True))


Array = np.ndarray[Any, Any]
LOGITS = np.random.default_rng(5).standard_normal((16, 4))
SHOWN = probabilities(RNG.standard_normal((16, 4)))
LABELS = np.eye(4)[RNG.integers(4, size=16)]
WANTED = probabilities(RNG.standard_normal((16, 4)))
SQUASHED = 1 / (1 + np.exp(-RNG.standard_normal((16, 1))))
ANSWERS = RNG.integers(2, size=(16, 1))


@pytest.mark.parametrize(
    ("class_name", "shown", "gradient", "is_told"),
    [
        pytest.param("Softmax", SHOWN, probabilities(SHOWN) - LABELS, True, id="cross entropy of probabilities"),
        pytest.param("Softmax", SHOWN, -LABELS / SHOWN, False, id="likelihood of probabilities"),
        pytest.param("Softmax", SHOWN, 2 / 4 * (SHOWN - LABELS), False, id="squared error of probabilities"),
        pytest.param("Softmax", SHOWN, -LABELS, True, id="likelihood without the logarithm"),
        pytest.param("Softmax", SHOWN, -WANTED, False, id="small gradients"),
        pytest.param("LogSoftmax", np.log(SHOWN), -LABELS, False, id="likelihood of log-softmax"),
        pytest.param("Linear", SHOWN * 5, probabilities(SHOWN) - LABELS, False, id="cross entropy of logits"),
        pytest.param("Sigmoid", SQUASHED, 1 / (1 + np.exp(-SQUASHED)) - ANSWERS, True, id="sigmoid twice"),
        pytest.param("Sigmoid", SQUASHED, (SQUASHED - ANSWERS) / (SQUASHED * (1 - SQUASHED)), False, id="sigmoid once"),
        pytest.param("Sigmoid", SQUASHED, 2 * (SQUASHED - ANSWERS), False, id="squared error of a sigmoid"),
    ],
)
def test_a_softmax_before_a_loss_with_one_is_told(
    *, class_name: str, shown: np.ndarray[Any, Any], gradient: np.ndarray[Any, Any], is_told: bool, tmp_path: Path
) -> None:
    found = kinds(ending(tmp_path, class_name, shown=shown, gradient=gradient))
    assert found == ([("softmax-before-loss", "warning", "last", 0)] if is_told else [])


def ending(folder: Path, class_name: str, *, shown: Array, gradient: Array, **options: Any) -> Model:
    """A run of a network that ends with a module of this class, its output and the gradient of the loss at it."""
    graph = chain(module("fc1", "Linear", weight(2, 2)), module("last", class_name))
    info = TensorInfo("output", shown.shape, "float32", True)
    calls = [replace(one, outputs=(info,)) for one in graph.calls]
    norms = np.linalg.norm(gradient.reshape(len(shown), -1), axis=1) / gradient[:, 0].size
    frame = {
        (name, "output", "output", kind): values
        for name in ("last", "")
        for kind, values in (("value", shown.ravel()), ("grad_norm", norms))
    }
    return recorded(folder, replace(graph, calls=tuple(calls)), [frame] * 4, **options)


@pytest.mark.parametrize(("loss", "is_told"), [(-1.5, True), (1.5, False)], ids=["negative", "positive"])
def test_a_divergence_that_takes_probabilities_for_logarithms_is_told(
    loss: float, *, is_told: bool, tmp_path: Path
) -> None:
    model = ending(tmp_path, "Softmax", shown=SHOWN, gradient=-WANTED, scalars={"loss": [loss] * 4})
    assert kinds(model) == ([("softmax-before-loss", "warning", "last", 0)] if is_told else [])


MAPS = np.stack([SHOWN, SHOWN[::-1], np.roll(SHOWN, 1, 0)], axis=2)
LABEL_MAPS = np.stack([LABELS, LABELS[::-1], np.roll(LABELS, 1, 0)], axis=2)


@pytest.mark.parametrize(
    ("gradient", "is_told"),
    [
        pytest.param(probabilities(MAPS) - LABEL_MAPS, True, id="cross entropy of probabilities"),
        pytest.param((probabilities(MAPS) - LABEL_MAPS) * 48, True, id="cross entropy, summed"),
        pytest.param(-LABEL_MAPS, True, id="likelihood without the logarithm"),
        pytest.param(-LABEL_MAPS / MAPS, False, id="likelihood"),
        pytest.param((MAPS - LABEL_MAPS) / 2, False, id="squared error"),
    ],
)
def test_a_softmax_of_many_positions_before_a_loss_with_one_is_told(
    gradient: Array, *, is_told: bool, tmp_path: Path
) -> None:
    found = kinds(ending(tmp_path, "Softmax", shown=MAPS, gradient=gradient))
    assert ("softmax-before-loss" in {kind for kind, *_ in found}) == is_told


DIRECTIONS = LOGITS / np.linalg.norm(LOGITS, axis=1, keepdims=True)
FALLING = [-0.2, -2.0, -9.0, -30.0]


@pytest.mark.parametrize(
    ("shown", "gradient", "losses", "is_told"),
    [
        pytest.param(LOGITS, -LABELS, FALLING, True, id="likelihood of logits"),
        pytest.param(np.stack([LOGITS] * 3, 2), -LABEL_MAPS, FALLING, True, id="of logits at many positions"),
        pytest.param(np.log(SHOWN), -LABELS, [1.4, 1.2, 1.0, 0.8], False, id="likelihood of logarithms"),
        pytest.param(LOGITS, DIRECTIONS, [3.0, 2.0, 1.0, 0.5], False, id="distance"),
        pytest.param(DIRECTIONS, -DIRECTIONS[::-1], [-0.1, -0.5, -0.9, -1.0], False, id="cosine"),
        pytest.param(LOGITS, probabilities(LOGITS) - LABELS, [1.4, 1.2, 1.0, 0.8], False, id="cross entropy"),
        pytest.param(LOGITS[:, :1], -np.ones((16, 1)), FALLING, False, id="critic"),
        pytest.param(LOGITS, -np.ones((16, 4)) / 4, FALLING, False, id="critics"),
    ],
)
def test_logits_before_a_loss_of_logarithms_are_told(  # the two arrays, and what is logged
    shown: Array, gradient: Array, losses: list[float], is_told: bool, tmp_path: Path
) -> None:
    found = kinds(ending(tmp_path, "Linear", shown=shown, gradient=gradient, scalars={"loss": losses}))
    assert [one[:3] for one in found if one[0] == "logits-before-nll"] == (
        [("logits-before-nll", "warning", "")] if is_told else []
    )


@pytest.mark.parametrize(
    ("class_name", "shown", "wanted", "is_told"),
    [
        pytest.param("Sigmoid", SQUASHED, ANSWERS * 9.0, True, id="sigmoid"),
        pytest.param("Tanh", np.tanh(LOGITS), LOGITS * 16, True, id="tanh"),
        pytest.param("Sigmoid", SQUASHED, ANSWERS, False, id="sigmoid for its range"),
        pytest.param("Sigmoid", 1 - ANSWERS * 0.999, ANSWERS, False, id="sigmoid that is all wrong"),
        pytest.param("Tanh", np.tanh(LOGITS), -np.sign(LOGITS), False, id="tanh for its range"),
        pytest.param("Linear", SQUASHED, ANSWERS * 9.0, False, id="without an activation"),
    ],
)
def test_targets_out_of_the_range_of_the_outputs_are_told(
    class_name: str, shown: Array, wanted: Array, *, is_told: bool, tmp_path: Path
) -> None:
    loss = float(np.mean((shown - wanted) ** 2))
    gradient = 2 * (shown - wanted) / shown.shape[1]
    found = kinds(ending(tmp_path, class_name, shown=shown, gradient=gradient, scalars={"loss": [loss] * 4}))
    assert ("targets-out-of-range" in {kind for kind, *_ in found}) == is_told


@pytest.mark.parametrize("factor", [1.01, 1.5, 4.0])
def test_an_error_that_is_not_the_square_does_not_tell_of_targets(factor: float, tmp_path: Path) -> None:
    gradient = 2 * (SQUASHED - ANSWERS * 9.0)
    loss = factor * float(np.mean((SQUASHED - ANSWERS * 9.0) ** 2))
    model = ending(tmp_path, "Sigmoid", shown=SQUASHED, gradient=gradient, scalars={"loss": [loss] * 4})
    assert "targets-out-of-range" not in {kind for kind, *_ in kinds(model)}


def test_a_softmax_over_the_batch_is_told(tmp_path: Path) -> None:
    over_batch = probabilities(RNG.standard_normal((4, 16))).T
    [found] = ending(tmp_path, "Softmax", shown=over_batch, gradient=-LABELS / over_batch).findings()
    assert (found.kind, found.module, found.evidence["samples"]) == ("softmax-over-batch", "", 16)
    assert "over the 16 samples of the batch" in found.text


# Low precision


def updated(folder: Path, dtype: str, unchanged: float) -> Model:
    """A run in which this share of a weight's elements stays as it is."""
    graph = chain(module("fc1", "Linear", TensorInfo("weight", (8, 8), dtype, True)))
    update = np.where(np.arange(64) < 64 * unchanged, 0, 1e-3)
    frames: Frames = [
        {
            ("fc1", "param", "weight", "value"): NORMAL + update * step,
            ("fc1", "param", "weight", "grad"): NORMAL / 100,
            ("fc1", "param", "weight", "update"): update,
        }
        for step in range(6)
    ]
    return recorded(folder, graph, frames)


@pytest.mark.parametrize(
    ("dtype", "unchanged", "expected"),
    [
        pytest.param("bfloat16", 0.97, [("update-lost-to-rounding", "warning", "fc1", 0)], id="most"),
        pytest.param("bfloat16", 0.3, [], id="some"),
        pytest.param("float32", 0.97, [], id="in float32, where it is no rounding"),
    ],
)
def test_updates_that_round_to_nothing_are_told(
    dtype: str, unchanged: float, expected: list[tuple[str, str, str, int]], tmp_path: Path
) -> None:
    assert kinds(updated(tmp_path, dtype, unchanged)) == expected


@pytest.mark.parametrize(
    ("scale", "zeros", "dtype", "is_told"),
    [
        pytest.param(1e-7, 48, "float16", True, id="float16"),
        pytest.param(1e-2, 48, "float8_e4m3fn", True, id="float8"),
        pytest.param(1e-7, 48, "float32", False, id="float32"),
        pytest.param(1e-2, 48, "float16", False, id="far from the smallest number"),
        pytest.param(3e-7, 8, "float16", True, id="few zeros, and few bits of the others"),
        pytest.param(2e-5, 8, "float16", False, id="few zeros, and enough bits of the others"),
    ],
)
def test_gradients_that_underflow_are_told(
    *, scale: float, zeros: int, dtype: str, is_told: bool, tmp_path: Path
) -> None:
    graph = chain(module("fc1", "Linear", TensorInfo("weight", (8, 8), dtype, True)))
    gradient = np.where(np.arange(64) < zeros, 0, np.clip(NORMAL, -1, 1)) * scale
    frames: Frames = [
        {
            ("fc1", "param", "weight", "value"): NORMAL + step,
            ("fc1", "param", "weight", "grad"): gradient,
        }
        for step in range(6)
    ]
    model = recorded(tmp_path, graph, frames)
    found = [one for one in model.findings() if one.kind == "overflow-ahead"]
    assert bool(found) == is_told
    for one in found:
        assert_outside_band(model, one)
        assert one.advice.startswith("Scale the loss")


def test_a_scaled_loss_is_not_advised_for_outputs_that_underflow(tmp_path: Path) -> None:
    graph = chain(module("fc1", "Linear", weight(8, 8)), dtype="float16")
    outputs = np.where(np.arange(64) < 40, 0, np.clip(NORMAL, -1, 1)) * 2e-5
    model = recorded(tmp_path, graph, [{("fc1", "output", "output", "value"): outputs} for _ in range(6)])
    assert [one.advice.partition(",")[0] for one in model.findings() if one.kind == "overflow-ahead"] == [
        "Use bfloat16"
    ]


# Mended rules


def test_a_loss_scale_below_one_is_told_even_if_it_recovers(tmp_path: Path) -> None:
    graph = chain(module("fc1", "Linear", weight(2, 2)))
    facts = [StepFacts("skipped", 1, 1)] * 3 + [StepFacts("update", 1, 1)] * 17
    frames: Frames = [{("fc1", "output", "output", "value"): NORMAL}] * 20
    found = recorded(tmp_path, graph, frames, facts=facts, scale=0.25).findings()
    assert [one.kind for one in found] == ["loss-scale-loop"]


# Parameters that are not used


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        pytest.param("offset", "warning", id="one that was forgotten"),
        pytest.param("mask_token", "info", id="what stands for masked inputs"),
    ],
)
def test_a_parameter_of_its_own_that_gets_no_gradient_is_told(name: str, severity: str, tmp_path: Path) -> None:
    graph = chain(module("patches", "Patches", weight(8, 8), TensorInfo(name, (8,), "float32", True)))
    frames: Frames = [
        {
            ("patches", "output", "output", "value"): NORMAL,
            ("patches", "param", "weight", "value"): NORMAL + step,
            ("patches", "param", "weight", "grad"): NORMAL,
            ("patches", "param", name, "value"): NORMAL[:8],
        }
        for step in range(12)
    ]
    found = [one for one in kinds(recorded(tmp_path, graph, frames)) if one[0] == "no-gradient"]
    assert found == [("no-gradient", severity, "patches", 0)]
