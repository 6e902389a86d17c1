"""Connections that are idle, slow or wrong: nobody else has to wait for them, and they are not kept for ever."""

from __future__ import annotations

import http.client
import random
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from tests.browser.servers import ForkedServer
from tests.processes import SECONDS, wait_for
from tests.record.long_runs import write_long_run
from torchgraph_explorer.server.http_server import HttpServer, Limits
from torchgraph_explorer.server.response import App, Environment, StartResponse, problem, send

pytestmark = pytest.mark.slow

STEPS = 20_000
LARGE = "/api/updates?run=long&model=long&epoch=-1&frames=0&series=0"
GENEROUS = 5.0
"""Seconds in which a small request must be answered, however many others are slow; it takes some milliseconds."""


def head(path: str = "/api/health", *lines: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: localhost", *lines, "", "")).encode()


@dataclass
class Slow:
    """A client that takes its time.

    Attributes:
        first: What it sends when it is connected.
        drip: What it sends again and again.
        reads: Bytes that it reads before.
    """

    first: bytes = b""
    drip: bytes = b""
    reads: int = 0

    def connect(self, port: int) -> socket.socket:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(SECONDS)
        sock.connect(("127.0.0.1", port))
        sock.sendall(self.first)
        if self.reads:
            sock.recv(self.reads)
        return sock


KINDS = {
    "idle": Slow(),
    "kept alive": Slow(head(), reads=4096),
    "slow head": Slow(head()[:-2], drip=b"X-More: 1\r\n"),
    "slow body": Slow(head("/api/health", "Content-Length: 60000"), drip=b"x"),
    "slow chunks": Slow(head("/api/health", "Transfer-Encoding: chunked"), drip=b"1\r\nx\r\n"),
    "slow reader": Slow(head(LARGE), reads=1),
    "pipelined": Slow(head(LARGE) * 20),
}


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_long_run(folder / "long", STEPS)
    return folder


@contextmanager
def serving(logdir: Path) -> Iterator[ForkedServer]:
    server = ForkedServer(logdir)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def besieged(port: int, *, each: int, kinds: Any = KINDS) -> Iterator[list[socket.socket]]:
    """So many slow clients of each kind, who go on being slow until the block ends."""
    with ExitStack() as stack:
        clients = [(kind, stack.enter_context(kind.connect(port))) for _ in range(each) for kind in kinds.values()]
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(0.1):
                for kind, sock in clients:
                    if kind.drip:
                        try:
                            sock.sendall(kind.drip)
                        except OSError:  # the server has had enough of it
                            sock.close()

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield [sock for _, sock in clients]
        finally:
            stop.set()
            thread.join()


def asked(port: int, path: str = "/api/health") -> float:
    """Seconds that a whole answer took, on a connection of its own."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert (answer.status, bool(answer.read())) == (200, True)
    connection.close()
    return time.monotonic() - began


def status_of(process: int, field: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def test_300_idle_and_slow_connections_keep_nobody_waiting(logdir: Path) -> None:
    with serving(logdir) as server:
        asked(server.port, LARGE)
        before = status_of(server.pid, "VmRSS") if sys.platform == "linux" else 0
        with besieged(server.port, each=-(-300 // len(KINDS))):
            assert max(asked(server.port) for _ in range(20)) < GENEROUS
            assert asked(server.port, LARGE) < GENEROUS
            if sys.platform == "linux":
                assert status_of(server.pid, "Threads") < 8 + 8
                assert status_of(server.pid, "VmRSS") - before < 500_000, "kB"


FEW_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
"""
"""The server takes half of that."""


def test_more_connections_than_there_may_be_close_the_idle_ones(logdir: Path) -> None:
    server = ForkedServer(logdir, before=FEW_FILES)
    try:
        with besieged(server.port, each=300, kinds={"idle": KINDS["idle"]}) as idle:
            assert asked(server.port) < GENEROUS
            assert asked(server.port, LARGE) < GENEROUS
            idle[0].settimeout(GENEROUS)
            assert idle[0].recv(1) == b"", "the oldest was closed"
    finally:
        server.stop()


LIMITS = Limits(header_seconds=0.5, body_seconds=0.5, piece_seconds=0.5, piece_bytes=2**14, unsent_bytes=2**22)
MEGABYTE = b"x" * 2**20


def large_door(environment: Environment, start_response: StartResponse) -> list[bytes]:
    """Answers with a megabyte, but briefly on `api/health`."""
    if environment["PATH_INFO"] == "/api/health":
        return send(problem(200, "in"), environment, start_response)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(MEGABYTE)))])
    return [MEGABYTE]


@contextmanager
def own_server(limits: Limits, served: App = large_door) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as sock:
        server = HttpServer(served, sock, limits)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield sock.getsockname()[1]
        finally:
            server.close()
            thread.join(SECONDS)


def is_closed(sock: socket.socket) -> bool:
    """The server has closed it, whatever came before."""
    sock.settimeout(0.01)
    try:
        return sock.recv(64) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("slow reader", "pipelined")])
