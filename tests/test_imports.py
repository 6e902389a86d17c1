"""Who may import whom, and that reading a run stays light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "torchgraph_explorer"
PLACES = (PACKAGE, ROOT / "tb_plugin", ROOT / "wandb_panel")
FILES = sorted(file for place in PLACES for file in place.rglob("*.py"))
HEAVY = frozenset({"tensorboard", "torch", "wandb"})


@dataclass(frozen=True, slots=True)
class Room:
    """A module or folder at the top of the package, and what its files may import.

    `rooms` come on top of `SHARED`, and `libraries` on top of numpy and the standard library.
    """

    rooms: frozenset[str] = frozenset()
    libraries: frozenset[str] = frozenset()


def room(*rooms: str, libraries: str = "") -> Room:
    return Room(frozenset(rooms), frozenset(libraries.split()))


SHARED = frozenset(
    {
        "console",
        "errors",
        "families",
        "gaps",
        "histogram",
        "interrupts",
        "labels",
        "printable",
        "schema",
        "shapes",
        "temp_folder",
        "timeouts",
        "version",
    }
)
ROOMS = {
    **dict.fromkeys(SHARED, room()),
    "__init__": room(),
    "browser": room(),
    "capture": room(libraries="torch"),
    "cli": room("__init__", "browser", "demo", "record", "server", libraries="torchgraph_wandb"),
    "demo": room("__init__", "browser", libraries="rich sklearn torch"),
    "layout": room(libraries="pygraphviz"),
    "record": room("server", libraries="fsspec google"),  # the server only where a notebook shows a run
    "reduce": room(libraries="torch"),
    "server": room("layout", "record", libraries="IPython tornado"),
    "sinks": room("record", "server"),
    "torchgraph_tensorboard": room(
        "record", "server", "sinks", libraries="fsspec google tensorboard torchgraph_tensorboard"
    ),
    "torchgraph_wandb": room(
        "layout", "record", "server", "sinks", "training", libraries="torchgraph_wandb wandb wandb_workspaces"
    ),
    "training": room("capture", "record", "reduce", "server", "sinks", libraries="torch"),
}
"""architecture.md, as a table. `training` is the one room that joins the halves."""

TORCH_FREE = ("__init__", "cli", "layout", "record", "server", "sinks", *sorted(SHARED))
"""What reads a run, or is read by it. `cli` goes into `demo`, which trains, only when asked to."""


def room_of(file: Path) -> str:
    place = next(place for place in PLACES if file.is_relative_to(place))
    return file.relative_to(place).parts[0].removesuffix(".py")


def strangers(source: str, room: str) -> list[str]:
    """What `source`, a file of `room`, imports and should not, anywhere in it but under `if TYPE_CHECKING`."""
    allowed = ROOMS[room]
    own = {room, *SHARED, *allowed.rooms}
    libraries = {"numpy", *sys.stdlib_module_names, *allowed.libraries}
    return sorted(name for name in imports(ast.parse(source)) if not is_allowed(name, own, libraries))


def is_allowed(name: str, own: set[str], libraries: set[str]) -> bool:
    top, _, rest = name.partition(".")
    if top != PACKAGE.name:
        return top in libraries
    entered = rest.partition(".")[0]
    return (entered if entered in ROOMS else "__init__") in own  # no room: one of the public names


def imports(node: ast.AST) -> Iterator[str]:
    """The dotted name of everything imported in `node`; `from a import b` is `a.b`."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names):
            yield from (f"{module}.{alias.name}" for alias in names)
    for child in ast.iter_child_nodes(node):
        yield from imports(child)


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_a_file_imports_only_what_its_room_may(file: Path) -> None:
    assert room_of(file) in ROOMS, f"{file.name} is a new room: say in ROOMS what it may import"
    assert strangers(file.read_text(encoding="utf-8"), room_of(file)) == []


@pytest.mark.parametrize(
    ("source", "room", "expected"),
    [
        pytest.param("import torch.nn", "record", ["torch.nn"], id="a library"),
        pytest.param("def f():\n    from torch import nn", "server", ["torch.nn"], id="inside a function"),
        pytest.param(
            "from torchgraph_explorer.reduce import batch", "capture", ["torchgraph_explorer.reduce.batch"], id="a room"
        ),
        pytest.param(
            "from torchgraph_explorer import watch", "record", ["torchgraph_explorer.watch"], id="a top module"
        ),
        pytest.param("if TYPE_CHECKING:\n    import torch", "record", [], id="only for types"),
        pytest.param(
            "import os, numpy\nfrom torchgraph_explorer.errors import OptionError", "record", [], id="allowed"
        ),
    ],
)
def test_a_stranger_would_be_found(source: str, room: str, expected: list[str]) -> None:
    assert strangers(source, room) == expected


@pytest.mark.parametrize("name", TORCH_FREE)
def test_what_reads_a_run_leads_to_no_room_with_torch(name: str) -> None:
    assert libraries_behind(name) & HEAVY == set()


def test_tensorboards_process_loads_neither_torch_nor_wandb() -> None:
    assert libraries_behind("torchgraph_tensorboard") & HEAVY == {"tensorboard"}
    assert heavy_modules_after("import torchgraph_tensorboard.plugin, torchgraph_tensorboard.sink") == {"tensorboard"}


def libraries_behind(name: str) -> set[str]:
    """The libraries of a room and of all the rooms it leads to."""
    todo, seen = [name], set()
    while todo:
        seen.add(here := todo.pop())
        todo += ROOMS[here].rooms - seen - {"demo"}
    return set().union(*(ROOMS[one].libraries for one in seen))


def heavy_modules_after(script: str, *arguments: str) -> frozenset[str]:
    """Which of `HEAVY` a fresh interpreter has loaded after `script`."""
    report = f"{script}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", report, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return HEAVY.intersection(json.loads(done.stdout.splitlines()[-1]))


def test_reading_a_run_loads_neither_torch_nor_wandb_nor_tensorboard(recorded_run: Path) -> None:
    script = "import sys, torchgraph_explorer\nassert torchgraph_explorer.open_run(sys.argv[1]).models"
    assert heavy_modules_after(script, str(recorded_run)) == set()


@pytest.mark.parametrize("module", ["server.routes", "cli"])
def test_the_views_load_no_torch_either(module: str) -> None:
    assert heavy_modules_after(f"import torchgraph_explorer.{module}") == set()


def test_a_loaded_torch_would_be_seen() -> None:
    assert heavy_modules_after("import torchgraph_explorer; torchgraph_explorer.watch") == {"torch"}
