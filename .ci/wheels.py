"""Build the sdist, and from it the wheel of every platform, on one machine: `python .ci/wheels.py FOLDER`."""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent

BEGINNINGS = {"Linux": b"\x7fELF", "Darwin": b"\xcf\xfa\xed\xfe", "Windows": b"MZ"}
"""How a library begins on each system."""


def main() -> None:
    """Build into the folder that is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", type=Path, metavar="FOLDER")
    parser.add_argument("--platform", action="append", metavar="NAME", help="only this one, such as 'Linux x86_64'")
    options = parser.parse_args()
    output = str(options.output.resolve())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "build>=1.2"], check=True)
    subprocess.run([sys.executable, "-m", "build", "--sdist", "--outdir", output, str(ROOT)], check=True)
    (sdist,) = Path(output).glob("*.tar.gz")
    for platform in options.platform or platforms():
        environment = {**os.environ, "TORCHGRAPH_BUILD_FOR": platform}
        wheel = [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", output, str(sdist)]
        before = set(Path(output).glob("*.whl"))
        subprocess.run(wheel, check=True, env=environment)
        (made,) = set(Path(output).glob("*.whl")) - before
        check_libraries(made, platform)
        print(f"{platform}: {made.name}, {made.stat().st_size:,} bytes")


def check_libraries(wheel: Path, platform: str) -> None:
    """Raise `ValueError` if a library in `wheel` was compiled for another system than that of `platform`."""
    beginning = BEGINNINGS[platform.split(maxsplit=1)[0]]
    with zipfile.ZipFile(wheel) as content:
        libraries = [name for name in content.namelist() if name.endswith(".so")]
        wrong = [name for name in libraries if not content.read(name).startswith(beginning)]
    if wrong or not libraries:
        raise ValueError(f"{wheel.name} is for {platform}, and has these libraries of another system: {wrong}")


def platforms() -> list[str]:
    """The keys of TARGETS in hatch_build.py, which cannot be imported here: its imports come with the build."""
    for node in ast.parse((ROOT / "hatch_build.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TARGETS":
            return list(ast.literal_eval(node.value))
    raise LookupError("hatch_build.py has no TARGETS any more.")


if __name__ == "__main__":
    main()
