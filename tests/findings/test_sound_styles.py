"""What sound programs of other people do that looks like a fault is not warned of, and the fault beside it still is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.records import chain, module, recorded, weight
from tests.findings.test_structure import NORMAL, Frames, joined
from tests.findings.trainings import trained
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.schema import Edge

pytestmark = pytest.mark.slow

WORDS, LENGTH = 12, 16


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def of_kind(found: list[Finding], kind: str) -> list[tuple[str, str | None]]:
    return [(one.severity, one.module) for one in found if one.kind == kind]


@pytest.mark.parametrize(
    ("gradients", "is_told"),
    [
        pytest.param((1e-3, 2e-3, 4e-3, 3e-3, 20.0), False, id="only the last layer has much more"),
        pytest.param((1e-5, 1e-4, 1e-3, 1e-2, 1.0), True, id="less from layer to layer"),
        pytest.param((1e-5, 1.0, 1.0, 1.0, 20.0), True, id="only the first one has less"),
    ],
)
def test_a_gradient_has_vanished_beside_the_usual_ones_and_not_only_the_largest(
    gradients: tuple[float, ...], is_told: bool, tmp_path: Path
) -> None:
    names = [f"fc{number}" for number in range(len(gradients))]
    frames: Frames = [
        {
            (name, "param", "weight", kind): NORMAL * (scale if kind == "grad" else 1 + 1e-3 * step)
            for name, scale in zip(names, gradients, strict=True)
            for kind in ("value", "grad")
        }
        for step in range(12)
    ]
    graph = chain(*(module(name, "Linear", weight(2, 2)) for name in names))
    found = [*recorded(tmp_path, graph, frames).findings()]
    assert of_kind(found, "vanishing-gradient") == ([("warning", "fc0")] if is_told else [])


@pytest.mark.parametrize(
    ("is_small", "is_told"),
    [pytest.param(True, False, id="a policy's last layer"), pytest.param(False, True, id="a layer as torch makes it")],
)
def test_the_gradient_of_a_last_layer_that_begins_small_is_no_measure(
    is_small: bool, is_told: bool, tmp_path: Path
) -> None:
    values = {"fc1": 1.0, "fc2": 1.0, "fc3": 1e-3 if is_small else 1.0}
    gradients = {"fc1": 1e-5, "fc2": 1e-5, "fc3": 5e-3 if is_small else 5.0}
    frames: Frames = [
        {(name, "param", "weight", "value"): NORMAL * scale * (1 + 1e-3 * step) for name, scale in values.items()}
        | {(name, "param", "weight", "grad"): NORMAL * scale for name, scale in gradients.items()}
        for step in range(12)
    ]
    graph = chain(*(module(name, "Linear", weight(2, 2)) for name in values))
    found = [*recorded(tmp_path, graph, frames).findings()]
    assert of_kind(found, "vanishing-gradient") == ([("warning", "fc1")] if is_told else [])


@pytest.mark.parametrize(("rate", "expected"), [(0.05, []), (0.0, [("warning", None)])], ids=["settle", "stay large"])
def test_updates_that_are_large_at_first_and_settle_are_not_told_where_the_loss_falls(
    rate: float, expected: list[tuple[str, None]], tmp_path: Path
) -> None:
    frames: Frames = [
        {
            (name, "param", "weight", kind): NORMAL * (1 + 1e-3 * step) if kind != "update_ratio" else [ratio]
            for name in ("fc1", "fc2")
            for kind in ("value", "grad", "update_ratio")
        }
        for step in range(50)
        for ratio in [0.3 * (1 - rate) ** step]
    ]
    graph = chain(*(module(name, "Linear", weight(2, 2)) for name in ("fc1", "fc2")))
    loss = [2.0 * 0.95**step for step in range(50)]
    found = [*recorded(tmp_path, graph, frames, scalars={"loss": loss}).findings()]
    assert of_kind(found, "update-too-large") == expected


@pytest.mark.parametrize(("names", "is_told"), [(("fc1",), False), (("fc1", "fc2"), True)], ids=["one", "two"])
def test_a_single_weight_may_go_far_at_first(names: tuple[str, ...], is_told: bool, tmp_path: Path) -> None:
    frames: Frames = [
        {
            (name, "param", "weight", kind): NORMAL * (1 + 1e-3 * step)
            if kind != "update_ratio"
            else [3.0 / (1 + step)]
            for name in names
            for kind in ("value", "grad", "update_ratio")
        }
        for step in range(8)
    ]
    graph = chain(*(module(name, "Linear", weight(2, 2)) for name in names))
    found = [*recorded(tmp_path, graph, frames, scalars={"loss": [0.9**step for step in range(8)]}).findings()]
    assert of_kind(found, "update-too-large") == ([("warning", None)] if is_told else [])


def test_a_small_residual_branch_is_info(tmp_path: Path) -> None:
    graph = joined("stream", "branch")
    graph = replace(graph, edges=(*graph.edges, Edge(1, 2, True)))  # the branch is computed from the stream
    frames: Frames = [
        {("branch", "output", "output", "value"): NORMAL * 1e-4, ("stream", "output", "output", "value"): NORMAL}
        for _ in range(12)
    ]
    [one] = [one for one in recorded(tmp_path, graph, frames).findings() if one.kind == "imbalanced-branches"]
    assert (one.severity, one.module) == ("info", "branch")
    assert "as a residual branch is" in one.text


class Translator(nn.Module):
    """Moves the last label to the beginning for its decoder, as mBART does, or hands the decoder the labels."""

    def __init__(self, *, rotates: bool) -> None:
        super().__init__()
        self.source, self.target, self.head = nn.Embedding(WORDS, 16), nn.Embedding(WORDS, 16), nn.Linear(16, WORDS)
        self.rotates = rotates

    def forward(self, input_ids: Tensor, labels: Tensor) -> Tensor:
        given = labels.roll(1, 1) if self.rotates else labels
        logits: Tensor = self.head(self.target(given) + self.source(input_ids).mean(1, keepdim=True))
        return logits


@pytest.mark.parametrize(
    ("library", "rotates", "expected"),
    [
        pytest.param("transformers.models.made", True, [], id="a library's model"),
        pytest.param("mine", False, [("warning", "")], id="one of one's own"),
    ],
)
def test_labels_that_a_library_rotates_for_its_decoder_are_no_answers_in_inputs(
    library: str,
    rotates: bool,
    expected: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(Translator, "__module__", library)

    def step(model: nn.Module, _: int) -> Tensor:
        tokens = torch.randint(0, WORDS, (16, LENGTH))
        logits = model(input_ids=tokens.flip(1), labels=tokens)
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())

    assert of_kind(trained(tmp_path, Translator(rotates=rotates), step), "answers-in-inputs") == expected


class Shared(nn.Module):
    """An encoder, a decoder and a head with one weight, as T5 has it."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(40, 64), nn.Embedding(40, 64)
        self.head = nn.Linear(64, 40, bias=False)
        self.target.weight = self.head.weight = self.source.weight

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        logits: Tensor = self.head(self.source(source) + self.target(target))
        return logits


