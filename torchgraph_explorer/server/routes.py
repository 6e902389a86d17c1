"""The WSGI app over the record, for the live viewer and for TensorBoard. See http_api.md."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, get_args
from urllib.parse import parse_qs, quote

from torchgraph_explorer.errors import NotFoundError, OptionError, RecordError, TorchgraphError
from torchgraph_explorer.findings.cooccurrence import Condition
from torchgraph_explorer.findings.measures import MEASURES
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import Kind, ModuleGraph, Role, Series
from torchgraph_explorer.server.answers import (
    MOST_NEWS,
    ClientState,
    frame_answer,
    graph_answer,
    layout_answer,
    plain,
    require_drawable,
    runs_answer,
    updates_answer,
)
from torchgraph_explorer.server.bundle import bundle_file
from torchgraph_explorer.server.calls import calls_answer
from torchgraph_explorer.server.changes import changes_answer, conditional_answer, cooccurrences_answer, related_answer
from torchgraph_explorer.server.explanations import explanation_answer
from torchgraph_explorer.server.flow import ROUTES as FLOW
from torchgraph_explorer.server.flow import FlowRoutes, FlowSource
from torchgraph_explorer.server.histories import WantedHistory, history_answer
from torchgraph_explorer.server.open_runs import OpenRun, RunSource
from torchgraph_explorer.server.own_views import OwnViews, page_response
from torchgraph_explorer.server.response import (
    BINARY,
    App,
    Environment,
    Response,
    StartResponse,
    json_response,
    problem,
    redirect,
    send,
)
from torchgraph_explorer.server.scalars import WantedScalars, scalars_answer
from torchgraph_explorer.server.selection import MOST_ELEMENTS
from torchgraph_explorer.server.tensors import (
    PARTS,
    WHAT,
    WantedTensor,
    line_answer,
    tensor_answer,
    tensor_graph_answer,
    tensors_answer,
)
from torchgraph_explorer.server.xray import WantedXray, xray_answer
from torchgraph_explorer.version import __version__

MOST_SERIES = 512
"""Series in one request of `api/history`, and scalars in one of `api/scalars`, at most."""

LEAST_BINS = 64
"""The smallest `most` in `api/history` and `api/scalars`."""

_STATUSES = ((NotFoundError, 404), (OptionError, 400), (RecordError, 422))
"""The status for errors that are not faults of the server."""

WordT = TypeVar("WordT", bound=str)

Route: TypeAlias = Callable[[Mapping[str, str], RunSource], Response]

log = logging.getLogger(__name__)


def app(runs: RunSource, flow: FlowSource | None = None, views: OwnViews | None = None) -> App:
    """The WSGI app that serves `runs` and the viewer.

    Args:
        runs: The runs.
        flow: A model in this process, if there is one.
        views: Views of the user's own, if there are any.
    """
    flow_routes = None if flow is None else FlowRoutes(flow)
    routes = _routes(flow, views)

    def serve(environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        if flow_routes is not None and environment.get("PATH_INFO", "").startswith(FLOW):
            return send(flow_routes.answer(environment), environment, start_response)
        return send(_answer(environment, runs, routes), environment, start_response)

    return serve


def _routes(flow: FlowSource | None, views: OwnViews | None) -> Mapping[str, Route]:
    """`ROUTES`, and those of what is beside the runs."""
    if flow is None and views is None:
        return ROUTES

    def list_runs(_query: Mapping[str, str], runs: RunSource) -> Response:
        beside: dict[str, object] = {} if flow is None else {"flow": True}
        if views is not None:
            beside["views"] = plain(views.infos())
        return json_response({**runs_answer(runs.logdir, runs.list()), **beside})

    def view(query: Mapping[str, str], runs: RunSource) -> Response:
        assert views is not None
        page = views.page(_text(query, "view"), _asked_of_view(query, runs), is_fresh=query.get("fresh") == "1")
        return page_response(page)

    return {**ROUTES, "/api/runs": list_runs, **({} if views is None else {"/api/view": view})}


def _asked_of_view(query: Mapping[str, str], runs: RunSource) -> dict[str, Any]:
    """What is chosen in the viewer, as `own_views.selection` reads it."""
    opened, model = _open(query, runs)
    wanted = _wanted_tensor(query) if "role" in query else None
    sample = query.get("sample", "all")
    return {
        "path": opened.run.path,
        "run": _text(query, "run"),
        "model": model.name,
        "optimizer": model.optimizer,
        "step": _whole(query, "step") if "step" in query else None,
        "module": query.get("module"),
        "series": None if wanted is None else wanted.series.key,
        "loss": query.get("loss", ""),
        "sample": _whole(query, "sample") if sample.isdecimal() else sample,
        "index": [*_places(query["index"])] if "index" in query else None,
        "rank": _whole(query, "rank") if "rank" in query else None,
        "theme": _one_of(query, "theme", ("light", "dark"), default="light"),
    }


def _places(text: str) -> Iterator[int]:
    """An index, which may have the same number twice."""
    return (_as_whole("index", part) for part in text.split(",") if part)


def _answer(environment: Environment, runs: RunSource, routes: Mapping[str, Route]) -> Response:
    method, path = environment.get("REQUEST_METHOD", "GET"), environment.get("PATH_INFO", "")
    if method not in ("GET", "HEAD"):
        answer = problem(405, f"{method} is not allowed; everything here is read with GET.")
        return replace(answer, headers=(*answer.headers, ("Allow", "GET, HEAD")))
    if not path:  # addresses in the page are relative to its folder
        return redirect(308, f"./{quote(environment.get('SCRIPT_NAME', '').rpartition('/')[2].encode('latin-1'))}/")
    return respond(path, _query(environment), runs, routes=routes)


def respond(
    path: str, query: Mapping[str, str], runs: RunSource, *, routes: Mapping[str, Route] | None = None
) -> Response:
    """Answer one GET by `routes`, or by `ROUTES`. Every error becomes an answer that explains it."""
    try:
        if path.startswith("/api/"):
            return (routes or ROUTES).get(path, _no_route)(query, runs)
        return bundle_file(path)
    except TorchgraphError as fault:
        status = next((status for kind, status in _STATUSES if isinstance(fault, kind)), 500)
        return problem(status, str(fault))
    except Exception as fault:
        log.exception("torchgraph: %s failed", path)
        return problem(500, f"{path} failed, which is a fault of torchgraph_explorer: {type(fault).__name__}: {fault}")


def _runs(_query: Mapping[str, str], runs: RunSource) -> Response:
    return json_response(runs_answer(runs.logdir, runs.list()))


def _updates(query: Mapping[str, str], runs: RunSource) -> Response:
    opened, model = _open(query, runs)
    epoch = opened.epoch(model)
    client = ClientState(_whole(query, "epoch", least=-1), _whole(query, "frames"), _whole(query, "series"))
    return json_response(updates_answer(opened.run, model, epoch=epoch, client=client, most=MOST_NEWS))


def _graph(query: Mapping[str, str], runs: RunSource) -> Response:
    _, model = _open(query, runs)
    return json_response(graph_answer(model, _graph_of(model, query)))


def _layout(query: Mapping[str, str], runs: RunSource) -> Response:
    graph = _graph_of(_open(query, runs)[1], query)
    inside = _whole(query, "inside") if "inside" in query else None
    if inside is not None and inside >= len(graph.calls):
        raise NotFoundError(f"Graph {graph.id} has no call {inside}; it has {len(graph.calls)}.")
    stacked = _numbers(query, "stack") if "stack" in query else ()
    return json_response(layout_answer(graph, inside, folds="single" not in query, stacked=stacked))


def _history(query: Mapping[str, str], runs: RunSource) -> Response:
    opened, model = _open(query, runs)
    wanted = WantedHistory(
        series=_numbers(query, "series"),
        first_frame=_whole(query, "from"),
        stop_frame=_whole(query, "to") if "to" in query else None,
        most=_whole(query, "most", least=LEAST_BINS) if "most" in query else None,
        unit=_whole(query, "unit") if "unit" in query else 0,
    )
    return Response(200, BINARY, history_answer(opened, model, wanted))


def _frame(query: Mapping[str, str], runs: RunSource) -> Response:
    opened, model = _open(query, runs)
    return Response(200, BINARY, frame_answer(model, _whole(query, "step"), epoch=opened.epoch(model)))


def _nonfinite(query: Mapping[str, str], runs: RunSource) -> Response:
    opened, model = _open(query, runs)
    client = _whole(query, "epoch", least=-1), _whole(query, "frames")
    return json_response(opened.nonfinite.answer(opened.run, model, epoch=opened.epoch(model), client=client))


def _findings(query: Mapping[str, str], runs: RunSource) -> Response:
    opened = runs.open(_text(query, "run"))
    model = opened.run.model(_text(query, "model"))  # at the steps of all optimizers, since some rules compare them
    return json_response(opened.findings.answer(model, epoch=opened.epoch(model), client=query.get("version", "")))


def _explanation(query: Mapping[str, str], _runs: RunSource) -> Response:
    return json_response(explanation_answer(_text(query, "kind")))


def _xray(query: Mapping[str, str], runs: RunSource) -> Response:
    opened, model = _open(query, runs)
    epoch = opened.epoch(model)
    wanted = WantedXray(
        statistic=query.get("statistic") or None,
        first_step=_whole(query, "from") if "from" in query else 0,
        last_step=_whole(query, "to") if "to" in query else None,
        most=_whole(query, "most", least=LEAST_BINS),
        version=query.get("version", ""),
    )
    return Response(200, BINARY, xray_answer(model, wanted, reader=opened.cells.of(model), epoch=epoch))


def _compare(query: Mapping[str, str], runs: RunSource) -> Response:
    opened, model = _open(query, runs)
    other_name = query.get("other_model", model.name)
    other_opened, other = _open({"run": _text(query, "other_run"), "model": other_name}, runs)
    key = (model.name, model.optimizer, opened.epoch(model), other.name, other_opened.epoch(other))
    return json_response(opened.comparisons.answer(key, (model, other), renames=query.get("rename", "")))


def _changes(query: Mapping[str, str], runs: RunSource) -> Response:
    _, model = _open(query, runs)
    since = _whole(query, "since") if "since" in query else None
    return json_response(changes_answer(model, _whole(query, "step"), since))


def _related(query: Mapping[str, str], runs: RunSource) -> Response:
    opened, model = _open(query, runs)
    if "from" in query:
        first, last = _whole(query, "from"), _whole(query, "to")
        return json_response(cooccurrences_answer(model, first, last, findings=opened.findings.known(model.name)))
    target = query["scalar"] if "scalar" in query else _one_series(query, model)
    above, below = (_limit(query, name) for name in ("above", "below"))
    if above is None and below is None:
        return json_response(related_answer(model, target))
    condition = Condition(target, above, below, _one_of(query, "measure", MEASURES) if "measure" in query else "size")
    return json_response(conditional_answer(model, condition, opened.findings.known(model.name)))


def _one_series(query: Mapping[str, str], model: ModelRecord) -> Series:
    call = _whole(query, "call") if "call" in query else None
    wanted = model.find(
        _text(query, "module"),
        call=call,
        role=_one_of(query, "role", get_args(Role)),
        path=_text(query, "path"),
        kind=_one_of(query, "kind", get_args(Kind)),
    )
    if not wanted:
        raise NotFoundError(f"Model {model.name!r} has no such series.")
    return wanted[0]


def _limit(query: Mapping[str, str], name: str) -> float | None:
    """A finite number; None if there is none."""
    if name not in query:
        return None
    try:
        limit = float(query[name])
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise OptionError(f"{name}={query[name][:40]!r} is not a number.")
    return limit


def _calls(query: Mapping[str, str], runs: RunSource) -> Response:
    _, model = _open(query, runs)
    return json_response(calls_answer(model, _one_series(query, model), _whole(query, "step")))


def _scalars(query: Mapping[str, str], runs: RunSource) -> Response:
    opened, model = _open(query, runs)
    epoch = opened.epoch(model)
    wanted = WantedScalars(
        scalars=_numbers(query, "scalars"),
        most=_whole(query, "most", least=LEAST_BINS),
        version=query.get("version", ""),
        first_step=_whole(query, "from") if "from" in query else 0,
        unit=_whole(query, "unit") if "unit" in query else 0,
    )
    return Response(200, BINARY, scalars_answer(model.logged, wanted, epoch=epoch))


def _tensors(query: Mapping[str, str], runs: RunSource) -> Response:
    opened, model = _open(query, runs)
    return json_response(tensors_answer(model, version=query.get("version", ""), epoch=opened.epoch(model)))


def _tensor(query: Mapping[str, str], runs: RunSource) -> Response:
    _, model = _open(query, runs)
    most = _whole(query, "most", least=1) if "most" in query else MOST_ELEMENTS
    shrink = _numbers(query, "shrink") if "shrink" in query else ()
    found = tensor_answer(model, _wanted_tensor(query), at=query.get("at", ""), shrink=shrink, most=most)
    return Response(200, BINARY, found)


def _tensor_line(query: Mapping[str, str], runs: RunSource) -> Response:
    _, model = _open(query, runs)
    found = line_answer(
        model,
        _wanted_tensor(query),
        index=query.get("index"),
        over=query.get("over", "steps"),
        from_step=_whole(query, "from") if "from" in query else 0,
        by=query.get("by", ""),
    )
    return Response(200, BINARY, found)


def _tensor_graph(query: Mapping[str, str], runs: RunSource) -> Response:
    _, model = _open(query, runs)
    rank = _whole(query, "rank") if "rank" in query else None
    return json_response(tensor_graph_answer(model, step=_whole(query, "step"), rank=rank))


def _wanted_tensor(query: Mapping[str, str]) -> WantedTensor:
    return WantedTensor(
        series=Series(
            -1,
            _text(query, "module"),
            _whole(query, "call") if "call" in query else None,
            _one_of(query, "role", get_args(Role)),
            _text(query, "path"),
            _one_of(query, "kind", get_args(Kind)),
        ),
        step=_whole(query, "step"),
        what=_one_of(query, "what", WHAT, default="values"),
        part=_one_of(query, "part", tuple(PARTS), default="abs"),
        rank=_whole(query, "rank") if "rank" in query else None,
        loss=query.get("loss", ""),
    )


def _one_of(query: Mapping[str, str], name: str, allowed: tuple[WordT, ...], *, default: str | None = None) -> WordT:
    text = _text(query, name) if default is None else query.get(name, default)
    for one in allowed:
        if one == text:
            return one
    raise OptionError(f"{name}={text[:40]!r} is not one of {', '.join(allowed)}.")


def _health(_query: Mapping[str, str], runs: RunSource) -> Response:
    return json_response({"product": "torchgraph_explorer", "version": __version__, "logdir": runs.logdir})


ROUTES: dict[str, Route] = {
    "/api/runs": _runs,
    "/api/updates": _updates,
    "/api/graph": _graph,
    "/api/layout": _layout,
    "/api/history": _history,
    "/api/frame": _frame,
    "/api/nonfinite": _nonfinite,
    "/api/findings": _findings,
    "/api/explanation": _explanation,
    "/api/compare": _compare,
    "/api/scalars": _scalars,
    "/api/xray": _xray,
    "/api/changes": _changes,
    "/api/related": _related,
    "/api/calls": _calls,
    "/api/tensors": _tensors,
    "/api/tensor": _tensor,
    "/api/tensor-line": _tensor_line,
    "/api/tensor-graph": _tensor_graph,
    "/api/health": _health,
}


def _no_route(_query: Mapping[str, str], _runs: RunSource) -> Response:
    names = (path.removeprefix("/api/") for path in ROUTES)
    return problem(404, f"There is no such route. Below /api/ there are {', '.join(names)}.")


def _open(query: Mapping[str, str], runs: RunSource) -> tuple[OpenRun, ModelRecord]:
    opened = runs.open(_text(query, "run"))
    model, optimizer = opened.run.model(_text(query, "model")), query.get("optimizer")
    return opened, model if optimizer is None else model.of_optimizer(
        optimizer if optimizer in model.optimizers else ""
    )


def _graph_of(model: ModelRecord, query: Mapping[str, str]) -> ModuleGraph:
    number, graphs = _whole(query, "graph"), model.graphs
    if number >= len(graphs):
        raise NotFoundError(f"Model {model.name!r} has no graph {number}; it has {len(graphs)}.")
    require_drawable(graphs[number])
    return graphs[number]


def _query(environment: Environment) -> dict[str, str]:
    parsed = parse_qs(environment.get("QUERY_STRING", ""), keep_blank_values=True)
    return {name: values[-1] for name, values in parsed.items()}


def _text(query: Mapping[str, str], name: str) -> str:
    if name not in query:
        raise OptionError(f"The query has no {name}=. See http_api.md.")
    return query[name]


def _whole(query: Mapping[str, str], name: str, *, least: int = 0) -> int:
    return _as_whole(name, _text(query, name), least=least)


def _numbers(query: Mapping[str, str], name: str) -> tuple[int, ...]:
    """Whole numbers with commas between, each once."""
    numbers = [_as_whole(name, part) for part in _text(query, name).split(",") if part]
    if len(numbers) > MOST_SERIES:
        raise OptionError(f"{len(numbers)} {name} were asked for at once; at most {MOST_SERIES} can be.")
    return tuple(dict.fromkeys(numbers))


def _as_whole(name: str, text: str, *, least: int = 0) -> int:
    try:
        number = int(text)
    except ValueError:
        number = None
    if number is None or number < least:
        raise OptionError(f"{name}={text[:40]!r} is not a whole number of at least {least}.")
    return number
