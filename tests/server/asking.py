"""Asks a WSGI app, as a server would, and takes its answer apart. Both are checked to keep to WSGI."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import quote, urlencode
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

from torchgraph_explorer.server.response import App


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, headers by name, and the body as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, which must be JSON without NaN and infinity."""
        packed = self.headers.get("Content-Encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if packed else self.body, parse_constant=_refuse)


def ask(app: App, path: str, query: dict[str, Any] | str = "", *, method: str = "GET", **environment: str) -> Answer:
    """The answer to a request; `path` is not yet percent-encoded."""
    said: list[Any] = []
    asked: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query if isinstance(query, str) else urlencode(query, quote_via=quote),
        "SCRIPT_NAME": "",
        "wsgi.input": BytesIO(),
        **environment,
    }
    setup_testing_defaults(asked)

    def start(status: str, headers: list[tuple[str, str]], _fault: object = None) -> Any:
        said.extend((int(status.split(maxsplit=1)[0]), dict(headers)))

    answered: Iterable[bytes] = validator(app)(asked, start)
    body = b"".join(answered)
    answered.close()  # type: ignore[attr-defined]
    return Answer(said[0], said[1], body)


def unpack(body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The meta data and the arrays of a binary answer, by http_api.md."""
    import numpy as np

    size = int.from_bytes(body[:4], "little")
    head = json.loads(body[4 : 4 + size])
    base = -(-(4 + size) // 8) * 8
    arrays = {
        one["name"]: np.frombuffer(
            body, np.dtype(one["dtype"]).newbyteorder("<"), int(np.prod(one["shape"])), base + one["offset"]
        ).reshape(one["shape"])
        for one in head["arrays"]
    }
    return head["meta"], arrays


def _refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is not JSON")