def test_a_large_weight_that_two_embeddings_share_with_the_head_is_told_once(tmp_path: Path) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        tokens = torch.randint(0, 40, (16, 2))
        return F.cross_entropy(model(tokens[:, 0], tokens[:, 1]), torch.randint(0, 40, (16,)))

    assert of_kind(trained(tmp_path, Shared(), step), "bad-init-scale") == [("warning", "source")]


class Distilled(nn.Module):
    """A student, and a teacher that was trained before."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher, self.student = nn.Linear(8, 3), nn.Linear(8, 3)


@pytest.mark.parametrize(
    ("is_teacher_used", "expected"), [(False, []), (True, [("warning", "teacher")])], ids=["left", "new"]
)
def test_a_gradient_that_is_left_from_a_training_before_is_no_gradient(
    is_teacher_used: bool, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    model = Distilled()
    before = torch.optim.SGD(model.teacher.parameters(), 0.1)
    model.teacher(torch.randn(16, 8)).square().mean().backward()
    before.step()
    optimizer = torch.optim.SGD(model.student.parameters(), 0.1)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for _ in range(60):
            inputs = torch.randn(16, 8)
            with torch.set_grad_enabled(is_teacher_used):
                targets = model.teacher(inputs)
            optimizer.zero_grad()
            (model.student(inputs) - targets).square().mean().backward()
            optimizer.step()
    found = [*open_run(str(tmp_path / "run")).model().findings()]
    assert of_kind(found, "not-in-optimizer") == expected


def beside_a_codebook(model: nn.Module, step: int) -> Tensor:
    """A squared error that falls, and another part that rises."""
    inputs = torch.randn(64, 8)
    return F.mse_loss(model(inputs), inputs[:, :3]) + 0.1 * step


def of_growing_targets(model: nn.Module, step: int) -> Tensor:
    inputs = torch.randn(64, 8)
    return F.mse_loss(model(inputs), (1 + step) * inputs[:, :3] ** 2)


@pytest.mark.parametrize(
    ("loss", "severity"), [(beside_a_codebook, "info"), (of_growing_targets, "warning")], ids=["part", "error"]
)
def test_a_loss_of_which_another_part_rises_while_the_error_falls_is_info(
    loss: Callable[[nn.Module, int], Tensor], severity: str, tmp_path: Path
) -> None:
    [one] = [one for one in trained(tmp_path, nn.Linear(8, 3), loss) if one.kind == "loss-diverging"]
    assert one.severity == severity
    assert ("another part of the loss" in one.text) == (severity == "info")


class Encoder(nn.Module):
    """A classifier with a token of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(4))
        self.body, self.head = nn.Linear(8, 32), nn.Linear(32, 2)


