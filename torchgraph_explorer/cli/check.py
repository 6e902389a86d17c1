"""`torchgraph check`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from torchgraph_explorer.cli.options import add_rules, given, open_given, own_rules
from torchgraph_explorer.cli.printing import print_text, shown


def add_command(commands: Any) -> None:
    """Register the command."""
    description = "Say what is wrong in a run, where, and since when."
    parser = commands.add_parser("check", help=description, description=description)
    parser.add_argument(
        "run", type=given, metavar="RUN", help="folder or URL of a run, or a folder with exactly one run"
    )
    parser.add_argument(
        "--model", action="append", metavar="NAME", help="a model to check; can be repeated (default: all)"
    )
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="default: %(default)s")
    parser.add_argument(
        "--fail-on",
        choices=("warning", "error"),
        help="exit with status 1 if there is a finding of this severity or a worse one",
    )
    add_rules(parser)
    parser.set_defaults(act=_check)


def _check(options: argparse.Namespace) -> int:
    from torchgraph_explorer.findings.report import as_json, as_markdown, as_text

    rules = own_rules(options)
    run = open_given(options.run)
    found = {name: run.model(name).findings(rules=rules) for name in options.model or run.models}
    if options.format == "json":
        print(json.dumps(as_json(run.name, found), indent=2))
    else:
        empty = [name for name in found if not len(run.model(name))]
        told = as_markdown(run.name, found, empty) if options.format == "markdown" else as_text(found, empty)
        print_text(told)
    if without := [name for name in found if "scalars" in run.model(name).session.log]:
        told = f"{', '.join(without)}: recorded without histograms, so saturated-activation was not looked for"
        print(shown(told), file=sys.stderr)
    severity = options.fail_on
    return int(severity is not None and any(one.is_at_least(severity) for some in found.values() for one in some))
