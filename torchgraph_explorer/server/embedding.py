"""Which pages may show the viewer in an iframe: notebooks and TensorBoard. Any other could be clickjacking."""

from __future__ import annotations

import os
from collections.abc import Iterable
from urllib.parse import urlsplit

from torchgraph_explorer.server.guard import IN_COLAB, host_name
from torchgraph_explorer.server.response import FRAME_ANCESTORS, App, Environment, StartResponse

NOTEBOOKS = ("http://localhost:*", "http://127.0.0.1:*", "vscode-webview:", "vscode-file:")
"""Jupyter on this machine at any port (`http:` stands for `https:` too); VS Code's notebooks, and its window."""

COLAB = ("https://colab.research.google.com", "https://*.googleusercontent.com", "https://*.prod.colab.dev")
"""Google Colab: its page, the iframe of a cell's output, and the proxy to a port."""


def embeddable_in_notebooks(inner: App) -> App:
    """Let notebooks show `inner` in an iframe: those on this machine, or on the host that the request names."""

    def serve(environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        host = host_name(environment.get("HTTP_HOST", ""))
        own = () if host is None or host.startswith("[") else (f"http://{host}:*",)  # a policy cannot name IPv6
        colab = COLAB if IN_COLAB in os.environ else ()
        sources = dict.fromkeys(("'self'", *NOTEBOOKS, *own, *colab))
        return inner({**environment, FRAME_ANCESTORS: " ".join(sources)}, start_response)

    return serve


def embeddable_in_tensorboard(inner: App) -> App:
    """Let TensorBoard's own pages show `inner` in an iframe, and therefore every page that may show TensorBoard.

    TensorBoard allows every page. A policy that names notebooks would be rejected by TensorBoard's own check, which
    does not accept `http:` sources.
    """

    def serve(environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        sources = "" if _is_asked_by_own_page(environment) else "'self'"
        return inner({**environment, FRAME_ANCESTORS: sources}, start_response)

    return serve


def _is_asked_by_own_page(environment: Environment) -> bool:
    """Whether a page of the same origin asks. Browsers send `Sec-Fetch-Site` only over HTTPS and on localhost."""
    site = environment.get("HTTP_SEC_FETCH_SITE")
    if site is not None:
        return bool(site == "same-origin")
    host = environment.get("HTTP_HOST", "")
    return bool(host) and _netloc(environment.get("HTTP_REFERER", "")) == host


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:  # a bracket that does not close
        return ""
