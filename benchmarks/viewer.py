"""The viewer in Chromium: how soon it shows something, and how smoothly it moves.

Run it with `python -m benchmarks.viewer`; it needs a Chromium, which draws without a graphics card here.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from playwright.sync_api import Browser, sync_playwright
from torch import Tensor, nn

from benchmarks.graphs import WIDTH, Fan, nested
from benchmarks.tables import Cell, Options, Spread, Table, main, spread
from tests.browser.frame_times import moving_over_a_strip, panning
from tests.browser.page import SWITCHES, Viewer
from tests.browser.servers import ServerProcess
from tests.chrome import find_chrome
from tests.record.long_runs import write_long_run
from torchgraph_explorer import watch

WAIT_MS = 120_000
STRIPS = 40
TIMES = 3


def tables(options: Options) -> Iterator[Table]:
    """Large graphs, and many long strips."""
    yield graphs(calls=20_000 if options.full else 1_000)
    yield strips((1_000, 10_000, 100_000) if options.full else (1_000, 10_000))
    yield loops((999, 5_000) if options.full else (999,))


def graphs(*, calls: int) -> Table:
    """A level of 2,000 nodes, and a model of very many calls."""
    columns = (
        "",
        "first node, s",
        "drill in, ms",
        "drill in again, ms",
        "a frame all in sight, ms",
        "a frame close up, ms",
    )
    models: list[tuple[str, nn.Module, str, str]] = [
        ("2,000 side by side in one module", nn.Sequential(Fan(2_000)), "0#0", "0.branches.0#0"),
        (f"{calls:,} calls in stages of blocks", nested(calls, repeated=False), "0#0", "0.1#0"),
    ]
    with tempfile.TemporaryDirectory() as logdir, browsing(Path(logdir)) as browse:
        rows = []
        for at, (name, model, outer, inner) in enumerate(models):
            trace(model, Path(logdir), run=f"run{at}")
            rows.append([name, *looks(browse, f"run{at}", outer=outer, inner=inner)])
    note = "A frame while the drawing is dragged: median and quartiles. 16.7 ms are 60 a second."
    return Table("A large graph", columns, rows, note)


class Loop(nn.Module):
    """Calls a cell of two modules once for each turn, as an LSTM over a sequence does."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns, self.cell = turns, nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """The state after the last turn."""
        for _ in range(self.turns):
            x = self.cell(x).tanh()
        return x


def loops(lengths: Sequence[int]) -> Table:
    """A module that is called again and again, with everything recorded."""
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as logdir, browsing(Path(logdir)) as browse:
        for turns in lengths:
            run = f"loop{turns}"
            train_loop(turns, Path(logdir), run)
            viewer = browse()
            first = seconds_until(viewer, partial(viewer.open, run), "cell#0")
            again = seconds_until(viewer, viewer.page.reload, "cell#0")
            rows.append([f"{turns:,} turns", first, again])
            viewer.page.close()
    note = "Until the folded node is shown; the goal is 2 s. The first time, the server reads the record, too."
    return Table("A module in a loop", ("", "opened, s", "opened again, s"), rows, note)


def train_loop(turns: int, logdir: Path, run: str) -> None:
    """Three steps, all of which are logged."""
    model = Loop(turns)
    with watch(model, log_freq=1, backend="record", logdir=logdir, run=run, verbose=False):
        for _ in range(3):
            model(torch.randn(2, WIDTH)).square().mean().backward()


def looks(browse: Callable[[], Viewer], run: str, *, outer: str, inner: str) -> list[Cell]:
    """Open a run, drill into a node, and drag what is there."""
    viewer = browse()
    first = seconds_until(viewer, partial(viewer.open, run), outer)
    drills = []
    for _ in range(2):
        drills.append(seconds_until(viewer, viewer.node(outer).dblclick, inner))
        viewer.page.keyboard.press("Backspace")
        viewer.node(outer).wait_for()
    viewer.node(outer).dblclick()
    viewer.node(inner).wait_for()
    close = spread(panning(viewer))
    viewer.page.keyboard.press("f")
    viewer.page.wait_for_timeout(1_000)
    far = spread(panning(viewer))
    viewer.page.close()
    return [first, *(1e3 * seconds for seconds in drills), far, close]


def seconds_until(viewer: Viewer, act: Callable[[], object], node: str) -> float:
    """Seconds from an action until a node is in the page."""
    began = time.perf_counter()
    act()
    viewer.node(node).wait_for()
    return time.perf_counter() - began


def strips(lengths: tuple[int, ...]) -> Table:
    """Forty strips over runs of some lengths."""
    columns = ("", "first strip, s", "all strips, s", "MB", "a frame hovering, ms", "a frame scrubbing, ms")
    with tempfile.TemporaryDirectory() as logdir, browsing(Path(logdir)) as browse:
        for steps in lengths:
            write_long_run(Path(logdir, str(steps)), steps, series=STRIPS, elements=4096)
        rows = [[f"{STRIPS} strips × {steps:,} steps", *shows(browse, str(steps))] for steps in lengths]
    note = "Times are those of the first page since the server was started, which then holds what it has merged."
    return Table("Many strips", columns, rows, note)


def shows(browse: Callable[[], Viewer], run: str) -> list[Cell]:
    """Open a run with all strips, and move over one of them."""
    viewer = browse()
    sizes: list[int] = []
    viewer.page.on("response", lambda answer: sizes.append(int(answer.headers.get("content-length", 0))))
    began = time.perf_counter()
    viewer.open(run, pin=[f"{at % 8}.layer{at}#0" for at in range(STRIPS)])
    viewer.strips.nth(STRIPS - 1).wait_for()
    viewer.strips.first.locator(".strip-loading").wait_for(state="detached")
    first = time.perf_counter() - began
    viewer.page.wait_for_function("() => !document.querySelector('.strip-loading')")
    everything = time.perf_counter() - began
    name = "layer0, output, value"
    viewer.chart(name).scroll_into_view_if_needed()
    moves: list[Spread] = [spread(moving_over_a_strip(viewer, name, buttons=buttons)) for buttons in (0, 1)]
    viewer.page.close()
    return [first, everything, sum(sizes) / 1e6, *moves]


def trace(model: nn.Module, logdir: Path, *, run: str) -> None:
    """Record only the graph of a model."""
    with watch(model, log=[], log_freq=1, backend="record", logdir=logdir, run=run, verbose=False):
        model(torch.randn(2, WIDTH)).square().mean().backward()


@contextmanager
def browsing(logdir: Path) -> Iterator[Callable[[], Viewer]]:
    """A server and a browser; opens pages until the block ends."""
    server = ServerProcess(logdir)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chrome(), args=list(SWITCHES))
            yield lambda: page(browser, server.url)
            browser.close()
    finally:
        server.stop()


def page(browser: Browser, url: str) -> Viewer:
    """A page of a browser with an empty cache."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(WAIT_MS)
    return Viewer(context.new_page(), url)


if __name__ == "__main__":
    main(tables, __doc__)
