"""Pages that show the viewer in a frame, or try to."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.page import SWITCHES, expect_refused, expect_soon
from tests.browser.servers import ServerProcess
from tests.tables import matrix
from tests.tb_plugin.hosts import notebook, serving

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("embedding")]  # a browser of its own

FOREIGN = ("evil.example", "localhost.evil.example", "x.googleusercontent.com")
"""Names that lead to this machine, as those of a page elsewhere would not: the browser keeps such from it by itself."""


@pytest.fixture(scope="module")
def misled(browser: Browser, chrome: str) -> Iterator[Browser]:
    """A browser that takes those names to be this machine's."""
    led = ",".join(f"MAP {name} 127.0.0.1" for name in FOREIGN)
    other = browser.browser_type.launch(executable_path=chrome, args=[*SWITCHES, f"--host-resolver-rules={led}"])
    yield other
    other.close()


@pytest.fixture
def page(misled: Browser) -> Iterator[Page]:
    """A page of that browser."""
    page = misled.new_page()
    yield page
    page.close()


@pytest.mark.parametrize(("outer", "inner"), matrix(["localhost", "127.0.0.1"], ["127.0.0.1", "localhost"]))
def test_a_notebook_on_this_machine_may_show_the_viewer(
    outer: str, inner: str, page: Page, server: ServerProcess, digits: str
) -> None:
    with serving(notebook(f"http://{inner}:{server.port}/#run={digits}")) as url:
        page.goto(f"http://{outer}:{urlsplit(url).port}/")
        expect(page.frame_locator("iframe").locator(".node").first).to_be_visible()


@pytest.mark.parametrize("name", FOREIGN)
def test_a_page_of_another_site_may_not(name: str, page: Page, server: ServerProcess, digits: str) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    with serving(notebook(f"http://localhost:{server.port}/#run={digits}")) as url:
        page.goto(f"http://{name}:{urlsplit(url).port}/")
        expect(page.locator("iframe")).to_be_visible()
        expect_refused(page)

        def check() -> None:
            page.wait_for_timeout(0)  # hears what the browser says meanwhile
            assert "frame-ancestors" in " ".join(said)

        expect_soon(check)
