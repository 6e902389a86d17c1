"""The one WSGI app over the run reader, for the standalone server and for TensorBoard. See http_api.md."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from torchgraph_explorer.errors import NotFoundError, OptionError, TorchgraphError
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.records import ModuleGraph
from torchgraph_explorer.server.answers import (
    frame_answer,
    graph_answer,
    history_answer,
    layout_answer,
    runs_answer,
    updates_answer,
)
from torchgraph_explorer.server.bundle import bundle_file
from torchgraph_explorer.server.response import BINARY, SAFETY, Response, compressed, json_response, problem
from torchgraph_explorer.server.runs import Runs
from torchgraph_explorer.version import __version__

Environment: TypeAlias = "dict[str, Any]"
App: TypeAlias = "Callable[[Environment, Callable[..., Any]], Iterable[bytes]]"

MOST_SERIES = 512
"""Series in one `api/history`."""

log = logging.getLogger(__name__)


def app(runs: Runs) -> App:
    """The WSGI app that serves `runs` and the viewer."""

    def serve(environment: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        method = environment.get("REQUEST_METHOD", "GET")
        if method in ("GET", "HEAD"):
            response = respond(environment.get("PATH_INFO", "/") or "/", _query(environment), runs)
        else:
            response = problem(405, f"{method} is not allowed; everything here is read with GET.")
        response = compressed(response, environment.get("HTTP_ACCEPT_ENCODING", ""))
        headers = [("Content-Type", response.content_type), ("Content-Length", str(len(response.body)))]
        start_response(f"{response.status} {_reason(response.status)}", [*headers, *response.headers, *SAFETY])
        return [] if method == "HEAD" else [response.body]

    return serve


def respond(path: str, query: Mapping[str, str], runs: Runs) -> Response:
    """Answer one GET. Whatever goes wrong becomes an answer that says so."""
    route = ROUTES.get(path)
    try:
        if route is not None:
            return route(query, runs)
        if path.startswith("/api/"):
            return problem(404, f"There is no route {path!r}. There are {', '.join(ROUTES)}.")
        return bundle_file(path)
    except NotFoundError as missing:
        return problem(404, str(missing))
    except OptionError as wrong:
        return problem(400, str(wrong))
    except TorchgraphError as fault:
        return problem(500, str(fault))
    except Exception:
        log.exception("torchgraph: %s failed", path)
        return problem(500, f"{path} failed; the server's terminal says why.")


def _runs(_query: Mapping[str, str], runs: Runs) -> Response:
    return json_response(runs_answer(runs.logdir, runs.list()))


def _updates(query: Mapping[str, str], runs: Runs) -> Response:
    name = _text(query, "run")
    run = runs.run(name)
    model = run.model(_text(query, "model"))
    held = {part: _whole(query, part) for part in ("epoch", "frames", "series")}
    return json_response(updates_answer(run, model, name=name, **held))


def _graph(query: Mapping[str, str], runs: Runs) -> Response:
    model = _model(query, runs)
    return json_response(graph_answer(model, _graph_of(model, query)))


def _layout(query: Mapping[str, str], runs: Runs) -> Response:
    graph = _graph_of(_model(query, runs), query)
    inside = _whole(query, "inside") if "inside" in query else None
    if inside is not None and not 0 <= inside < len(graph.calls):
        raise NotFoundError(f"Graph {graph.id} has no call {inside}; it has {len(graph.calls)}.")
    return json_response(layout_answer(graph, inside))


def _history(query: Mapping[str, str], runs: Runs) -> Response:
    model = _model(query, runs)
    series = [_as_whole("series", part) for part in _text(query, "series").split(",") if part]
    if len(series) > MOST_SERIES:
        raise OptionError(f"{len(series)} series were asked for at once; at most {MOST_SERIES} can be.")
    return Response(200, BINARY, history_answer(model, series, _whole(query, "from")))


def _frame(query: Mapping[str, str], runs: Runs) -> Response:
    return Response(200, BINARY, frame_answer(_model(query, runs), _whole(query, "frame")))


def _health(_query: Mapping[str, str], runs: Runs) -> Response:
    return json_response({"product": "torchgraph_explorer", "version": __version__, "logdir": runs.logdir})


ROUTES: dict[str, Callable[[Mapping[str, str], Runs], Response]] = {
    "/api/runs": _runs,
    "/api/updates": _updates,
    "/api/graph": _graph,
    "/api/layout": _layout,
    "/api/history": _history,
    "/api/frame": _frame,
    "/api/health": _health,
}


def _model(query: Mapping[str, str], runs: Runs) -> ModelRecord:
    return runs.model(_text(query, "run"), _text(query, "model"))


def _graph_of(model: ModelRecord, query: Mapping[str, str]) -> ModuleGraph:
    number, graphs = _whole(query, "graph"), model.graphs
    if not 0 <= number < len(graphs):
        raise NotFoundError(f"Model {model.name!r} has no graph {number}; it has {len(graphs)}.")
    return graphs[number]


def _query(environment: Environment) -> dict[str, str]:
    parsed = parse_qs(environment.get("QUERY_STRING", ""), keep_blank_values=True)
    return {name: values[-1] for name, values in parsed.items()}


def _text(query: Mapping[str, str], name: str) -> str:
    if name not in query:
        raise OptionError(f"The query has no {name}=. See http_api.md.")
    return query[name]


def _whole(query: Mapping[str, str], name: str) -> int:
    return _as_whole(name, _text(query, name))


def _as_whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{name}={text!r} is no whole number.") from None


@lru_cache(maxsize=64)
def _reason(status: int) -> str:
    return HTTPStatus(status).phrase
