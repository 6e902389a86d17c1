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
from tests.shared import FORKED
from tests.tables import exhaustive
from torchgraph_explorer.run import Run, open_run

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "modules"),
    [
        pytest.param("maml", warm.TORCH, id="maml"),
        pytest.param("char_gpt", warm.TORCH, id="a GPT like nanoGPT's"),
        exhaustive(pytest.param("lightning_by_hand", (*warm.TORCH, "lightning"), id="Lightning, by hand")),
    ],
)
@FORKED
def test_a_program_trains_the_same_and_nothing_is_missing(program: str, modules: tuple[str, ...]) -> None:
    for each in modules:
        pytest.importorskip(each)
    assert faults(program, partial(warm.run, modules=modules)) == []


@pytest.mark.slow
@FORKED
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


def surroundings() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        pytest.param([], id="one process"),
        pytest.param(["--compile", "aot_eager"], id="compiled blocks"),
        exhaustive(pytest.param(["--tensor-parallel", "2"], id="two processes share each MLP")),
    ],
)
@FORKED
def test_the_sharded_example_is_recorded_without_a_note(command: list[str], tmp_path: Path) -> None:
    ranks = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2") if "2" in command else ()
    done = warm.run(*ranks, "-m", "examples.sharded", *command, cwd=tmp_path, env=surroundings())
    assert done.returncode == 0, done.stderr
    model = open_run(str(tmp_path / "runs")).model()
    assert model.finished is not None
    assert (model.steps.tolist(), model.notes, model.finished.notes) == ([0, 3], (), ())
    assert len(model.find("blocks.0", role="output", kind="value")) == 1
    inner = [each for each in model.series if each.module.endswith("mlp.2") and each.role == "input"]
    assert {each.kind for each in inner} == {"value", "grad_norm"}


@pytest.mark.slow
@FORKED
def test_a_gpt_that_is_resumed_and_compiled_goes_on_at_its_step(tmp_path: Path) -> None:
    for options in ([], ["--resume", "--compile", "aot_eager"]):
        done = warm.run("-m", "examples.loops.char_gpt", *options, cwd=tmp_path, env=surroundings())
        assert done.returncode == 0, done.stderr
    first, second = (open_run(str(each)).model() for each in sorted((tmp_path / "runs").iterdir()))
    assert (first.steps.tolist(), second.steps.tolist()) == ([0, 3, 6, 9], [12, 15, 18, 21])


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
