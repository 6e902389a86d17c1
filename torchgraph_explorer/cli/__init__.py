"""The command line, `torchgraph COMMAND`.

Each command is a module here, with `add_command`.

Imported by `__main__`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from torchgraph_explorer.cli import check, demo, diff, explain, explore, export, info, serve, wandb, xray
from torchgraph_explorer.cli.options import add_subcommands
from torchgraph_explorer.cli.printing import short_warnings, shown
from torchgraph_explorer.errors import TorchgraphError
from torchgraph_explorer.version import __version__

COMMANDS = (demo, serve, info, check, explain, diff, xray, export, explore, wandb)
"""In the order in which `torchgraph --help` lists them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, 1 if `check` fails, or 2 after an error message on stderr."""
    options = _parser().parse_args(arguments)
    try:
        with short_warnings():
            status: int | None = options.act(options)
            sys.stdout.flush()
    except TorchgraphError as fault:
        print(shown(f"torchgraph: {fault}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # `torchgraph info RUN | head`: the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status or 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchgraph", description="Watch a PyTorch model train, and look inside it.")
    parser.add_argument("--version", action="version", version=f"torchgraph_explorer {__version__}")
    commands = add_subcommands(parser)
    for command in COMMANDS:
        command.add_command(commands)
    return parser
