"""Our tab against TensorBoard's own histograms: the same parameters of the same training, logged and shown both ways.

Run it with `PYTHONPATH=. python benchmarks/tensorboard_tab.py`; it needs a Chromium and what the tests need, and takes
minutes, most of them in `add_histogram`. What counts are the ratios: times depend on the machine and its other work.
"""

from __future__ import annotations

import argparse
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

from tests.browser.page import SWITCHES
from tests.chrome import find_chrome
from tests.tb_plugin.board import FAST, SLOW, tensorboard
from torchgraph_explorer import watch

WIDTH = 32
PATIENCE_MS = 2000
LONGEST_SECONDS = 900.0


@dataclass(frozen=True)
class Logged:
    """What it costs to log one step: bytes on disk, and seconds on top of the training's own."""

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
    """A network with so many parameters."""
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
    """Log `count` steps, and say what one of them costs."""
    began = time.perf_counter()
    way.log(logdir, series, count)
    took = time.perf_counter() - began
    size = sum(file.stat().st_size for file in logdir.rglob("*") if file.is_file())
    return Logged(size / count, (took - alone) / count)


def seconds_to_first_chart(way: Way, logdir: Path, loader: str, *, browser: Browser) -> float:
    """From the start of the command to a chart in the page, with somebody who reloads the page until there is one."""
    began = time.perf_counter()
    with tensorboard("--logdir", str(logdir), loader) as board, page(browser) as shown:
        while time.perf_counter() - began < LONGEST_SECONDS:
            shown.goto("about:blank")
            shown.goto(f"{board.url}#{way.tab}")
            place = shown.frame_locator('iframe[src*="name=torchgraph"]') if way.is_framed else shown
            try:
                place.locator(way.chart).first.wait_for(timeout=PATIENCE_MS * (5 if way.is_framed else 1))
            except PageTimeoutError:
                continue
            if way.is_framed:
                place.locator(".strip-loading").first.wait_for(state="detached")
            return time.perf_counter() - began
    return float("inf")


@contextmanager
def page(browser: Browser) -> Iterator[Page]:
    """A page of a browser that remembers nothing."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


def compare(what: str, ours: float, theirs: float, *, unit: str) -> None:
    """Print a line of the table."""
    print(f"{what:46} {ours:12,.2f} {theirs:12,.2f} {unit:5} {theirs / ours:8.1f} x", flush=True)


def main() -> None:
    """Log both ways, show both, and print what they cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--loaders", nargs="+", default=[FAST, SLOW])
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{options.series} series × {options.steps} steps{'torchgraph':>30} {'histograms':>12} {'':5} {'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        log_nothing(Path(folder), options.series, 5)  # the first step costs more than others
        began = time.perf_counter()
        log_nothing(Path(folder), options.series, options.steps)
        size = {"series": options.series, "count": options.steps, "alone": time.perf_counter() - began}
        places = [(OURS, Path(folder, "ours")), (THEIRS, Path(folder, "theirs"))]
        ours, theirs = (logged(way, place, **size) for way, place in places)
        compare("bytes per logged step", ours.bytes / 1e3, theirs.bytes / 1e3, unit="kB")
        compare("time per logged step", ours.seconds * 1e3, theirs.seconds * 1e3, unit="ms")
        browser = playwright.chromium.launch(executable_path=find_chrome(), args=list(SWITCHES))
        for loader in options.loaders:
            shown = [seconds_to_first_chart(way, place, loader, browser=browser) for way, place in places]
            compare(f"tensorboard {loader} to first chart", *shown, unit="s")
        browser.close()


if __name__ == "__main__":
    main()
