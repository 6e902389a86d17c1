"""No file leads back to itself by imports, not even by those inside functions or for types alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYTHON = {
    "torchgraph_explorer": ROOT,
    "torchgraph_tensorboard": ROOT / "tb_plugin",
    "torchgraph_wandb": ROOT / "wandb_panel",
}
"""The packages, and the folders that they are in."""

VIEWER = ROOT / "torchgraph_explorer/web/src"
SPECIFIER = re.compile(r"""^(?:import|export)\b[^;'"]*?["'](\.[^"']*)["']""", re.MULTILINE)
"""Of a file of the viewer, what it imports from or hands on."""


def python_imports() -> dict[str, set[str]]:
    """For each module, those that it imports. A package's `__init__.py` hands names on and is left out."""
    files = {module_name(file, root): file for name, root in PYTHON.items() for file in (root / name).rglob("*.py")}
    return {name: set(imported(file, files)) - {name} for name, file in files.items() if file.name != "__init__.py"}


def module_name(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts)


def imported(file: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in files)
            case ast.ImportFrom(module=str(module), names=names):
                found = {module, *(f"{module}.{alias.name}" for alias in names)}
                yield from found.intersection(files)


def viewer_imports() -> dict[str, set[str]]:
    """For each TypeScript file of the viewer, those that it imports."""
    files = [file for file in VIEWER.rglob("*") if file.suffix in {".ts", ".tsx"}]
    return {str(file.relative_to(VIEWER)): set(imported_in_viewer(file)) for file in files}


def imported_in_viewer(file: Path) -> Iterator[str]:
    for specifier in SPECIFIER.findall(file.read_text(encoding="utf-8")):
        for suffix in (".ts", ".tsx"):
            target = (file.parent / f"{specifier}{suffix}").resolve()
            if target.is_file():
                yield str(target.relative_to(VIEWER))


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """The files of one circle, in its order; none if there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        files: list[str] = found.args[1]
        return files
    return []


@pytest.mark.parametrize(
    ("imports", "known"),
    [
        pytest.param(
            python_imports,
            ("torchgraph_explorer.training.watch", "torchgraph_explorer.training.watcher"),
            id="python",
        ),
        pytest.param(viewer_imports, ("view/scalars/Scalars.tsx", "view/scalars/ScalarChart.tsx"), id="viewer"),
    ],
)
def test_imports_never_lead_in_a_circle(imports: Callable[[], dict[str, set[str]]], known: tuple[str, str]) -> None:
    graph = imports()
    importer, other = known
    assert other in graph[importer]
    assert circle(graph) == []


def test_a_circle_would_be_found() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
