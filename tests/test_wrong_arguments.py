"""What public functions say of arguments that are not allowed; `tests/training/test_watch.py` has those of `watch`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from torchgraph_explorer import attach, explain, explore, export_page, list_runs, open_run, spread, watch
from torchgraph_explorer.errors import NotFoundError, OptionError, TorchgraphWarning
from torchgraph_explorer.paths import checked_path


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a logged loss, alone in its folder. Tests only read it."""
    logdir = tmp_path_factory.mktemp("runs")
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, log_freq=1, backend="record", logdir=logdir, run="base", verbose=False) as watcher:
        for _ in range(3):
            loss = model(torch.ones(4, 2)).square().mean()
            loss.backward()
            optimizer.step()
            watcher.log({"loss": loss})
    return logdir / "base"


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "no path of a run": (
        lambda _: open_run(None),  # type: ignore[arg-type]
        r"None is not a path\. Pass the folder of a run .*nothing is recorded",
    ),
    "bytes for a run": (lambda _: open_run(b"runs"), r"b'runs' is not a path\. Pass the folder of a run"),  # type: ignore[arg-type]
    "an empty path": (lambda _: list_runs(""), r"'' is not a path\. Pass the folder of runs"),
    "a number for a file": (lambda run: export_page(run, 5), r"5 is not a path\. Name the file to write"),  # type: ignore[arg-type]
    "one run to compare": (lambda run: export_page(run, compare=run), "compare is .*it is a list of runs"),
    "half a step": (lambda run: export_page(run, steps=0.5), "steps is 0.5; a page shows at least 1, and a whole"),  # type: ignore[arg-type]
    "series as a text": (lambda run: export_page(run, series="all"), "series is 'all'; it is how many to keep"),  # type: ignore[arg-type]
    "tensors as a text": (lambda run: export_page(run, tensors="all"), "tensors is 'all'; it is how many MB"),  # type: ignore[arg-type]
    "models as a number": (lambda run: export_page(run, models=1), "models is 1; it is a list of names"),  # type: ignore[arg-type]
    "one run for a spread": (lambda run: spread(str(run), "loss"), r"runs is '.*'; pass a list of runs"),
    "a spread of a number": (lambda run: spread([run], 5), "5 is neither a scalar nor a series. Pass the name"),  # type: ignore[arg-type]
    "related to nothing": (lambda run: open_run(run).model().related(None), "None is neither a scalar nor a series"),  # type: ignore[call-overload]
    "a misspelt role": (
        lambda run: open_run(run).model().find(role="outpt"),  # type: ignore[arg-type]
        "role='outpt'. Choose one of 'input', 'out",
    ),
    "a misspelt kind": (lambda run: open_run(run).model().find(kind="grads"), "kind='grads'. Choose one of 'value', "),  # type: ignore[arg-type]
    "no step": (lambda run: open_run(run).model().frame_at(None), "step=None is not a whole number"),  # type: ignore[arg-type]
    "half a frame": (lambda run: open_run(run).model().frame(1.5), "index=1.5 is not a whole number"),  # type: ignore[arg-type]
    "a graph by name": (lambda run: open_run(run).model().graph_revision("0"), "graph='0' is not a whole number"),  # type: ignore[arg-type]
    "a history from nowhere": (
        lambda run: open_run(run).model().history(0, None),  # type: ignore[arg-type]
        "first_frame=None is not a whole number",
    ),
    "a history up to a half": (
        lambda run: open_run(run).model().history(0, 0, 1.5),  # type: ignore[arg-type]
        "stop_frame=1.5 is not a whole number",
    ),
    "half frames": (lambda run: open_run(run).model().statistics([0.5]), r"frames=\[0.5\] are not whole numbers. Pass"),
    "a mask of frames": (
        lambda run: open_run(run).model().statistics([True, False, True]),
        r"frames=\[True, False, True\] are not whole numbers",
    ),
    "frames without a form": (
        lambda run: open_run(run).model().rows([[0], [1, 2]]),
        r"frames=\[\[0\], \[1, 2\]\] are not whole numbers",
    ),
    "changes since a text": (lambda run: open_run(run).model().changes(1, "0"), "since='0' is not a whole number"),  # type: ignore[arg-type]
    "what was kept at no step": (
        lambda run: open_run(run).model().kept_at(None),  # type: ignore[arg-type]
        "step=None is not a whole number",
    ),
    "a tensor of all ranks": (
        lambda run: open_run(run).model().tensor(0, 0, rank=[0, 1]),  # type: ignore[arg-type]
        r"rank=\[0, 1\] is not a whole number",
    ),
    "a dependency graph of half a step": (
        lambda run: open_run(run).model().tensor_graph(0.5),  # type: ignore[arg-type]
        "step=0.5 is not a whole number",
    ),
    "NaN up to a text": (
        lambda run: open_run(run).model().nonfinite(0, "end"),  # type: ignore[arg-type]
        "stop_frame='end' is not a whole number",
    ),
    "a limit as a text": (
        lambda run: open_run(run).model().related("loss", above="2"),  # type: ignore[call-overload]
        "above='2' is not a number",
    ),
    "quantiles of a text": (
        lambda run: open_run(run).model().history(0).quantiles("median"),
        "quantiles.median.: a share is a number from 0 to 1",
    ),
    "a function to explore": (lambda _: explore(torch.sum, torch.ones(2)), r"explore\(\) was given builtin_function"),  # type: ignore[arg-type]
    "a loss by name": (
        lambda _: explore(nn.Linear(2, 1), torch.ones(1, 2), loss="mse"),  # type: ignore[arg-type]
        "loss='mse' is not a function",
    ),
    "attached in the wrong order": (
        lambda _: attach(nn.Linear(2, 1), torch.ones(2), "sum"),  # type: ignore[arg-type]
        r"attach\(\) was given Tensor as the module\. Inside forward, call attach\(",
    ),
    "attached without a name": (lambda _: attach(torch.ones(2), nn.Linear(2, 1), ""), r"attach\(\) needs a name"),
    "a page at a number": (lambda _: _page(host=5), "host=5 is not an address. Pass one of this machine"),
    "a page at a named port": (lambda _: _page(port="http"), "port='http' is not a port. Choose one from 1 to 65535"),
    "a page beside a number": (lambda _: _page(logdir=5), "5 is not a path. Pass the folder of runs"),
}


