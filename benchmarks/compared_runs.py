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
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.frame_times import FRAME_COLUMNS, frame_cells, frame_times
from benchmarks.server import processor_seconds
from benchmarks.tables import Cell, Options, Table, main
from tests.browser.page import SWITCHES
from tests.browser.servers import ServerProcess
from tests.chrome import find_chrome
from tests.record.examples import SESSION
from tests.record.long_runs import POOL, frames, graph_of
from tests.server.asking import unpack
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

IS_DRAWN = """(count) => {
  const strips = [...(document.querySelector('.runs-chart')?.querySelectorAll('.run-strip .strip') ?? [])];
  const isInSight = (strip) => strip.getBoundingClientRect().top < innerHeight;
  const isPainted = (strip) => strip.querySelector('canvas').style.width !== '';
  return strips.length === count && strips.filter(isInSight).every(isPainted)
    && !strips[0].closest('figure').querySelector('.strip-loading');
}"""
"""The first chart shows so many runs: all have come, and a canvas has a width of its own once it was painted."""


def tables(options: Options) -> Iterator[Table]:
    """Runs of 1,000 steps; of 10,000 with `--full`."""
    steps = 10_000 if options.full else 1_000
    with tempfile.TemporaryDirectory() as logdir, sync_playwright() as playwright:
        for number in range(RUNS):
            write_wide_run(Path(logdir, f"run{number}"), steps, drift=number)
        browser = playwright.chromium.launch(executable_path=find_chrome(), args=list(SWITCHES))
        yield choosing(Path(logdir), browser, f"Choosing runs of {SERIES} series × {steps:,} steps")
        yield scrolling(Path(logdir), browser, f"Scrolling through {SERIES} series × {steps:,} steps")
        yield asking(Path(logdir), f"Everything asked of {RUNS} runs of {SERIES} series × {steps:,} steps")
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
    """The time from choosing runs beside the one on show until the strips of all of them are painted."""
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
            page.wait_for_function(IS_DRAWN, arg=count)
            took, busy = time.perf_counter() - began, processor_seconds(server.pid) - before
            page.wait_for_timeout(2_000)
            rows.append([f"{count} runs", took, busy, memory(server.pid)])
            page.context.close()
        finally:
            server.stop()
    columns = ("", "first chart, s", "processor of the server, s", "its memory, MB")
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


def asking(logdir: Path, title: str) -> Table:
    """The memory of the server after a client has asked it for all there is."""
    server = ServerProcess(logdir)
    rows: list[list[Cell]] = [["nothing", memory(server.pid), 0.0]]
    names = [f"run{number}" for number in range(RUNS)]
    everything = ",".join(map(str, range(SERIES)))
    questions = {
        "what is new": [f"updates?{of(name)}&epoch=-1&frames=0&series=0" for name in names],
        "all series in 1,024 bins": [f"history?{of(name)}&series={everything}&most=1024" for name in names],
        "and frame by frame": [f"history?{of(name)}&series={everything}" for name in names],
        "the x-ray of each": [f"xray?{of(name)}&most=4096" for name in names],
        "the findings of each": [f"findings?{of(name)}" for name in names],
        "the differences of each two": [
            f"compare?{of(one)}&other_run={other}" for one in names for other in names if one < other
        ],
    }
    try:
        for what, paths in questions.items():
            for path in paths:
                ask_all(f"{server.url}api/{path}")
            rows.append([what, memory(server.pid), peak(server.pid)])
    finally:
        server.stop()
    return Table(title, ("", "memory of the server, MB", "at most so far, MB"), rows, "")


def of(run: str) -> str:
    """The query of a run's model."""
    return f"run={run}&model=net"


def ask_all(url: str) -> None:
    """Ask, and, of a history that comes in several answers, for the rest."""
    frame = 0
    while True:
        with urlopen(f"{url}&from={frame}" if "history?" in url else url) as answer:
            body = answer.read()
        if "history?" not in url:
            return
        frames = unpack(body)[0]["frames"]
        if frames <= frame:
            return
        frame = frames


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


def memory(process: int, field: str = "VmRSS") -> float:
    """Megabytes that a process holds."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1e3


def peak(process: int) -> float:
    """Megabytes that a process has held at most."""
    return memory(process, "VmHWM")


if __name__ == "__main__":
    main(tables, __doc__)
