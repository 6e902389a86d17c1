"""`torchgraph diff`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from torchgraph_explorer.cli.options import chosen_model, given, open_given
from torchgraph_explorer.cli.printing import print_text


def add_command(commands: Any) -> None:
    """Register the command."""
    description = "Say at which step and module two runs begin to differ, and how much they differ."
    parser = commands.add_parser("diff", help=description, description=description)
    for name in ("run_a", "run_b"):
        parser.add_argument(
            name, type=given, metavar=name.upper(), help="folder or URL of a run, or a folder with exactly one run"
        )
    parser.add_argument("--model", metavar="NAME", help="the model to compare (default: the only one)")
    parser.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="A=B",
        help="what is called A in RUN_A is B in RUN_B, such as 'layer1.*=stage1.*'; can be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--fail-on-difference",
        action="store_true",
        help="exit with status 1 if structure, series or scalars differ, or nothing could be compared",
    )
    parser.set_defaults(act=_diff)


def _diff(options: argparse.Namespace) -> int:
    from torchgraph_explorer.comparison.matching import parse_rules
    from torchgraph_explorer.comparison.report import as_json, as_text
    from torchgraph_explorer.run import compare

    run_a = open_given(options.run_a)
    model = chosen_model(run_a, options.model)
    found = compare(run_a, open_given(options.run_b), model=model, rename=parse_rules("\n".join(options.rename)))
    if options.json:
        print(json.dumps(as_json(found), indent=2))
    else:
        print_text(as_text(found, (options.run_a, options.run_b)))
    return int(options.fail_on_difference and not found.is_equal)
