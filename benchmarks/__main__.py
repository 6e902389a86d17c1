"""Runs the benchmarks and prints their tables: `python -m benchmarks`, or with the names of some of them."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import cast

from benchmarks.tables import Options, Part, add_full, run

PARTS = (
    "overhead",
    "compiled",
    "record",
    "ranks",
    "graphs",
    "viewer",
    "server",
    "xray",
    "tensorboard_tab",
    "wandb_logging",
    "keep",
    "comgra",
    "flow",
    "gpu",
    "findings",
    "live_findings",
    "architectures",
    "compare",
    "compared_runs",
    "peers",
)
"""Modules of this folder, each with a function `tables`. They are imported one by one: each needs other libraries."""

ONLY_IN_FULL = ("peers", "comgra")
"""Benchmarks that install other packages, so they run only with `--full` or if they are named."""


def part(name: str) -> Part:
    """The benchmark called `name`."""
    return cast("Part", import_module(f"benchmarks.{name}").tables)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"some of {', '.join(PARTS)}; default: all but {', '.join(ONLY_IN_FULL)}",
    )
    add_full(parser)
    options = parser.parse_args()
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; choose from {', '.join(PARTS)}")
    usual = [name for name in PARTS if options.full or name not in ONLY_IN_FULL]
    run((part(name) for name in options.parts or usual), Options(full=options.full))


if __name__ == "__main__":
    main()