def test_who_asks_too_slowly_is_let_go(kind: str) -> None:
    with own_server(LIMITS) as port, besieged(port, each=1, kinds={kind: KINDS[kind]}) as (sock,):
        assert wait_for(partial(is_closed, sock), seconds=10)


def unread(sock: socket.socket) -> bytes:
    sock.settimeout(SECONDS)
    found = b""
    try:
        while piece := sock.recv(2**16):
            found += piece
    except OSError:  # reset
        pass
    return found


def test_who_does_not_read_its_answer_is_let_go() -> None:
    with own_server(LIMITS) as port, KINDS["slow reader"].connect(port) as sock:
        time.sleep(2 * LIMITS.piece_seconds)  # what is tested is what happens meanwhile
        assert len(unread(sock)) < len(MEGABYTE)


def test_answers_that_are_read_come_whole_and_one_after_the_other() -> None:
    with own_server(LIMITS) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        for path in ("/", "/api/health", "/", "/x"):
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == 200
            body = answer.read()
            assert body == MEGABYTE or path == "/api/health"
        connection.close()


def test_answers_that_nobody_reads_do_not_pile_up() -> None:
    limits = replace(LIMITS, piece_seconds=SECONDS, unsent_bytes=3 * len(MEGABYTE))
    with own_server(limits) as port, besieged(port, each=8, kinds={"slow": KINDS["slow reader"]}) as socks:
        assert asked(port) < GENEROUS
        left = [len(unread(sock)) for sock in socks[:5]]
        assert max(left) < len(MEGABYTE), "the oldest were let go"
        assert len(unread_whole(socks[-1])) >= len(MEGABYTE) - 1, "the latest was not"


def unread_whole(sock: socket.socket) -> bytes:
    """What is left of an answer of a megabyte, the connection being kept."""
    sock.settimeout(SECONDS)
    found = b""
    while len(found) < len(MEGABYTE) - 1 and (piece := sock.recv(2**16)):
        found += piece
    return found


def test_who_is_being_served_is_not_closed_for_a_new_one() -> None:
    go_on, entered = threading.Event(), threading.Event()

    def slow_door(environment: Environment, start_response: StartResponse) -> list[bytes]:
        if environment["PATH_INFO"] == "/slow":
            entered.set()
            assert go_on.wait(SECONDS)
        return send(problem(200, "in"), environment, start_response)

    with own_server(replace(LIMITS, header_seconds=SECONDS, connections=16), slow_door) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        connection.request("GET", "/slow")
        assert entered.wait(SECONDS)
        with besieged(port, each=40, kinds={"idle": KINDS["idle"]}):
            assert asked(port) < GENEROUS
            go_on.set()
            assert connection.getresponse().status == 200
        connection.close()


WRONG = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "endless line": b"GET /" + b"a" * 100_000,
    "endless head": head()[:-2] + b"X-More: 1\r\n" * 10_000,
    "large body": head("/api/health", "Content-Length: 9999999999"),
    "two lengths": head("/api/health", "Content-Length: 1", "Content-Length: 2"),
    "both lengths": head("/api/health", "Content-Length: 1", "Transfer-Encoding: chunked"),
    "large chunk": head("/api/health", "Transfer-Encoding: chunked") + b"ffffffff\r\n",
    "negative": head("/api/health", "Content-Length: -1"),
    "no line ends": b"GET / HTTP/1.1\n\n",
    "odd target": head("http://[::1"),
    "NUL": head("/\0%00"),
}


def mutations(count: int) -> dict[str, bytes]:
    """Requests with some bytes that are others."""
    rng = random.Random(0)
    found = {}
    for number in range(count):
        request = bytearray(head(LARGE, "Content-Length: 3", "Accept-Encoding: gzip") + b"abc")
        for _ in range(rng.randint(1, 8)):
            request[rng.randrange(len(request))] = rng.choice((0, 9, 10, 13, 32, 58, 127, 255, rng.randrange(256)))
        found[f"mutation {number}"] = bytes(request)
    return found


def send_all(port: int, request: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as sock:
        try:
            sock.sendall(request)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(2**16):
                pass
        except OSError:  # it was closed before all of it was sent
            pass


def test_what_is_no_request_neither_ends_the_server_nor_makes_it_complain(logdir: Path) -> None:
    command = "import sys; from torchgraph_explorer.cli import main; sys.exit(main())"
    arguments = [sys.executable, "-c", command, "serve", str(logdir), "--port=0"]
    with Popen(arguments, stdout=PIPE, stderr=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            port = int(process.stdout.readline().rstrip().rstrip("/").rpartition(":")[2])
            for request in (WRONG | mutations(300)).values():
                send_all(port, request)
            assert asked(port) < GENEROUS
            process.terminate()
            assert (process.wait(SECONDS), process.stderr.read()) == (0, "")
        finally:
            process.kill()
