"""The server under load: many pages that follow a run while it is written.

Run it with `python -m benchmarks.server`. The pages are threads that ask what the viewer asks, each second: what is
new, the histories of its strips, and the statistics of the latest step.
"""

from __future__ import annotations

import http.client
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np

from benchmarks.tables import Cell, Options, Table, main
from tests.browser.servers import ServerProcess
from tests.record.examples import SESSION
from tests.record.long_runs import frames, graph_of
from tests.server.asking import unpack
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import Series

SERIES, ELEMENTS = 200, 4096
STRIPS = 24
STEPS_A_SECOND = 10
SECONDS = 20.0
POLL_SECONDS = 1.0


@dataclass
class Page:
    """What a page has received, and what it measured.

    Attributes:
        address: Host and port of the server.
        model: Which run and model it shows.
        held: How far it has read.
        took: Seconds of each answer, by what was asked.
        unit: Steps of the bins that it holds.
        size: Bytes of all answers.
    """

    address: str
    model: dict[str, str] = field(default_factory=lambda: {"run": "run", "model": "long"})
    held: dict[str, int] = field(default_factory=lambda: {"epoch": -1, "frames": 0, "series": 0})
    took: dict[str, list[float]] = field(default_factory=dict)
    size: int = 0
    unit: int = 0

    def follow(self, stop: threading.Event, pause: float) -> None:
        """Poll until the end."""
        connection = http.client.HTTPConnection(self.address)
        while not stop.is_set():
            began = time.perf_counter()
            self.poll(connection)
            stop.wait(max(0.0, pause - (time.perf_counter() - began)))
        connection.close()

    def poll(self, connection: http.client.HTTPConnection) -> None:
        """Ask once for everything that a page asks for."""
        first = self.held["frames"]
        news = json.loads(self.ask(connection, "updates", {**self.model, **self.held}))
        frames, known = news["frames"], news["series"]
        count, series = frames["first"] + len(frames["step"]), known["first"] + len(known["items"])
        self.held = {"epoch": news["epoch"], "frames": count, "series": series}
        if not count:
            return
        strips = ",".join(map(str, range(min(STRIPS, series))))
        wanted = {"series": strips, "from": first, "most": 1024, "unit": self.unit}
        meta, _ = unpack(self.ask(connection, "history", {**self.model, **wanted}))
        self.unit = meta["unit"]
        self.ask(connection, "frame", {**self.model, "frame": count - 1})

    def ask(self, connection: http.client.HTTPConnection, what: str, query: dict[str, Any]) -> bytes:
        """An answer's body."""
        began = time.perf_counter()
        connection.request("GET", f"/api/{what}?{urlencode(query)}")
        body = connection.getresponse().read()
        self.took.setdefault(what, []).append(time.perf_counter() - began)
        self.size += len(body)
        return body


def follow(url: str, run: str, model: str) -> None:
    """Act as a page that shows a model of a run, until the process is ended."""
    Page(urlsplit(url).netloc, {"run": run, "model": model}).follow(threading.Event(), POLL_SECONDS)


def tables(options: Options) -> Iterator[Table]:
    """Pages that poll as the viewer does, and pages that do not wait."""
    counts = (1, 10, 50) if options.full else (10, 50)
    rows = [
        [f"{count} page{'s' if count > 1 else ''}, one poll a second", *load(count, pause=POLL_SECONDS)]
        for count in counts
    ]
    rows.append(["50 pages that never wait", *load(50, pause=0.0)])
    yield Table(
        title=f"Pages that follow {STRIPS} strips of a run with {STEPS_A_SECOND} steps a second",
        columns=("", "requests/s", "processor, %", *(f"{name}, p50/p99 ms" for name in ASKED), "kB a poll"),
        rows=rows,
        note="A poll is one request of each kind. The pages and the writer of the run share the machine.",
    )


ASKED = ("updates", "history", "frame")


def load(count: int, *, pause: float) -> list[Cell]:
    """A row: some number of pages for a while."""
    with tempfile.TemporaryDirectory() as logdir, writing(Path(logdir, "run")):
        server = ServerProcess(Path(logdir))
        try:
            address = urlsplit(server.url).netloc
            pages = [Page(address) for _ in range(count)]
            poll_all(pages, seconds=2.0, pause=pause)  # until they have everything
            for page in pages:
                page.took, page.size = {}, 0
            busy = processor_seconds(server.pid)
            poll_all(pages, seconds=SECONDS, pause=pause)
            busy = processor_seconds(server.pid) - busy
        finally:
            server.stop()
    took = {name: np.array([seconds for page in pages for seconds in page.took[name]]) for name in ASKED}
    requests = sum(map(len, took.values()))
    times = [" / ".join(f"{ms:.0f}" for ms in np.quantile(took[name], [0.5, 0.99]) / 1e-3) for name in ASKED]
    sent = sum(page.size for page in pages) / len(took["updates"])
    return [requests / SECONDS, 100 * busy / SECONDS, *times, sent / 1e3]


def poll_all(pages: Sequence[Page], *, seconds: float, pause: float) -> None:
    """Let all pages poll for a while; each begins at another moment."""
    stop = threading.Event()
    threads = [threading.Thread(target=page.follow, args=(stop, pause)) for page in pages]
    for thread in threads:
        thread.start()
        stop.wait(pause / len(threads))
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()


@contextmanager
def writing(run_dir: Path) -> Iterator[None]:
    """Write a run until the block ends."""
    writer = RecordWriter(run_dir)
    writer.write(replace(SESSION, model="long", class_name="Long", log_freq="1"))
    writer.write(graph_of(SERIES))
    writer.write(tuple(Series(i, f"layer{i}", 0, "output", "output", "value") for i in range(SERIES)))
    pool, stop = frames(SERIES, ELEMENTS), threading.Event()
    writer.write(replace(pool[0], step=0, time=time.time()))

    def go_on() -> None:
        step = 1
        while not stop.wait(1 / STEPS_A_SECOND):
            writer.write(replace(pool[step % len(pool)], step=step, time=time.time()))
            step += 1

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        writer.close()


def processor_seconds(process: int) -> float:
    """The processor time that a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(tables, __doc__)
