"""The options that several commands have."""

from __future__ import annotations

import argparse
import shlex
import sys
from threading import Timer
from typing import TYPE_CHECKING, Any

from torchgraph_explorer.cli.printing import shown
from torchgraph_explorer.errors import OptionError

if TYPE_CHECKING:
    from torchgraph_explorer.findings.own_rules import OwnRule
    from torchgraph_explorer.record.run_record import RunRecord
    from torchgraph_explorer.run import Run

LAST_PORT = 65535

PATIENCE = 2.0
"""Seconds after which a line says that a run is looked for."""

_QUOTED = 40
"""Characters of a wrong value that a message repeats at most."""


def given(text: str) -> str:
    """An argument that is not empty: an empty path would be the folder one is in, and an empty host every address."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; perhaps a variable of your shell is not set")
    return text


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:_QUOTED]!r} is not a whole number; give one such as 100") from None


def number(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:_QUOTED]!r} is not a number; give one such as 10 or 2.5") from None


def chosen_model(run: RunRecord, name: str | None) -> str | None:
    """The name of the model that is meant; None for the only one."""
    if name is None and len(run.models) > 1:
        choices = " or ".join(f"--model {shlex.quote(one)}" for one in run.models)
        raise OptionError(f"Run {run.name!r} holds {len(run.models)} models. Choose one with {choices}.")
    return name


def open_given(path: str) -> Run:
    """Open the run in `path`, as `open_run` does. If it takes long to find it, a line says so."""
    from torchgraph_explorer.run import locate, opened

    told = f"torchgraph: looking for a run in {path} and in all folders in it. It is faster to name the run's folder."
    timer = Timer(PATIENCE, lambda: print(shown(told), file=sys.stderr))
    timer.daemon = True
    timer.start()
    try:
        found = locate(path)
    finally:
        timer.cancel()
    return opened(found)


def add_subcommands(parser: argparse.ArgumentParser) -> Any:
    """The commands of `parser`, to which they are added. Without a command, it prints its help."""

    def print_help(_: argparse.Namespace) -> int:
        parser.print_help(sys.stderr)
        return 2

    parser.set_defaults(act=print_help)
    return parser.add_subparsers(title="commands", metavar="COMMAND")


def add_address(parser: argparse.ArgumentParser, *, host: bool) -> None:
    """Add `--port` and `--no-browser`, and `--host` to a command that other machines may reach."""
    if host:
        parser.add_argument(
            "--host",
            type=given,
            default="127.0.0.1",
            help="address to listen on; with 0.0.0.0, other machines can open the viewer, too, with an access token "
            "(default: %(default)s)",
        )
    parser.add_argument(
        "--port",
        type=_port,
        default=8080,
        help="port to listen on; if it is taken, the next free one; with 0, any free one (default: %(default)s)",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def _port(text: str) -> int:
    if not text.isdecimal() or len(text) > _QUOTED or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(
            f"{text[:_QUOTED]!r} is not a port; choose one from 1 to {LAST_PORT}, or 0 for any free port"
        )
    return int(text)


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add `--rules`."""
    parser.add_argument(
        "--rules", type=given, metavar="FILE", help="a Python file with rules of your own, in a list RULES"
    )


def own_rules(options: argparse.Namespace) -> tuple[OwnRule, ...]:
    """The rules in the file that was named. It is run."""
    from torchgraph_explorer.findings.own_rules import load_rules

    return load_rules(options.rules) if options.rules is not None else ()
