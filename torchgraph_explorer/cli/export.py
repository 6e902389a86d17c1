"""`torchgraph export`."""

from __future__ import annotations

import argparse
from typing import Any

from torchgraph_explorer.cli.options import add_rules, given, number, open_given, own_rules, whole
from torchgraph_explorer.cli.printing import shown


def add_command(commands: Any) -> None:
    """Register the command."""
    description = "Write the viewer with a run's data into one HTML file that opens without a server."
    parser = commands.add_parser("export", help=description, description=description)
    parser.add_argument(
        "runs",
        type=given,
        metavar="RUN",
        nargs="+",
        help="folder or URL of a run, or a folder with exactly one run; if there are several, the page compares them "
        "with the first",
    )
    parser.add_argument("-o", "--output", type=given, required=True, metavar="PAGE", help="the HTML file to write")
    parser.add_argument(
        "--steps",
        type=whole,
        default=100,
        help="at most so many steps: the first, the last, and others spaced evenly (default: %(default)s)",
    )
    parser.add_argument(
        "--series",
        type=whole,
        help="at most so many series: first those of the model itself, then of deeper modules; series with the same "
        "numbers count once (default: as many as fit into a page of 2 MB)",
    )
    parser.add_argument(
        "--tensors",
        type=number,
        nargs="?",
        const=10.0,
        default=0.0,
        metavar="MB",
        help="include kept tensors, which may be people's data: as many as fit into MB megabytes (default without a "
        "number: %(const)s)",
    )
    parser.add_argument(
        "--model", action="append", metavar="NAME", help="a model to show; can be repeated (default: all)"
    )
    add_rules(parser)
    parser.set_defaults(act=_export)


def _export(options: argparse.Namespace) -> None:
    from torchgraph_explorer.server.export import export_page

    run, *others = [open_given(one) for one in options.runs]
    page = export_page(
        run,
        options.output,
        models=options.model,
        steps=options.steps,
        series=options.series,
        tensors=options.tensors,
        compare=others,
        rules=own_rules(options),
    )
    print(shown(f"Wrote {options.output}, {len(page):,} bytes."))
