"""Views of the user's own in the page: drawn again as the selection changes, and shut off from everything else."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.browser.page import Viewer, expect_soon, expect_true
from tests.browser.test_tensors import CELL, CONV
from tests.processes import python, torchgraph

FACTS = """
def facts(selection):
    where = selection.series.module if selection.series else selection.module
    shape = selection.array().shape if selection.series else None
    return f"<p id=facts>{selection.step} {where} {shape} {selection.index} {selection.theme}</p>"

def fails(selection):
    return selection.nothing
"""

REACHING = """
def reaching(selection):
    return '''<p id="done"></p><script>
      const url = "{url}";
      const made = (name, url) => new Promise((onload, onerror) => document.head.append(
        Object.assign(document.createElement(name), {onload, onerror, src: url, href: url, rel: "stylesheet"})));
      const tries = {
        parent: () => parent.document.title,
        storage: () => localStorage.length,
        cookie: () => document.cookie,
        window: () => open(url + "window") || Promise.reject(),
        top: () => { top.location = url + "top"; },
        fetch: () => fetch(url + "fetch"),
        api: () => fetch("./runs"),
        image: () => made("img", url + "image"),
        script: () => made("script", url + "script"),
        style: () => made("link", url + "style"),
        iframe: () => { navigator.sendBeacon(url + "beacon"); throw new Error("it tells nothing"); },
      };
      const works = async (one) => { try { await one(); return true; } catch { return false; } };
      (async () => {
        const told = [];
        for (const [name, one] of Object.entries(tries)) if (await works(one)) told.push(name);
        document.getElementById("done").textContent = `reached: ${told.join()}`;
        setTimeout(() => { location.href = url + "itself"; }, 1000);
      })();
    </script>'''
"""


@contextmanager
def listener() -> Iterator[tuple[str, list[str]]]:
    """A server elsewhere, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    # The browser connects ahead, and asks nothing over that connection for a minute.
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    (folder / "mine.py").write_text(FACTS)
    return folder


@pytest.fixture
def own(page: Page, logdir: Path, kept: str, digits: str, files: Path) -> Iterator[Viewer]:
    """The viewer of a server with views; `mine.py` may be edited."""
    views = [f"--view={files / 'mine.py'}:{name}" for name in ("facts", "fails")]
    with serving(logdir, *views) as url:
        yield Viewer(page, url)


@contextmanager
def serving(logdir: Path, *options: str) -> Iterator[str]:
    command = torchgraph("serve", str(logdir), "--port", "0", "--no-browser", *options)
    with python(*command, stderr=None) as server:
        assert server.stdout is not None
        found = re.search(r" at (http://\S+)$", server.stdout.readline().strip())
        assert found is not None
        yield found[1]


def drawn(viewer: Viewer, name: str = "facts") -> FrameLocator:
    return viewer.page.frame_locator(f'iframe[title="View {name}"]')


def test_a_view_that_could_not_be_fetched_is_drawn_as_soon_as_it_can_be(own: Viewer, kept: str) -> None:
    own.open(kept, tensor=CONV, view="own", theme="light")
    facts = drawn(own).locator("#facts")
    expect(facts).to_have_text("10 conv (6, 8, 8) None light")
    own.page.route("**/api/view?*", lambda route: route.fulfill(status=503, body="Service Unavailable"))
    own.page.keyboard.press(",")
    expect(own.page.get_by_role("status").filter(has_text="did not answer")).to_be_visible()
    own.page.unroute("**/api/view?*")
    expect(facts).to_have_text("8 conv (6, 8, 8) None light")
    expect(own.page.get_by_text("did not answer")).to_have_count(0)


def test_a_view_follows_the_selection_and_edits_of_its_file(own: Viewer, kept: str, digits: str, files: Path) -> None:
    own.open(kept, tensor=CONV, view="own", theme="light")
    facts = drawn(own).locator("#facts")
    expect(facts).to_have_text("10 conv (6, 8, 8) None light")
    own.page.keyboard.press(",")
    expect(facts).to_have_text("8 conv (6, 8, 8) None light")
    own.choose("Sample", "all that were kept")
    expect(facts).to_have_text("8 conv (4, 6, 8, 8) None light")
    own.page.keyboard.press("t")
    expect(facts).to_have_text("8 conv (4, 6, 8, 8) None dark")
    own.page.get_by_role("navigation", name="Kept tensors").get_by_role("button", name="features").click()
    expect(facts).to_have_text("8  (4, 6, 8, 8) None dark")

    own.page.get_by_title("Page: fails").click()
    expect(drawn(own, "fails").locator("pre")).to_contain_text("has no attribute 'nothing'")
    (files / "mine.py").write_text(FACTS.replace("selection.nothing", "'mended'"))
    expect(drawn(own, "fails").locator("body")).to_have_text("mended")
    expect_true(own.page, "() => location.hash.includes('own=fails')")

    own.open(digits, view="own", selected="classifier#0", theme="light")
    expect(drawn(own).locator("#facts")).to_have_text("39 classifier None None light")
    expect(own.page.get_by_role("heading", name="facts")).to_be_visible()
    assert own.complaints == []


SLOW = """
import time
from pathlib import Path

def slow(selection):
    while not Path(__file__).with_name("let go").exists():
        time.sleep(0.05)
    return "drawn"
"""


def test_it_is_said_that_the_first_page_is_being_drawn(page: Page, logdir: Path, kept: str, files: Path) -> None:
    (files / "slow.py").write_text(SLOW)
    with serving(logdir, f"--view={files / 'slow.py'}:slow") as url:
        viewer = Viewer(page, url)
        viewer.open(kept, view="own")
        told = viewer.page.locator(".own-view-end").get_by_role("status")
        expect(told).to_have_text("Drawing …")
        (files / "let go").touch()
        expect(drawn(viewer, "slow").locator("body")).to_have_text("drawn")
        expect(told).to_have_text("")


def test_an_element_that_was_clicked_reaches_the_view(own: Viewer, kept: str) -> None:
    own.open(kept, tensor=CELL, view="own", own="facts", pick="0,5", theme="light")
    expect(drawn(own).locator("#facts")).to_have_text("10 cell (12,) (0, 5) light")


def test_the_page_of_a_view_reaches_nothing(page: Page, logdir: Path, kept: str, files: Path) -> None:
    with listener() as (elsewhere, asked):
        (files / "reaching.py").write_text(REACHING.replace("{url}", elsewhere))
        with serving(logdir, f"--view={files / 'reaching.py'}:reaching") as url:
            viewer = Viewer(page, url)
            viewer.open(kept, view="own")
            expect(drawn(viewer, "reaching").locator("#done")).to_have_text("reached: ")
            expect_soon(partial(check_said, viewer, f"Framing '{elsewhere}"))
            viewer.leave()
    assert asked == []


def check_said(viewer: Viewer, beginning: str) -> None:
    """The browser has said so in its console; what it says arrives while it is asked something."""
    viewer.page.title()
    assert any(one.startswith(beginning) for one in viewer.complaints)
