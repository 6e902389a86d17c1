"""Scripts that were written for TorchExplorer run with the import changed. What they call is checked here call by call.

The scripts are ours; they make the calls of TorchExplorer's README and examples, in their order.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import torchgraph_explorer as torchexplorer
from tests.listening import Listening
from torchgraph_explorer import OptionError, open_run

ROOT = Path(__file__).parents[2]

watch: Callable[..., Any] = torchexplorer.watch
"""Without types, as a script calls it: the old parameters are not in the signature."""

SAMPLES: dict[str, Any] = {
    "log": ["io", "params"],
    "log_freq": 2,
    "ignore_io_grad_classes": [nn.ReLU],
    "disable_inplace": True,
    "bins": 30,
    "sample_n": 1000,
    "reject_outlier_proportion": 0.1,
    "time_log": ("step", lambda _module, step: step),
    "delay_log_multi_backward": True,
    "backend": "none",
    "standalone_dir": "./torchexplorer_standalone",
    "standalone_port": 0,
    "verbose": False,
}
"""Every parameter of TorchExplorer's `watch` after the module, in its order, each with a value valid there."""


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Linear(3, 2))


def train(model: nn.Module, steps: int = 2) -> None:
    for _ in range(steps):
        model(torch.randn(5, 4)).sum().backward()


@pytest.mark.parametrize("count", range(len(SAMPLES) + 1))
def test_every_parameter_is_taken_by_position(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rest = {} if count >= list(SAMPLES).index("backend") + 1 else {"backend": "none"}
    model = net()
    with watch(model, *list(SAMPLES.values())[:count], **rest) as watcher:
        train(model)
    assert watcher.step == 2


@pytest.mark.parametrize("name", SAMPLES)
def test_every_parameter_is_taken_by_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = net()
    with watch(module=model, **{"backend": "none", name: SAMPLES[name]}) as watcher:
        train(model)
    assert watcher.step == 2


def test_what_is_passed_by_position_arrives() -> None:
    model, heard = net(), Listening()
    with watch(model, ["params"], 2, [nn.ReLU], True, 30, 1000, 0.2, ("epoch", lambda _m, step: 7), False, heard):
        train(model, 3)
    session = heard.session
    assert (session.log, session.log_freq, session.bins, session.sample_n) == (("params",), "2", 30, 1000)
    assert (session.reject_outlier_proportion, session.clock) == (0.2, "epoch")
    assert [(frame.step, frame.clock) for frame in heard.frames] == [(0, 7), (2, 7)]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        pytest.param("reject_outlier_proportion", 0.0, id="no element left out"),
        pytest.param("reject_outlier_proportion", 1.0, id="every element left out"),
        pytest.param("bins", 1, id="one row"),
        pytest.param("bins", np.int64(20), id="rows computed by numpy"),
        pytest.param("log_freq", 2.0, id="whole steps as a float"),
        pytest.param("log_freq", np.int64(2), id="steps computed by numpy"),
        pytest.param("sample_n", None, id="all elements"),
        pytest.param("time_log", None, id="no second clock"),
        pytest.param("log", [], id="the graph alone"),
        pytest.param("log", {"io"}, id="a set of kinds"),
    ],
)
def test_a_value_that_was_valid_is_taken_and_recorded(option: str, value: object, tmp_path: Path) -> None:
    model = net()
    options = {"log_freq": 1, option: value}
    with watch(model, backend="record", logdir=tmp_path, verbose=False, **options) as watcher:
        train(model, 3)
    recorded = open_run(watcher.run_dir).model()
    assert recorded.steps.tolist() == ([0, 2] if option == "log_freq" else [0, 1, 2])
    assert getattr(recorded.session, option, "no such") in (value, "2", (), ("io",), "no such")


@pytest.mark.slow
def test_the_old_names_of_folder_and_port_mean_where_runs_are_and_the_viewer_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with watch(net(), backend="standalone", standalone_dir=tmp_path / "old", standalone_port=0) as watcher:
        assert Path(watcher.run_dir).parent == tmp_path / "old"
        assert watcher.url.startswith("http://")
    [line] = [line for line in capsys.readouterr().err.splitlines() if "TorchExplorer" in line]
    assert line == (
        "torchgraph: from TorchExplorer: standalone_dir= is called logdir= here. standalone_port= is called port= here."
    )


