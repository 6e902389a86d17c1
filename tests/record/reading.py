"""Does with a logdir all that a reader can do, and allows nothing but answers and our own errors."""

from __future__ import annotations

import contextlib
import io
import json
import random
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.server.asking import ask
from torchgraph_explorer.cli import main
from torchgraph_explorer.errors import TorchgraphError, TorchgraphWarning
from torchgraph_explorer.record.discovery import list_runs
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.run import Run, open_run
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app
from torchgraph_explorer.server.tensors import PARTS, WHAT

MOST = 12
"""Frames, series and graphs of a model that are looked at."""


def read_everything(logdir: Path, run: str, rng: random.Random, *, export: bool) -> None:
    """Read the run `run` below `logdir` in every way there is. The commands share the run that is opened first."""
    folder = str(logdir / run)
    with warnings.catch_warnings(), patch("torchgraph_explorer.run.open_run", cache(open_run)) as opened:
        warnings.simplefilter("ignore", TorchgraphWarning)
        listed = {info.name: info for info in list_runs(logdir)}
        assert listed[run].error or listed[run].models or not listed[run].bytes, listed[run]
        with contextlib.suppress(TorchgraphError):
            read_run(opened(folder), rng)
        read_routes(app(Runs(logdir)), run, rng)
        say("info", folder, *rng.choice(((), ("--json",))))  # both are told of the same reading
        say("check", folder, "--format", rng.choice(("text", "json", "markdown")))
        say("diff", folder, str(logdir / "good"), *rng.choice(((), ("--json",))))
        say("xray", folder, "-o", str(logdir / "picture.svg"))
        if export:
            say("export", folder, "-o", str(logdir / "page.html"), "--tensors", "1")


def read_run(run: Run, rng: random.Random) -> None:
    """Every public method of a run and its models."""
    run.refresh()
    assert repr(run)
    assert run.bytes >= 0
    assert run.first_write >= 0
    assert run.last_write >= 0
    for name in run.models[:MOST]:
        read_model(run.model(name), rng)
    assert len("".join(run.warnings)) < 1_000_000


def read_kept(model: ModelRecord) -> None:
    """All that was kept whole."""
    kept = model.kept
    assert len(kept.steps) == len(kept.labels)
    for step in kept.steps[:MOST].tolist():
        with contextlib.suppress(TorchgraphError):
            assert repr(model.kept_at(step))
            graph = model.tensor_graph(step)
            assert all(max(edge.source, edge.target) < len(graph.tensors) for edge in graph.edges)
            assert sum(len(node.tensors) for node in graph.nodes) == len(graph.tensors)
        for series in kept.series[:MOST]:
            with contextlib.suppress(TorchgraphError):
                found = model.tensor(series, step)
                assert repr((found, found.gradient, found.gradients))


def read_model(model: ModelRecord, rng: random.Random) -> None:
    said = (
        model.name,
        model.epoch,
        model.sessions,
        model.session,
        model.logged,
        model.finished,
        model.notes,
        model.ranks,
        repr(model),
    )
    assert said
    assert (
        len(model.steps)
        == len(model.times)
        == len(model.clock)
        == len(model.graph_ids)
        == len(model.facts)
        == len(model)
    )
    assert all(one is None or 0 <= one.recorded_passes <= one.passes for one in model.facts)
    assert (model.steps >= 0).all()
    for optimizer in model.optimizers[:2]:
        assert 0 < len(model.of_optimizer(optimizer)) <= len(model)
    assert len(model.labels) == len(model)
    with contextlib.suppress(TorchgraphError):
        read_kept(model)
    for graph in model.graphs[:MOST]:
        assert model.graph_revision(graph.id) >= 0
        for node in graph.nodes:
            assert node.call is None or (node.inside is None or node.inside < node.call < len(graph.calls))
    for number in some(len(model), rng):
        with contextlib.suppress(TorchgraphError):
            frame = model.frame(number)
            assert len(frame.statistics) == len(frame.histograms)
            assert (frame.rows < len(frame.statistics)).all()
            assert (frame.series < len(model.series)).all()
            model.frame_at(frame.step)
    for number in some(len(model.series), rng):
        with contextlib.suppress(TorchgraphError):
            history = model.history(number)
            assert len(history) == len(history.histograms) == len(history.statistics)
            history.quantiles()
            history.column("mean")
            one = model.series[number]
            assert one in model.find(one.module, call=one.call, role=one.role, path=one.path, kind=one.kind)


