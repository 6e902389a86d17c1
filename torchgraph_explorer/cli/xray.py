"""`torchgraph xray`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from torchgraph_explorer.cli.options import chosen_model, given, open_given
from torchgraph_explorer.cli.printing import shown


def add_command(commands: Any) -> None:
    """Register the command."""
    from torchgraph_explorer.record.cells.statistics import STATISTIC_NAMES

    description = "Draw the whole training in one picture: modules by steps, coloured by a statistic."
    parser = commands.add_parser("xray", help=description, description=description)
    parser.add_argument(
        "run", type=given, metavar="RUN", help="folder or URL of a run, or a folder with exactly one run"
    )
    parser.add_argument("-o", "--output", type=given, required=True, metavar="PICTURE", help="the SVG file to write")
    parser.add_argument(
        "--statistic",
        choices=STATISTIC_NAMES,
        help="the statistic that colours show (default: the first one that was recorded)",
    )
    parser.add_argument("--model", metavar="NAME", help="the model to draw; needed if the run has several")
    parser.add_argument("--no-findings", action="store_true", help="leave out the marks of findings")
    parser.set_defaults(act=_xray)


def _xray(options: argparse.Namespace) -> None:
    from torchgraph_explorer.errors import OptionError
    from torchgraph_explorer.server.export import write_whole
    from torchgraph_explorer.xray.picture import XrayMark, xray_svg

    if Path(options.output).suffix.lower() not in {".svg", ""}:
        raise OptionError(
            f"{options.output} would hold an SVG picture. Give it a name that ends in .svg; a browser or Inkscape "
            "turns that into other formats."
        )
    run = open_given(options.run)
    model = run.model(chosen_model(run, options.model))
    found = () if options.no_findings else model.findings()
    marks = [XrayMark(one.module, one.step, one.severity, one.text) for one in found]
    picture = xray_svg(model, options.statistic, marks=marks, title=f"{run.name}, {model.name}")
    content = picture.encode("utf-8", errors="replace")
    write_whole(Path(options.output), content)
    print(shown(f"Wrote {options.output}, {len(content):,} bytes."))
