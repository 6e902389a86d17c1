"""The command line: `torchgraph demo`, `serve`, `info`, `check`, `diff`, `xray`, `export`, `explore` and `wandb`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgraph_explorer.browser import browse
from torchgraph_explorer.errors import NotFoundError, TorchgraphError, TorchgraphWarning
from torchgraph_explorer.version import __version__

if TYPE_CHECKING:
    from torchgraph_explorer.findings.own_rules import OwnRule
    from torchgraph_explorer.record.model_record import ModelRecord
    from torchgraph_explorer.record.run_record import RunRecord

LAST_PORT = 65535


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, 1 if `check` fails, or 2 after an error message on stderr."""
    options = _parser().parse_args(arguments)
    try:
        status: int | None = options.act(options)
        sys.stdout.flush()
    except TorchgraphError as fault:
        print(f"torchgraph: {fault}", file=sys.stderr)
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
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_serve(commands)
    _add_info(commands)
    _add_check(commands)
    _add_diff(commands)
    _add_xray(commands)
    _add_export(commands)
    _add_explore(commands)
    _add_wandb(commands)
    return parser


def _add_demo(commands: Any) -> None:
    description = "Train a small residual network on handwritten digits and show it live."
    parser = commands.add_parser("demo", help=description, description=description)
    parser.add_argument("--logdir", default="runs", help="folder of runs (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=600, help="training steps (default: %(default)s)")
    parser.add_argument("--broken", action="store_true", help="a network with three faults, which are found")
    parser.add_argument("--no-serve", action="store_true", help="only record, without the live viewer")
    _add_address(parser, host=False)
    parser.set_defaults(act=_demo)


def _add_serve(commands: Any) -> None:
    description = "Show the runs in a folder, even while a training is writing there."
    parser = commands.add_parser("serve", help=description, description=description)
    parser.add_argument(
        "logdir", metavar="LOGDIR", help="folder of runs, folder of one run, or URL that fsspec can read"
    )
    _add_rules(parser)
    parser.add_argument(
        "--view",
        action="append",
        default=[],
        metavar="FILE.py",
        help="a Python file whose function `view` draws what is chosen; FILE.py:FUNCTION for another one; can be "
        "repeated",
    )
    parser.add_argument(
        "--view-seconds",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="how long such a function may take (default: %(default)g)",
    )
    _add_address(parser, host=True)
    parser.set_defaults(act=_serve)


def _add_address(parser: argparse.ArgumentParser, *, host: bool) -> None:
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


def _add_info(commands: Any) -> None:
    description = "Print what a run contains."
    parser = commands.add_parser("info", help=description, description=description)
    parser.add_argument("run", metavar="RUN", help="folder or URL of a run, or a folder with exactly one run")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(act=_info)


def _add_check(commands: Any) -> None:
    description = "Say what is wrong in a run, where, and since when."
    parser = commands.add_parser("check", help=description, description=description)
    parser.add_argument("run", metavar="RUN", help="folder or URL of a run, or a folder with exactly one run")
    parser.add_argument(
        "--model", action="append", metavar="NAME", help="a model to check; can be repeated (default: all)"
    )
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="default: %(default)s")
    parser.add_argument(
        "--fail-on",
        choices=("warning", "error"),
        help="exit with status 1 if there is a finding of this severity or a worse one",
    )
    _add_rules(parser)
    parser.set_defaults(act=_check)


def _add_diff(commands: Any) -> None:
    description = "Say where two runs part, and how they differ."
    parser = commands.add_parser("diff", help=description, description=description)
    for name in ("run_a", "run_b"):
        parser.add_argument(name, metavar=name.upper(), help="folder or URL of a run, or a folder with exactly one run")
    parser.add_argument("--model", metavar="NAME", help="the model to compare (default: the only one)")
    parser.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="A=B",
        help="modules A of RUN_A are B in RUN_B: 'layer1.*=stage1.*'; can be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--fail-on-difference", action="store_true", help="exit with status 1 if anything differs")
    parser.set_defaults(act=_diff)


def _add_xray(commands: Any) -> None:
    from torchgraph_explorer.record.cells.statistics import STATISTIC_NAMES

    description = "Draw the whole training in one picture: modules by steps, coloured by a statistic."
    parser = commands.add_parser("xray", help=description, description=description)
    parser.add_argument("run", metavar="RUN", help="folder or URL of a run, or a folder with exactly one run")
    parser.add_argument("-o", "--output", required=True, metavar="PICTURE", help="the SVG file to write")
    parser.add_argument(
        "--statistic", choices=STATISTIC_NAMES, help="what colours mean (default: the first one that was recorded)"
    )
    parser.add_argument("--model", metavar="NAME", help="the model to draw; needed if the run has several")
    parser.add_argument("--no-findings", action="store_true", help="leave out the marks of findings")
    parser.set_defaults(act=_xray)


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rules", metavar="FILE", help="a Python file with rules of your own, in a list RULES")


