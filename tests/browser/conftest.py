"""Recorded runs, a server of them, and a page that must not complain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, ViewportSize

from tests.browser import runs
from tests.browser.page import SECONDS_TO_SHOW, Viewer
from tests.browser.servers import ForkedServer, ServerProcess
from tests.shared import once, shared_folder

HERE = Path(__file__).parent

WINDOW: ViewportSize = {"width": 1440, "height": 900}
SETTINGS = {"viewport": WINDOW, "locale": "en-GB", "color_scheme": "light", "reduced_motion": "reduce"}

FORGET = "() => { if (location.protocol.startsWith('http')) localStorage.clear(); }"

NewContext = Callable[..., BrowserContext]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two processes open the pages of all files that say nothing else: each has a browser, a server and the runs."""
    ours = [one for one in items if one.path.parent == HERE and not one.get_closest_marker("xdist_group")]
    files = sorted({one.path for one in ours})
    for one in ours:
        one.add_marker(pytest.mark.xdist_group(f"browser {files.index(one.path) % 2}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tells the frame times that tests have taken."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "frame times" and report.when == "call":
                terminalreporter.write_line(f"{name}, {text}")


@pytest.fixture(scope="session")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the runs that several tests look at, one for all workers. Tests must not change a run."""
    return shared_folder(tmp_path_factory, "runs")


@pytest.fixture(scope="session")
def digits(logdir: Path) -> str:
    """The name of a run of the demo's network, with NaN in its classifier at some steps."""
    return once(logdir, "digits", runs.record_digits)


@pytest.fixture(scope="session")
def denoiser(logdir: Path) -> str:
    """The name of a run of a model that gives one tensor to all of its equal blocks."""
    return once(logdir, "denoiser", runs.record_denoiser)


@pytest.fixture(scope="session")
def many(logdir: Path) -> str:
    """The name of a run of a model that calls very many modules one after the other."""
    return once(logdir, "many", runs.record_many_calls)


@pytest.fixture(scope="session")
def loop(logdir: Path) -> str:
    """The name of a run whose model calls a cell and a head in turn, and one call has NaN at the last step."""
    return once(logdir, "loop", runs.record_loop)


@pytest.fixture(scope="session")
def long(logdir: Path) -> str:
    """The name of a run of a small model over very many steps."""
    return once(logdir, "long", runs.record_long)


@pytest.fixture(scope="session")
def scalars(logdir: Path) -> str:
    """The name of a run whose training loop logged scalars and a note."""
    return once(logdir, "scalars", runs.record_scalars)


@pytest.fixture(scope="session")
def values(logdir: Path) -> str:
    """The name of a run with very many values of a scalar."""
    return once(logdir, "values", runs.record_many_values)


@pytest.fixture(scope="session")
def gan(logdir: Path) -> str:
    """The name of a run of a GAN in one module, with an optimizer for each half."""
    return once(logdir, "gan", runs.record_gan)


@pytest.fixture(scope="session")
def accumulating(logdir: Path) -> str:
    """The name of a run with nine micro-batches an update, some of which were skipped."""
    return once(logdir, "accumulating", runs.record_accumulating)


@pytest.fixture(scope="session")
def pair(logdir: Path) -> str:
    """The name of a run of two models, `gates` with parts that no gradient reaches, and `linear`."""
    return once(logdir, "pair", runs.record_pair)


@pytest.fixture(scope="session")
def broken(logdir: Path) -> str:
    """The name of a run in which much is wrong: with causes, what follows from them, and marks of every kind."""
    return once(logdir, "broken", runs.record_broken)


@pytest.fixture(scope="session")
def kept(logdir: Path) -> str:
    """The name of a run that keeps tensors of many shapes whole."""
    return once(logdir, "kept", runs.record_kept)


@pytest.fixture(scope="session")
def sweep(logdir: Path) -> str:
    """The folder of four runs of a small model, which are compared."""
    return once(logdir, "sweep", runs.record_sweep)


@pytest.fixture(scope="session")
def dependent(logdir: Path) -> str:
    """The name of a run with labels, categories and a dependency graph of its kept tensors."""
    return once(logdir, "dependent", runs.record_dependent)


@pytest.fixture(scope="session")
def server(logdir: Path) -> Iterator[ServerProcess]:
    """Serves `logdir` while the tests run."""
    yield from serving(logdir)


@pytest.fixture
def own_logdir(tmp_path: Path) -> Path:
    """An empty logdir for one test."""
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def own_server(own_logdir: Path) -> Iterator[ServerProcess]:
    """Serves `own_logdir`; the test may stop it."""
    yield from serving(own_logdir)


def serving(logdir: Path) -> Iterator[ServerProcess]:
    """A server until the fixture ends."""
    process = ForkedServer(logdir)
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture
def new_context(browser: Browser) -> Iterator[NewContext]:
    """Opens windows that know nothing of each other, as of another person."""
    opened: list[BrowserContext] = []

    def new(**options: object) -> BrowserContext:
        opened.append(context_of(browser, **options))
        return opened[-1]

    yield new
    for context in opened:
        context.close()


def context_of(browser: Browser, **options: object) -> BrowserContext:
    """A window with the settings of all tests, and others."""
    context = browser.new_context(**{**SETTINGS, **options})  # type: ignore[arg-type]
    context.set_default_timeout(SECONDS_TO_SHOW * 1000)
    return context


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Iterator[Page]:
    """One tab for all tests: to open a tab takes as long as to load the viewer into it."""
    context = context_of(browser)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """The tab, empty. What the test does to it is undone."""
    yield tab
    tab.unroute_all()
    tab.mouse.up()
    tab.evaluate(FORGET)
    tab.goto("about:blank")
    tab.context.set_offline(False)
    tab.set_viewport_size(WINDOW)
    tab.emulate_media(color_scheme="light", reduced_motion="reduce")
    tab.set_default_timeout(SECONDS_TO_SHOW * 1000)


@pytest.fixture
def viewer(page: Page, server: ServerProcess) -> Iterator[Viewer]:
    """The viewer of `logdir`. The browser must have had nothing to complain of."""
    yield from watched(page, server.url)


@pytest.fixture
def own_viewer(page: Page, own_server: ServerProcess) -> Iterator[Viewer]:
    """The viewer of `own_logdir`."""
    yield from watched(page, own_server.url)


def watched(page: Page, url: str) -> Iterator[Viewer]:
    """A viewer until the fixture ends."""
    viewer = Viewer(page, url)
    yield viewer
    viewer.leave()
    assert viewer.complaints == []


@pytest.fixture
def offline(page: Page) -> Iterator[Viewer]:
    """A page without a network, which may load files only; nothing may be complained of, and nothing else asked for."""
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.continue_() if route.request.url.startswith("file:") else route.abort()

    page.context.set_offline(True)
    page.route("**/*", answer)
    yield from watched(page, "")
    assert [url for url in asked if not url.endswith(".html")] == []
