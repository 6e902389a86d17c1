"""A process that was forked with its libraries is one of its own, and ends as any other."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import warm

pytestmark = pytest.mark.slow

ITSELF = """
import atexit, os, sys, threading, time
atexit.register(print, "exit")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
print(sys.argv[1:], os.getcwd(), os.environ["HERE"], sys.stdin.read(), len(os.listdir("/proc/self/fd")))
print("said", file=sys.stderr)
"""


def run(script: str, *arguments: str, timeout: float = 30, frees_all: bool = False) -> subprocess.CompletedProcess[str]:
    return warm.run("-c", script, *arguments, modules=("json",), timeout=timeout, frees_all=frees_all)


def test_it_has_arguments_folder_environment_and_streams_of_its_own(tmp_path: Path) -> None:
    for frees_all in (False, True):
        env = {**os.environ, "HERE": "here"}
        done = warm.run("-c", ITSELF, "a", modules=("json",), cwd=tmp_path, env=env, frees_all=frees_all)
        assert done.stdout.splitlines() == [f"['a'] {tmp_path} here  4", "thread", "exit"]
        assert (done.returncode, done.stderr) == (0, "said\n")


@pytest.mark.parametrize("frees_all", [True, False])
@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        pytest.param("import sys; sys.exit(3)", 3, "", id="exit"),
        pytest.param("raise ValueError(1)", 1, "ValueError: 1\n", id="exception"),
        pytest.param("import os; os.kill(os.getpid(), 9)", -9, "", id="signal"),
    ],
)
def test_how_it_ends_is_told(script: str, code: int, said: str, frees_all: bool) -> None:
    done = run(script, frees_all=frees_all)
    assert (done.returncode, done.stderr.endswith(said)) == (code, True)


def test_one_that_does_not_end_in_time_is_killed_and_the_next_one_runs() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run("import time; time.sleep(60)", timeout=0.2)
    assert run("print(1)").stdout == "1\n"


def test_one_that_was_started_can_be_killed_and_is_at_the_end() -> None:
    for ends in (True, False):
        with warm.started("-c", "import time; time.sleep(60)", modules=("json",)) as process:
            if ends:
                os.kill(process, signal.SIGKILL)
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    assert run("print(1)").stdout == "1\n"