def test_what_happens_by_itself_is_said_once_to_be_needless(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"disable_inplace": True, "ignore_io_grad_classes": [nn.ReLU], "delay_log_multibackward": True}
    watch(net(), backend="none", **options).close()
    [line] = [line for line in capsys.readouterr().err.splitlines() if "TorchExplorer" in line]
    assert "ignore_io_grad_classes, disable_inplace, delay_log_multibackward: no longer needed" in line


@pytest.mark.filterwarnings("ignore:.*no step was recorded:torchgraph_explorer.TorchgraphWarning")
def test_old_defaults_written_out_are_not_spoken_of(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"disable_inplace": False, "ignore_io_grad_classes": [], "delay_log_multi_backward": False}
    watch(net(), backend="none", verbose=False, **options).close()
    assert capsys.readouterr().err == ""


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "nearly an old name": (
        lambda: watch(net(), reject_outlier_propertion=0.0),
        r"watch\(\) takes no reject_outlier_propertion=\. Did you mean reject_outlier_proportion=",
    ),
    "nearly a new name": (lambda: watch(net(), log_frequency=1), r"no log_frequency=\. Did you mean log_freq="),
    "nothing like it": (lambda: watch(net(), zzz=1), r"no zzz=\. It takes model, log, log_freq, backend, .*writer"),
    "both names": (
        lambda: watch(net(), logdir="a", standalone_dir="b"),
        r"given logdir= twice, once perhaps as standalone_dir=\. Pass it once",
    ),
    "by position and by name": (lambda: watch(net(), module=net()), r"given model= twice"),
    "too much": (lambda: watch(net(), *range(14)), r"given 15 arguments by position, but takes at most 14"),
}


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_an_unknown_or_doubled_parameter_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        call()


def test_without_a_backend_nothing_is_written_and_the_structure_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = net()
    wrapper: torchexplorer.StructureWrapper = watch(model, log_freq=1, backend="none")
    train(model)
    wrapper.close()
    assert wrapper.structure is not None
    assert [call.module for call in wrapper.structure.calls] == ["", "0", "1", "2"]
    assert (wrapper.run_dir, wrapper.url, list(tmp_path.iterdir())) == (None, None, [])


class Attached(nn.Module):
    """Attaches a tensor as TorchExplorer's examples do, and by the names of its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = torchexplorer.attach(self.inner(x), self, "between")
        x = torchexplorer.attach(tensor=x, parent=self, name="again")
        return self.outer(x)


def test_attach_takes_the_old_names() -> None:
    model, heard = Attached(), Listening()
    with watch(model, log_freq=1, backend=heard):
        train(model)
    assert {path for _, _, role, path, _ in heard.recorded() if role == "attached"} == {"between", "again"}


def test_attach_without_a_module_or_a_name_is_refused() -> None:
    with pytest.raises(OptionError, match=r"needs a name\. .* call attach\(tensor, self, 'name'\)"):
        torchexplorer.attach(torch.zeros(1), net())


STANDALONE = """
import json, torch
from torch import nn
import torchgraph_explorer as torchexplorer

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.relu, self.last = nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 2)

    def forward(self, x):
        x = torchexplorer.attach(self.relu(self.first(x)), self, "between")
        return self.last(x)

model = Net()
model.train()
wrapper = torchexplorer.watch(
    model, log_freq=1, log=["io", "io_grad", "params", "params_grad"], disable_inplace=True,
    ignore_io_grad_classes=[Net], backend="standalone", standalone_dir="./explorer", standalone_port=0,
)
model(torch.randn(5, 6)).sum().backward()
print(json.dumps([wrapper.run_dir, wrapper.url]))
"""

TWICE_BEFORE_BACKWARD = """
import json, torch
from torchgraph_explorer import watch

module = torch.nn.Linear(3, 1)
wrapper = watch(module, delay_log_multibackward=True, log_freq=1, backend="standalone", standalone_port=0)
for _ in range(3):
    first, second = module(torch.randn(4, 3)), module(torch.randn(4, 3))
    (first.abs().sum() + second.abs().sum()).backward()
print(json.dumps([wrapper.run_dir, wrapper.url]))
"""


@pytest.mark.slow
def test_scripts_for_the_standalone_viewer_run(tmp_path: Path) -> None:
    """One after the other in one process, which warns of nothing while it imports torch and us."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CI": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", STANDALONE + TWICE_BEFORE_BACKWARD],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for told, steps in zip(done.stdout.splitlines(), ([0], [0, 2, 4]), strict=True):
        run_dir, url = json.loads(told)
        assert url.startswith("http://")
        assert open_run(run_dir).model().steps.tolist() == steps
