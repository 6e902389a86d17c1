"""`torchgraph wandb`."""

from __future__ import annotations

from typing import Any

from torchgraph_explorer.cli.options import add_subcommands


def add_command(commands: Any) -> None:
    """Register the command."""
    from torchgraph_wandb.commands import add_commands

    description = "Weights & Biases: publish the custom chart, and build reports."
    parser = commands.add_parser("wandb", help=description, description=description)
    add_commands(add_subcommands(parser))