def _own_rules(options: argparse.Namespace) -> tuple[OwnRule, ...]:
    """The rules in the file that was named. It is run."""
    from torchgraph_explorer.findings.own_rules import load_rules

    return load_rules(options.rules) if options.rules is not None else ()


def _add_export(commands: Any) -> None:
    description = "Write the viewer with a run's data into one HTML file that opens without a server."
    parser = commands.add_parser("export", help=description, description=description)
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        help="folder or URL of a run, or a folder with exactly one run; of several, the others are compared with the "
        "first",
    )
    parser.add_argument("-o", "--output", required=True, metavar="PAGE", help="the HTML file to write")
    parser.add_argument(
        "--steps",
        type=int,
        default=100,
        help="the most steps: the first, the last, and others spaced evenly (default: %(default)s)",
    )
    parser.add_argument(
        "--series",
        type=int,
        help="the most series: first those of the model itself, then of deeper modules; series with the same "
        "numbers count once (default: as many as fit into a page of 2 MB)",
    )
    parser.add_argument(
        "--tensors",
        type=float,
        nargs="?",
        const=10.0,
        default=0.0,
        metavar="MB",
        help="also what was kept of tensors, which may be people's data: as many as fit into so many MB (default "
        "without a number: %(const)s)",
    )
    parser.add_argument(
        "--model", action="append", metavar="NAME", help="a model to show; can be repeated (default: all)"
    )
    _add_rules(parser)
    parser.set_defaults(act=_export)


def _add_explore(commands: Any) -> None:
    description = "Show how gradient flows between tensors of a forward pass, and edit its input."
    parser = commands.add_parser("explore", help=description, description=description)
    parser.add_argument(
        "case",
        metavar="CASE",
        help="FILE.py:FUNCTION, a function that returns a model, its inputs and a function from output to loss; "
        "or case.npz, a saved case, which is shown without its model",
    )
    _add_address(parser, host=True)
    parser.set_defaults(act=_explore)


def _add_wandb(commands: Any) -> None:
    from torchgraph_wandb.commands import add_commands

    description = "Weights & Biases: publish the custom chart, and build reports."
    parser = commands.add_parser("wandb", help=description, description=description)
    add_commands(parser.add_subparsers(title="commands", required=True, metavar="COMMAND"))


def _demo(options: argparse.Namespace) -> None:
    from torchgraph_explorer.demo import run_demo

    serve = not options.no_serve
    run_demo(
        logdir=options.logdir,
        steps=options.steps,
        serve=serve,
        port=options.port,
        open_browser=serve and not options.no_browser and sys.stdout.isatty(),
        broken=options.broken,
    )


def _serve(options: argparse.Namespace) -> None:
    from torchgraph_explorer.own_views.views import Views
    from torchgraph_explorer.record.remote import is_url
    from torchgraph_explorer.server.process import end_in_order_by_sigterm, listen

    if not is_url(options.logdir) and not Path(options.logdir).is_dir():
        raise NotFoundError(f"{options.logdir} is not a folder. Name the folder that watch(logdir=...) writes to.")
    views = Views(options.view, seconds=options.view_seconds) if options.view else None
    server = listen(options.logdir, host=options.host, port=options.port, rules=_own_rules(options), views=views)
    if options.port not in (0, server.port):
        print(f"Port {options.port} is taken; using {server.port}.")
    print(f"Showing {options.logdir} at {server.url}")
    if server.is_exposed:
        print("Other machines can reach this. Everyone who has the address above, with its token, can see the runs.")
    print("Press Ctrl-C to end.", flush=True)
    if not options.no_browser and sys.stdout.isatty():
        browse(server.url)
    end_in_order_by_sigterm()
    try:
        server.run()
    finally:
        if views is not None:
            views.close()


def _explore(options: argparse.Namespace) -> None:
    from torchgraph_explorer.exploring.adapter import open_source
    from torchgraph_explorer.exploring.serving import Page

    page = Page(open_source(options.case), host=options.host, port=options.port, logdir=None)
    page.show(with_browser=not options.no_browser)
    page.wait()


def _info(options: argparse.Namespace) -> None:
    from torchgraph_explorer.run import open_run

    warnings.simplefilter("ignore", TorchgraphWarning)  # the warnings are part of the output
    facts = run_facts(open_run(options.run))
    print(json.dumps(facts, indent=2) if options.json else _as_text(facts))


def _export(options: argparse.Namespace) -> None:
    from torchgraph_explorer.run import open_run
    from torchgraph_explorer.server.export import export_page

    run, *others = [open_run(one) for one in options.runs]
    page = export_page(
        run,
        options.output,
        models=options.model,
        steps=options.steps,
        series=options.series,
        tensors=options.tensors,
        compare=others,
        rules=_own_rules(options),
    )
    print(f"Wrote {options.output}, {len(page):,} bytes.")


