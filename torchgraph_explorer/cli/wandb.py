"""`torchgraph wandb`."""

from __future__ import annotations

from typing import Any


def add_command(commands: Any) -> None:
    """Register the command."""
    from torchgraph_wandb.commands import add_commands

    description = "Weights & Biases: publish the custom chart, and build reports."
    parser = commands.add_parser("wandb", help=description, description=description)
    add_commands(parser.add_subparsers(title="commands", required=True, metavar="COMMAND"))
