"""The live viewer of a training: shared, told where it is, and gone when the training is."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests import warm
from tests.processes import SECONDS, answers, fetch, python, taken_port, wait_for
from tests.record.examples import write_small_run
from tests.shared import FORKED
from torchgraph_explorer.sinks import live_viewer
from torchgraph_explorer.sinks.live_viewer import ViewerError, ViewerProcess, start_viewer


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[ViewerProcess]:
    viewer = start_viewer(str(tmp_path), host="127.0.0.1", port=0)
    yield viewer
    if viewer._process.child.poll() is None:
        viewer.stop()


@pytest.mark.slow
def test_it_serves_until_it_is_stopped(viewer: ViewerProcess) -> None:
    assert answers(viewer.url)
    viewer.stop()
    assert not answers(viewer.url)


@pytest.mark.slow
def test_watchers_of_one_logdir_share_a_server_until_the_last_one_stops(
    viewer: ViewerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other = start_viewer(".", host="127.0.0.1", port=0)
    assert other.url == viewer.url
    other.stop()
    assert answers(viewer.url)


@pytest.mark.timeout(30)
def test_a_handler_may_stop_a_server_while_another_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    servers, ended = live_viewer._Servers(), list[object]()
    one, other = (live_viewer._Process(cast("Any", name), {}, users=1) for name in ("one", "other"))

    def end(child: object) -> None:
        if child == "one":
            servers.leave(other)  # as a handler does that SIGTERM calls here
        ended.append(child)

    monkeypatch.setattr(live_viewer, "_end", end)
    servers.leave(one)
    assert ended == ["other", "one"]


@pytest.mark.slow
def test_a_server_that_died_is_replaced_and_its_watchers_stop_only_their_own(
    viewer: ViewerProcess, tmp_path: Path
) -> None:
    viewer._process.child.kill()
    viewer._process.child.wait()
    new = start_viewer(str(tmp_path), host="127.0.0.1", port=0)
    viewer.stop()
    assert answers(new.url)
    new.stop()


@pytest.mark.slow
def test_the_next_free_port_is_taken(tmp_path: Path) -> None:
    with taken_port() as port:
        viewer = start_viewer(str(tmp_path), host="127.0.0.1", port=port)
        viewer.stop()
    assert port < viewer.port < port + 50


@pytest.mark.slow
def test_it_leaves_no_copy_of_what_it_read_at_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_run(tmp_path / "runs" / "a")
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    viewer = start_viewer(f"file://{tmp_path}/runs", host="127.0.0.1", port=0)
    fetch(f"{viewer.url}api/updates?run=a&model=net&epoch=-1&frames=0&series=0")
    copies = list(folder.iterdir())
    viewer.stop()
    assert (len(copies), list(folder.iterdir())) == (1, [])


FAULTS = {
    "host": ({"host": "203.0.113.7", "port": 0}, None, "did not start: Cannot listen on host '203.0.113.7'"),
    "port": ({"host": "127.0.0.1", "port": 70_000}, None, "did not start: port=70000 is not a port"),
    "crash": ({"host": "127.0.0.1", "port": 0}, "raise ImportError('no tornado')", "ImportError: no tornado"),
    "noise": ({"host": "127.0.0.1", "port": 0}, "print('hello')", "its first line of output is not its address"),
    "silence": ({"host": "127.0.0.1", "port": 0}, "", "it did not say why"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("address", "child", "message"), FAULTS.values(), ids=FAULTS)
def test_a_server_that_does_not_start_says_why(
    address: dict[str, object], child: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if child is not None:
        monkeypatch.setattr(live_viewer, "CHILD", child)
    with pytest.raises(ViewerError, match=message):
        start_viewer(str(tmp_path), **address)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_server_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_viewer, "CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr(live_viewer, "SECONDS_TO_START", 0.3)
    with pytest.raises(ViewerError, match="did not say why"):
        start_viewer(str(tmp_path), host="127.0.0.1", port=0)


@pytest.mark.parametrize("command", ["", "/nowhere/python"])
def test_without_a_python_to_run_there_is_no_viewer(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", command)
    with pytest.raises(ViewerError):
        start_viewer(str(tmp_path), host="127.0.0.1", port=0)


TRAINING = """
import sys
from torchgraph_explorer.sinks.live_viewer import start_viewer
print(start_viewer(sys.argv[1], host="127.0.0.1", port=0).url, flush=True)
sys.stdin.readline()
"""

DEAF_TRAINING = """
import signal, sys
from torchgraph_explorer.sinks.live_viewer import start_viewer
viewer = start_viewer(sys.argv[1], host="127.0.0.1", port=0)
signal.signal(signal.SIGINT, signal.SIG_IGN)  # after the start: a child would inherit it
print(viewer.url, flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_it_ends_with_its_training_however_that_ends(how: signal.Signals, tmp_path: Path) -> None:
    with python("-c", TRAINING, str(tmp_path)) as training:
        assert training.stdout is not None
        url = training.stdout.readline().strip()
        assert answers(url)
        os.kill(training.pid, how)
        training.wait(SECONDS)
        assert wait_for(lambda: not answers(url))


@pytest.mark.slow
def test_ctrl_c_in_the_terminal_is_not_for_it(tmp_path: Path) -> None:
    """The terminal sends it to every process of the training's group."""
    with python("-c", DEAF_TRAINING, str(tmp_path)) as training:
        assert training.stdout is not None
        url = training.stdout.readline().strip()
        os.killpg(training.pid, signal.SIGINT)
        assert not wait_for(lambda: not answers(url), seconds=0.3)


@pytest.mark.slow
def test_it_starts_where_only_the_trainings_own_path_leads_to_the_package(tmp_path: Path) -> None:
    script = f"import sys; sys.path.append({str(live_viewer.PACKAGE_ROOT)!r})\n{TRAINING}"
    elsewhere = {"cwd": str(tmp_path), "env": {**os.environ, "PYTHONPATH": ""}}
    with python("-c", script, str(tmp_path), **elsewhere) as training:
        assert training.stdout is not None
        assert answers(training.stdout.readline().strip())


WATCHING = """
import sys, torch
from torchgraph_explorer import watch
model = torch.nn.Linear(3, 2)
with watch(model, log_freq=1, logdir=sys.argv[1], host=sys.argv[2], port=int(sys.argv[3])) as watcher:
    model(torch.randn(4, 3)).sum().backward()
print(watcher.run_dir)
"""


def watched(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = warm.run("-c", WATCHING, *arguments, frees_all=True)
    done.check_returncode()
    return done


@pytest.mark.slow
@FORKED
def test_watch_says_that_the_port_was_taken(tmp_path: Path) -> None:
    with taken_port() as port:
        said = watched(str(tmp_path), "127.0.0.1", str(port)).stderr
    assert f"port {port} is taken" in said


@pytest.mark.slow
@FORKED
def test_without_a_viewer_the_training_is_recorded_all_the_same(tmp_path: Path) -> None:
    done = watched(str(tmp_path), "203.0.113.7", "0")
    assert "no live viewer: the server did not start: Cannot listen on host '203.0.113.7'" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(Path(done.stdout.strip()).rglob("*.tgraph"))


@pytest.mark.slow
@FORKED
def test_watch_says_when_other_machines_can_see_it(tmp_path: Path) -> None:
    said = watched(str(tmp_path), "0.0.0.0", "0").stderr
    assert "Other machines can reach the viewer; whoever has the address with its token can see the runs." in said


@pytest.mark.slow
@FORKED
def test_watch_says_over_ssh_how_to_reach_the_viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50022 192.0.2.2 22")
    monkeypatch.delenv("TERM_PROGRAM", raising=False)
    said = watched(str(tmp_path), "127.0.0.1", "0").stderr
    assert re.search(r"On your own machine, first run: ssh -L (\d+):localhost:\1 ", said)
