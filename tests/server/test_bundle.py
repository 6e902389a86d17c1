"""The viewer's files, and nothing else of the disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchgraph_explorer.server.bundle import FOR_EVER, bundle_file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "assets" / "index-a1.js").write_text("go()")
    (folder / "licenses.md").write_text("MIT")
    (tmp_path / "secret.js").write_text("secret")
    (folder / "assets" / "linked.js").symlink_to(tmp_path / "secret.js")
    return folder


@pytest.mark.parametrize(
    ("path", "kind", "caching"),
    [
        ("/", "text/html; charset=utf-8", "no-cache"),
        ("/index.html", "text/html; charset=utf-8", "no-cache"),
        ("/assets/index-a1.js", "text/javascript; charset=utf-8", FOR_EVER),
    ],
)
def test_files_carry_their_type_and_how_long_they_keep(path: str, kind: str, caching: str, folder: Path) -> None:
    found = bundle_file(path, folder)
    assert (found.status, found.content_type, found.headers) == (200, kind, (("Cache-Control", caching),))


@pytest.mark.parametrize(
    "path",
    [
        *("/../secret.js", "/assets/../../secret.js", "/assets/linked.js", "/%2e%2e/secret.js", "/..\\secret.js"),
        *("//etc/passwd", "/assets", "/assets/", "/a\0.js", "/" + "x" * 5000, "/nothing.js", "/licenses.md", "/\xff"),
    ],
)
def test_no_other_file_can_be_had(path: str, folder: Path) -> None:
    answer = bundle_file(path, folder)
    assert answer.status == 404
    assert json.loads(answer.body)["error"].startswith("There is no ")


def test_a_viewer_that_was_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    answer = bundle_file("/", tmp_path)
    assert answer.status == 500
    assert "make install" in json.loads(answer.body)["error"]
