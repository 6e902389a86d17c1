"""README, CONTRIBUTING and docs: their links lead somewhere, their code runs, and what they name is there."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
import yaml

from tests import warm
from tests.documented import GIVEN, blocks, commands, outputs, prose, python_blocks, script_of
from tests.processes import SECONDS, torchgraph, wait_for
from tests.shared import FORKED
from tests.tables import stood_for
from tests.test_imports import FILES, ROOMS, SHARED, room_of
from torchgraph_explorer import watch
from torchgraph_explorer.cli import COMMANDS, _parser

ROOT = Path(__file__).parent.parent
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [README, CONTRIBUTING, ROOT / "CHANGELOG.md", ROOT / "torchgraph_explorer/server/http_api.md", *DOCS]

MOST_WORDS = 1000
"""Of the README."""

ADDRESS = re.compile(r"(http://\S+)\s")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def of(pages: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages, ids=[str(page.relative_to(ROOT)) for page in pages])


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


LANGUAGES = ("", "json", "python", "sh", "yaml", "{eval-rst}", "{toctree}")
"""Of blocks. What follows runs Python and commands, and parses JSON and YAML."""


@of(PAGES)
def test_every_block_is_looked_at_or_says_why_not(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES
        assert not block.given or block.given in GIVEN
        match block.language:
            case "json":
                json.loads(block.code)
            case "yaml":
                yaml.safe_load(block.code)
            case "python":
                ast.parse(f"def part(self):\n{textwrap.indent(block.code, ' ')}")  # it may return
            case _:
                assert not block.given
                assert not block.not_run


NOT_HERE = {
    "make": "CONTRIBUTING.md's own: this test is begun so",
    "pip install": ".ci/try_packages.py installs the packages into empty environments",
    "python .ci": "the release's",
    "python examples": "minutes; tests/test_guide_examples.py runs them in part",
    "python -m examples": "tests/test_loop_examples.py runs them, with a quicker compiler",
    "torchrun": "tests/test_loop_examples.py runs them",
    "tensorboard": "tests/tb_plugin starts it",
    "torchgraph info wandb:": "needs a W&B server; tests/wandb_panel/test_opening.py has one",
    "torchgraph serve s3:": ".ci/try_s3.py has such a store",
    "torchgraph wandb": "needs a W&B server; tests/wandb_panel/test_reports.py and test_panels.py have one",
    ".venv/bin": "of development, not of the package",
}
"""How the commands begin that are not run here, and where they are."""


def run_commands(page: Path) -> Iterator[list[str]]:
    """The arguments of each `torchgraph` that a test can run."""
    for command in commands(page):
        if not any(" ".join(command).startswith(one) for one in NOT_HERE):
            program, *arguments = command
            assert program == "torchgraph", command
            yield arguments


FIRST = [README, *(ROOT / "docs" / f"{name}.md" for name in ("start", "findings", "tensors", "compare", "reading"))]
"""The pages that stand for the others: what everybody reads, and what is opened from Python and by commands."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=str(page.relative_to(ROOT)), marks=stood_for(page not in FIRST))
        for page in PAGES
        if python_blocks(page) or any(run_commands(page))
    ],
)
@FORKED
def test_the_code_and_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in blocks(page):
        if block.file:
            (tmp_path / block.file).write_text(block.code, encoding="utf-8")
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "CI": "1"}
    done = warm.run("-c", script_of(page), cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert [told for told in outputs(page) if told not in done.stdout] == []
    for arguments in run_commands(page):
        check_command(arguments, folder=tmp_path, environment=environment)


SERVING = {"serve": ["--no-browser"], "explore": ["--no-browser"], "demo": ["--no-browser", "--steps", "20"]}
"""Commands that go on until Ctrl-C, and what is added for a test."""


def check_command(arguments: list[str], *, folder: Path, environment: dict[str, str]) -> None:
    """Run a `torchgraph` command in `folder`. One that serves is there as soon as it answers."""
    if arguments[0] not in SERVING:
        done = warm.run("-c", torchgraph()[1], *arguments, cwd=folder, env=environment)
        assert done.returncode == 0, done.stderr
        return
    more = [*SERVING[arguments[0]], "--port", "0"]
    script = f"import sys; sys.stdout.reconfigure(line_buffering=True)\n{torchgraph()[1]}"
    with NamedTemporaryFile() as file:
        said = Path(file.name).read_text
        with warm.started("-c", script, *arguments, *more, cwd=folder, env=environment, log=file.name):
            assert wait_for(lambda: ADDRESS.search(said()) is not None), said()
            address = ADDRESS.findall(said())[0]
            with build_opener(HTTPCookieProcessor()).open(
                address, timeout=SECONDS
            ) as answer:  # a token becomes a cookie
                assert b"<html" in answer.read()


@of([page for page in PAGES if page.name != "CHANGELOG.md"])
def test_every_command_in_a_sentence_exists_with_its_options(page: Path) -> None:
    for told in re.findall(r"`(torchgraph [^`]+)`", prose(page)):
        match shlex.split(told)[1:]:
            case [command]:
                assert any(module.__name__.endswith(f".{command}") for module in COMMANDS)
            case arguments:
                _parser().parse_args(arguments)


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
