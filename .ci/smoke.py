"""Train, record, read and export, with whatever releases are installed: `python .ci/smoke.py`."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tempfile
from pathlib import Path

SHOWN = ("torch", "numpy", "protobuf", "tornado", "fsspec", "pygraphviz", "scikit-learn", "rich")


def main() -> None:
    """Run the demo in an empty folder, and look at its run with each command."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in SHOWN]
    print(f"Python {sys.version.split()[0]}, {', '.join(versions)}")
    with tempfile.TemporaryDirectory() as folder:
        torchgraph("demo", "--no-serve", "--steps", "60", "--logdir", "runs", cwd=folder)
        (run,) = (Path(folder) / "runs").iterdir()
        torchgraph("info", str(run), cwd=folder)
        torchgraph("check", str(run), cwd=folder)
        torchgraph("explain", "dead-units", cwd=folder)
        torchgraph("diff", str(run), str(run), "--fail-on-difference", cwd=folder)
        torchgraph("export", str(run), "-o", "page.html", cwd=folder)
        torchgraph("xray", str(run), "-o", "xray.svg", cwd=folder)
        assert (Path(folder) / "page.html").stat().st_size > 100_000
    print("all commands ended well")


def torchgraph(*arguments: str, cwd: str) -> None:
    """Run a command of the installed package."""
    subprocess.run([sys.executable, "-m", "torchgraph_explorer.cli", *arguments], check=True, cwd=cwd)


if __name__ == "__main__":
    main()
