"""Who may ask: requests for our own host name only, and with an access token where others could reach us."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from torchgraph_explorer.server.response import SAFETY, Response, problem
from torchgraph_explorer.server.routes import App, Environment

LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]", "::1"))
COOKIE = "torchgraph_token"


def own_hosts_only(inner: App, hosts: frozenset[str]) -> App:
    """Refuse a request whose Host header names another host.

    A page elsewhere may point a name of its own at 127.0.0.1 and so read what is served there (DNS rebinding); its
    requests carry that name.
    """

    def serve(environment: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        host = _host_name(environment.get("HTTP_HOST", ""))
        if host.lower() in hosts:
            return inner(environment, start_response)
        known = ", ".join(sorted(hosts))
        return _send(problem(403, f"Host {host!r} is not one of this server's names: {known}."), start_response)

    return serve


def token_only(inner: App, token: str) -> App:
    """Refuse a request without the access token, which comes as `?token=` once and as a cookie from then on."""

    def serve(environment: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        asked = parse_qs(environment.get("QUERY_STRING", "")).get("token", [""])[-1]
        if _same(asked, token):
            cookie = f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/"
            here = Response(303, "text/plain; charset=utf-8", b"", (("Location", "./"), ("Set-Cookie", cookie)))
            return _send(here, start_response)
        cookies = SimpleCookie(environment.get("HTTP_COOKIE", ""))
        if COOKIE in cookies and _same(cookies[COOKIE].value, token):
            return inner(environment, start_response)
        said = "This server wants its access token: open the address that it printed in its terminal."
        return _send(problem(401, said), start_response)

    return serve


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _host_name(host: str) -> str:
    """`host:port` without the port; an IPv6 address keeps its brackets."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _send(response: Response, start_response: Callable[..., Any]) -> Iterable[bytes]:
    headers = [("Content-Type", response.content_type), ("Content-Length", str(len(response.body)))]
    reasons = {303: "See Other", 401: "Unauthorized", 403: "Forbidden"}
    start_response(f"{response.status} {reasons[response.status]}", [*headers, *response.headers, *SAFETY])
    return [response.body]
