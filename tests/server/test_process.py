"""The server as a process: where it listens, and when it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from types import FrameType
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from tests.processes import SECONDS, answers, fetch, python, taken_port, torchgraph, wait_for
from tests.record.examples import write_small_run
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.server.process import Server, listen
from torchgraph_explorer.sinks.live_viewer import CHILD, PACKAGE_ROOT

pytestmark = pytest.mark.slow

UPDATES = "api/updates?run={run}&model={model}&epoch={epoch}&frames={frames}&series=0"


@contextmanager
def running(logdir: Path, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[Server]:
    server = listen(str(logdir), host=host, port=port)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(SECONDS)


def test_a_run_is_served_at_the_address_that_is_told(tmp_path: Path) -> None:
    write_small_run(tmp_path / "a")
    with running(tmp_path) as server:
        assert server.url == f"http://localhost:{server.port}/"
        assert not server.is_exposed
        assert [run["run"] for run in fetch(f"{server.url}api/runs")["runs"]] == ["a"]


def test_another_host_name_is_refused_by_the_server_itself(tmp_path: Path) -> None:
    with running(tmp_path) as server, pytest.raises(HTTPError, match="403") as refused:
        urlopen(Request(f"{server.url}api/runs", headers={"Host": "evil.example"}), timeout=10)
    with refused.value as answer:
        assert "evil.example" in json.load(answer)["error"]


def test_two_servers_that_ask_for_one_port_get_two(tmp_path: Path) -> None:
    with taken_port() as port, running(tmp_path, port=port) as one, running(tmp_path, port=port) as other:
        assert port < one.port < other.port
        assert answers(one.url)
        assert answers(other.url)


def test_every_address_of_the_machine_is_open_only_with_the_token(tmp_path: Path) -> None:
    with running(tmp_path, host="0.0.0.0") as server:
        assert server.is_exposed
        match = re.fullmatch(rf"http://([^/:]+):{server.port}/\?token=([\w-]{{32}})", server.url)
        assert match is not None
        assert match[1] not in ("0.0.0.0", "localhost")
        here = f"http://127.0.0.1:{server.port}/"
        with pytest.raises(HTTPError, match="401") as refused:
            urlopen(here, timeout=10)
        refused.value.close()
        with build_opener(HTTPCookieProcessor()).open(f"{here}api/health?token={match[2]}", timeout=10) as answer:
            assert json.load(answer)["logdir"] == str(tmp_path)


WRONG = {
    "port too large": ("127.0.0.1", 99_999, "port=99999 is not a port. Choose one from 1 to 65535, or 0"),
    "port below zero": ("127.0.0.1", -1, "port=-1 is not a port"),
    "foreign address": ("203.0.113.7", 0, r"Cannot listen on host '203.0.113.7': .* such as 127.0.0.1"),
    "unknown name": ("nobody.invalid", 0, "Cannot listen on host 'nobody.invalid'"),
}


@pytest.mark.parametrize(("host", "port", "message"), WRONG.values(), ids=WRONG)
def test_an_address_that_cannot_be_had_is_refused(host: str, port: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=message):
        listen(str(tmp_path), host=host, port=port)


def test_the_last_port_has_no_next_one(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 65_535))
        other.listen()
        with pytest.raises(OptionError, match=r"No port from 65535 to 65535 is free .* or 0 for any"):
            listen(str(tmp_path), host="127.0.0.1", port=65_535)


COMMAND = ("-c", CHILD, str(PACKAGE_ROOT))


def test_the_child_of_a_training_ends_with_the_pipe_to_it_and_not_by_ctrl_c(tmp_path: Path) -> None:
    with python(*COMMAND, str(tmp_path), "--port", "0") as child:
        assert child.stdout is not None
        said = json.loads(child.stdout.readline())
        os.kill(child.pid, signal.SIGINT)
        assert answers(said["url"])
        _, errors = child.communicate(timeout=SECONDS)
        assert (child.returncode, errors) == (0, "")


def kept(process: Popen[str], folder: Path) -> None:
    """Have the server that `process` announced make a copy of a run in `folder`."""
    assert process.stdout is not None
    url = re.search(r"http://localhost:\d+/", process.stdout.readline())
    assert url is not None
    fetch(f"{url[0]}{UPDATES.format(run='a', model='net', epoch=-1, frames=0)}")
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("command", [COMMAND, torchgraph("serve")], ids=["child", "serve"])
def test_what_was_copied_from_a_url_is_removed_by_sigterm(command: Sequence[str], tmp_path: Path) -> None:
    write_small_run(tmp_path / "runs" / "a")
    folder = tmp_path / "temporary"
    folder.mkdir()
    arguments = (*command, f"file://{tmp_path}/runs", "--port=0")
    with python(*arguments, env={**os.environ, "TMPDIR": str(folder)}) as process:
        kept(process, folder)
        process.terminate()
        process.wait(SECONDS)
    assert list(folder.iterdir()) == []


def test_a_child_that_cannot_listen_says_why(tmp_path: Path) -> None:
    with python(*COMMAND, str(tmp_path), "--port", "70000") as child:
        said, errors = child.communicate(timeout=SECONDS)
    assert (child.returncode, errors) == (2, "")
    assert json.loads(said)["error"].startswith("port=70000 is not a port.")


TRAINING = """
import sys, time
import torch
from torchgraph_explorer import watch
model = torch.nn.Linear(3, 2)
with watch(model, log_freq=1, backend="record", logdir=sys.argv[1], run="live", verbose=False):
    for _ in range(6):
        model(torch.randn(4, 3)).sum().backward()
        print("step", flush=True)
        sys.stdin.readline()
"""


@pytest.mark.slow
def test_steps_appear_while_another_process_trains(tmp_path: Path) -> None:
    with (
        python("-c", TRAINING, str(tmp_path)) as training,
        python(*torchgraph("serve", str(tmp_path), "--port=0")) as server,
    ):
        assert server.stdout is not None
        match = re.search(r"at (http://\S+)", server.stdout.readline())
        assert match is not None
        held: dict[str, str | int] = {"run": "live", "model": "Linear", "epoch": -1, "frames": 0}
        for step in range(6):
            assert training.stdout is not None
            assert training.stdin is not None
            assert training.stdout.readline() == "step\n"
            assert wait_for(lambda: fetch_new(match[1], held)), f"step {step} never came"
            training.stdin.write("\n")
            training.stdin.flush()
        assert held["frames"] == 6
        assert wait_for(lambda: fetch(match[1] + UPDATES.format(**held))["finished"] is not None)


def fetch_new(url: str, held: dict[str, str | int]) -> bool:
    """Ask for what is new and hold it too; True if there was a frame."""
    try:
        told = fetch(url + UPDATES.format(**held))
    except HTTPError as none_yet:
        none_yet.close()
        return False
    assert told["frames"]["first"] == (0 if told["reset"] else held["frames"])
    new = len(told["frames"]["step"])
    held.update(epoch=told["epoch"], frames=told["frames"]["first"] + new)
    return new > 0


class Interrupting:
    """Serves nothing: as soon as it is run, Ctrl-C is pressed."""

    def run(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def close(self) -> None:
        pass


def test_ctrl_c_ends_a_server_that_has_only_just_begun() -> None:
    heard: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        for _ in range(50):
            Server("", 0, False, Interrupting()).run()  # type: ignore[arg-type]
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT] * 50