def _page(**wrong: Any) -> object:
    return explore(nn.Linear(2, 1), torch.ones(1, 2), loss=torch.sum, **wrong)


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_refused_with_what_is_allowed(
    call: Callable[[Path], object], message: str, run_dir: Path
) -> None:
    with pytest.raises(OptionError, match=message):
        call(run_dir)


@pytest.mark.parametrize("name", [["net"], 5], ids=repr)
def test_a_model_that_is_no_name_is_not_found(name: Any, run_dir: Path) -> None:
    with pytest.raises(NotFoundError, match=r"Run 'base' has no model .* Name one of: 'Linear'"):
        open_run(run_dir).model(name)


def test_an_endless_name_is_not_repeated(run_dir: Path) -> None:
    with pytest.raises(NotFoundError) as refused:
        open_run(run_dir).model("x" * 100_000)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(("first", "stop"), [(0, 2**70), (-(2**70), None), (0, -(2**70)), (2**70, None), (1, -1)])
def test_a_range_of_frames_ends_with_the_last_one(first: int, stop: int | None, run_dir: Path) -> None:
    model = open_run(run_dir).model()
    expected = list(range(len(model)))[max(first, 0) : stop]
    assert model.history(0, first, stop).frames.tolist() == expected
    assert len(model.nonfinite(first, stop)) == len(expected)


def test_the_run_that_was_meant_is_named(run_dir: Path) -> None:
    with pytest.raises(NotFoundError, match=rf"bse does not exist\. Did you mean {run_dir}\?"):
        open_run(run_dir.parent / "bse")


def test_a_kind_of_finding_that_is_no_text_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="There is no kind of finding '5'"):
        explain(5)  # type: ignore[arg-type]


def test_a_tilde_is_the_home_folder(run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(run_dir, tmp_path / "base")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert open_run("~/base").path == str(tmp_path / "base")
    assert [one.name for one in list_runs("~")] == ["base"]
    with watch(nn.Linear(1, 1), backend="record", logdir="~/more", run="run", verbose=False) as watcher:
        assert watcher.run_dir == str(tmp_path / "more/run")
        watcher.note("begun")


@pytest.mark.parametrize("url", ["s3://bucket/~/runs", "memory://runs"])
def test_a_url_is_taken_as_it_is(url: str) -> None:
    assert checked_path(url, "") == url


def test_a_schedule_that_fails_is_told_and_training_goes_on(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    with (
        pytest.warns(TorchgraphWarning, match=r"since log_freq= failed at step 0 \(KeyError: 'epoch'\)\. The function"),
        watch(model, log_freq=lambda _: dict[str, bool]()["epoch"], backend="record", logdir=tmp_path, verbose=False),
    ):
        model(torch.ones(1, 2)).sum().backward()
    assert model.weight.grad is not None
