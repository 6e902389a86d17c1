"""The x-ray of a large run: how soon it is there, how many bytes it takes, and how smoothly one zooms in it.

Run it with `python -m benchmarks.xray`; it needs a Chromium. It writes some gigabytes with `--full`, and removes them.
"""

from __future__ import annotations

import http.client
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.frame_times import FRAME_COLUMNS, frame_cells, frame_times
from benchmarks.large_run import write_large_run
from benchmarks.server import processor_seconds
from benchmarks.tables import Cell, Options, Table, main
from tests.browser.page import SWITCHES
from tests.browser.servers import ServerProcess
from tests.chrome import find_chrome

FRAMES = 120

ZOOM = """(frames) => new Promise((done) => {
  const box = document.querySelector('.xray-picture');
  const {left, top, width, height} = box.getBoundingClientRect();
  let at = 0;
  const tick = () => {
    if (++at > frames) return done();
    const deltaY = at % 60 < 30 ? -80 : 80;
    const [clientX, clientY] = [left + 0.6 * width, top + height / 2];
    box.dispatchEvent(new WheelEvent('wheel', {deltaY, clientX, clientY, bubbles: true, cancelable: true}));
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
})"""


def tables(options: Options) -> Iterator[Table]:
    """A run of 1,000 modules; of 10,000 steps with `--full`."""
    modules, steps = (1_000, 10_000) if options.full else (1_000, 2_000)
    with tempfile.TemporaryDirectory() as logdir:
        write_large_run(Path(logdir, "run"), modules=modules, steps=steps)
        title = f"{modules:,} modules × {steps:,} steps"
        yield answers(Path(logdir), f"The x-ray of {title}: the server", steps)
        yield frames(Path(logdir), f"The x-ray of {title}: the page")


def answers(logdir: Path, title: str, steps: int) -> Table:
    """What the server takes for each of its answers."""
    rows: list[list[Cell]] = []
    began = time.perf_counter()
    server = ServerProcess(logdir)
    try:
        rows.append(["start of the server, until it listens", time.perf_counter() - began, busy(server), 0.0])
        asked: dict[str, dict[str, object]] = {
            "first x-ray, the run not open yet": {},
            "the same again": {},
            "another statistic": {"statistic": "zeros"},
            "a tenth of the steps": {"from": steps // 2, "to": steps // 2 + steps // 10},
        }
        rows += [[name, *answer(server, query)] for name, query in asked.items()]
    finally:
        server.stop()
    note = "Processor time is that of the server, and does not depend on what else the machine does."
    return Table(title, ("", "seconds", "processor, s", "MB"), rows, note)


def answer(server: ServerProcess, query: dict[str, object]) -> list[Cell]:
    """Seconds, processor seconds and megabytes of an answer."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
    wanted = urlencode({"run": "run", "model": "net", "statistic": "", "most": 1024, **query})
    before, began = busy(server), time.perf_counter()
    connection.request("GET", f"/api/xray?{wanted}")
    body = connection.getresponse().read()
    took = time.perf_counter() - began
    connection.close()
    return [took, busy(server) - before, len(body) / 1e6]


def busy(server: ServerProcess) -> float:
    """Processor seconds of the server so far."""
    return processor_seconds(server.pid)


def frames(logdir: Path, title: str) -> Table:
    """How soon the picture is there, and the processor time of frames while one zooms."""
    server = ServerProcess(logdir)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chrome(), args=list(SWITCHES))
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(120_000)
            rows = [[name, first, *cells] for name, first, cells in shown(browser, page, server.url)]
            browser.close()
    finally:
        server.stop()
    note = "A frame is the processor time of the page's main thread. Without a graphics card, drawing is part of it."
    return Table(title, ("", "picture after, s", *FRAME_COLUMNS), rows, note)


def shown(browser: Browser, page: Page, url: str) -> Iterator[tuple[str, float, list[Cell]]]:
    """Opens the page, and zooms with the wheel."""
    began = time.perf_counter()
    page.goto(f"{url}#run=run")
    page.locator(".xray-picture canvas[style]").wait_for()
    first = time.perf_counter() - began
    page.get_by_role("application", name=re.compile("^X-ray")).hover()
    yield "zooming by wheel", first, frame_cells(frame_times(browser, page, lambda: page.evaluate(ZOOM, FRAMES)))
    began = time.perf_counter()
    page.reload()
    page.locator(".xray-picture canvas[style]").wait_for()
    again = time.perf_counter() - began
    page.get_by_role("button", name="Fold", exact=True).click()
    times = frame_times(browser, page, lambda: page.evaluate(ZOOM, FRAMES))
    yield "the server has the run open; folded, zooming", again, frame_cells(times)


if __name__ == "__main__":
    main(tables, __doc__)
