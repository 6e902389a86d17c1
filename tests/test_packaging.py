"""What is in the wheel, and that it was made from the sources at hand."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tb_plugin.board import running
from torchgraph_explorer.version import __version__

ROOT = Path(__file__).parent.parent
BUILD = Path(sys.prefix) / "build"
"""Where `make` keeps what builds the package."""

STALE = "torchgraph_explorer/web/dist/assets/stale.js"

pytestmark = [
    pytest.mark.xdist_group("wheel"),  # built once
    pytest.mark.timeout(300),  # building it takes more than a minute beside other tests
]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel built from a copy of the tree in which the last build has left its results."""
    tree, output = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    copy_tree(tree)
    for leftover in (STALE, "torchgraph_explorer/record/record_pb2.py"):
        (tree / leftover).parent.mkdir(parents=True, exist_ok=True)
        (tree / leftover).write_text("stale")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(output), str(tree)]
    kept = BUILD.is_dir()  # if not, pip fetches it, which takes as long as to build
    surroundings = {**os.environ, **({"PYTHONPATH": str(BUILD)} if kept else {"PIP_COMPILE": "0"})}
    subprocess.run([*pip, *(["--no-build-isolation"] if kept else [])], env=surroundings, check=True, timeout=500)
    return zipfile.ZipFile(next(output.glob("*.whl")))


def copy_tree(target: Path) -> None:
    """Copy what git tracks or would track: no build results, no libraries."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(lambda name: (ROOT / name).is_file(), names):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_holds_a_fresh_viewer_and_no_sources_of_it(wheel: zipfile.ZipFile) -> None:
    web = [name for name in wheel.namelist() if "/web/" in name]
    assert "torchgraph_explorer/web/dist/index.html" in web
    assert STALE not in web
    assert [name for name in web if "/web/dist/" not in name] == []


@pytest.fixture(scope="session")
def environment_without_torch(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a new virtual environment with the wheel, TensorBoard and what the wheel needs, except torch.

    Only the wheel is installed. The others are linked from this environment, which takes no time.
    """
    assert wheel.filename is not None
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=120)
    commands = place / ("Scripts" if sys.platform == "win32" else "bin")
    library = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    needed = [one for one in requirements() if one.marker is None and one.name != "torch"]
    assert [str(one) for one in needed if version(one.name) not in one.specifier] == []
    link_distributions({"tensorboard", *(one.name for one in needed)}, library)
    pip = [sys.executable, "-m", "pip", "--python", str(commands / "python"), "install", "--no-compile", "--quiet"]
    subprocess.run([*pip, "--no-deps", wheel.filename], check=True, timeout=100)
    return commands


def link_distributions(names: set[str], library: Path) -> None:
    """Make these distributions and what they need importable in another environment, from its folder of packages."""
    seen: set[str] = set()
    while todo := {canonicalize_name(name) for name in names} - seen:
        seen |= todo
        found = [distribution(name) for name in todo]
        needed = [Requirement(text) for one in found for text in one.requires or ()]
        names = {one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})}
        for one in found:
            for top in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
                if not (library / top).exists():
                    (library / top).symlink_to(str(one.locate_file(top)))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_brings_its_tab_to_tensorboard(environment_without_torch: Path, recorded_run: Path) -> None:
    logdir = f"--logdir={recorded_run.parent}"
    with running(str(environment_without_torch / "python"), "-m", "tensorboard.main", logdir) as board:
        assert board.is_active()
        assert list(board.runs()) == [recorded_run.name]
        assert b"./assets/index-" in board.get("plugin/torchgraph/app.html")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_exports_a_page_without_torch(
    environment_without_torch: Path, recorded_run: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    command = [str(environment_without_torch / "torchgraph"), "export", str(recorded_run), "-o", str(page)]
    subprocess.run(command, check=True, timeout=200, cwd=tmp_path)
    assert 'id="torchgraph-data"' in page.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_explains_the_kinds_of_findings(environment_without_torch: Path, tmp_path: Path) -> None:
    command = [str(environment_without_torch / "torchgraph"), "explain", "dead-units"]
    done = subprocess.run(command, check=True, timeout=60, cwd=tmp_path, capture_output=True, text=True)
    assert "Lower the learning rate, begin anew from another initialisation" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_names_the_licences_of_the_libraries_in_the_viewer(wheel: zipfile.ZipFile) -> None:
    assert b"preact" in wheel.read("torchgraph_explorer/web/dist/licenses.md")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_holds_freshly_generated_record_code_and_the_types_marker(wheel: zipfile.ZipFile) -> None:
    assert b"Generated by the protocol buffer compiler" in wheel.read("torchgraph_explorer/record/record_pb2.py")
    assert {"torchgraph_explorer/py.typed", "torchgraph_explorer/record/record_pb2.pyi"} <= set(wheel.namelist())


def test_the_oldest_protobuf_allowed_can_run_the_generated_code() -> None:
    generated = (ROOT / "torchgraph_explorer/record/record_pb2.py").read_text(encoding="utf-8")
    protoc = re.search(r"Protobuf Python Version: (\S+)", generated)
    assert protoc is not None
    allowed = next(one for one in requirements() if one.name == "protobuf").specifier
    assert str(allowed) == f"<8,>={protoc[1]}"


def requirements() -> list[Requirement]:
    return [Requirement(text) for text in importlib.metadata.requires("torchgraph-explorer") or ()]


def test_the_installed_version_is_the_one_in_the_source() -> None:
    assert importlib.metadata.version("torchgraph-explorer") == __version__


def test_neither_wandb_nor_tensorboard_is_installed_unless_asked_for() -> None:
    optional = {one.name for one in requirements() if one.marker and "extra" in str(one.marker)}
    assert {"tensorboard", "wandb"} <= optional


def test_the_lock_file_names_no_registry() -> None:
    assert "resolved" not in (ROOT / "torchgraph_explorer/web/package-lock.json").read_text(encoding="utf-8")
