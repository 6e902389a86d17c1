"""README, CONTRIBUTING and docs: their links lead somewhere, their code runs, and what they name is there."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import warm
from tests.test_imports import FILES, ROOMS, SHARED, room_of
from torchgraph_explorer import watch
from torchgraph_explorer.cli import _parser

ROOT = Path(__file__).parent.parent
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [README, CONTRIBUTING, ROOT / "CHANGELOG.md", ROOT / "torchgraph_explorer/server/http_api.md", *DOCS]

MOST_WORDS = 1000
"""Of the README."""

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
NOT_RUN = "<!-- not run: "
"""Begins the line before a block that needs what a test does not have; the reason follows."""

BEFORE = """
import warnings
import torch
from torch import nn
from torchgraph_explorer import TorchgraphWarning, watch
from torchgraph_explorer.demo import DigitsNet

def train(model, steps=1):
    for _ in range(steps):
        model(torch.rand(2, 1, 8, 8)).sum().backward()

warnings.simplefilter("error", TorchgraphWarning)
model, current_epoch = DigitsNet(), 0.0
with watch(model, backend="record", logdir="runs", run="2026-11-21_08-43-04", verbose=False):
    train(model, steps=51)
"""
"""What the examples take for granted: a model, its training, and a run that was recorded."""


def of(pages: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages, ids=[str(page.relative_to(ROOT)) for page in pages])


def blocks(page: Path, language: str) -> list[str]:
    """The page's code in a language, but for what is marked as not to be run."""
    text, found, at = page.read_text(encoding="utf-8"), [], 0
    for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line_before = text[at : match.start()].rstrip("\n").rpartition("\n")[2]
        found += [] if line_before.startswith(NOT_RUN) else [match[1]]
        at = match.end()
    return found


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub makes anchors of them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(prose(page))}


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@of(PAGES)
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_a_broken_link_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# What is it?\n[1](#what-is-it) [2](page.md#what-is-it) [3](#why) [4](none.md) [5](https://a.b)")
    assert list(broken_links(page)) == ["#why", "none.md"]


def test_the_readme_can_be_read_in_five_minutes() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= MOST_WORDS


@of(DOCS)
def test_a_page_answers_a_question_and_the_readme_leads_to_it(page: Path) -> None:
    assert page.read_text(encoding="utf-8").partition("\n")[0].endswith("?")
    assert f"docs/{page.name}" in README.read_text(encoding="utf-8")


@pytest.mark.slow
@of([page for page in PAGES if blocks(page, "python")])
def test_the_code_of_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    script = "\n".join([BEFORE, *blocks(page, "python")])
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "CI": "1"}
    done = warm.run("-c", script, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr


@of([page for page in PAGES if blocks(page, "sh")])
def test_every_command_of_a_page_exists_with_its_options(page: Path) -> None:
    for line in "".join(blocks(page, "sh")).splitlines():
        command, *arguments = shlex.split(line, comments=True)
        check_command(command.removeprefix(".venv/bin/"), arguments)


def check_command(command: str, arguments: list[str]) -> None:
    match command, arguments:
        case "torchgraph", _:
            _parser().parse_args(arguments)
        case "make", [target]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), target
        case "pip", ["install", what]:
            assert set(re.findall(r"\w+", what)) <= {"demo", "tensorboard", "wandb"}
        case _:
            assert (command, arguments) == ("tensorboard", ["--logdir", "runs"])


PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)+/?|[\w-]+\.(?:md|py|toml))`")
NO_FILES = (".venv/", "api/", "application/")
ON_THE_WAY = re.compile(r"^\| `([\w./]+)` \| `([\w.]+)` \|", re.MULTILINE)
"""A file and a function of the way of one tensor, which is a table."""


def is_there(path: str) -> bool:
    """Whether a file or folder is in the repository. One of another page may be named without its folder."""
    return (ROOT / path).exists() or any(file.as_posix().endswith(f"/{path}") for file in FILES)


@of([page for page in PAGES if page.name != "CHANGELOG.md"])
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = [name for name in PATH.findall(prose(page)) if not name.startswith(NO_FILES)]
    assert [name for name in named if not is_there(name)] == []


def test_the_way_of_one_tensor_goes_through_functions_that_exist() -> None:
    way = ON_THE_WAY.findall(CONTRIBUTING.read_text(encoding="utf-8"))
    assert len(way) == 10
    for file, name in way:
        source = (ROOT / file).read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"^\s*(export )?(def|class|function) {part}\b", source, re.MULTILINE), f"{file}: {name}"


ROOM_FOLDERS = [file for file in FILES if file.name == "__init__.py" and room_of(file) not in ("__init__", *SHARED)]


@pytest.mark.parametrize("file", ROOM_FOLDERS, ids=[str(file.parent.relative_to(ROOT)) for file in ROOM_FOLDERS])
def test_a_folder_says_who_may_import_it(file: Path) -> None:
    told = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    sentence = re.search(r"^Imported by ([^.]*)\.", told, re.MULTILINE)
    if sentence is None:  # a folder within a room
        assert "Used " in told
    else:
        room = room_of(file)
        libraries = {name for name, one in ROOMS.items() if room in one.libraries and name != room}
        assert set(re.findall(r"`(\w+)`", sentence[1])) == libraries | {
            name for name, one in ROOMS.items() if room in one.rooms
        }


def table_of_parameters() -> Iterator[tuple[str, str | None]]:
    """The parameters of `watch` on their page, with the defaults that are given as code."""
    for line in (ROOT / "docs/options.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        names = re.findall(r"`(\w+)`", cells[0])
        if len(cells) == 3 and names:  # name, default, meaning
            defaults = re.findall(r"`([^`]+)`", cells[1])
            yield from zip(names, defaults or [None] * len(names), strict=True)


def test_the_page_of_options_has_every_parameter_of_watch_with_its_default() -> None:
    told = dict(table_of_parameters())
    parameters = {name: one.default for name, one in inspect.signature(watch).parameters.items() if name != "model"}
    assert sorted(told) == sorted(parameters)
    assert {name: ast.literal_eval(code) for name, code in told.items() if code is not None} == {
        name: parameters[name] for name, code in told.items() if code is not None
    }
