"""What one request may cost, whatever it asks for; and that nothing is lost by asking again for the rest."""

from __future__ import annotations

import random
import time
import tracemalloc
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.record.long_runs import write_long_run
from tests.server.asking import ask, unpack
from tests.tables import matrix, thinned
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.steps.merging import merge, single
from torchgraph_explorer.run import open_run
from torchgraph_explorer.server import answers, histories, routes
from torchgraph_explorer.server.histories import BOUNDS, Bounds, WantedHistory, history_answer
from torchgraph_explorer.server.open_runs import OpenRun, Runs
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app
from torchgraph_explorer.server.thinning import BinCache, CachedBins

pytestmark = pytest.mark.slow

STEPS, SERIES = 2_000, 6
OF_LONG = {"run": "long", "model": "long"}
PER_FRAME = ("frame", "last", "merged", "bad", "statistics", "lowest", "highest")


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_long_run(folder / "long", STEPS, series=SERIES, elements=1000, bad_step=77)
    return folder


@pytest.fixture
def served(logdir: Path) -> App:
    return app(Runs(logdir))


@pytest.fixture
def opened(logdir: Path) -> OpenRun:
    return OpenRun(open_run(logdir / "long"))


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were read, by each reading."""
    read: list[int] = []
    whole = ModelRecord.history

    def counted(model: ModelRecord, *place: Any) -> Any:
        found = whole(model, *place)
        read.append(len(found))
        return found

    monkeypatch.setattr(ModelRecord, "history", counted)
    return read


@dataclass
class Client:
    """Holds histories as the viewer does, and goes on where an answer ended."""

    most: int | None
    series: tuple[int, ...] = tuple(range(SERIES))
    frames: int = 0
    unit: int = 0
    held: dict[str, Any] = field(default_factory=dict)

    def wanted(self) -> WantedHistory:
        return WantedHistory(self.series, self.frames, most=self.most, unit=self.unit)

    def take(self, body: bytes) -> None:
        meta, arrays = unpack(body)
        if meta["unit"] != self.unit or meta["from"] == 0:
            self.held = {}
        self.unit, self.frames = meta["unit"], meta["frames"]
        for one in self.series:
            before = self.held.get(f"{one}.frame", np.zeros(0, dtype=np.uint32))
            kept = int(np.searchsorted(before, meta["from"]))
            ends = int(self.held[f"{one}.offsets"][kept]) if len(before) else 0
            for name in PER_FRAME:
                if (key := f"{one}.{name}") in arrays:
                    old = self.held[key][:kept] if len(before) else arrays[key][:0]
                    self.held[key] = np.concatenate([old, arrays[key]])
            for name in ("buckets", "counts"):
                old = self.held[f"{one}.{name}"][:ends] if len(before) else arrays[f"{one}.{name}"][:0]
                self.held[f"{one}.{name}"] = np.concatenate([old, arrays[f"{one}.{name}"]])
            offsets = self.held[f"{one}.offsets"][: kept + 1] if len(before) else np.zeros(1, dtype=np.uint32)
            self.held[f"{one}.offsets"] = np.concatenate([offsets, arrays[f"{one}.offsets"][1:] + ends])

    def require_all(self, model: ModelRecord) -> None:
        """What is held is what the reader reads, merged all at once."""
        assert self.frames == len(model)
        for one in self.series:
            bins = merge(single(model.history(one)), model.steps, self.unit)
            histograms = bins.histograms()
            np.testing.assert_array_equal(self.held[f"{one}.frame"], bins.first)
            np.testing.assert_allclose(self.held[f"{one}.statistics"], bins.statistics, rtol=1e-5)
            for name in ("offsets", "buckets", "counts"):
                np.testing.assert_array_equal(self.held[f"{one}.{name}"], getattr(histograms, name))
            if self.unit > 1:
                np.testing.assert_array_equal(self.held[f"{one}.last"], bins.last)
                np.testing.assert_array_equal(self.held[f"{one}.merged"], bins.frames)


TIGHT = {
    "one piece at a time": Bounds(seconds=0, rows=1500),
    "few bytes": Bounds(size=300_000, rows=10_000),
    "as served": BOUNDS,
}


@pytest.mark.parametrize(("name", "most"), matrix([*TIGHT], [None, 64, 500, 10**9]))
def test_a_client_that_asks_again_gets_everything(
    name: str, most: int | None, opened: OpenRun, rows: list[int]
) -> None:
    model, client, bounds = opened.run.model(), Client(most), TIGHT[name]
    while client.frames < STEPS:
        before, began = client.frames, len(rows)
        answer = history_answer(opened, model, client.wanted(), bounds=bounds)
        assert len(answer) < bounds.size + 100_000
        assert bounds.seconds > 0 or sum(rows[began:]) <= bounds.rows + SERIES * 64, "so many frames may a bin have"
        client.take(answer)
        assert client.frames > before
    client.require_all(model)


def test_clients_that_ask_in_any_order_get_everything_though_little_is_kept(
    opened: OpenRun,
) -> None:
    opened = replace(opened, bins=BinCache(most_bytes=200_000))
    model, rng = opened.run.model(), random.Random(0)
    clients = [Client(most, series) for most in (64, 500, 4096, None) for series in ((0, 1, 2), (2, 5))]
    while behind := [client for client in clients if client.frames < STEPS]:
        client = rng.choice(behind)
        bounds = Bounds(seconds=0, rows=rng.choice((400, 2000)), size=rng.choice((10**5, 10**7)))
        client.take(history_answer(opened, model, client.wanted(), bounds=bounds))
    for client in clients:
        client.require_all(model)


@pytest.mark.slow
@pytest.mark.parametrize("most", thinned([pytest.param("", id="every frame"), pytest.param(1024, id="merged")], 1))
def test_one_request_reads_and_holds_little_of_a_long_run(most: object, tmp_path: Path) -> None:
    write_long_run(tmp_path / "long", 20_000, series=24, elements=4096)
    served = app(Runs(tmp_path))
    query = {**OF_LONG, "series": ",".join(map(str, range(24))), "from": 0, **({"most": most} if most else {})}
    ask(served, "/api/history", {**query, "to": 1})  # the index is read once
    tracemalloc.start()
    try:
        began = time.monotonic()
        answer = ask(served, "/api/history", query)
        seconds, peak = time.monotonic() - began, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.status == 200
    assert seconds < 15, "1 s and one piece, on a machine that does other things too, and is traced"
    assert peak < 4 * BOUNDS.size
    assert len(answer.body) < BOUNDS.size


def test_what_is_kept_is_bounded_by_its_size() -> None:
    cache, model = BinCache(most_bytes=50_000), object()
    for number in range(1000):
        key = (model, number)
        cache.resize(key, cache.get(key))
    assert len(cache) == 50_000 // CachedBins().size
    assert cache.size <= 50_000
    latest = (model, 999)
    assert cache.get(latest) is cache.get(latest)


def test_more_bins_than_any_page_shows_are_not_made(opened: OpenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "MOST_BINS", 500)
    meta, _ = unpack(history_answer(opened, opened.run.model(), WantedHistory((0,), 0, most=10**9)))
    assert meta["unit"] == 4


def test_news_of_many_frames_and_series_come_in_several_answers(served: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MOST_NEWS", 600)
    held, asked = {"epoch": -1, "frames": 0, "series": 0}, 0
    steps: list[int] = []
    series: list[Any] = []
    while True:
        told = ask(served, "/api/updates", {**OF_LONG, **held}).json
        assert (told["frames"]["first"], told["series"]["first"]) == (len(steps), len(series))
        assert told["reset"] == (asked == 0)
        steps += told["frames"]["step"]
        series += told["series"]["items"]
        held, asked = {"epoch": told["epoch"], "frames": len(steps), "series": len(series)}, asked + 1
        if not told["more"]:
            break
    assert (steps, len(series), asked) == (list(range(STEPS)), SERIES, 4)


@pytest.mark.parametrize("path", ["/api/graph", "/api/layout"])
def test_a_graph_that_no_browser_could_draw_is_refused_with_the_bound(
    path: str, served: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = 3 * (SERIES + 1)
    monkeypatch.setattr(answers, "MOST_PARTS", parts)
    assert ask(served, path, {**OF_LONG, "graph": 0}).status == 200
    monkeypatch.setattr(answers, "MOST_PARTS", parts - 1)
    answer = ask(served, path, {**OF_LONG, "graph": 0})
    assert answer.status == 400
    assert f"has {parts} modules, calls, nodes and edges; at most {parts - 1} can be shown" in answer.json["error"]
