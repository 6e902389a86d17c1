"""The routes below `api/flow/`: gradient flow in a model of this process, behind an interface. See http_api.md."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qs, urlsplit

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError, OptionError, TorchgraphError
from torchgraph_explorer.server.pack import pack
from torchgraph_explorer.server.response import BINARY, JSON, Environment, Response, json_response, problem
from torchgraph_explorer.server.selection import largest

ROUTES = "/api/flow/"
"""What the paths begin with."""

MOST_WAITING = 4
"""Requests that may wait for a new state at a time; others are answered at once. There are 8 threads."""

SECONDS = 10.0
"""How long a request waits for a new state."""

MOST_DRAWN = 2**22
"""Elements in one answer."""

MOST_BODY = 2**16
"""Bytes of a request's body."""

KEY = "HTTP_X_TORCHGRAPH_KEY"
"""The header of the key of the state, in a WSGI environment."""

Array: TypeAlias = "npt.NDArray[Any]"


@dataclass(frozen=True)
class Links:
    """Contributions between the groups of two tensors.

    Attributes:
        flows: `[groups of a, groups of b]`.
        past: What each group of the first gets past the second.
    """

    flows: Array
    past: Array


class FlowSource(Protocol):
    """What is explored. For many threads; nothing but `change` changes anything, and nothing computes."""

    def state(self, *, known: int, seconds: float) -> Mapping[str, object]:
        """Everything but numbers, as JSON; if its version is `known`, the next state, if it comes within `seconds`."""

    def tensor(self, name: str, quantity: str, when: str) -> Array:
        """The numbers of a tensor of the chain.

        Raises:
            TorchgraphError: They are not there, or not yet.
        """

    def links(self, pair: int) -> Links:
        """The links between tensor `pair` of the chain and the next one.

        Raises:
            TorchgraphError: They are not there, or not yet.
        """

    def words(self, text: str) -> Sequence[tuple[int, str]]:
        """Tokens whose words are like `text`, with their words, the most like it first."""

    def change(self, what: str, arguments: Mapping[str, Any]) -> Mapping[str, object]:
        """Change what is explored; what follows from it is computed in another thread.

        Raises:
            TorchgraphError: That is not possible.
        """


class FlowRoutes:
    """Answers requests about one source."""

    def __init__(self, source: FlowSource) -> None:
        """Answer about `source`."""
        self._source = source
        self._key = secrets.token_urlsafe(16)
        self._waiting = threading.Semaphore(MOST_WAITING)

    def answer(self, environment: Environment) -> Response:
        """Answer one request. Every error becomes an answer that explains it."""
        route = environment.get("PATH_INFO", "").removeprefix(ROUTES)
        try:
            if environment.get("REQUEST_METHOD") == "POST":
                return self._post(route, environment)
            query = {key: values[-1] for key, values in parse_qs(environment.get("QUERY_STRING", "")).items()}
            return self._get(route, query)
        except NotFoundError as fault:
            if environment.get("REQUEST_METHOD") == "POST" or route not in ("tensor", "links"):
                return problem(404, str(fault))
            return Response(200, BINARY, pack({"fault": str(fault)}, {}))  # a newer state may have no such numbers
        except TorchgraphError as fault:
            return problem(400, str(fault))
        except (KeyError, TypeError, ValueError) as fault:
            return problem(400, f"{route} cannot be answered ({type(fault).__name__}: {fault}). See http_api.md.")

    def _get(self, route: str, query: Mapping[str, str]) -> Response:
        match route:
            case "state":
                return json_response(self._state(int(query.get("known", -1))))
            case "tensor":
                array = self._source.tensor(query["name"], query["quantity"], query.get("when", "now"))
                return Response(200, BINARY, tensor_answer(array, query.get("lead", "")))
            case "links":
                return Response(200, BINARY, links_answer(self._source.links(int(query["pair"])), int(query["most"])))
            case "words":
                return json_response({"found": self._source.words(query["like"])})
            case _:
                return problem(404, f"There is no route {route!r}. Routes are state, tensor, links and words.")

    def _state(self, known: int) -> Mapping[str, object]:
        if not self._waiting.acquire(blocking=False):
            return {**self._source.state(known=-1, seconds=0.0), "key": self._key}
        try:
            return {**self._source.state(known=known, seconds=SECONDS), "key": self._key}
        finally:
            self._waiting.release()

    def _post(self, route: str, environment: Environment) -> Response:
        """A change. The page's own requests are JSON, which pages of other origins may not send.

        Behind a proxy, the page's origin is not the host that this server is asked for. So a page also sends the key of
        its state, which pages of other origins cannot read.
        """
        if environment.get("CONTENT_TYPE", "").partition(";")[0].strip() != JSON:
            return problem(415, f"Changes are sent as {JSON}.")
        if not (_is_of_this_host(environment) or self._has_key(environment)):
            return problem(403, "Only pages of this server may change anything.")
        body = environment["wsgi.input"].read(MOST_BODY + 1)
        if len(body) > MOST_BODY:
            return problem(413, f"A change has at most {MOST_BODY} bytes.")
        arguments = json.loads(body or b"{}")
        if not isinstance(arguments, dict):
            raise TypeError("the body is no JSON object")
        return json_response(self._source.change(route, arguments))

    def _has_key(self, environment: Environment) -> bool:
        return hmac.compare_digest(environment.get(KEY, "").encode(), self._key.encode())


