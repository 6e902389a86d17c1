"""Where `watch` raises, it leaves nothing on the model, and neither a thread nor a viewer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from tests.models import Digits
from tests.processes import wait_for
from torchgraph_explorer import Keep, watch
from torchgraph_explorer.training import pipeline, start

Patch = pytest.MonkeyPatch


def hooks_of(model: nn.Module) -> list[str]:
    return [name for name, one in model.named_modules() if one._forward_hooks or one._forward_pre_hooks]


def fail(*_: object, **__: object) -> Any:
    raise OSError("Stale file handle")


def break_decisions(patch: Patch) -> None:
    patch.setattr(pipeline, "decisions", fail)


def break_sinks_of_evaluations(patch: Patch) -> None:
    opened = start._sinks
    patch.setattr(
        start, "_sinks", lambda request, context: (fail if "(eval)" in context.model_name else opened)(request, context)
    )


@pytest.mark.parametrize(
    ("break_it", "options"),
    [
        pytest.param(break_decisions, {"keep": Keep("*")}, id="what ranks keep"),
        pytest.param(break_sinks_of_evaluations, {"phases": ("train", "eval")}, id="evaluations"),
    ],
)
def test_nothing_stays_on_the_model(
    break_it: Callable[[Patch], None], options: dict[str, Any], tmp_path: Path, monkeypatch: Patch
) -> None:
    model, before = Digits(), {*threading.enumerate()}
    break_it(monkeypatch)
    with pytest.raises(OSError, match="Stale"):
        watch(model, backend="record", logdir=tmp_path, verbose=False, **options)
    assert hooks_of(model) == []
    assert wait_for(lambda: {*threading.enumerate()} <= before)


@pytest.mark.parametrize(
    ("owner", "name"), [(pipeline, "decisions"), (start, "begin_in"), (start, "Watcher"), (start, "_live_findings")]
)
def test_no_folder_of_a_run_stays(owner: Any, name: str, tmp_path: Path, monkeypatch: Patch) -> None:
    """The next watch would have another name for its own."""
    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(OSError, match="Stale"):
        watch(Digits(), backend="record", logdir=tmp_path / "runs", verbose=False, keep=Keep("*"))
    assert [*(tmp_path / "runs").iterdir()] == []


def test_a_module_that_refuses_hooks_leaves_none_of_those_for_compiled_code(tmp_path: Path) -> None:
    class Refusing(nn.ReLU):
        def register_forward_pre_hook(self, *_: object, **__: object) -> Any:
            raise RuntimeError("no hooks")

    model = nn.Sequential(nn.Linear(2, 2), Refusing())
    with pytest.raises(RuntimeError, match="no hooks"):
        watch(model, backend="record", logdir=tmp_path, verbose=False, compiled="inline")
    assert hooks_of(model) == []


def test_its_viewer_is_stopped(tmp_path: Path, monkeypatch: Patch) -> None:
    class Viewer:
        url, stopped = "http://127.0.0.1", False

        def stop(self) -> None:
            self.stopped = True

    viewer = Viewer()
    monkeypatch.setattr(start, "open_viewer", lambda *_: viewer)
    monkeypatch.setattr(start, "Watcher", fail)
    with pytest.raises(OSError, match="Stale"):
        watch(Digits(), logdir=tmp_path, verbose=False)
    assert viewer.stopped
