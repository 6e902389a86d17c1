"""`torchgraph explore`."""

from __future__ import annotations

import argparse
from typing import Any

from torchgraph_explorer.cli.options import add_address, given


def add_command(commands: Any) -> None:
    """Register the command."""
    description = "Show how gradient flows between tensors of a forward pass, and edit its input."
    parser = commands.add_parser("explore", help=description, description=description)
    parser.add_argument(
        "case",
        type=given,
        metavar="CASE",
        help="FILE.py:FUNCTION, a function that returns a model, its inputs and a function from output to loss; "
        "or case.npz, a saved case, which is shown without its model",
    )
    add_address(parser, host=True)
    parser.set_defaults(act=_explore)


def _explore(options: argparse.Namespace) -> None:
    from torchgraph_explorer.exploring.adapter import open_source
    from torchgraph_explorer.exploring.serving import Page

    page = Page(open_source(options.case), host=options.host, port=options.port, logdir=None)
    page.show(with_browser=not options.no_browser)
    page.wait()
