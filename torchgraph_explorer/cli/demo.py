"""`torchgraph demo`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from torchgraph_explorer.cli.options import add_address, given, whole


def add_command(commands: Any) -> None:
    """Register the command."""
    description = "Train a small residual network on handwritten digits and show it live."
    parser = commands.add_parser("demo", help=description, description=description)
    parser.add_argument("--logdir", type=given, default="runs", help="folder of runs (default: %(default)s)")
    parser.add_argument("--steps", type=whole, default=600, help="training steps (default: %(default)s)")
    parser.add_argument("--broken", action="store_true", help="train a network with three faults, to see findings")
    parser.add_argument("--no-serve", action="store_true", help="only record, without the live viewer")
    add_address(parser, host=False)
    parser.set_defaults(act=_demo)


def _demo(options: argparse.Namespace) -> None:
    from torchgraph_explorer.demo import run_demo

    serve = not options.no_serve
    run_demo(
        logdir=options.logdir,
        steps=options.steps,
        serve=serve,
        port=options.port,
        open_browser=serve and not options.no_browser and sys.stdout.isatty(),
        broken=options.broken,
    )
