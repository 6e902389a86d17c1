"""Build the documentation site: `python docs/site/build.py FOLDER`.

Trains the demo twice, healthy and broken, and puts pages of both runs into the site, so that a reader can click through
a real run. Then Sphinx makes the rest, and every warning of its, such as a broken link, is an error.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SITE = Path(__file__).parent

REDIRECT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>torchgraph explorer</title>
<meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">torchgraph explorer</a></html>
"""
"""Of the site's folder: the pages keep the places that they have in the repository."""

DEMOS = {
    "healthy.html": ["healthy"],
    "broken.html": ["broken"],
    "compared.html": ["healthy", "broken"],
}
"""The pages of the demo, which `docs/site/demo.md` leads to, and their runs."""


def main() -> int:
    """Build the site; returns Sphinx's exit status."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("output", type=Path, metavar="FOLDER", help="where it goes")
    parser.add_argument("--steps", type=int, default=600, help="of the demo's training (default: %(default)s)")
    options = parser.parse_args()
    write_demo(options.output / "_demo", steps=options.steps)
    (options.output / "index.html").write_text(REDIRECT, encoding="utf-8")
    return subprocess.run(sphinx(options.output), cwd=ROOT, check=False).returncode


def sphinx(output: Path) -> list[str]:
    """The command that makes the pages. Warnings are errors."""
    strict = ["--builder", "html", "--fail-on-warning", "--keep-going", "--quiet"]
    places = ["--conf-dir", str(SITE), "--doctree-dir", str(output.with_name(f"{output.name}-cache"))]
    return [sys.executable, "-m", "sphinx", *strict, *places, str(ROOT), str(output)]


def write_demo(folder: Path, *, steps: int) -> None:
    """Write the pages of `DEMOS` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as runs:
        made = {
            "healthy": record(Path(runs), "healthy", steps),
            "broken": record(Path(runs), "broken", steps, "--broken"),
        }
        for page, names in DEMOS.items():
            torchgraph("export", *(made[name] for name in names), "-o", str(folder / page))


def record(runs: Path, name: str, steps: int, *options: str) -> str:
    """Train the demo; returns the folder of its run."""
    logdir = runs / name
    torchgraph("demo", "--no-serve", "--logdir", str(logdir), "--steps", str(steps), *options)
    (made,) = logdir.iterdir()
    return str(made.rename(logdir / name))


def torchgraph(*arguments: str) -> None:
    """Run a command of the package."""
    subprocess.run([sys.executable, "-m", "torchgraph_explorer.cli", *arguments], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
