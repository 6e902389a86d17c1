"""HTTP/1.1 for the WSGI app.

A connection that is idle or slow occupies a socket, never a thread, and only for a limited time. All clients may come
from one address, 127.0.0.1, so connections are not counted per client: if there are too many, the one that has been
idle longest is closed for the new one.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

from tornado.http1connection import HTTP1Connection, HTTP1ConnectionParameters, HTTP1ServerConnection
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream, StreamClosedError
from tornado.tcpserver import TCPServer

from torchgraph_explorer.server.response import App, Environment

T = TypeVar("T")

SEND_BUFFER = 2**18
"""Bytes that the system buffers for a connection; by default it would buffer megabytes."""

BACKLOG = 512
"""Connections that the system keeps while they wait to be accepted."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What all clients together, and each of them, may use. See http_api.md.

    Attributes:
        connections: Open at a time.
        threads: Requests that are answered at a time.
        header_seconds: Time for a request's head to arrive after the connection is open or had its last answer.
        header_bytes: Size of a request's head.
        body_seconds: Time for a request's body to arrive. Only changes of what is explored have one.
        body_bytes: Size of that body.
        piece_bytes: Part of an answer that must be received within `piece_seconds`; slower connections are closed.
        piece_seconds: See `piece_bytes`.
        unsent_bytes: Size of all answers that wait for their clients.
    """

    connections: int = 512
    threads: int = 8
    header_seconds: float = 20.0
    header_bytes: int = 2**15
    body_seconds: float = 20.0
    body_bytes: int = 2**16
    piece_bytes: int = 2**18
    piece_seconds: float = 20.0
    unsent_bytes: int = 2**28


class HttpServer:
    """Serves an app on a socket that listens, once `run` is called."""

    def __init__(self, app: App, sock: socket.socket, limits: Limits | None = None) -> None:
        self._app, self._sock, self._limits = app, sock, limits or affordable()
        self._lock = threading.Lock()
        self._stop: Callable[[], object] | None = None
        self._is_closed = False

    def run(self) -> None:
        """Serve until `close` is called."""
        asyncio.run(self._serve())

    def close(self) -> None:
        """Stop listening, so that `run` returns in its thread."""
        with self._lock:
            self._is_closed = True
            if self._stop is None:
                self._sock.close()
            else:
                with suppress(RuntimeError):  # the loop has ended by itself
                    self._stop()

    async def _serve(self) -> None:
        stopped = asyncio.Event()
        with self._lock:
            if self._is_closed:
                return
            self._stop = partial(asyncio.get_running_loop().call_soon_threadsafe, stopped.set)
        clients = _Clients(self._app, self._limits, self._sock.getsockname())
        self._sock.setblocking(False)
        clients.add_socket(self._sock)
        try:
            await stopped.wait()
        finally:
            clients.stop()
            clients.drop_all()


def affordable() -> Limits:
    """The limits, with at most half as many connections as this process may have open files."""
    try:
        import resource
    except ImportError:  # on Windows
        return Limits(connections=256)  # it waits for no more than 512 sockets at once
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = Limits().connections
    return Limits(connections=most if allowed == resource.RLIM_INFINITY else max(16, min(most, allowed // 2)))


@dataclass(eq=False, slots=True)
class _Client:
    """A connection.

    Attributes:
        stream: Its socket.
        address: Where it comes from.
        since: When the server began to wait for it: for a request, or for it to receive an answer.
        is_served: A request of it waits for a thread, or has one.
        unsent: Bytes of an answer that it has not received yet.
    """

    stream: IOStream
    address: str
    since: float = field(default_factory=time.monotonic)
    is_served: bool = False
    unsent: int = 0


class _Answer(NamedTuple):
    """The app's answer to a request."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


