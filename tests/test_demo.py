"""The demonstration records what its own model says of itself, and the command line tells the same."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests import warm
from tests.shared import FORKED
from torchgraph_explorer import demo, open_run
from torchgraph_explorer.errors import OptionError, TorchgraphError

STEPS = 60

pytestmark = [pytest.mark.slow, FORKED]  # the demo runs once


def torchgraph(*arguments: str) -> str:
    """What the command prints, run as a user runs it."""
    done = warm.run("-c", "import sys; from torchgraph_explorer.cli import main; sys.exit(main())", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def recorded(logdir: Path, *options: str) -> Path:
    """The run of a demonstration that serves nothing."""
    torchgraph("demo", "--steps", str(STEPS), "--no-serve", "--logdir", str(logdir), *options)
    (folder,) = logdir.iterdir()
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("demo"))


def tensors_of_calls(model: nn.Module, images: Tensor) -> Iterator[tuple[str, int, str, str, bool]]:
    """(module, call, role, path, gradient reaches it) of what plain hooks see in one forward pass."""
    seen: list[tuple[str, int, str, str, bool]] = []
    calls: Counter[str] = Counter()

    def watched(name: str) -> Any:
        def hook(_module: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
            call, calls[name] = calls[name], calls[name] + 1
            seen.append((name, call, "input", "input[0]", inputs[0].requires_grad))
            seen.append((name, call, "output", "output", output.requires_grad))

        return hook

    for name, module in model.named_modules():
        module.register_forward_hook(watched(name))
    model(images)
    yield from seen
    yield ("", 0, "attached", "features", True)


def series_of(model: nn.Module) -> set[tuple[str, int | None, str, str, str]]:
    """The series that logging everything makes of one training step."""
    tensors = list(tensors_of_calls(model, torch.rand(2, 1, 8, 8)))
    values = {(*tensor[:4], "value") for tensor in tensors}
    gradients = {(*tensor[:4], "grad_norm") for tensor in tensors if tensor[4]}
    params = {
        (name, None, "param", path, kind)
        for name, module in model.named_modules()
        for path, _ in module.named_parameters(recurse=False)
        for kind in ("value", "grad")
    }
    ratios = {
        (module, None, "param", path, "update_ratio")
        for module, path in (name.rsplit(".", 1) for name, each in model.named_parameters() if each.dim() > 1)
    }
    return values | gradients | params | ratios


def additions(model: nn.Module) -> Iterator[tuple[str, str]]:
    """The blocks that add two tensors, and where each comes from: the gradient along such an edge has a series."""
    for name, module in model.named_modules():
        if isinstance(module, demo.Block):
            yield name, "norm2"
            yield name, "shortcut"


def test_the_demo_records_the_series_that_its_model_has(run: Path) -> None:
    found = {series.key for series in open_run(run).model().series}
    edges = {(module, path) for module, _, role, path, _ in found if role == "edge"}
    assert {key for key in found if key[2] != "edge"} == series_of(demo.DigitsNet())
    assert edges == {(block, f"{end} -> relu#2") for block, end in additions(demo.DigitsNet())} | {
        ("", "pool -> @features")
    }


def test_info_agrees_with_the_model(run: Path) -> None:
    (told,) = json.loads(torchgraph("info", str(run), "--json"))["models"]
    calls = Counter(call for call, role in tensors_by_role(demo.DigitsNet()) if role == "output")
    assert told["steps"] == len(range(0, STEPS, demo.LOG_FREQ))
    assert told["series"] == len(series_of(demo.DigitsNet())) + 1 + len(list(additions(demo.DigitsNet())))
    assert told["calls"] == sum(calls.values())


def tensors_by_role(model: nn.Module) -> list[tuple[tuple[str, int], str]]:
    return [((name, call), role) for name, call, role, *_ in tensors_of_calls(model, torch.rand(2, 1, 8, 8))]


def test_the_demo_learns_and_counts_epochs(run: Path) -> None:
    model = open_run(run).model()
    assert model.session.clock == "epoch"
    assert model.clock[-1] == pytest.approx((STEPS - demo.LOG_FREQ) * demo.BATCH_SIZE / 1500, abs=0.1)


FAULTS = [
    ("dead-units", "stage2.0.relu", 0),
    ("dropout-extreme", "classifier.0", None),
    ("not-in-optimizer", "classifier.1", None),
]
"""Kind, module and call of what docs/findings.md says is found in the broken network."""


def test_nothing_is_found_in_the_demo(run: Path) -> None:
    assert open_run(run).model().findings() == ()


def test_the_three_faults_of_the_broken_demo_are_found(tmp_path: Path) -> None:
    found = open_run(recorded(tmp_path, "--broken")).model().findings()
    assert [(one.kind, one.module, one.call) for one in found if not one.causes] == FAULTS
    following = {(one.kind, one.module, cause.kind) for one in found for cause in one.causes}
    assert following == {("no-gradient", f"stage2.0.{layer}", "dead-units") for layer in ("conv1", "conv2")}
    page = (Path(__file__).parent.parent / "docs/findings.md").read_text(encoding="utf-8")
    assert all(f"`{kind}` at `{module}` |" in page for kind, module, _ in FAULTS)


def test_without_a_terminal_the_demo_ends_with_its_training_and_says_how_to_look_at_it(tmp_path: Path) -> None:
    logdir = tmp_path / "my runs"
    told = torchgraph("demo", "--steps", "2", "--port", "0", "--logdir", str(logdir)).splitlines()
    assert told[-1] == f"Look at the run with: torchgraph serve '{logdir}'"


def test_a_demo_without_steps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"cannot train for 0 steps\. Give it 1 or more"):
        demo.run_demo(logdir=str(tmp_path), steps=0, serve=False, port=0, open_browser=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("module", "library"), [("sklearn", "scikit-learn"), ("rich.progress", "rich")])
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    module: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TorchgraphError, match=rf"needs {library}, .* pip install \"rich>=13\" \"scikit-learn>=1.3\""):
        demo.run_demo(logdir=str(tmp_path), steps=1, serve=False, port=0, open_browser=False)
    assert list(tmp_path.iterdir()) == []
