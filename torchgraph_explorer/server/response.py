"""What a route answers, before it is a matter of WSGI."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from typing import Any

JSON = "application/json"
BINARY = "application/octet-stream"

COMPRESSED_FROM = 2048
"""Bytes from which a text answer is compressed for those who take it."""

POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "object-src 'none'; base-uri 'self'; form-action 'none'"
)
"""Content-Security-Policy: nothing from elsewhere, and no inline scripts. Inline styles place the nodes."""

SAFETY = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Content-Security-Policy", POLICY),
)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: its status, type, body, and what other headers it has."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Cache-Control", "no-store"),)


def json_response(value: Any, status: int = 200) -> Response:
    """`value` as JSON, which has no NaN."""
    return Response(status, JSON, json.dumps(value, allow_nan=False, separators=(",", ":")).encode())


def problem(status: int, sentence: str) -> Response:
    """Why there is no other answer."""
    return json_response({"error": sentence}, status)


def compressed(response: Response, accepted: str) -> Response:
    """`response`, compressed if it is worth it and the client accepts it."""
    if "gzip" not in accepted or response.content_type == BINARY or len(response.body) < COMPRESSED_FROM:
        return response
    headers = (*response.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
    return replace(response, body=gzip.compress(response.body, compresslevel=5, mtime=0), headers=headers)
