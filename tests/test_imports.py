"""Who may import whom, also by a name in a string; and that reading a run stays light."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import torchgraph_explorer

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
        "extras",
        "families",
        "finding",
        "gaps",
        "histogram",
        "interrupts",
        "labels",
        "moments",
        "native",
        "paths",
        "per_label",
        "printable",
        "reused_memory",
        "schema",
        "shapes",
        "temp_folder",
        "timeouts",
        "unvisited",
        "version",
        "writing_process",
    }
)
ROOMS = {
    **dict.fromkeys(SHARED, room()),
    "__init__": room(),
    "browser": room(),
    "callbacks": room("training", libraries="accelerate lightning torch transformers"),
    "capture": room(libraries="torch"),
    "__main__": room("cli"),
    "cli": room(
        "__init__",
        "browser",
        "comparison",
        "demo",
        "exploring",
        "findings",
        "own_views",
        "record",
        "run",
        "server",
        "xray",
        libraries="torchgraph_wandb",
    ),
    "comparison": room("findings", "record"),
    "demo": room("__init__", "browser", "training", libraries="rich sklearn torch"),
    "exploring": room("browser", "capture", "record", "server", libraries="torch"),
    "findings": room("record"),
    "layout": room(libraries="pygraphviz"),
    "own_views": room("record", "run", "server"),
    "record": room(libraries="fsspec google pandas polars"),
    "reduce": room(libraries="torch"),
    "run": room("comparison", "findings", "record", "server"),
    "server": room("comparison", "findings", "layout", "record", "xray", libraries="IPython tornado"),
    "sinks": room("server"),
    "torchgraph_tensorboard": room(
        "record", "server", "sinks", libraries="fsspec google tensorboard torchgraph_tensorboard"
    ),
    "torchgraph_wandb": room(
        "findings", "layout", "record", "server", "sinks", "xray", libraries="torchgraph_wandb wandb wandb_workspaces"
    ),
    "tensors": room("reduce", libraries="torch"),
    "xray": room("record"),
    "training": room(
        *("browser", "capture", "exploring", "findings", "record", "reduce", "run", "server", "sinks", "tensors"),
        libraries="torch",
    ),
}
"""architecture.md, as a table. `training` is the one room that joins the halves."""

TABLES = {
    "torchgraph_explorer/__init__.py": "the homes of the public names",
    "torchgraph_explorer/run.py": "what fetches a record from W&B",
    "torchgraph_explorer/sinks/__init__.py": "the backends with a library of their own",
    "wandb_panel/torchgraph_wandb/__init__.py": "the homes of the public names",
}
"""The files that may name modules in strings and import by such a name: each is a table, with what it is a table of."""

TORCH_FREE = (
    "__init__",
    "cli",
    "comparison",
    "findings",
    "layout",
    "own_views",
    "record",
    "run",
    "server",
    "sinks",
    *sorted(SHARED),
)
"""What reads a run, or is read by it. `cli` goes into `demo`, which trains, and `exploring` only when asked to."""


def room_of(file: Path) -> str:
    place = next(place for place in PLACES if file.is_relative_to(place))
    return file.relative_to(place).parts[0].removesuffix(".py")


def strangers(source: str, room: str, *, is_table: bool = False) -> list[str]:
    """What `source`, a file of `room`, imports and should not, anywhere in it but under `if TYPE_CHECKING`.

    A module's name in a string counts as an import of it, unless the file is a table of such names.
    """
    allowed = ROOMS[room]
    own = {room, *SHARED, *allowed.rooms}
    libraries = {"numpy", *sys.stdlib_module_names, *allowed.libraries}
    tree = ast.parse(source)
    names = [*imports(tree), *([] if is_table else named_in_strings(tree))]
    return sorted(name for name in names if not is_allowed(name, own, libraries))


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


MODULE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+(?=:[A-Za-z_]\w*$|$)")
"""A dotted name, alone or with an attribute: `package.module` or `package.module:function`."""

OURS = frozenset({PACKAGE.name, "torchgraph_tensorboard", "torchgraph_wandb"})
IMPORTERS = frozenset({"__import__", "find_spec", "import_module"})
UNKNOWN = "a module whose name is put together"


def named_in_strings(tree: ast.AST) -> Iterator[str]:
    """The modules of ours, and of heavy libraries, that a string names; and what import functions are called with."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)):
                yield from named_in(text)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if name in IMPORTERS:
                yield first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else UNKNOWN


