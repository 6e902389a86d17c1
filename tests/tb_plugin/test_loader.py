"""What TensorBoard loads at its start, and what becomes of a fault in it."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from importlib.metadata import entry_points
from types import SimpleNamespace

import pytest

from torchgraph_tensorboard import loader
from torchgraph_tensorboard.loader import TorchgraphLoader


def test_the_entry_point_is_the_loader() -> None:
    [entry] = [one for one in entry_points(group="tensorboard_plugins") if one.name == "torchgraph"]
    assert entry.load() is TorchgraphLoader


@pytest.mark.slow
def test_the_entry_point_imports_nothing_but_tensorboards_own_base() -> None:
    script = (
        "import json, sys; from tensorboard.plugins import base_plugin; before = set(sys.modules)\n"
        "import torchgraph_tensorboard.loader; print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    loaded = [name for name in json.loads(done.stdout) if name.partition(".")[0] not in sys.stdlib_module_names]
    assert loaded == ["torchgraph_tensorboard", "torchgraph_tensorboard.loader"]


def test_a_broken_installation_leaves_tensorboard_without_our_tab(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(loader.log, "handlers", [logging.StreamHandler(terminal)])
    monkeypatch.setitem(sys.modules, "torchgraph_tensorboard.plugin", None)
    assert TorchgraphLoader().load(SimpleNamespace()) is None
    assert "has no tab in this TensorBoard: ModuleNotFoundError" in terminal.getvalue()
    assert "in its clone: pip install '.[tensorboard]'" in terminal.getvalue()
