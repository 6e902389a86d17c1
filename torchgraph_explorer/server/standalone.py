"""The standalone server: the app in a process of its own, on localhost."""

from __future__ import annotations

import argparse
import errno
import json
import secrets
import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import waitress

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.server.guard import LOOPBACK, own_hosts_only, token_only
from torchgraph_explorer.server.routes import app
from torchgraph_explorer.server.runs import Runs

PORTS_TRIED = 50
THREADS = 8


@dataclass(frozen=True, slots=True)
class Server:
    """A server that listens, and answers once `run` is called.

    Attributes:
        url: Where to open it; holds the access token if there is one.
        port: The port it listens on.
    """

    url: str
    port: int
    _waitress: waitress.server.BaseWSGIServer

    def run(self) -> None:
        """Serve until the process ends."""
        self._waitress.run()


def listen(logdir: str, *, host: str, port: int) -> Server:
    """Listen on `host` and on `port`, or the next free one; port 0 takes any.

    Raises:
        OptionError: The address is none of this machine's, or no port near is free.
    """
    sock = _bind(host, port)
    taken = sock.getsockname()[1]
    served = app(Runs(logdir))
    shown = "localhost" if host in LOOPBACK else host
    url = f"http://{f'[{shown}]' if ':' in shown else shown}:{taken}/"
    if _is_loopback(host):
        served = own_hosts_only(served, LOOPBACK | {host.lower()})
    else:
        token = secrets.token_urlsafe(24)
        served = token_only(served, token)
        url = f"{_reachable(url, host)}?token={token}"
    return Server(url, taken, waitress.create_server(served, sockets=[sock], threads=THREADS, ident=None))


def _is_loopback(host: str) -> bool:
    return host.lower() in LOOPBACK or host.startswith("127.")


def _reachable(url: str, host: str) -> str:
    return url.replace(f"//{host}:", f"//{socket.gethostname()}:") if host in ("0.0.0.0", "::") else url


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in range(port, port + PORTS_TRIED) if port else (0,):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host.strip("[]"), candidate))
        except OSError as fault:
            sock.close()
            if fault.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise OptionError(f"Cannot listen on host {host!r}: {fault.strerror}. Pass 127.0.0.1.") from fault
            continue
        except OverflowError:
            sock.close()
            break
        return sock
    raise OptionError(f"No port from {port} to {port + PORTS_TRIED - 1} is free on {host!r}. Pass another port.")


def main(arguments: Sequence[str] | None = None) -> None:
    """What the child process of a training runs: says its address in one JSON line, and ends with its parent."""
    parser = argparse.ArgumentParser(prog="python -m torchgraph_explorer.server")
    parser.add_argument("logdir")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    options = parser.parse_args(arguments)
    try:
        server = listen(options.logdir, host=options.host, port=options.port)
    except OptionError as wrong:
        _tell({"error": str(wrong)})
        sys.exit(2)
    _tell({"url": server.url, "port": server.port})
    threading.Thread(target=server.run, daemon=True).start()
    sys.stdin.buffer.read()  # until the parent closes it, or is gone


def _tell(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
