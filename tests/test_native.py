"""The compiled libraries are loaded only beside the C files that they were compiled from."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgraph_explorer import native
from torchgraph_explorer.errors import TorchgraphError
from torchgraph_explorer.reduce import row_buffer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the package as the build leaves it."""
    made = tmp_path / "package/part"
    (made / "built").mkdir(parents=True)
    (made / "one.c").write_text("int one;\n")
    (made.parent / "shared.h").write_text("int two;\n")
    (made / "built" / native.MADE_FROM).write_text(native.digest_of(made))
    return made


def test_libraries_are_current_until_a_file_changes(folder: Path) -> None:
    native.require_current(folder / "built")


def test_another_end_of_lines_is_no_change(folder: Path) -> None:
    (folder / "one.c").write_bytes(b"int one;\r\n")
    native.require_current(folder / "built")


@pytest.mark.parametrize("changed", ["part/one.c", "part/new.h", "shared.h"])
def test_libraries_are_refused_beside_other_files(changed: str, folder: Path) -> None:
    (folder.parent / changed).write_text("int three;\n")
    with pytest.raises(OSError, match="were compiled from other C files than those in"):
        native.require_current(folder / "built")
    assert native.library_for_python(folder / "built/one.so") is None


def test_the_libraries_in_use_are_current() -> None:
    assert (row_buffer.BUILT / native.MADE_FROM).read_text() == native.digest_of(row_buffer.BUILT.parent)


def test_watch_says_that_libraries_are_too_old(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "one.c").write_text("int three;\n")
    monkeypatch.setattr(row_buffer, "BUILT", folder / "built")
    with pytest.raises(TorchgraphError, match=r"compiled from other C files .* in its clone, .* or make install"):
        row_buffer.library.__wrapped__()