def read_routes(served: App, run: str, rng: random.Random) -> None:
    """Every route of the app."""
    asked(served, "/api/health")
    runs = asked(served, "/api/runs")["runs"]
    for model in next(one for one in runs if one["run"] == run)["models"][:MOST]:
        this = {"run": run, "model": model}
        updates = asked(served, "/api/updates", **this, epoch=-1, frames=0, series=0)
        if "error" in updates:
            continue
        for graph in updates["graphs"][:MOST]:
            found = asked(served, "/api/graph", **this, graph=graph["graph"])
            asked(served, "/api/layout", **this, graph=graph["graph"])
            for inside in some(len(found.get("calls", ())), rng):
                asked(served, "/api/layout", **this, graph=graph["graph"], inside=inside)
        count = len(updates["series"]["items"])
        series = ",".join(map(str, some(count, rng)))
        for optimizer in updates["optimizers"][:2]:
            asked(served, "/api/updates", **this, epoch=-1, frames=0, series=0, optimizer=optimizer)
            asked(served, "/api/history", **{**this, "series": series, "from": 0, "most": 64, "optimizer": optimizer})
        for options in ({}, {"most": 64}, {"most": 64, "from": 2, "unit": 1}, {"to": 2}):
            asked(served, "/api/history", **{**this, "series": series, "from": 0, **options})
        for known in ({}, {"from": 2, "unit": 1, "version": "0.0.1"}):
            asked(served, "/api/scalars", **this, scalars="0,1,2,9", most=64, **known)
        for frame in some(len(updates["frames"]["step"]), rng):
            asked(served, "/api/frame", **this, step=updates["frames"]["step"][frame])
        read_judgements(served, this, updates, rng)
        read_kept_routes(served, this, rng)


def read_judgements(served: App, this: dict[str, Any], updates: dict[str, Any], rng: random.Random) -> None:
    """What is found, compared and related."""
    found = asked(served, "/api/findings", **this)
    asked(served, "/api/findings", **this, version=found.get("version", ""))
    asked(served, "/api/nonfinite", **this, epoch=-1, frames=0)
    asked(served, "/api/xray", **this, most=64)
    for other in asked(served, "/api/runs")["runs"]:
        asked(served, "/api/compare", **this, other_run=other["run"])
    steps = updates["frames"]["step"]
    for at in some(len(steps), rng)[:MOST]:
        asked(served, "/api/changes", **this, step=steps[at])
        asked(served, "/api/changes", **this, step=steps[at], since=steps[0])
    if steps:
        asked(served, "/api/related", **{**this, "from": steps[0], "to": steps[-1]})
    asked(served, "/api/related", **this, scalar="loss")
    items = updates["series"]["items"]
    for at in some(len(items), rng)[:2]:
        series = {name: items[at][name] for name in ("module", "role", "path", "kind")}
        series |= {} if items[at]["call"] is None else {"call": items[at]["call"]}
        asked(served, "/api/related", **this, **series)
        asked(served, "/api/related", **this, **series, above=0)
        if steps:
            asked(served, "/api/calls", **this, **series, step=rng.choice(steps))


def read_kept_routes(served: App, this: dict[str, Any], rng: random.Random) -> None:
    """What the page of kept tensors asks."""
    kept = asked(served, "/api/tensors", **this)
    if "error" in kept:
        return
    again = asked(served, "/api/tensors", **this, version=kept["version"])
    assert again["is_same"], (kept["version"], again["version"])
    for at in some(len(kept["steps"]), rng)[:MOST]:
        step = kept["steps"][at]
        asked(served, "/api/tensor-graph", **this, step=step)
        layout = kept["layouts"][kept["layout"][at]]
        for number in some(len(layout), rng):
            one = kept["tensors"][layout[number]]
            wanted = {name: one[name] for name in ("module", "role", "path", "kind", "loss")}
            wanted |= {"step": step, **({} if one["call"] is None else {"call": one["call"]})}
            more = {"what": rng.choice(WHAT), "part": rng.choice(tuple(PARTS))}
            asked(served, "/api/tensor", **this, **wanted, **more)
            shrink = ",".join(map(str, range(len(one["kept_shape"]))))
            asked(served, "/api/tensor", **this, **wanted, shrink=shrink, at=rng.choice(("", "0", "0,:", "9,9")))
            asked(served, "/api/tensor-line", **this, **wanted, **more, over=rng.choice(("steps", "calls")))
            asked(served, "/api/tensor-line", **this, **wanted, by="category")
            asked(served, "/api/tensor-line", **this, **wanted, index=",".join("0" for _ in one["kept_shape"]))


def asked(served: App, path: str, /, **query: Any) -> Any:
    """The JSON of an answer, which is no failure of the server; of one in binary nothing."""
    answer = ask(served, path, query)
    assert answer.status < 500, (path, query, answer.json)
    return answer.json if answer.headers["Content-Type"] == "application/json" else {}


def say(*arguments: str) -> None:
    """Run the command line, which says what is wrong in a sentence or is content."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    assert status in (0, 2), (arguments, err.getvalue())
    assert status == 0 or err.getvalue().startswith("torchgraph: ")
    if {"--json", "json"} & {*arguments} and status == 0:
        json.loads(out.getvalue(), parse_constant=_refuse)
    else:
        assert "\x1b" not in out.getvalue()


def some(count: int, rng: random.Random) -> list[int]:
    """The first, the last and some others of so many."""
    return sorted(
        {*range(min(count, 4)), *range(max(count - 2, 0), count), *(rng.sample(range(count), min(count, MOST // 2)))}
    )


def _refuse(constant: str) -> Iterator[None]:
    raise AssertionError(f"{constant} is not JSON")
