"""Refuses requests for other host names, and those without the access token if other machines can reach the server.

Why not werkzeug, for this, the routes and the redirects: the base package would depend on it, which otherwise only
TensorBoard brings. Routing here is one lookup in a table of exact paths (`routes.ROUTES`). `host_is_trusted` (3.1) cuts
each trusted name at its first colon, so it accepts no IPv6 address, and `[::1]` is one of ours. It has no tokens, and
its routing redirects to absolute addresses; ours are relative, since only the client knows the prefix of a proxy.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable
from urllib.parse import parse_qs, parse_qsl, quote, urlencode

from torchgraph_explorer.server.response import App, Environment, StartResponse, problem, redirect, send

LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]", "::1"))

IN_COLAB = "COLAB_RELEASE_TAG"
"""An environment variable of every process in Google Colab."""

COLAB_PROXIES = (".googleusercontent.com", ".prod.colab.dev")
"""What the names end with by which Colab's proxy makes a port of the machine reachable, for its user alone."""

LAST_PORT = 65535

FOLDER = "token-"
"""What the folder that holds the access token begins with."""

EMBEDDED = ("iframe", "frame", "embed", "object")
"""What `Sec-Fetch-Dest` says of a page within another page."""

_HOST = re.compile(r"(?P<name>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[1-9][0-9]{0,4}))?")
"""A Host header: a name or address, and a port. Stricter than RFC 3986: no percent-encoding, zone, or empty port."""


def own_hosts_only(inner: App, hosts: frozenset[str]) -> App:
    """Refuse a request whose Host header names another host.

    A page elsewhere may resolve its own name to 127.0.0.1 and read what is served there (DNS rebinding); its requests
    have that name. Each of `hosts` is accepted, in upper or lower case, with any port: a tunnel may use another port
    than this server. In Google Colab, the names of its proxy are, too: a browser's 127.0.0.1 is another machine there.
    """
    proxies = COLAB_PROXIES if IN_COLAB in os.environ else ()

    def serve(environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        host = environment.get("HTTP_HOST", "")
        name = host_name(host)
        if name in hosts or (name is not None and name.endswith(proxies)):
            return inner(environment, start_response)
        message = (
            f"Host {host[:80]!r} is not one of this server's names: {', '.join(sorted(hosts))}. Open it by one of "
            f"these, or serve with --host and the access token that comes with it."
        )
        return send(problem(403, message), environment, start_response)

    return serve


def token_only(inner: App, token: str) -> App:
    """Refuse a request without the access token, which comes as `?token=` once and as a cookie from then on.

    A page in an iframe of another site gets no cookies, as in the notebooks of VS Code and Colab. There the token
    becomes the first folder of its path, below which are all addresses that the page asks for: they are relative.
    """
    # Cookies are shared by all ports of a host, so other servers' tokens need other names.
    name = f"torchgraph_{hashlib.sha256(token.encode()).hexdigest()[:12]}"
    cookie = ("Set-Cookie", f"{name}={token}; HttpOnly; SameSite=Strict; Path=/")

    def serve(environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        folder, rest = _first_folder(environment)
        if _same(folder, f"{FOLDER}{token}"):
            root = f"{environment.get('SCRIPT_NAME', '')}/{folder}"
            return inner({**environment, "SCRIPT_NAME": root, "PATH_INFO": rest}, start_response)
        given = parse_qs(environment.get("QUERY_STRING", "")).get("token", [])
        if any(_same(one, token) for one in given):
            if environment.get("PATH_INFO") == "/" and environment.get("HTTP_SEC_FETCH_DEST") in EMBEDDED:
                return send(redirect(303, _with_folder(environment, token)), environment, start_response)
            return send(redirect(303, _without_token(environment), cookie), environment, start_response)
        cookies = environment.get("HTTP_COOKIE", "").split(";")
        if any(_same(one.strip(), f"{name}={token}") for one in cookies):
            return inner(environment, start_response)
        message = "This server wants its access token: open the address that it printed in its terminal."
        return send(problem(401, message), environment, start_response)

    return serve


def _first_folder(environment: Environment) -> tuple[str, str]:
    """The first folder of the path, and what comes after it, with its slash."""
    folder, slash, rest = str(environment.get("PATH_INFO", "")).removeprefix("/").partition("/")
    return folder, slash + rest


def _with_folder(environment: Environment, token: str) -> str:
    """The address of a page at the root, relative to its folder, below the folder of the token."""
    return f"./{FOLDER}{token}/{_query(environment)}"


def _without_token(environment: Environment) -> str:
    """The address of the request, relative to its folder, without the token."""
    path = environment.get("SCRIPT_NAME", "") + environment.get("PATH_INFO", "")
    return f"./{quote(path.rpartition('/')[2].encode('latin-1'))}{_query(environment)}"


def _query(environment: Environment) -> str:
    """The query of the request without the token."""
    query = [(name, value) for name, value in parse_qsl(environment.get("QUERY_STRING", "")) if name != "token"]
    return f"{'?' if query else ''}{urlencode(query)}"


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def host_name(header: str) -> str | None:
    """The name in a Host header, in lower case, an IPv6 address in brackets; None if the header is malformed."""
    match = _HOST.fullmatch(header)
    if match is None or int(match["port"] or 1) > LAST_PORT:
        return None
    return match["name"].lower()
