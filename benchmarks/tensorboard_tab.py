"""Our tab against TensorBoard's own histograms: the same parameters of the same training, logged and shown both ways.

Run it with `python -m benchmarks.tensorboard_tab`; it needs a Chromium and what the tests need, and with `--full` takes
minutes, most of them in `add_histogram`. What counts are the ratios: times depend on the machine and its other work.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import TimeoutError as PageTimeoutError
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from benchmarks.tables import Cell, Options, Table, main
from tests.browser.page import SWITCHES
from tests.chrome import find_chrome
from tests.tb_plugin.board import FAST, SLOW, tensorboard
from torchgraph_explorer import watch

WIDTH = 32
PATIENCE_MS = 10_000
LONGEST_SECONDS = 900.0


@dataclass(frozen=True)
class Logged:
    """The cost of logging one step: bytes on disk, and seconds in addition to the training's own."""

    bytes: float
    seconds: float


@dataclass(frozen=True)
class Way:
    """A way to log and to show.

    Attributes:
        log: Trains some steps and logs each into a logdir.
        tab: Fragment of TensorBoard's address.
        chart: What is in the page when the first chart is drawn; in the frame of our tab, if `is_framed`.
    """

    log: Callable[[Path, int, int], None]
    tab: str
    chart: str
    is_framed: bool = False


def network(series: int) -> nn.Sequential:
    """A network with this many parameters."""
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(series // 2)))


def steps(model: nn.Module, count: int) -> Iterator[int]:
    """Trains."""
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(count):
        optimizer.zero_grad()
        model(torch.randn(16, WIDTH)).square().mean().backward()
        optimizer.step()
        yield step


def log_nothing(_logdir: Path, series: int, count: int) -> None:
    """The training alone."""
    for _ in steps(network(series), count):
        pass


def log_ours(logdir: Path, series: int, count: int) -> None:
    """Every element of every parameter, by `watch`."""
    model = network(series)
    options = {"log": "params", "log_freq": 1, "sample_n": None, "verbose": False}
    with watch(model, backend="tensorboard", logdir=logdir, run="run", name="net", **options):  # type: ignore[arg-type]
        for _ in steps(model, count):
            pass


def log_theirs(logdir: Path, series: int, count: int) -> None:
    """Every element of every parameter, by `add_histogram`."""
    model = network(series)
    with SummaryWriter(str(logdir / "run")) as writer:
        for step in steps(model, count):
            for name, value in model.named_parameters():
                writer.add_histogram(name, value, step)


OURS = Way(log_ours, "torchgraph&p.torchgraph.view=run%3Drun%26pin%3D0.0%25230", ".strip canvas", is_framed=True)
THEIRS = Way(log_theirs, "histograms", "vz-histogram-timeseries .histogram path")


def logged(way: Way, logdir: Path, *, series: int, count: int, alone: float) -> Logged:
    """Log `count` steps; returns the cost of one."""
    began = time.perf_counter()
    way.log(logdir, series, count)
    took = time.perf_counter() - began
    size = sum(file.stat().st_size for file in logdir.rglob("*") if file.is_file())
    return Logged(size / count, (took - alone) / count)


def seconds_to_first_chart(way: Way, logdir: Path, loader: str, *, browser: Browser) -> float:
    """Seconds from the start of the command to a chart in the page, which is reloaded until there is one."""
    began = time.perf_counter()
    with tensorboard("--logdir", str(logdir), loader) as board, page(browser) as shown:
        while time.perf_counter() - began < LONGEST_SECONDS:
            shown.goto("about:blank")
            shown.goto(f"{board.url}#{way.tab}")
            place = shown.frame_locator('iframe[src*="name=torchgraph"]') if way.is_framed else shown
            try:
                place.locator(way.chart).first.wait_for(timeout=PATIENCE_MS)
            except PageTimeoutError:
                continue
            if way.is_framed:
                place.locator(".strip-loading").first.wait_for(state="detached")
            return time.perf_counter() - began
    return float("inf")


@contextmanager
def page(browser: Browser) -> Iterator[Page]:
    """A page of a browser with an empty cache."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


def tables(options: Options) -> Iterator[Table]:
    """Log both ways, show both, and compare what they cost."""
    series, count = (200, 1_000) if options.full else (40, 200)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        log_nothing(Path(folder), series, 5)  # the first step costs more than others
        began = time.perf_counter()
        log_nothing(Path(folder), series, count)
        alone = time.perf_counter() - began
        places = [(OURS, Path(folder, "ours")), (THEIRS, Path(folder, "theirs"))]
        ours, theirs = (logged(way, place, series=series, count=count, alone=alone) for way, place in places)
        rows = [
            compared("kB a logged step", ours.bytes / 1e3, theirs.bytes / 1e3),
            compared("ms a logged step", ours.seconds * 1e3, theirs.seconds * 1e3),
        ]
        browser = playwright.chromium.launch(executable_path=find_chrome(), args=list(SWITCHES))
        for loader in (FAST, SLOW):
            shown = [seconds_to_first_chart(way, place, loader, browser=browser) for way, place in places]
            rows.append(compared(f"tensorboard {loader}: s to the first chart", *shown))
        browser.close()
    columns = ("", "torchgraph", "add_histogram", "ratio")
    yield Table(f"TensorBoard: {series} parameters of {WIDTH}×{WIDTH}, {count:,} steps", columns, rows)


def compared(what: str, ours: float, theirs: float) -> list[Cell]:
    """A row of the table."""
    return [what, ours, theirs, theirs / ours]


if __name__ == "__main__":
    main(tables, __doc__)
