"""The programs in examples/loops of which the development environment has the packages, and two more examples.

`make examples` runs all of examples/loops.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from examples.loops import __main__ as loops
from examples.loops.__main__ import Told, differences, faults
from tests import warm
from torchgraph_explorer.run import Run, open_run

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "modules"),
    [
        pytest.param("maml", warm.TORCH, id="maml"),
        pytest.param("char_gpt", warm.TORCH, id="a GPT like nanoGPT's"),
        pytest.param("lightning_by_hand", (*warm.TORCH, "lightning"), id="Lightning, by hand"),
    ],
)
def test_a_program_trains_the_same_and_nothing_is_missing(program: str, modules: tuple[str, ...]) -> None:
    for each in modules:
        pytest.importorskip(each)
    assert faults(program, partial(warm.run, modules=modules)) == []


@pytest.mark.slow
def test_whatever_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def tampered(run: Run, plain: Told, watched: Told) -> list[str]:
        plain = replace(plain, updates=11, called=["4", "5"], moved=["4.bias", "5.bias"])
        return list(differences(run, plain, replace(watched, weights="", warnings=["a warning"])))

    monkeypatch.setattr(loops, "differences", tampered)
    assert faults("maml", partial(warm.run, modules=warm.TORCH)) == [
        "the weights are not those of the unwatched training",
        "a warning",
        "10 steps were counted, and the program made 11 updates",
        "no output of '5'",
        "no gradient of '5.bias'",
    ]


@pytest.mark.slow
def test_the_sharded_example_is_recorded_without_a_note(tmp_path: Path) -> None:
    done = warm.run("-m", "examples.sharded", cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    model = open_run(str(tmp_path / "runs")).model()
    assert (model.steps.tolist(), model.notes) == ([0, 3], ())
    assert len(model.find("blocks.0", role="output", kind="value")) == 1


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom_and_shows_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    notebook = nbformat.read(ROOT / "examples/notebook.ipynb", as_version=4)
    assert [cell.outputs for cell in notebook.cells if cell.cell_type == "code" and cell.outputs] == []
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    shown, printed = (cell.outputs for cell in [notebook.cells[5], notebook.cells[7]])
    assert "<iframe" in shown[0].data["text/html"]
    assert printed[0].text.startswith("{0: ")
