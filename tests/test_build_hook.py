"""What the build says when it cannot build."""

from __future__ import annotations

from pathlib import Path

import pytest

from hatch_build import BuildError, build_viewer

pytestmark = pytest.mark.slow

LOCK = """{"name": "viewer", "lockfileVersion": 3, "packages": {
  "": {"name": "viewer", "dependencies": {"preact": "10.0.0"}},
  "node_modules/preact": {"version": "10.0.0", "integrity": "sha512-AAAA"}}}"""


def viewer(folder: Path, *, script: str, lock: str) -> Path:
    (folder / "package.json").write_text(f'{{"name": "viewer", "scripts": {{"build": "{script}"}}}}')
    (folder / "package-lock.json").write_text(lock)
    return folder


EMPTY_LOCK = '{"name": "viewer", "lockfileVersion": 3, "packages": {"": {"name": "viewer"}}}'


def test_a_tree_without_the_viewer_says_where_to_build_from(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="Build from a clone or from the sdist"):
        build_viewer(tmp_path)


def test_an_unreachable_registry_says_what_to_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = viewer(tmp_path, script="true", lock=LOCK)
    (folder / "package.json").write_text('{"name": "viewer", "dependencies": {"preact": "10.0.0"}}')
    (folder / ".npmrc").write_text("registry=http://127.0.0.1:9\nfetch-retries=0\n")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    with pytest.raises(BuildError, match=r"`npm ci .*` in .* ended with code 1\. .* check the network, the proxy"):
        build_viewer(folder)


def test_a_viewer_that_does_not_compile_fails_the_build_and_leaves_no_old_bundle(tmp_path: Path) -> None:
    folder = viewer(tmp_path, script="exit 3", lock=EMPTY_LOCK)
    (folder / "dist").mkdir()
    (folder / "dist" / "index.html").write_text("old")
    with pytest.raises(BuildError, match=r"`npm run build` in .* ended with code 3\. Correct what the lines above"):
        build_viewer(folder)
    assert not (folder / "dist").exists()


def test_a_build_that_makes_no_page_fails(tmp_path: Path) -> None:
    folder = viewer(tmp_path, script="node --version", lock=EMPTY_LOCK)
    with pytest.raises(BuildError, match="ended well and left no"):
        build_viewer(folder)
