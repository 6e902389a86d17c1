"""Which pages may show the viewer in a frame."""

from __future__ import annotations

import pytest

from tests.server.asking import ask
from torchgraph_explorer.server.embedding import embeddable_in_notebooks, embeddable_in_tensorboard
from torchgraph_explorer.server.guard import IN_COLAB
from torchgraph_explorer.server.response import Environment, StartResponse, problem, send


def door(environment: Environment, start_response: StartResponse) -> list[bytes]:
    return send(problem(200, "in"), environment, start_response)


def ancestors(headers: dict[str, str]) -> list[str] | None:
    """The pages that the policy names; None where it leaves that open."""
    directives = [directive.split() for directive in headers["Content-Security-Policy"].split(";")]
    return next((sources for name, *sources in directives if name == "frame-ancestors"), None)


NOTEBOOKS = ["'self'", "http://localhost:*", "http://127.0.0.1:*", "vscode-webview:", "vscode-file:"]

ASKED = {
    "localhost": ("localhost:8080", NOTEBOOKS),
    "address": ("127.0.0.1:8080", NOTEBOOKS),
    "IPv6": ("[::1]:8080", NOTEBOOKS),  # which a policy cannot name
    "other machine": ("Box.lan:8080", [*NOTEBOOKS, "http://box.lan:*"]),
    "other address": ("192.168.0.7", [*NOTEBOOKS, "http://192.168.0.7:*"]),
    "no host": ("", NOTEBOOKS),
    "injection": ("x; script-src *", NOTEBOOKS),
    "wildcard": ("*", NOTEBOOKS),
    "several": ("a.lan,b.lan", NOTEBOOKS),
}


@pytest.mark.parametrize(("host", "expected"), ASKED.values(), ids=ASKED)
def test_notebooks_may_show_the_viewer_and_others_not(
    host: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(IN_COLAB, raising=False)
    headers = ask(embeddable_in_notebooks(door), "/", HTTP_HOST=host).headers
    assert ancestors(headers) == expected
    assert "X-Frame-Options" not in headers  # it knows no notebooks


def test_in_colab_its_own_pages_may_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IN_COLAB, "release-colab-external_20261101")
    sources = ancestors(ask(embeddable_in_notebooks(door), "/", HTTP_HOST="localhost").headers)
    assert sources is not None
    assert set(sources) - set(NOTEBOOKS) == {
        "https://colab.research.google.com",
        "https://*.googleusercontent.com",
        "https://*.prod.colab.dev",
    }


BOARD = "board.lan:6006"
SENT: dict[str, tuple[dict[str, str], list[str] | None]] = {
    "own page": ({"HTTP_SEC_FETCH_SITE": "same-origin"}, None),
    "own page, plain HTTP": ({"HTTP_REFERER": f"http://{BOARD}/data/plugin_entry.html?name=torchgraph"}, None),
    "typed in": ({"HTTP_SEC_FETCH_SITE": "none"}, ["'self'"]),
    "other site": ({"HTTP_SEC_FETCH_SITE": "cross-site"}, ["'self'"]),
    "other port": ({"HTTP_SEC_FETCH_SITE": "same-site", "HTTP_REFERER": f"http://{BOARD}/"}, ["'self'"]),
    "other site, plain HTTP": ({"HTTP_REFERER": "http://evil.example/"}, ["'self'"]),
    "name in front": ({"HTTP_REFERER": f"http://{BOARD}@evil.example/"}, ["'self'"]),
    "name behind": ({"HTTP_REFERER": f"http://evil.example/{BOARD}"}, ["'self'"]),
    "no URL": ({"HTTP_REFERER": "http://["}, ["'self'"]),
    "silent": ({}, ["'self'"]),
}


@pytest.mark.parametrize(("headers", "expected"), SENT.values(), ids=SENT)
def test_in_tensorboard_only_its_own_pages_may(headers: dict[str, str], expected: list[str] | None) -> None:
    answer = ask(embeddable_in_tensorboard(door), "/", HTTP_HOST=BOARD, **headers)
    assert ancestors(answer.headers) == expected
