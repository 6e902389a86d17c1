"""What is told of logged losses, of noise of all sorts, and which scalar is the loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from benchmarks.findings import Unlogged
from tests.findings.records import chain, module, recorded, weight
from tests.record.examples import labelled, logged, write
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import need_not_fall, the_loss
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import StepFacts

RNG = np.random.default_rng(3)
STEPS = np.arange(200)
NOISE = RNG.standard_normal(200)
FALLING = 0.2 + 2.1 * np.exp(-STEPS / 30)
PLATEAU = 2.3 + 0.06 * NOISE

Values = npt.NDArray[np.float64]


def trained(
    folder: Path, scalars: Mapping[str, Sequence[float]], frames: Sequence[Mapping[Any, Any]] | None = None
) -> Model:
    """A run of one layer in which all is well but for what was logged."""
    frames = frames or [{("fc1", "output", "output", "value"): [1.0, 2.0 + step / 100]} for step in range(200)]
    return recorded(folder, chain(module("fc1", "Linear", weight(2, 2))), frames, scalars=scalars)


def kinds(model: Model) -> list[str]:
    return [one.kind for one in model.findings()]


def spiked(height: float, at: int = 120) -> Values:
    values = FALLING * np.exp(0.05 * NOISE)
    values[at] += height
    return values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(PLATEAU, ["update-too-small"], id="the loss stays where it began"),
        pytest.param(FALLING, [], id="the loss has fallen before"),
    ],
)
def test_updates_that_are_soon_too_small_are_told_where_nothing_is_learned(
    values: Values, expected: list[str], tmp_path: Path
) -> None:
    ratios = 1e-3 * 0.5**STEPS + 1e-9
    frames = [
        {
            ("fc1", "param", "weight", "value"): NOISE[:4] * (1 + 1e-3 * step),
            ("fc1", "param", "weight", "grad"): NOISE[4:8],
            ("fc1", "param", "weight", "update_ratio"): [ratio],
        }
        for step, ratio in enumerate(ratios.tolist())
    ]
    assert kinds(trained(tmp_path, {"loss": values.tolist()}, frames)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(PLATEAU, ["loss-not-falling"], id="stays where it began"),
        pytest.param(2.3 + np.append(0.2, 0.05 * NOISE[1:]), ["loss-not-falling"], id="learns only the frequencies"),
        pytest.param(FALLING[::-1] + 0.02 * NOISE, ["loss-diverging"], id="rises"),
        pytest.param(
            np.where(STEPS < 120, FALLING, 1.8 + 0.05 * NOISE), ["loss-diverging"], id="loses what it had gained"
        ),
        pytest.param(spiked(5.0), ["loss-spike"], id="jumps once"),
        pytest.param(
            np.where(STEPS == 180, 3.0, np.where(STEPS < 130, 2.3 + 0.02 * NOISE, np.exp(0.25 * NOISE))),
            [],
            id="has a large value among ones that differ, as small batches have once a network learns",
        ),
        pytest.param(spiked(1.5), [], id="is once as large as at first, as with a rare class"),
        pytest.param(spiked(3.0), [], id="is once larger than at first, as with several samples of a rare class"),
        pytest.param(
            np.where(STEPS % 15 == 14, FALLING / 20 + 0.3, FALLING / 20),
            [],
            id="jumps now and then, as with a rare class",
        ),
        pytest.param(np.where(STEPS % 40 == 39, np.nan, FALLING), ["nan"], id="is not known now and then"),
        pytest.param(np.where(STEPS < 3, np.nan, FALLING), [], id="is not known at first"),
        pytest.param(FALLING + 0.02 * NOISE, [], id="falls"),
        pytest.param(FALLING * np.exp(0.8 * NOISE), [], id="falls in heavy noise"),
        pytest.param(2.3 - 0.001 * STEPS + 0.05 * NOISE, [], id="falls slowly"),
        pytest.param(2.3 * np.exp(-STEPS / 2) + 0.1 + 0.01 * NOISE, [], id="falls at once and stays"),
        pytest.param(np.exp(-STEPS / 15) + 1e-6 * NOISE**2, [], id="gets to zero"),
        pytest.param(np.exp(-STEPS / 15) + 1e-6 * (1 + 200 * (STEPS == 150)), [], id="jumps near zero"),
        pytest.param(0.3 * NOISE, [], id="changes its sign, as that of a policy gradient"),
        pytest.param(-100 + 100 * np.exp(-STEPS / 30) + NOISE, [], id="is negative and falls"),
        pytest.param(
            -2.3 * np.exp(-STEPS / 30) - 0.1 + 0.01 * NOISE, [], id="is negative and rises, as what is maximised"
        ),
        pytest.param(FALLING + 0.3 * np.abs(np.sin(STEPS / 15)) * FALLING, [], id="goes up and down with a schedule"),
        pytest.param(np.exp(1.5 * NOISE), [], id="is of single samples"),
        pytest.param(PLATEAU[:20], [], id="has few values"),
    ],
)
def test_a_loss_is_judged_by_its_own_past_and_noise(values: Values, expected: list[str], tmp_path: Path) -> None:
    assert kinds(trained(tmp_path, {"loss": values.tolist()})) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "others",
    [
        pytest.param({"reward": NOISE}, id="reinforcement learning"),
        pytest.param({"loss_g": PLATEAU, "loss_d": PLATEAU}, id="adversaries"),
    ],
)
def test_a_loss_with_a_moving_target_need_not_fall(others: Mapping[str, Values], tmp_path: Path) -> None:
    scalars = {"loss": PLATEAU, **others}
    assert kinds(trained(tmp_path, {name: values.tolist() for name, values in scalars.items()})) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param({"accuracy": 9, "loss": 9}, "loss", id="loss"),
        pytest.param({"train/loss": 9, "val/loss": 9}, "train/loss", id="of the training"),
        pytest.param({"Loss/train": 9, "Loss/test": 9}, "Loss/train", id="as TensorBoard writes it"),
        pytest.param({"trainLoss": 9, "evalLoss": 9}, "trainLoss", id="in camel case"),
        pytest.param({"train_loss_epoch": 2, "train_loss_step": 90}, "train_loss_step", id="the one with more values"),
        pytest.param({"kl_loss": 9, "reconstruction_loss": 9, "total_loss": 9}, "total_loss", id="the whole of parts"),
        pytest.param({"kl_loss": 9, "reconstruction_loss": 9}, None, id="parts without their sum"),
        pytest.param({"contrastive_loss": 9}, "contrastive_loss", id="the only one"),
        pytest.param({"val_loss": 9}, None, id="only of other data"),
        pytest.param({"glossary": 9}, None, id="no loss"),
    ],
)
def test_the_loss_is_chosen_by_its_name(names: Mapping[str, int], expected: str | None) -> None:
    scalars = {name: Scalar(name, np.arange(count), np.ones(count), np.ones(count)) for name, count in names.items()}
    found = the_loss(scalars)
    assert (found.name if found else None) == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param((None, "eval"), None, id="without a label"),
        pytest.param(("eval", "train"), "train", id="of the training"),
        pytest.param((None, "train"), None, id="without, before that of the training"),
        pytest.param(("eval", "05_iterations"), "none", id="neither"),
    ],
)
def test_only_one_label_of_a_loss_is_judged(
    labels: tuple[str | None, ...], expected: str | None, tmp_path: Path
) -> None:
    write(tmp_path, *(labelled(label, logged([0], loss=[1.0])) for label in labels))
    found = Evidence(open_run(tmp_path).model()).scalars.get("loss")
    assert (found.label if found else "none") == expected


def test_losses_with_labels_of_adversaries_need_not_fall(tmp_path: Path) -> None:
    write(tmp_path, *(labelled(label, logged([0], loss=[1.0])) for label in (None, "generator")))
    assert need_not_fall(Evidence(open_run(tmp_path).model()))


@pytest.mark.slow
def test_a_spike_names_what_moved_before_it(tmp_path: Path) -> None:
    def frame(step: int) -> dict[Any, Any]:
        large = 100.0 if step == 118 else 1.0 + 0.01 * NOISE[step]
        return {
            ("fc1", "input", "input[0]", "value"): np.array([1.0, 2.0]) * large,
            ("fc1", "output", "output", "value"): np.array([3.0, 4.0]) * large,
        }

    model = trained(tmp_path, {"loss": spiked(3.0).tolist()}, [frame(step) for step in range(200)])
    [one] = model.findings()
    assert (one.kind, one.module, one.path, one.step, one.evidence["moved_step"]) == (
        "loss-spike", "fc1", "input[0]", 120, 118,
    )  # fmt: skip


def test_a_loss_that_ends_in_nan_is_told_as_the_cause(tmp_path: Path) -> None:
    frames: list[Mapping[Any, Any]] = [
        {("fc1", "output", "output", "value"): [1.0, np.nan if step > 5 else 2.0]} for step in range(8)
    ]
    model = trained(tmp_path, {"loss": [1.0, 5.0, 50.0, 1e3, 1e7, np.inf, np.nan, np.nan]}, frames)
    assert kinds(model) == ["loss-diverging", "nan"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([np.nan] * 20, [("nan", "warning")], id="never"),
        pytest.param([np.nan] * 4, [], id="in the first few values"),
        pytest.param([np.nan] * 4 + [*FALLING[:60]], [], id="not before it is known"),
    ],
)
def test_a_loss_that_is_never_finite_is_told_though_all_tensors_are(
    values: list[float], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    found = trained(tmp_path, {"loss": values}).findings()
    assert [(one.kind, one.severity) for one in found] == expected


def test_optimizers_in_turns_have_a_moving_target(tmp_path: Path) -> None:
    graph = chain(module("fc1", "Linear", weight(2, 2)))
    frames: list[Mapping[Any, Any]] = [{("fc1", "output", "output", "value"): [1.0, 2.0]} for _ in range(4)]
    facts = [StepFacts("update", 1, 1, ("Adam" if step % 2 else "Adam #2",)) for step in range(4)]
    assert need_not_fall(Evidence(recorded(tmp_path, graph, frames, facts=facts)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "severity"),
    [
        pytest.param(FALLING, "warning", id="that falls to a tenth"),
        pytest.param(3 * np.exp(-STEPS / 20), "info", id="that falls to nothing"),
        pytest.param(np.append(3 * np.exp(-STEPS[:-1] / 20), np.nan), "warning", id="that ends in NaN"),
    ],
)
def test_a_network_may_saturate_once_its_loss_is_near_zero(values: Values, severity: str, tmp_path: Path) -> None:
    graph = chain(module("fc1", "Linear", weight(2, 2)), module("act", "Tanh"), module("fc2", "Linear", weight(2, 2)))
    frames = [{("act", "input", "input", "value"): [-9.0, 9.0 + step / 100, -7.0, 8.0]} for step in range(200)]
    found = recorded(tmp_path, graph, frames, scalars={"loss": values.tolist()}).findings()
    assert [one.severity for one in found if one.kind == "saturated-activation"] == [severity]


@pytest.mark.parametrize(
    ("optimizer", "expected"), [("SGD", ["update-too-large"]), ("LBFGS", []), ("MuonAdamW #2", [])], ids=str
)
def test_updates_may_be_large_where_the_optimizer_finds_out_how_far_to_go(
    optimizer: str, expected: list[str], tmp_path: Path
) -> None:
    frames: list[Mapping[Any, Any]] = [
        {
            ("fc1", "param", "weight", "value"): [1.0, -2.0, 3.0 + step, 2.0],
            ("fc1", "param", "weight", "grad"): [1.0, 2.0, 3.0, 4.0],
            ("fc1", "param", "weight", "update_ratio"): [0.5],
        }
        for step in range(30)
    ]
    facts = [StepFacts("update", 1, 1, (optimizer,))] * 30
    model = recorded(tmp_path, chain(module("fc1", "Linear", weight(2, 2))), frames, facts=facts)
    assert [one for one in kinds(model) if one == "update-too-large"] == expected


@pytest.mark.parametrize("optimizer", ["Adam", "NGD", "AdaHessian", "Adahessian #2"])
@pytest.mark.parametrize("large", [1, 12])
def test_first_updates_may_replace_the_weights_where_the_optimizer_divides_by_the_curvature(
    optimizer: str, large: int, tmp_path: Path
) -> None:
    frames: list[Mapping[Any, Any]] = [
        {
            ("fc1", "param", "weight", "value"): [1.0, -2.0, 3.0 + step, 2.0],
            ("fc1", "param", "weight", "grad"): [1.0, 2.0, 3.0, 4.0],
            ("fc1", "param", "weight", "update_ratio"): [2.0 if step < large else 0.01],
        }
        for step in range(30)
    ]
    facts = [StepFacts("update", 1, 1, (optimizer,))] * 30
    graph = chain(module("fc1", "Linear", weight(2, 2)), module("fc2", "Linear", weight(2, 2)))
    found = kinds(recorded(tmp_path, graph, frames, facts=facts))
    assert ("update-too-large" in found) is (optimizer == "Adam" or large > 1)


@pytest.mark.parametrize(
    ("moved", "is_told"),
    [
        pytest.param(lambda step: 0.01 * (step % 2 if step > 30 else step), False, id="they swing"),
        pytest.param(lambda _: 0.0, True, id="they stay"),
    ],
)
def test_weights_that_are_back_after_an_even_number_of_steps_may_swing(
    moved: Callable[[int], float], is_told: bool, tmp_path: Path
) -> None:
    steps = (0, 1, 10, 25, *range(50, 3000, 50))
    frames: list[Mapping[Any, Any]] = [
        {
            ("fc1", "param", "weight", "value"): np.linspace(1.0, 2.0, 16) + moved(step),
            ("fc1", "param", "weight", "grad"): np.ones(16),
            ("fc1", "param", "weight", "update_ratio"): [0.01],
        }
        for step in steps
    ]
    model = recorded(tmp_path, chain(module("fc1", "Linear", weight(4, 4))), frames, at=steps)
    assert ("update-undone" in kinds(model)) is is_told


@pytest.mark.slow
@pytest.mark.parametrize(("values", "severity", "said"), [(149, "info", "so far"), (150, "warning", "does not learn")])
def test_a_loss_that_has_not_fallen_yet_is_no_warning_in_the_first_150_updates(
    values: int, severity: str, said: str, tmp_path: Path
) -> None:
    frames = [{("fc1", "output", "output", "value"): [1.0, 2.0 + step / 100]} for step in range(values)]
    (one,) = trained(tmp_path, {"loss": PLATEAU[:values].tolist()}, frames).findings()
    assert (one.kind, one.severity) == ("loss-not-falling", severity)
    assert said in one.text


@pytest.mark.slow
def test_a_benchmark_also_judges_a_run_as_if_nothing_had_been_logged(tmp_path: Path) -> None:
    assert kinds(trained(tmp_path, {"loss": PLATEAU.tolist()})) == ["loss-not-falling"]
    assert kinds(open_run(tmp_path)._model(Unlogged, None)) == []


@pytest.mark.slow
@pytest.mark.parametrize("log_freq", [1, 7])
@pytest.mark.parametrize(("few", "expected"), [(4, []), (64, ["loss-spike"])])
def test_the_loss_of_a_last_batch_of_few_samples_is_no_spike(
    few: int, expected: list[str], log_freq: int, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    losses = spiked(1.5 if few == 4 else 5.0).tolist()
    with watch(model, log_freq=log_freq, backend="record", logdir=str(tmp_path), run="run", verbose=False) as watcher:
        for step, loss in enumerate(losses):
            optimizer.zero_grad()
            model(torch.randn(few if step == 120 else 64, 4)).square().mean().backward()
            optimizer.step()
            watcher.log({"loss": loss})
    assert [one.kind for one in open_run(str(tmp_path / "run")).model().findings()] == expected
