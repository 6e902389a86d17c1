"""`only=` and `except_=`: the modules that they choose are recorded, the others are not, and training is as without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import OptionError, TorchgraphWarning, open_run, watch
from torchgraph_explorer.capture.module_selection import ModuleSelection
from torchgraph_explorer.run import Model

NAMES = ("", "a", "a.0", "a.1", "ab", "b", "b.lora_A", "b.lora_A.x", "c.0.d", "c.0", "c")


@pytest.mark.parametrize(
    ("only", "without", "expected"),
    [
        pytest.param(None, (), NAMES, id="all"),
        pytest.param(("a",), (), ("", "a", "a.0", "a.1"), id="a module with what is in it"),
        pytest.param(("c.0.d",), (), ("", "c", "c.0", "c.0.d"), id="and what it is in"),
        pytest.param(("*lora_*",), (), ("", "b", "b.lora_A", "b.lora_A.x"), id="adapters alone"),
        pytest.param(("a*",), ("a.1",), ("", "a", "a.0", "ab"), id="but one"),
        pytest.param(None, ("a*", "b", "c"), ("",), id="none is left"),
        pytest.param((), (), ("",), id="none is chosen"),
        pytest.param(("a.[0]", "a?"), (), ("", "a", "a.0", "ab"), id="wildcards"),
    ],
)
def test_patterns_choose(only: tuple[str, ...] | None, without: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert ModuleSelection(only, without).chosen(NAMES) == set(expected)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8))
        self.head = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x))


def whole(model: Net, x: Tensor) -> Tensor:
    return model(x)


def in_parts(model: Net, x: Tensor) -> Tensor:
    return model.head(model.encoder(x))


def trained(folder: Path | None, way: Any = whole, **options: Any) -> list[bytes]:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    watcher = None
    if folder is not None:
        watcher = watch(model, backend="record", logdir=folder, run="a", log_freq=1, verbose=False, **options)
    for _ in range(4):
        optimizer.zero_grad()
        way(model, torch.randn(3, 4)).square().mean().backward()
        optimizer.step()
    if watcher is not None:
        watcher.close()
    return [each.detach().numpy().tobytes() for each in model.parameters()]


def record(folder: Path) -> Model:
    return open_run(str(folder / "a")).model()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"only": "head"}, {"", "head", "head.0", "head.1", "head.2"}, id="only"),
        pytest.param({"except_": ["encoder", "head.1"]}, {"", "head", "head.0", "head.2"}, id="except"),
        pytest.param({"only": ["*.0"], "except_": "head"}, {"", "encoder", "encoder.0"}, id="both"),
    ],
)
@pytest.mark.parametrize("way", [whole, in_parts])
def test_only_what_is_chosen_is_recorded_and_training_is_the_same(
    options: dict[str, Any], expected: set[str], way: Any, tmp_path: Path
) -> None:
    assert trained(tmp_path, way, **options) == trained(None, way)
    model = record(tmp_path)
    called = expected - ({""} if way is in_parts else set())
    assert (model.steps.tolist(), model.notes, model.findings()) == ([0, 1, 2, 3], (), ())
    assert {call.module for call in model.graphs[0].calls} == called
    assert {module.name for module in model.graphs[0].modules} == expected
    assert {series.module for series in model.series} - {""} == called - {""}
    assert all(len(model.history(one)) == 4 for one in model.series if one.kind == "value")


def test_evaluations_have_the_same_modules(tmp_path: Path) -> None:
    model = Net()
    with watch(
        model,
        backend="record",
        logdir=tmp_path,
        run="a",
        log_freq=1,
        phases=("train", "eval"),
        only="head",
        verbose=False,
    ):
        for _ in range(2):
            model(torch.randn(3, 4)).sum().backward()
            with torch.no_grad():
                model.eval()(torch.randn(3, 4))
            model.train()
    assert {one.module.partition(".")[0] for one in open_run(str(tmp_path)).model("Net (eval)").series} == {"", "head"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            {"only": "heda"}, r"'heda' in only= or except_= matches no module of Net\. Its modules are [a-z]", id="typo"
        ),
        pytest.param({"only": 3}, "only=3 names no modules. Pass a pattern", id="a number"),
        pytest.param({"except_": [""]}, "except_=.* names no modules", id="an empty name"),
        pytest.param({"only": []}, "leave no module to record", id="none"),
        pytest.param({"except_": "*"}, "leave no module to record", id="all excepted"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=message):
        watch(Net(), backend="record", logdir=tmp_path, **options)


def test_a_choice_of_nothing_in_a_layer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"'a' in only= .* matches no module of Linear\. It has none\. "):
        watch(nn.Linear(2, 2), backend="record", logdir=tmp_path, only="a")


def test_a_fault_in_the_choice_is_said_once_and_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = trained(None)
    check = ModuleSelection.chosen

    def broken(self: ModuleSelection, names: Any) -> Any:
        if isinstance(names, list):  # as `watch` checks it
            return check(self, names)
        raise RuntimeError("broken")

    monkeypatch.setattr(ModuleSelection, "chosen", broken)
    with pytest.warns(TorchgraphWarning, match="broken") as told:
        assert trained(tmp_path, only="head") == plain
    assert len([one for one in told if "broken" in str(one.message)]) == 1
