"""`torchgraph explain`."""

from __future__ import annotations

import argparse
import shutil
from typing import Any

from torchgraph_explorer.cli.printing import shown

NARROWEST, WIDEST = 40, 80
"""Columns of a line. Longer lines are hard to read."""


def add_command(commands: Any) -> None:
    """Register the command."""
    description = "Say what a kind of finding means, when it may be wrong, and what to do."
    parser = commands.add_parser("explain", help=description, description=description)
    parser.add_argument("kind", nargs="*", metavar="KIND", help="such as dead-units (default: list all kinds)")
    parser.set_defaults(act=_explain)


def _explain(options: argparse.Namespace) -> None:
    from torchgraph_explorer.findings.kinds.entries import explain, explanations
    from torchgraph_explorer.findings.kinds.explanation import as_list, as_text

    width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))
    name = " ".join(options.kind)
    told = as_text(explain(name), width) if name else as_list(explanations().values(), width)
    print("\n".join(map(shown, told.split("\n"))))
