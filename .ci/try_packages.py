"""Install the wheel and the sdist in a folder into empty environments, and run the demo in each."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SMOKE = Path(__file__).parent / "smoke.py"


def main() -> None:
    """Try both packages, or with `--wheel` only the one that fits this machine."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("packages", type=Path, metavar="FOLDER")
    parser.add_argument("--wheel", action="store_true", help="only the wheel")
    parser.add_argument("--constraint", type=Path, metavar="FILE", help="of what is installed with them")
    options = parser.parse_args()
    folder = str(options.packages.resolve())
    # The newest torch brings gigabytes of CUDA; a constraint can name one that the machine has.
    pins = ["--constraint", str(options.constraint.resolve())] if options.constraint else []
    # pip chooses the wheel that fits this machine.
    try_package(*pins, "--find-links", folder, "--only-binary", "torchgraph-explorer", "torchgraph-explorer[demo]")
    if not options.wheel:
        (sdist,) = options.packages.resolve().glob("*.tar.gz")
        try_package(*pins, f"torchgraph-explorer[demo] @ {sdist.as_uri()}")


def try_package(*arguments: str) -> None:
    """Install it into an environment of its own, and run the demo there."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        python = Path(place) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *arguments], check=True)
        subprocess.run([python, "-I", SMOKE], check=True)
    print(f"{arguments[-1]}: installed and tried in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
