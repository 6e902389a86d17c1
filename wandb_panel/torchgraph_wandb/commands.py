"""The subcommands `torchgraph wandb publish` and `torchgraph wandb report`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.extras import installing


def add_commands(commands: Any) -> None:
    """Register below `torchgraph wandb`."""
    description = "Publish the custom chart as a preset of a W&B entity. Needed once for each entity and server."
    publish = commands.add_parser("publish", help=description, description=description)
    publish.add_argument("--entity", required=True, help="user or team that will own the preset")
    publish.add_argument("--access", choices=("private", "public"), help="who may see it (default: private)")
    publish.add_argument("--server", help="address of the W&B server (default: the one you are logged in to)")
    publish.set_defaults(act=_publish)
    description = "Build and save a W&B report about one run: its description, the chart and the page."
    report = commands.add_parser("report", help=description, description=description)
    report.add_argument("--run", required=True, metavar="ENTITY/PROJECT/RUN", help="the W&B run")
    report.add_argument("--title", default="", help="the report's title")
    report.add_argument("--dry-run", action="store_true", help="print the report's specification and save nothing")
    report.set_defaults(act=_report)


def _publish(options: argparse.Namespace) -> None:
    _require_wandb()
    import wandb

    from torchgraph_wandb.presets import PresetOwner, publish_chart, published_preset

    if not options.entity.strip():
        raise OptionError("--entity is empty. Name the user or team of W&B that will own the preset.")
    server = options.server or wandb.setup().settings.base_url
    owner = PresetOwner(str(server).rstrip("/"), options.entity)
    if options.access is not None and published_preset(owner) is not None:
        raise OptionError(
            f"--access {options.access}: the chart was published to {owner.entity} before, from this machine, and "
            f"keeps the access that it was given then. Change it in W&B, where the preset is edited."
        )
    print(publish_chart(owner, access=options.access or "private"))


def _report(options: argparse.Namespace) -> None:
    _require_wandb()
    from torchgraph_wandb.reports import wandb_report

    made = wandb_report(options.run, options.title, dry_run=options.dry_run)
    print(json.dumps(made, indent=2) if options.dry_run else made)


def _require_wandb() -> None:
    try:
        import wandb  # noqa: F401
    except ImportError as missing:
        raise OptionError(f"This needs the wandb library: {installing('wandb')}") from missing
