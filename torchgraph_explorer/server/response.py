"""The answer of a route, and how it is sent by WSGI."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, TypeAlias

Environment: TypeAlias = "dict[str, Any]"
StartResponse: TypeAlias = "Callable[..., Any]"
App: TypeAlias = "Callable[[Environment, StartResponse], Iterable[bytes]]"

JSON = "application/json"
BINARY = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"

COMPRESSED = ("text/", JSON, "image/svg+xml")
"""Prefixes of the content types that are worth compressing; packed numbers hardly shrink."""

COMPRESSED_FROM = 2048
"""Bytes from which a body is compressed, if the client accepts that."""

POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "object-src 'none'; base-uri 'self'; form-action 'none'"
)
"""Content-Security-Policy: nothing from elsewhere, and no inline scripts. Inline styles place the nodes."""

FRAME_ANCESTORS = "torchgraph.frame_ancestors"
"""In the WSGI environment: the pages that may show an answer in an iframe, as in the policy; "" allows all."""

OWN_PAGES = "'self'"
"""The value if the environment has none."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: its status, content type, body, further headers, and its Content-Security-Policy."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Cache-Control", "no-store"),)
    policy: str = POLICY


def json_response(value: Any, status: int = 200) -> Response:
    """`value` as JSON, which has no NaN."""
    return Response(status, JSON, json.dumps(value, allow_nan=False, separators=(",", ":")).encode())


def problem(status: int, sentence: str) -> Response:
    """An error, as JSON with a sentence."""
    return json_response({"error": sentence}, status)


def redirect(status: int, location: str, *headers: tuple[str, str]) -> Response:
    """A redirect to `location`, which should be relative: only the client knows the prefix of our path."""
    return Response(status, TEXT, b"", (("Location", location), ("Cache-Control", "no-store"), *headers))


def send(response: Response, environment: Environment, start_response: StartResponse) -> list[bytes]:
    """Send an answer by WSGI; HEAD gets the headers of GET without the body."""
    response = _compressed(response, environment.get("HTTP_ACCEPT_ENCODING", ""))
    headers = [("Content-Type", response.content_type), ("Content-Length", str(len(response.body)))]
    status = f"{response.status} {HTTPStatus(response.status).phrase}"
    safety = _safety(response.policy, environment.get(FRAME_ANCESTORS, OWN_PAGES))
    start_response(status, [*headers, *response.headers, *safety])
    return [] if environment.get("REQUEST_METHOD") == "HEAD" else [response.body]


def _safety(policy: str, ancestors: str) -> list[tuple[str, str]]:
    policy = f"{policy}; frame-ancestors {ancestors}" if ancestors else policy
    headers = [
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Content-Security-Policy", policy),
    ]
    if ancestors == OWN_PAGES:  # the only value that it can express; browsers that know the policy ignore it
        headers.append(("X-Frame-Options", "SAMEORIGIN"))
    return headers


def _compressed(response: Response, accepted: str) -> Response:
    """`response`, compressed if that is worth it and the client accepts it."""
    if not response.content_type.startswith(COMPRESSED) or len(response.body) < COMPRESSED_FROM:
        return response
    headers = (*response.headers, ("Vary", "Accept-Encoding"))
    if "gzip" not in accepted:
        return replace(response, headers=headers)
    body = gzip.compress(response.body, compresslevel=5, mtime=0)
    return replace(response, body=body, headers=(*headers, ("Content-Encoding", "gzip")))
