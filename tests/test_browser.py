"""A browser is opened where it can show the viewer, and nothing waits for it."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.processes import wait_for
from torchgraph_explorer.browser import browse, over_ssh


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


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        pytest.param({"SSH_CONNECTION": "…"}, "On your own machine, first run: ssh -L 81:localhost:81 gpu7", id="ssh"),
        pytest.param({"SSH_CONNECTION": "…", "TERM_PROGRAM": "vscode"}, None, id="a terminal that forwards ports"),
        pytest.param({}, None, id="here"),
    ],
)
def test_who_came_over_ssh_is_told_how_to_forward_the_port(
    variables: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSH_CONNECTION", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu7")
    assert over_ssh(81) == expected