def _xray(options: argparse.Namespace) -> None:
    from torchgraph_explorer.run import open_run
    from torchgraph_explorer.server.export import write_whole
    from torchgraph_explorer.xray.picture import XrayMark, xray_svg

    run = open_run(options.run)
    model = run.model(options.model)
    found = () if options.no_findings else model.findings()
    marks = [XrayMark(one.module, one.step, one.severity, one.text) for one in found]
    picture = xray_svg(model, options.statistic, marks=marks, title=f"{run.name}, {model.name}")
    content = picture.encode("utf-8", errors="replace")
    write_whole(Path(options.output), content)
    print(f"Wrote {options.output}, {len(content):,} bytes.")


def _check(options: argparse.Namespace) -> int:
    from torchgraph_explorer.findings.report import as_json, as_markdown, as_text
    from torchgraph_explorer.run import open_run

    rules = _own_rules(options)
    run = open_run(options.run)
    found = {name: run.model(name).findings(rules=rules) for name in options.model or run.models}
    if options.format == "json":
        print(json.dumps(as_json(run.name, found), indent=2))
    else:
        told = as_markdown(run.name, found) if options.format == "markdown" else as_text(found)
        print("\n".join(map(_shown, told.split("\n"))))
    severity = options.fail_on
    return int(severity is not None and any(one.is_at_least(severity) for some in found.values() for one in some))


def _diff(options: argparse.Namespace) -> int:
    from torchgraph_explorer.comparison.matching import parse_rules
    from torchgraph_explorer.comparison.report import as_json, as_text
    from torchgraph_explorer.run import compare

    found = compare(options.run_a, options.run_b, model=options.model, rename=parse_rules("\n".join(options.rename)))
    if options.json:
        print(json.dumps(as_json(found), indent=2))
    else:
        print("\n".join(map(_shown, as_text(found, (options.run_a, options.run_b)).split("\n"))))
    return int(options.fail_on_difference and not found.is_equal)


def run_facts(run: RunRecord) -> dict[str, Any]:
    """What `torchgraph info` prints about a run, as plain values."""
    return {
        "run": run.name,
        "path": run.path,
        "bytes": run.bytes,
        "first_write": run.first_write,
        "last_write": run.last_write,
        "models": [_model_facts(run.model(name)) for name in run.models],
        "warnings": list(run.warnings),
    }


def _model_facts(model: ModelRecord) -> dict[str, Any]:
    steps, known = model.steps, [graph for graph in model.graph_ids.tolist() if graph >= 0]
    graph = model.graphs[known[-1]] if known else model.graphs[-1] if model.graphs else None
    return {
        "model": model.name,
        "class_name": model.session.class_name,
        "steps": len(steps),
        "first_step": int(steps[0]) if len(steps) else None,
        "last_step": int(steps[-1]) if len(steps) else None,
        "series": len(model.series),
        "calls": len(graph.calls) if graph else 0,
        "edges": len(graph.edges) if graph else 0,
        "graphs": len(model.graphs),
        "sessions": len(model.sessions),
        "finished": model.finished is not None,
        "notes": [*model.notes, *(model.finished.notes if model.finished else ())],
    }


def _shown(line: str) -> str:
    """`line` made safe for a terminal: a name in a record may contain control characters, or cannot be encoded."""
    safe = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)
    encoding = sys.stdout.encoding or "utf-8"
    return safe.encode(encoding, errors="backslashreplace").decode(encoding)


def _as_text(facts: dict[str, Any]) -> str:
    lines = [
        f"run          {facts['run']}",
        f"path         {facts['path']}",
        f"size         {facts['bytes']:,} bytes",
        f"first write  {_moment(facts['first_write'])}",
        f"last write   {_moment(facts['last_write'])}",
    ]
    for model in facts["models"]:
        span = f" ({model['first_step']} to {model['last_step']})" if model["steps"] else ""
        lines += [
            "",
            f"model        {model['model']}, a {model['class_name']}",
            f"steps        {model['steps']:,}{span}",
            f"series       {model['series']:,}",
            f"calls        {model['calls']:,}",
            f"edges        {model['edges']:,}",
            f"graphs       {model['graphs']:,}",
            f"state        {'finished' if model['finished'] else 'open, or ended without closing'}",
            *(f"note         {note}" for note in model["notes"]),
        ]
    lines += [f"warning      {warning}" for warning in facts["warnings"]]
    return "\n".join(map(_shown, lines))


def _moment(seconds: float) -> str:
    if not seconds:
        return "not yet"
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):  # a year that cannot be formatted
        return f"{seconds:g} seconds after 1970"


if __name__ == "__main__":
    sys.exit(main())
