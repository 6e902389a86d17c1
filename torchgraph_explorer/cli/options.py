"""The options that several commands have."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchgraph_explorer.findings.own_rules import OwnRule

LAST_PORT = 65535


def add_address(parser: argparse.ArgumentParser, *, host: bool) -> None:
    """Add `--port` and `--no-browser`, and `--host` to a command that other machines may reach."""
    if host:
        parser.add_argument(
            "--host",
            default="127.0.0.1",
            help="address to listen on; 0.0.0.0: other machines too, with an access token (default: %(default)s)",
        )
    parser.add_argument(
        "--port",
        type=_port,
        default=8080,
        help="port; if taken, the next free one; 0: any free one (default: %(default)s)",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; choose one from 1 to {LAST_PORT}, or 0 for any")
    return int(text)


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add `--rules`."""
    parser.add_argument("--rules", metavar="FILE", help="a Python file with rules of your own, in a list RULES")


def own_rules(options: argparse.Namespace) -> tuple[OwnRule, ...]:
    """The rules in the file that was named. It is run."""
    from torchgraph_explorer.findings.own_rules import load_rules

    return load_rules(options.rules) if options.rules is not None else ()
