"""Recorded runs, a server of them, and a page that must not complain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.browser import runs
from tests.browser.page import Viewer
from tests.browser.servers import ServerProcess
from tests.conftest import SECONDS_TO_SHOW

WINDOW = {"width": 1440, "height": 900}

NewContext = Callable[..., BrowserContext]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tells the frame times that tests have taken."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "frame times" and report.when == "call":
                terminalreporter.write_line(f"{name}, {text}")


@pytest.fixture(scope="session")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs that several tests look at lie. Tests may read them, and must not change them."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def digits(logdir: Path) -> str:
    """The name of a run of the demo's network, with NaN in its classifier at some steps."""
    runs.record_digits(logdir, "digits")
    return "digits"


@pytest.fixture(scope="session")
def many(logdir: Path) -> str:
    """The name of a run of a model that calls very many modules one after the other."""
    runs.record_many_calls(logdir, "many")
    return "many"


@pytest.fixture(scope="session")
def long(logdir: Path) -> str:
    """The name of a run of a small model over very many steps."""
    runs.record_long(logdir, "long")
    return "long"


@pytest.fixture(scope="session")
def pair(logdir: Path) -> str:
    """The name of a run of two models, `gates` with parts that no gradient reaches, and `linear`."""
    runs.record_pair(logdir, "pair")
    return "pair"


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
    process = ServerProcess(logdir)
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture
def new_context(browser: Browser) -> Iterator[NewContext]:
    """Opens windows that know nothing of each other, as of another person."""
    opened: list[BrowserContext] = []

    def new(**options: object) -> BrowserContext:
        settings = {"viewport": WINDOW, "locale": "en-GB", "color_scheme": "light", "reduced_motion": "reduce"}
        opened.append(browser.new_context(**{**settings, **options}))  # type: ignore[arg-type]
        opened[-1].set_default_timeout(SECONDS_TO_SHOW * 1000)
        return opened[-1]

    yield new
    for context in opened:
        context.close()


@pytest.fixture
def viewer(new_context: NewContext, server: ServerProcess) -> Iterator[Viewer]:
    """The viewer of `logdir`. The browser must have had nothing to complain of."""
    yield from watched_page(new_context, server.url)


@pytest.fixture
def own_viewer(new_context: NewContext, own_server: ServerProcess) -> Iterator[Viewer]:
    """The viewer of `own_logdir`."""
    yield from watched_page(new_context, own_server.url)


def watched_page(new_context: NewContext, url: str) -> Iterator[Viewer]:
    """A page until the fixture ends."""
    viewer = Viewer(new_context().new_page(), url)
    yield viewer
    assert viewer.complaints == []
