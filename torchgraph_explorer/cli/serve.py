"""`torchgraph serve`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from torchgraph_explorer.browser import browse, over_ssh
from torchgraph_explorer.cli.options import add_address, add_rules, given, number, own_rules
from torchgraph_explorer.cli.printing import shown
from torchgraph_explorer.errors import NotFoundError


def add_command(commands: Any) -> None:
    """Register the command."""
    description = "Show the runs in a folder, even while a training is writing there."
    parser = commands.add_parser("serve", help=description, description=description)
    parser.add_argument(
        "logdir",
        type=given,
        nargs="?",
        default="runs",
        metavar="LOGDIR",
        help="folder of runs, folder of one run, or URL that fsspec can read (default: %(default)s)",
    )
    add_rules(parser)
    parser.add_argument(
        "--view",
        type=given,
        action="append",
        default=[],
        metavar="FILE.py",
        help="a Python file whose function `view` draws what is chosen in the viewer; FILE.py:FUNCTION for another "
        "function; can be repeated",
    )
    parser.add_argument(
        "--view-seconds",
        type=number,
        default=20.0,
        metavar="SECONDS",
        help="how many seconds such a function may take (default: %(default)g)",
    )
    add_address(parser, host=True)
    parser.set_defaults(act=_serve)


def _serve(options: argparse.Namespace) -> None:
    from torchgraph_explorer.own_views.views import Views
    from torchgraph_explorer.record.remote import is_url, require_store
    from torchgraph_explorer.server.process import end_in_order_by_sigterm, listen

    if not is_url(options.logdir) and not Path(options.logdir).is_dir():
        raise NotFoundError(
            f"{options.logdir} is not a folder. Pass the one that watch(logdir=...) writes to; by default it is 'runs'."
        )
    if is_url(options.logdir):
        require_store(options.logdir)
    views = Views(options.view, seconds=options.view_seconds) if options.view else None
    server = listen(options.logdir, host=options.host, port=options.port, rules=own_rules(options), views=views)
    if options.port not in (0, server.port):
        print(f"Port {options.port} is taken; using {server.port}.")
    print(shown(f"Showing {options.logdir} at {server.url}"))
    if server.is_exposed:
        print("Other machines can reach this. Everyone who has the address above, with its token, can see the runs.")
    elif tunnel := over_ssh(server.port):
        print(tunnel)
    print("Press Ctrl-C to end.", flush=True)
    if not options.no_browser and sys.stdout.isatty():
        browse(server.url)
    end_in_order_by_sigterm()
    try:
        server.run()
    finally:
        if views is not None:
            views.close()
