"""Linters find nothing in the workflows, issue forms and CITATION.cff are whole, and a release is one step."""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from torchgraph_explorer.version import __version__

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
WORKFLOWS = sorted(str(file.relative_to(ROOT)) for file in (GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(file for file in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if file.name != "config.yml")
BESIDE = Path(sys.executable).parent
"""Where the environment's commands are."""

LINTERS = {
    "zizmor": ["zizmor", "--offline", "--quiet", ".github"],
    "GitHub's schema": ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS],
    "a time limit for each job": [
        *("check-jsonschema", "--builtin-schema", "custom.github-workflows-require-timeout", *WORKFLOWS)
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("linter", LINTERS)
def test_a_linter_finds_nothing(linter: str) -> None:
    command, *arguments = LINTERS[linter]
    done = subprocess.run(
        [BESIDE / command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


of_a_clone = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a clone has git's list of files")


def tracked(*options: str) -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", *options]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return told.stdout.split("\0")[:-1]


@of_a_clone
def test_nothing_that_git_ignores_is_in_the_repository() -> None:
    assert tracked("--ignored", "--exclude-standard") == []


@of_a_clone
def test_the_root_has_nothing_that_a_program_left_there() -> None:
    assert {name.partition("/")[0] for name in tracked()} == {
        *(".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE"),
        *("Makefile", "README.md", "SECURITY.md", "hatch_build.py", "pyproject.toml"),
        *(".ci", ".github", "benchmarks", "constraints", "docs", "examples", "res"),
        *("tb_plugin", "tests", "torchgraph_explorer", "wandb_panel"),
    }


@of_a_clone
def test_no_file_of_the_repository_is_large() -> None:
    sizes = {name: (ROOT / name).stat().st_size for name in tracked() if (ROOT / name).is_file()}
    assert {name: size for name, size in sizes.items() if size > 500_000} == {}
    assert len(sizes) > 500


def test_the_citation_has_what_its_format_asks_for() -> None:
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(told)
    assert (told["cff-version"], told["version"], told["license"]) == ("1.2.0", __version__, "Apache-2.0")
    assert all(set(author) in ({"name"}, {"family-names", "given-names"}) for author in told["authors"])


INPUTS = {"markdown": "value", "textarea": "label", "input": "label", "dropdown": "label", "checkboxes": "label"}
"""The elements of GitHub's issue forms, with the attribute that each must have."""


@pytest.mark.parametrize("form", FORMS, ids=[form.stem for form in FORMS])
def test_an_issue_form_has_what_github_asks_for(form: Path) -> None:
    told = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(told) <= {"name", "description", "body", "labels", "title"}
    assert [one for one in told["body"] if INPUTS[one["type"]] not in one["attributes"]] == []
    ids = [one["id"] for one in told["body"] if one["type"] != "markdown"]
    assert len(ids) == len(set(ids))
    assert all(option["label"] for one in told["body"] for option in one["attributes"].get("options", ()))


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f".ci/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RELEASE: Any = _script("release")
FILES = (RELEASE.VERSION_FILE, RELEASE.CITATION, RELEASE.CHANGELOG)
DAY = datetime.date(2026, 12, 1)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files that a release changes."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_release_writes_its_version_and_its_section_of_the_changelog(tree: Path) -> None:
    before = RELEASE.section((tree / "CHANGELOG.md").read_text(encoding="utf-8"), "Unreleased").strip()
    RELEASE.write(tree, "9.8.7", DAY)
    assert RELEASE.check(tree, "9.8.7").strip() == before
    changelog = (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "\n## [Unreleased]\n\n## [9.8.7] - 2026-12-01\n" in changelog


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        pytest.param(["v1.2.3"], "'v1.2.3' is no version. Write it as 1.2.3", id="with a v"),
        pytest.param(["9.8.7", "9.8.7"], "has a section of 9.8.7 already", id="a second time"),
        pytest.param(["9.8.7", "9.8.8"], "has nothing under \\[Unreleased\\]", id="nothing new"),
    ],
)
def test_a_release_that_cannot_be_says_why(tree: Path, versions: list[str], message: str) -> None:
    *earlier, last = versions
    for version in earlier:
        RELEASE.write(tree, version, DAY)
    with pytest.raises(RELEASE.ReleaseError, match=message):
        RELEASE.write(tree, last, DAY)


def test_a_tag_that_the_files_do_not_have_is_refused(tree: Path) -> None:
    RELEASE.write(tree, "9.8.7", DAY)
    with pytest.raises(RELEASE.ReleaseError, match=r"version\.py has no line .*9\.8\.8"):
        RELEASE.check(tree, "9.8.8")


def test_every_platform_of_the_build_gets_a_wheel() -> None:
    import hatch_build

    assert _script("wheels").platforms() == list(hatch_build.TARGETS)


@pytest.mark.parametrize(
    ("content", "platform", "is_right"),
    [
        pytest.param(b"\x7fELF...", "Linux x86_64", True, id="right"),
        pytest.param(b"\x7fELF...", "Windows AMD64", False, id="of another system"),
        pytest.param(None, "Darwin arm64", False, id="none at all"),
    ],
)
def test_a_wheel_with_the_library_of_another_system_is_refused(
    content: bytes | None, platform: str, is_right: bool, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        if content is not None:
            wheel.writestr("torchgraph_explorer/reduce/built/rows.so", content)
    with nullcontext() if is_right else pytest.raises(ValueError, match="libraries of another system"):
        _script("wheels").check_libraries(tmp_path / "a.whl", platform)


def test_the_oldest_dependencies_are_those_that_the_ranges_begin_with() -> None:
    told = map(Requirement, importlib.metadata.requires("torchgraph-explorer") or ())
    ranges = [one for one in told if one.marker is None or "demo" in str(one.marker)]
    pins = map(Requirement, re.findall(r"^[^#\n]+", (ROOT / "constraints/oldest.txt").read_text(), re.MULTILINE))
    assert {one.name: _lowest(one, "==") for one in pins} == {one.name: _lowest(one, ">=") for one in ranges}


def _lowest(requirement: Requirement, operator: str) -> Version:
    return Version(next(one.version for one in requirement.specifier if one.operator == operator))