def _is_of_this_host(environment: Environment) -> bool:
    """Whether no page asks, or one whose origin is this server."""
    origin = environment.get("HTTP_ORIGIN")
    if origin is None:
        return True
    try:
        return bool(urlsplit(origin).netloc.lower() == environment.get("HTTP_HOST", "").lower())
    except ValueError:  # a bracket that does not close
        return False


def drawn(array: Array) -> npt.NDArray[np.float32]:
    """Its numbers as they are drawn: the magnitudes of complex ones; what float32 does not hold is infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(array) if np.iscomplexobj(array) else array, dtype=np.float32)


def tensor_answer(array: Array, lead: str) -> bytes:
    """The maps of a tensor, `[maps, rows, columns]`, for `lead`: an index for each dimension but the last two.

    The last index may be `all`.
    """
    whole = drawn(array)
    maps = whole.reshape((1,) * (2 - whole.ndim) + whole.shape) if whole.ndim < 2 else whole
    index = leading(lead, maps.shape[:-2])
    shown = maps[index]
    if shown.size > MOST_DRAWN:
        raise OptionError(f"{shown.size:,} elements are too many for one drawing; at most {MOST_DRAWN:,} are sent.")
    finite = whole[np.isfinite(whole)]
    meta = {
        "shape": list(array.shape),
        "low": float(finite.min()) if finite.size else 0.0,
        "high": float(finite.max()) if finite.size else 0.0,
        "sum": float(finite.sum(dtype=np.float64)),
        "nonfinite": int(whole.size - finite.size),
    }
    return pack(meta, {"values": shown.reshape(-1, *maps.shape[-2:])})


def leading(text: str, shape: Sequence[int]) -> tuple[int | slice, ...]:
    """The index that `text` is, for the leading dimensions `shape`; 0 where nothing is given."""
    parts = [*text.split(",")] if text else []
    parts += ["0"] * (len(shape) - len(parts))
    index: list[int | slice] = []
    for i, size in enumerate(shape):
        if parts[i] == "all" and i == len(shape) - 1:
            index.append(slice(None))
        elif parts[i].isdecimal() and int(parts[i]) < size:
            index.append(int(parts[i]))
        else:
            raise OptionError(f"lead={text[:40]!r} is not an index into {list(shape)}.")
    return tuple(index)


def links_answer(links: Links, most: int) -> bytes:
    """The strongest `most` links; `meta.total` is the sum of |C| over all of them, and `meta.count` their number."""
    flows = drawn(links.flows)
    size = np.abs(flows).ravel()
    size[~np.isfinite(size)] = 0
    count = min(max(most, 1), 4096, size.size)
    strongest = largest(size, count)
    strongest = strongest[size[strongest] > 0]
    source, target = np.divmod(strongest, flows.shape[1])
    meta = {
        "total": float(size.sum(dtype=np.float64)),
        "count": int((size > 0).sum()),
        "groups": list(flows.shape),
        "nonfinite": int((~np.isfinite(flows)).sum()),
    }
    arrays = {
        "source": source.astype(np.uint32),
        "target": target.astype(np.uint32),
        "value": flows.ravel()[strongest],
        "past": drawn(links.past),
    }
    return pack(meta, arrays)
