"""Several runs side by side in the viewer: how soon they are there, how smoothly they scroll, and the server's memory.

Run it with `python -m benchmarks.compared_runs`; it needs a Chromium, which draws without a graphics card here.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlencode

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.frame_times import FRAME_COLUMNS, frame_cells, frame_times
from benchmarks.server import processor_seconds
from benchmarks.tables import Cell, Options, Table, main
from tests.browser.page import SWITCHES
from tests.browser.servers import ServerProcess
from tests.chrome import find_chrome
from tests.record.examples import SESSION
from tests.record.long_runs import POOL, frames, graph_of
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import Series

RUNS, SERIES, ELEMENTS = 8, 40, 4096
FRAMES = 120

SCROLL = """([frames, selector]) => new Promise((done) => {
  const strip = document.querySelector(selector);
  let box = strip;
  while (box && box.scrollHeight <= box.clientHeight + 1) box = box.parentElement;
  let at = 0;
  const tick = () => {
    if (++at > frames) return done(box.scrollTop);
    box.scrollTop += (at % 120 < 60 ? 1 : -1) * 120;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
})"""

ARE_DRAWN = """(count) => {
  const strips = [...document.querySelectorAll('.runs-chart')][0]?.querySelectorAll('.run-strip canvas') ?? [];
  return strips.length >= count && !document.querySelector('.runs-chart .strip-loading');
}"""


def tables(options: Options) -> Iterator[Table]:
    """Runs of 1,000 steps; of 10,000 with `--full`."""
    steps = 10_000 if options.full else 1_000
    with tempfile.TemporaryDirectory() as logdir, sync_playwright() as playwright:
        for number in range(RUNS):
            write_wide_run(Path(logdir, f"run{number}"), steps, drift=number)
        browser = playwright.chromium.launch(executable_path=find_chrome(), args=list(SWITCHES))
        yield choosing(Path(logdir), browser, f"Choosing runs of {SERIES} series × {steps:,} steps")
        yield scrolling(Path(logdir), browser, f"Scrolling through {SERIES} series × {steps:,} steps")
        browser.close()


def write_wide_run(path: Path, steps: int, *, drift: int) -> None:
    """A run of one module with `SERIES` outputs."""
    writer = RecordWriter(path)
    writer.write(replace(SESSION, id=f"{drift:04x}", log_freq="1", clock=None))
    writer.write(graph_of(1))
    writer.write(tuple(Series(at, "layer0", 0, "output", f"output[{at}]", "value") for at in range(SERIES)))
    pool = frames(SERIES, ELEMENTS)
    for step in range(steps):
        frame = pool[(step * POOL // steps + 3 * drift) % POOL]
        writer.write(replace(frame, step=step, time=2_000.0 + step))
    writer.close()


def choosing(logdir: Path, browser: Browser, title: str) -> Table:
    """The time from choosing runs beside the one on show to the first series of all of them."""
    rows: list[list[Cell]] = []
    for count in (2, 4, RUNS):
        server = ServerProcess(logdir)
        try:
            page = opened(browser)
            page.goto(address(server.url, 1))
            page.locator(".strip canvas").first.wait_for()
            page.wait_for_function("() => !document.querySelector('.strip-loading')")
            before, began = processor_seconds(server.pid), time.perf_counter()
            page.evaluate("(to) => { location.href = to; }", address(server.url, count))
            page.wait_for_function(ARE_DRAWN, arg=count)
            took, busy = time.perf_counter() - began, processor_seconds(server.pid) - before
            page.wait_for_timeout(2_000)
            rows.append([f"{count} runs", took, busy, memory(server.pid)])
            page.context.close()
        finally:
            server.stop()
    columns = ("", "first series of all, s", "processor of the server, s", "its memory, MB")
    note = "The server has opened only the first run before. Memory is that of the process, 2 s later."
    return Table(title, columns, rows, note)


def scrolling(logdir: Path, browser: Browser, title: str) -> Table:
    """The processor time of frames while one scrolls through all series of some runs."""
    rows: list[list[Cell]] = []
    server = ServerProcess(logdir)
    try:
        for count in (1, 4, RUNS):
            page = opened(browser)
            page.goto(address(server.url, count))
            page.locator(".strip canvas").first.wait_for()
            for when in ("first time", "again"):
                cells = frame_cells(scroll(browser, page, ".runs-chart" if count > 1 else ".strip"))
                rows.append([f"{count} run{'s' if count > 1 else ''}, {when}", *cells, memory(server.pid)])
            page.context.close()
    finally:
        server.stop()
    note = "A frame is the processor time of the page's main thread. The first time, strips are fetched and drawn."
    return Table(title, ("", *FRAME_COLUMNS, "memory of the server, MB"), rows, note)


def scroll(browser: Browser, page: Page, selector: str) -> list[float]:
    """Milliseconds of processor time of each frame."""
    return frame_times(browser, page, lambda: page.evaluate(SCROLL, [FRAMES, selector]))


def opened(browser: Browser) -> Page:
    """A page with an empty cache."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(120_000)
    return context.new_page()


def address(url: str, count: int) -> str:
    """The first run with its module pinned, and the others up to `count` beside it."""
    others = [f"{at}.{quote(f'run{at}', safe='')}/net" for at in range(1, count)]
    chosen = {"run": "run0", "model": "net", "pin": "0.layer0#0", "with": others}
    return f"{url}#{urlencode(chosen, doseq=True)}"


def memory(process: int) -> float:
    """Megabytes that a process holds."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1e3


if __name__ == "__main__":
    main(tables, __doc__)