class Pretrained(nn.Module):
    """Calls the body of an encoder, and neither its head nor itself."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(), nn.Linear(32, 8)

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.decoder(self.encoder.body(values))
        return result


@pytest.mark.parametrize(("library", "severity"), [("vit_pytorch.mae", "info"), ("mine", "warning")])
def test_parts_that_a_library_leaves_out_of_an_encoder_are_no_warning(
    library: str, severity: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for kind in (Encoder, Pretrained):
        monkeypatch.setattr(kind, "__module__", library)
    inputs = torch.randn(32, 8)
    found = trained(tmp_path, Pretrained(), lambda model, _: F.mse_loss(model(inputs + torch.randn(32, 8)), inputs))
    texts = {one.module: one.text for one in found if one.kind == "unused-module"}
    assert sorted(of_kind(found, "unused-module")) == [(severity, "encoder"), (severity, "encoder.head")]
    assert "never called as a whole" in texts["encoder"]
    assert "its parameter, outside" in texts["encoder"]
    assert texts["encoder.head"].endswith("no gradient reaches its 2 parameters.")


class Heads(nn.Module):
    """A body and two heads."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__()
        self.body = nn.Linear(4, 16)
        self.add_module(first, nn.Linear(16, 2))
        self.add_module(second, nn.Linear(16, 1))

    def forward(self, values: Tensor) -> tuple[Tensor, ...]:
        hidden = self.body(values).tanh()
        return tuple(head(hidden) for name, head in self.named_children() if name != "body")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(("actor", "critic"), [], id="an actor and a critic"),
        pytest.param(("pi", "v"), [], id="a policy and values"),
        pytest.param(("one", "other"), [("warning", None)], id="two heads"),
    ],
)
def test_the_loss_of_an_actor_and_its_critic_need_not_fall(
    names: tuple[str, str], expected: list[tuple[str, None]], tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        first, second = model(torch.randn(32, 4))
        chosen = torch.randint(0, 2, (32,))
        return (F.cross_entropy(first, chosen, reduction="none") * (1 + torch.rand(32))).mean() + 0 * second.mean()

    assert of_kind(trained(tmp_path, Heads(*names), step, steps=160, rate=0.5), "loss-not-falling") == expected
