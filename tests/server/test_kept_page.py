"""Kept tensors in an exported page: none unless asked for, what fits, and what the server answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contracts import kept_page as contract
from tests.kept import KeptArray, together
from tests.record.examples import GRAPH, SERIES, SESSION, frame
from tests.server.pages import Page, read_page
from torchgraph_explorer import Keep
from torchgraph_explorer.cli import main
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.record.folder import TENSORS, plugin_folder
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import KeptStep, Record
from torchgraph_explorer.server import export
from torchgraph_explorer.server.export import export_page
from torchgraph_explorer.server.notebook import iframe
from torchgraph_explorer.tensors import keep

SECRET = 424242.0


@pytest.mark.slow
def test_the_files_are_what_their_generator_writes() -> None:
    assert (contract.FILE.read_bytes(), contract.CONTENT.read_text(encoding="utf-8")) == contract.files()


def write(
    run_dir: Path, *, steps: int, sizes: tuple[int, ...], asked: tuple[int, ...] = (), model: str = "net"
) -> None:
    """At each step tensors of these sizes, which differ from step to step."""
    writer = RecordWriter(run_dir)
    session = replace(SESSION, id=f"of {model}", model=model)
    records: list[Record] = [session, GRAPH, SERIES, *(frame(step) for step in range(steps))]
    for record in records:
        writer.write(record)
    for step in range(steps):
        rng = np.random.default_rng(step)
        arrays = []
        for size in sizes:
            values = rng.normal(size=size).astype(np.float32)
            values[:1] = SECRET
            key = ("fc", 0, "attached", f"of {size}", "value")
            arrays.append(KeptArray(key, "float32", (size,), None, (), values.view(np.uint8), None))
        writer.keep(KeptStep(step, 1.0, None, together(*arrays), reasons=("why",) * (step in asked)), 1 << 30)
    writer.close()


def exported(run_dir: Path, **options: Any) -> tuple[Page, int]:
    page = export_page(open_run(run_dir), **options)
    return read_page(page), len(page)


def test_no_kept_tensor_leaves_unless_it_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, steps=2, sizes=(8,))
    page, _ = exported(tmp_path)
    assert "tensors" not in page.model
    assert not any("tensors" in name for name in page.arrays)
    asked, _ = exported(tmp_path, tensors=1)
    assert SECRET in asked.arrays["0.tensors.float32"]


def test_a_notebooks_cell_has_kept_tensors_if_it_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, steps=2, sizes=(8,))
    run = open_run(tmp_path)
    pages = [page_in(each) for each in (iframe(run), iframe(run, tensors=1))]
    assert ["tensors" in page.model for page in pages] == [False, True]


def page_in(cell: str) -> Page:
    """The page that the output of a cell shows."""
    inner = cell.partition('srcdoc="')[2].rpartition('">')[0]
    return read_page(inner.replace("&quot;", '"').replace("&amp;", "&").encode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("megabytes", "steps", "names"),
    [
        pytest.param(10, 30, {"of 10", "of 1000", "of 9000"}, id="all"),
        pytest.param(0.6, 12, {"of 10", "of 1000", "of 9000"}, id="steps are left out"),
        pytest.param(0.1, 19, {"of 10", "of 1000"}, id="the large one, too"),
        pytest.param(0.001, 11, {"of 10"}, id="nearly all"),
        pytest.param(1e-6, 0, set(), id="everything"),
    ],
)
def test_what_fits_is_in_the_page_and_the_rest_is_said(
    megabytes: float, steps: int, names: set[str], tmp_path: Path
) -> None:
    write(tmp_path, steps=30, sizes=(10, 1000, 9000), asked=(17,))
    without = len(export_page(open_run(tmp_path)))
    page, size = exported(tmp_path, tensors=megabytes)
    assert size - without <= 1e6 * megabytes + 3_000
    kept = page.model["tensors"]["kept"]
    assert {one["path"] for one in kept["tensors"]} == names
    assert len(kept["steps"]) in range(steps - 2, steps + 3)
    assert {29, 0, 17} >= set(kept["steps"][:1] + kept["steps"][-1:])
    assert not kept["steps"] or 29 in kept["steps"]
    said = f"of {len(kept['steps'])} of 30 kept steps, and {len(names)} of 3 tensors"
    assert (said in kept["note"]) == (megabytes < 10)


@pytest.mark.slow
def test_two_models_share_the_space_for_kept_tensors(tmp_path: Path) -> None:
    for name in ("net", "critic"):
        write(tmp_path, steps=30, sizes=(9000,), model=name)
    without = len(export_page(open_run(tmp_path)))
    _, size = exported(tmp_path, tensors=0.6)
    assert 0.3e6 < size - without <= 0.6e6 + 3_000


def test_numbers_that_are_the_same_at_several_steps_are_in_the_page_once(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    for record in (SESSION, GRAPH, SERIES, frame(0), frame(1)):
        writer.write(record)
    values = np.arange(5_000, dtype=np.float32)
    key = ("fc", None, "param", "weight", "value")
    for step in range(2):
        array = KeptArray(key, "float32", (5_000,), None, (), values.view(np.uint8), None)
        writer.keep(KeptStep(step, 1.0, None, together(array)), 1 << 30)
    writer.close()
    page, _ = exported(tmp_path, tensors=1)
    assert page.model["tensors"]["kept"]["steps"] == [0, 1]
    assert page.arrays["0.tensors.float32"].size == 5_000


@pytest.mark.slow
def test_room_that_equal_numbers_leave_is_used_for_other_steps(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    records: list[Record] = [SESSION, GRAPH, SERIES, *(frame(step) for step in range(12))]
    for record in records:
        writer.write(record)
    for step in range(12):
        values = np.random.default_rng(step).normal(size=5_000).astype(np.float32).view(np.uint8)
        keys = [("fc", 0, "attached", f"copy {i}", "value") for i in range(4)]
        arrays = together(*(KeptArray(key, "float32", (5_000,), None, (), values, None) for key in keys))
        writer.keep(KeptStep(step, 1.0, None, arrays), 1 << 30)
    writer.close()
    page, _ = exported(tmp_path, tensors=0.3)  # 80 kB a step, of which 20 kB are not there yet
    assert page.model["tensors"]["kept"]["steps"] == list(range(12))


def test_damaged_tensors_are_left_out_of_the_page(tmp_path: Path) -> None:
    write(tmp_path, steps=3, sizes=(2_000,))
    file = plugin_folder(tmp_path, TENSORS) / "000000.tgraph"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    page, _ = exported(tmp_path, tensors=1)
    kept = page.model["tensors"]["kept"]
    assert kept["steps"] == [0, 2]
    assert "2 of 3 kept steps" in kept["note"]


@pytest.mark.slow
def test_the_command_line_exports_kept_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "run", steps=2, sizes=(8,))
    found = []
    for more in ([], ["--tensors"], ["--tensors", "2"]):
        assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "page.html"), *more]) == 0
        found.append(read_page((tmp_path / "page.html").read_bytes()).model.get("tensors") is not None)
    assert found == [False, True, True]
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "page.html"), "--tensors", "201"]) == 2
    assert (
        "tensors is 201.0; it is how many MB of kept tensors are in the page, from 0 to 200." in capsys.readouterr().err
    )


@pytest.mark.parametrize("megabytes", [-1, 201, float("nan"), True, "1"])
def test_a_size_of_the_page_of_wandb_is_checked(megabytes: Any) -> None:
    with pytest.raises(
        OptionError, match=r"wandb_megabytes=.* is not a size for a page\. Pass a number from 0 to 200\."
    ):
        Keep("*", wandb_megabytes=megabytes)


def test_the_two_limits_agree() -> None:
    assert keep.MOST_ON_PAGE == export.MOST_TENSOR_MEGABYTES