class _Clients(TCPServer, HTTPServerConnectionDelegate):
    """Every open connection."""

    def __init__(self, app: App, limits: Limits, address: tuple[Any, ...]) -> None:
        super().__init__(max_buffer_size=2 * (limits.header_bytes + limits.body_bytes))
        self.app, self.limits, self.address = app, limits, address
        self.threads = asyncio.Semaphore(limits.threads)
        self.tasks: set[asyncio.Task[None]] = set()
        self._clients: dict[object, _Client] = {}
        self._parameters = HTTP1ConnectionParameters(
            max_header_size=limits.header_bytes,
            header_timeout=limits.header_seconds,
            max_body_size=limits.body_bytes,
            body_timeout=limits.body_seconds,
        )

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Accept a new connection, or close it if the limit is reached and all connections are being served."""
        if not self._make_room():
            stream.close()
            return
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        client = _Client(stream, str(address[0]) if address else "")
        connection = HTTP1ServerConnection(stream, self._parameters, client)
        self._clients[connection] = client
        connection.start_serving(self)

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """A connection waits for its next request."""
        client = self._clients.get(server_conn)
        assert isinstance(request_conn, HTTP1Connection)
        if client is None:  # it has just been closed for another
            return HTTPMessageDelegate()
        client.since = time.monotonic()
        return _Exchange(self, client, request_conn)

    def on_close(self, server_conn: object) -> None:
        """A connection is closed."""
        self._clients.pop(server_conn, None)

    def drop_all(self) -> None:
        """Close every connection."""
        for client in list(self._clients.values()):
            client.stream.close()

    def begin_to_send(self, client: _Client, size: int) -> None:
        """Count an answer as unsent; if there is too much unsent, close the connections that have waited longest."""
        client.is_served, client.since, client.unsent = False, time.monotonic(), size
        sending = sorted((one for one in self._clients.values() if one.unsent), key=lambda one: one.since)
        total = sum(one.unsent for one in sending)
        for one in sending:
            if total <= self.limits.unsent_bytes or one is client:
                break
            total -= one.unsent
            one.unsent = 0
            one.stream.close()

    def _make_room(self) -> bool:
        """Close connections until one more may be open: idle ones first, then slow readers, the oldest first."""
        waiting = [(one.unsent > 0, one.since, key) for key, one in self._clients.items() if not one.is_served]
        excess = len(self._clients) + 1 - self.limits.connections
        if len(waiting) < excess:
            return False
        for _, _, key in sorted(waiting, key=lambda one: one[:2])[: max(excess, 0)]:
            self._clients.pop(key).stream.close()
        return True


class _Exchange(HTTPMessageDelegate):
    """One request of a connection, and its answer."""

    def __init__(self, clients: _Clients, client: _Client, connection: HTTP1Connection) -> None:
        self._clients, self._client, self._connection = clients, client, connection
        self._environment: Environment = {}
        self._body = bytearray()

    def headers_received(self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders) -> None:
        assert isinstance(start_line, RequestStartLine)
        self._environment = _environment(start_line, headers) | {
            "SERVER_NAME": self._clients.address[0],
            "SERVER_PORT": str(self._clients.address[1]),
            "REMOTE_ADDR": self._client.address,
        }

    def data_received(self, chunk: bytes) -> None:
        self._body += chunk  # of at most `Limits.body_bytes`

    def finish(self) -> None:
        self._environment |= {"wsgi.input": BytesIO(self._body), "CONTENT_LENGTH": str(len(self._body))}
        self._client.is_served = True
        task = asyncio.get_running_loop().create_task(self._serve())
        self._clients.tasks.add(task)  # the loop itself does not keep it
        task.add_done_callback(self._clients.tasks.discard)

    async def _serve(self) -> None:
        try:
            async with self._clients.threads:
                if self._client.stream.closed():  # it has not waited
                    return
                answer = await _in_thread(partial(_ask, self._clients.app, self._environment))
            self._clients.begin_to_send(self._client, len(answer.body))
            await self._send(answer)
        except (StreamClosedError, asyncio.TimeoutError):
            self._connection.close()
        except BaseException:
            self._connection.close()
            raise
        finally:
            self._client.is_served, self._client.unsent = False, 0

    async def _send(self, answer: _Answer) -> None:
        limits, headers = self._clients.limits, HTTPHeaders()
        for name, value in (*answer.headers, ("Date", formatdate(usegmt=True))):
            headers.add(name, value)
        code, _, reason = answer.status.partition(" ")
        start, size = ResponseStartLine("HTTP/1.1", int(code), reason), limits.piece_bytes
        written = self._connection.write_headers(start, headers, answer.body[:size])
        await asyncio.wait_for(written, limits.piece_seconds)
        for at in range(size, len(answer.body), size):
            written = self._connection.write(answer.body[at : at + size])
            await asyncio.wait_for(written, limits.piece_seconds)
        self._connection.finish()


def _environment(start_line: RequestStartLine, headers: HTTPHeaders) -> Environment:
    """The WSGI environment of a request (PEP 3333), before its body."""
    path, _, query = start_line.path.partition("?")
    environment: Environment = {
        "REQUEST_METHOD": start_line.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path.encode("latin-1")).decode("latin-1"),
        "QUERY_STRING": query,
        "CONTENT_TYPE": headers.get("Content-Type", ""),
        "SERVER_PROTOCOL": start_line.version,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    # A name with `_` could be taken for another header. Values of a repeated header are joined by commas.
    named = {name: value for name, value in headers.items() if "_" not in name}
    return environment | {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in named.items()}


def _ask(app: App, environment: Environment) -> _Answer:
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]]) -> None:
        started.append((status, headers))

    body = b"".join(app(environment, start))
    return _Answer(*started[0], body)


def _in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """The result of `work`, called in a daemon thread, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(set_outcome: Callable[[Any], None], outcome: object) -> None:
        if not future.done():
            set_outcome(outcome)

    def call() -> None:
        try:
            report = partial(tell, future.set_result, work())
        except BaseException as fault:
            report = partial(tell, future.set_exception, fault)
        with suppress(RuntimeError):  # the server is closed
            loop.call_soon_threadsafe(report)

    threading.Thread(target=call, daemon=True).start()
    return future
