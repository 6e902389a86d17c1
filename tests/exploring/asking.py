"""A page that asks for what a browser would ask for."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import numpy as np

from torchgraph_explorer.exploring.serving import Page

SECONDS = 60.0


class Client:
    """A browser at a page, with its cookie."""

    def __init__(self, page: Page) -> None:
        self.base = page.url.partition("?")[0]
        self._open = build_opener(HTTPCookieProcessor(CookieJar())).open
        with self._open(page.url, timeout=SECONDS) as answer:
            assert answer.status == 200

    def get(self, path: str, **query: object) -> bytes:
        with self._open(f"{self.base}api/flow/{path}?{urlencode(query)}", timeout=SECONDS) as answer:
            body: bytes = answer.read()
        return body

    def post(self, path: str, headers: dict[str, str] | None = None, **values: object) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", **(headers or {})}
        request = Request(f"{self.base}api/flow/{path}", data=json.dumps(values).encode(), headers=headers)
        try:
            with self._open(request, timeout=SECONDS) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as fault:
            return fault.code, json.loads(fault.read())["error"]

    def state(self, until: Callable[[Any], bool] = lambda state: True) -> Any:
        """The state, once nothing is computed any more and `until` holds."""
        known = -1
        while True:
            state = json.loads(self.get("state", known=known))
            if state["isCurrent"] and state["chain"] and until(state):
                return state
            known = state["version"]

    def array(self, name: str, quantity: str, **query: object) -> np.ndarray[Any, Any]:
        """The maps of a tensor."""
        return unpacked(self.get("tensor", name=name, quantity=quantity, **query))[1]["values"]

    def links(self, pair: int, most: int = 1000) -> tuple[Any, dict[str, np.ndarray[Any, Any]]]:
        return unpacked(self.get("links", pair=pair, most=most))


def unpacked(body: bytes) -> tuple[Any, dict[str, np.ndarray[Any, Any]]]:
    """The meta and the arrays of a binary answer."""
    size = int.from_bytes(body[:4], "little")
    head, start = json.loads(body[4 : 4 + size]), -(-(4 + size) // 8) * 8
    arrays = {}
    for one in head["arrays"]:
        count = int(np.prod(one["shape"]))
        values = np.frombuffer(body, one["dtype"], count, start + one["offset"])
        arrays[one["name"]] = values.reshape(one["shape"])
    return head["meta"], arrays


def is_complete(state: Any) -> bool:
    """Whether all links are there, or cannot be."""
    names = [f"links{i}" for i in range(len(state["chain"]) - 1)]
    return all(name in state["parts"] for name in ("tensors", "selection", *names))
