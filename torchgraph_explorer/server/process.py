"""The live viewer's server: the app in a process of its own, on localhost."""

from __future__ import annotations

import argparse
import errno
import json
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from types import FrameType

from torchgraph_explorer.errors import OptionError, TorchgraphWarning
from torchgraph_explorer.findings.own_rules import OwnRule
from torchgraph_explorer.server.embedding import embeddable_in_notebooks
from torchgraph_explorer.server.guard import LAST_PORT, LOOPBACK, own_hosts_only, token_only
from torchgraph_explorer.server.http_server import BACKLOG, HttpServer
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.own_views import OwnViews
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app

PORTS_TRIED = 50

SECONDS_BETWEEN_SIGNALS = 0.5
"""On Windows, Ctrl-C is delivered only when a wait is over."""

SECONDS_TO_END = 2.0
"""For the event loop to close its connections."""

EVERY_ADDRESS = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that listens, and answers once `run` is called.

    Attributes:
        url: Where to open it; holds the access token if there is one.
        port: The port it listens on.
        is_exposed: Other machines can reach it.
    """

    url: str
    port: int
    is_exposed: bool
    _http: HttpServer

    def run(self) -> None:
        """Serve until the process ends; Ctrl-C ends it without a traceback."""
        warnings.simplefilter("ignore", TorchgraphWarning)  # the viewer shows what is damaged
        logging.getLogger("tornado").setLevel(logging.ERROR)  # not for faults of requests
        # In a thread, so that a signal never interrupts the event loop: it would be taken for a fault of the loop's.
        thread = threading.Thread(target=self._http.run, daemon=True)
        with suppress(KeyboardInterrupt, SystemExit):
            thread.start()
            while thread.is_alive():
                thread.join(SECONDS_BETWEEN_SIGNALS)
        self.close()
        if thread.is_alive():
            thread.join(SECONDS_TO_END)

    def start(self) -> None:
        """Serve in the background until `close` is called or the process ends."""
        logging.getLogger("tornado").setLevel(logging.ERROR)
        threading.Thread(target=self._http.run, name="torchgraph-server", daemon=True).start()

    def close(self) -> None:
        """Listen no more, so that `run` comes back where it was called in another thread."""
        self._http.close()


def listen(
    logdir: str, *, host: str, port: int, rules: Sequence[OwnRule] = (), views: OwnViews | None = None
) -> Server:
    """Listen on `host` and on `port`, or the next free one; port 0 takes any. Serve the runs in `logdir`, and `views`.

    Runs are judged by own `rules`, too.

    On anything but this machine's own addresses, an access token is demanded.

    Raises:
        OptionError: The address is not this machine's, or no port near is free.
    """
    return listen_with(app(Runs(logdir, rules=rules), views=views), host=host, port=port)


def listen_with(served: App, *, host: str, port: int, changes: bool = False) -> Server:
    """Listen as `listen` does, and serve any app; one whose requests `changes` something demands the token everywhere.

    Raises:
        OptionError: See `listen`.
    """
    if not isinstance(host, str):
        raise OptionError(f"host={host!r:.100} is not an address. Pass one of this machine, such as '127.0.0.1'.")
    host = host.strip("[]").lower() or EVERY_ADDRESS[0]
    sock = _bind(host, port)
    taken = sock.getsockname()[1]
    is_exposed, query = host not in LOOPBACK and not host.startswith("127."), ""
    if is_exposed or changes:
        served, query = _with_token(served)
    else:  # a request from a page that resolves its own name to this address would lack the token, too
        served = own_hosts_only(served, LOOPBACK | {f"[{host}]" if ":" in host else host})
    http = HttpServer(embeddable_in_notebooks(served), sock)
    return Server(f"http://{_shown(host)}:{taken}/{query}", taken, is_exposed, http)


def _with_token(served: App) -> tuple[App, str]:
    token = secrets.token_urlsafe(24)
    return token_only(served, token), f"?token={token}"


def _shown(host: str) -> str:
    """The name for `host` in an address to open."""
    if host in LOOPBACK:
        return "localhost"
    name = _own_address() if host in EVERY_ADDRESS else host
    return f"[{name}]" if ":" in name else name


def _own_address() -> str:
    """The address under which other machines most likely reach this one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(
                ("192.0.2.1", 9)
            )  # reserved for documentation (RFC 5737); nothing is sent, the system only chooses a route
        except OSError:
            return socket.gethostname()
        return str(sock.getsockname()[0])


def _bind(host: str, port: int) -> socket.socket:
    """A socket that listens on `port`, or on the next free one."""
    if not isinstance(port, Integral) or not 0 <= port <= LAST_PORT:
        raise OptionError(
            f"port={port!r:.100} is not a port. Choose one from 1 to {LAST_PORT}, or 0 for any free port."
        )
    last = min(port + PORTS_TRIED - 1, LAST_PORT) if port else 0
    for candidate in range(port, last + 1):
        sock = _listening(host, candidate)
        if sock is not None:
            return sock
    raise OptionError(
        f"No port from {port} to {last} is free on host {host!r}. Choose another port, or 0 for any free port."
    )


def _listening(host: str, port: int) -> socket.socket | None:
    """A socket that listens; None if the port is taken or not permitted."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # where it would share the port with another process
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)  # at once: until then another process could bind the port as well
    except OSError as fault:
        sock.close()
        if fault.errno in (errno.EADDRINUSE, errno.EACCES):
            return None
        raise OptionError(
            f"Cannot listen on host {host!r}: {fault.strerror}. Pass an address of this machine, such as 127.0.0.1."
        ) from fault
    return sock


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the child process of a training: print the address as one JSON line, serve, and end with the parent."""
    parser = argparse.ArgumentParser()
    parser.add_argument("logdir")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    options = parser.parse_args(arguments)
    try:
        server = listen(options.logdir, host=options.host, port=options.port)
    except OptionError as wrong:
        _tell({"error": str(wrong)})
        sys.exit(2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the training, which ends us when it ends
    end_in_order_by_sigterm()
    _tell({"url": server.url, "port": server.port, "is_exposed": server.is_exposed})
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # the parent does not read it from now on
    threading.Thread(target=server.run, daemon=True).start()
    sys.stdin.buffer.read()  # until the parent closes it, or is gone
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which it sends as well


def end_in_order_by_sigterm() -> None:
    """Let SIGTERM end this process like a normal exit, which removes its files in the temporary folder."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt the removal
        sys.exit()

    signal.signal(signal.SIGTERM, end)


def _tell(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
