"""Pages and servers that TensorBoard is put into."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PREFIX = "/proxy/6006"

PASSED_ON = ("content-type", "content-security-policy", "location", "content-encoding", "set-cookie")
"""Headers of answers that a proxy passes on."""

ASKED_WITH = ("content-type", "cookie", "origin", "sec-fetch-dest", "x-torchgraph-key")
"""Headers of requests that a proxy passes on."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """A server on localhost that answers with `handler`; its address."""
    with ThreadingHTTPServer(("localhost", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


class Quiet(BaseHTTPRequestHandler):
    """Says nothing in the terminal."""

    def log_message(self, *_: object) -> None: ...


def prefix_stripping_proxy(url: str, **changed: str) -> type[BaseHTTPRequestHandler]:
    """Shows below `PREFIX` what is at `url`, as jupyter-server-proxy does.

    It asks for the inner server's own host, and passes on the page's origin, unless these headers are `changed`.
    """

    class Proxy(Quiet):
        def do_POST(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            if not self.path.startswith(PREFIX):
                self.send_error(404)
                return
            inner = HTTPConnection(urlsplit(url).netloc, timeout=30)
            sent = {name: value for name, value in self.headers.items() if name.lower() in ASKED_WITH}
            sent |= {"Accept-Encoding": "identity", **changed}
            asked = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            inner.request(self.command, self.path.removeprefix(PREFIX), asked, sent)
            answer = inner.getresponse()
            body = answer.read()
            inner.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() in PASSED_ON:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Proxy


def notebook(url: str) -> type[BaseHTTPRequestHandler]:
    """A page with TensorBoard in a frame, as `%tensorboard` makes it."""

    class Notebook(Quiet):
        def do_GET(self) -> None:
            frame = f'<iframe id="tensorboard" width="100%" height="700" src="{url}"></iframe>'
            body = f"<h1>A notebook</h1>{frame}".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Notebook