def named_in(text: str) -> Iterator[str]:
    found = MODULE_NAME.match(text)
    if found is not None and found[0].partition(".")[0] in OURS | HEAVY:
        yield found[0]
    elif found is not None and module_below(found[0]):
        yield f"{PACKAGE.name}.{found[0]}"
    elif "import " in text:  # a program that is run in another process
        with suppress(SyntaxError):
            yield from imports(ast.parse(text))


def module_below(name: str) -> bool:
    """Whether there is a module of this package with this name, as seen from the package."""
    return (PACKAGE / name.replace(".", "/")).with_suffix(".py").is_file() or (
        PACKAGE / name.replace(".", "/")
    ).is_dir()


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_a_file_imports_only_what_its_room_may(file: Path) -> None:
    assert room_of(file) in ROOMS, f"{file.name} is a new room: say in ROOMS what it may import"
    is_table = file.relative_to(ROOT).as_posix() in TABLES
    assert strangers(file.read_text(encoding="utf-8"), room_of(file), is_table=is_table) == []


def test_the_tables_are_there_and_name_modules() -> None:
    for file in TABLES:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert list(named_in_strings(tree)), f"{file} names no module any more"


def test_no_folder_has_the_name_of_a_public_function() -> None:
    folders = {file.parent.name for file in FILES}
    modules = {file.stem for file in FILES if file.parent == PACKAGE}
    assert (folders | modules) & set(torchgraph_explorer.__all__) == set()


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
        pytest.param("FETCH = 'torchgraph_wandb.x:y'", "record", ["torchgraph_wandb.x"], id="a string"),
        pytest.param("modules['torch.nn']", "server", ["torch.nn"], id="a heavy library in a string"),
        pytest.param("HOME = 'record.writer'", "layout", ["torchgraph_explorer.record.writer"], id="seen from inside"),
        pytest.param("import_module('wandb')", "record", ["wandb"], id="a bare name that is imported"),
        pytest.param("import_module(name)", "record", [UNKNOWN], id="a name put together"),
        pytest.param("CODE = 'import torch\\ntorch.ones(1)'", "server", ["torch"], id="a program in a string"),
        pytest.param("'wandb', 'a.b', 'see torch.nn', 'https://wandb.ai'", "record", [], id="words"),
    ],
)
def test_a_stranger_would_be_found(source: str, room: str, expected: list[str]) -> None:
    assert strangers(source, room) == expected


@pytest.mark.parametrize("name", TORCH_FREE)
def test_what_reads_a_run_leads_to_no_room_with_torch(name: str) -> None:
    assert libraries_behind(name) & HEAVY == set()


@pytest.mark.slow
def test_tensorboards_process_loads_neither_torch_nor_wandb() -> None:
    assert libraries_behind("torchgraph_tensorboard") & HEAVY == {"tensorboard"}
    assert heavy_modules_after("import torchgraph_tensorboard.plugin, torchgraph_tensorboard.sink") == {"tensorboard"}


@pytest.mark.slow
def test_the_processes_of_wandb_load_no_torch() -> None:
    assert libraries_behind("torchgraph_wandb") & HEAVY == {"wandb"}
    modules = "torchgraph_wandb.sink, torchgraph_wandb.resuming, torchgraph_wandb.snapshot_process"
    assert heavy_modules_after(f"import {modules}") == set()


def libraries_behind(name: str) -> set[str]:
    """The libraries of a room and of all the rooms it leads to."""
    todo, seen = [name], set()
    while todo:
        seen.add(here := todo.pop())
        todo += ROOMS[here].rooms - seen - {"demo", "exploring"}
    return set().union(*(ROOMS[one].libraries for one in seen))


def heavy_modules_after(script: str, *arguments: str) -> frozenset[str]:
    """Which of `HEAVY` a fresh interpreter has loaded after `script`."""
    report = f"{script}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", report, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return HEAVY.intersection(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.slow
def test_reading_a_run_loads_neither_torch_nor_wandb_nor_tensorboard(recorded_run: Path) -> None:
    script = "import sys, torchgraph_explorer\nassert torchgraph_explorer.open_run(sys.argv[1]).models"
    assert heavy_modules_after(script, str(recorded_run)) == set()


@pytest.mark.slow
@pytest.mark.parametrize("module", ["server.routes", "cli"])
def test_the_views_load_no_torch_either(module: str) -> None:
    assert heavy_modules_after(f"import torchgraph_explorer.{module}") == set()


@pytest.mark.slow
def test_a_loaded_torch_would_be_seen() -> None:
    assert heavy_modules_after("import sys, types; sys.modules['torch'] = types.ModuleType('torch')") == {"torch"}
