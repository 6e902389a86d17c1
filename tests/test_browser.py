"""A browser is opened where it can show the viewer, and nothing waits for it."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.processes import wait_for
from torchgraph_explorer.browser import browse


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What browsers were asked to show; each goes on until the test ends."""
    urls, over = list[str](), threading.Event()

    def open_page(url: str) -> None:
        urls.append(url)
        over.wait()

    monkeypatch.setattr(webbrowser, "open", open_page)
    yield urls
    over.set()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("firefox", ["http://here/"], id="a window"),
        pytest.param("", ["http://here/"], id="the system's own"),
        pytest.param("/home/me/bin/open-it.sh", ["http://here/"], id="a script"),
        pytest.param("/usr/bin/lynx", [], id="in the terminal"),
        pytest.param("elinks", [], id="another in the terminal"),
    ],
)
def test_a_browser_with_a_window_is_opened(
    name: str, expected: list[str], opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "get", lambda: SimpleNamespace(name=name))
    browse("http://here/")
    assert wait_for(lambda: opened == expected, seconds=1)


def test_without_a_browser_nothing_is_opened(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def get() -> None:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", get)
    browse("http://here/")
    assert opened == []
