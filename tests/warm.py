"""Python processes that have imported torch and us already: importing them, and wandb, takes longer than most tests.

A process that has the libraries forks one for each `run`. Its streams, folder, environment and arguments are its own,
and it ends as any Python process does: through the interpreter's exit, with its threads joined, atexit called and its
modules cleared. Only the libraries' own code is not asked to free what the system takes back anyway: that takes longer
than the forking, and what tests the end of a process has it done all the same.
What is only true of a process in which nothing is imported yet is tested with `subprocess`.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from select import select
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = os.pathsep.join(map(str, (ROOT, ROOT / "tb_plugin", ROOT / "wandb_panel")))

TORCH = ("torch", "torch._dynamo", "torchgraph_explorer.training.watch", "torchgraph_explorer.run")
"""The second is imported by the first optimizer, the last two by `watch` and `open_run`."""
BY_A_RUN = ("wandb.apis.public", "wandb.sdk.launch.inputs.internal", "requests", "pandas", "torchgraph_wandb.sink")
WANDB = (*TORCH, "wandb", *BY_A_RUN)
"""The latter are imported by the first run that begins, and by the first table that it logs."""

NANOBIND = re.compile(r"^(nanobind: .*| - (leaked|\.\.\. skipped) .*|See https://nanobind\.\S*)\n?", re.MULTILINE)
"""Lines at the end of a process in which torch 2.15 has imported triton: Python 3.13 does not free all of it."""


def run(
    *arguments: str,
    modules: Sequence[str] = TORCH,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    timeout: float = 200,
    frees_all: bool = False,
) -> subprocess.CompletedProcess[str]:
    """What `python ARGUMENTS` does, which are `-c SCRIPT ...` or `-m MODULE ...`, in a process that has `modules`.

    With `frees_all` the libraries' destructors run at its end, too.
    """
    asked = {"arguments": arguments, "cwd": str(cwd), "env": env or dict(os.environ), "timeout": timeout}
    parent, _ = _begin(modules, {**asked, "frees_all": frees_all})
    code, out, err = _answer(parent)
    if code is None:
        raise subprocess.TimeoutExpired(arguments, timeout, out, err)
    return subprocess.CompletedProcess(arguments, code, out, err)


@contextmanager
def started(
    *arguments: str,
    modules: Sequence[str] = TORCH,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    log: str = os.devnull,
) -> Iterator[int]:
    """The number of a process that does the same, and is killed when the block ends. `log` takes what it says."""
    asked = {"arguments": arguments, "cwd": str(cwd), "env": env or dict(os.environ), "log": log, "frees_all": False}
    parent, process = _begin(modules, asked)
    try:
        yield process
    finally:
        for kill in (os.kill, os.killpg):  # it, and what it has started
            with suppress(ProcessLookupError):
                kill(process, signal.SIGKILL)
        _ask(parent, {"ended": process})


def _begin(modules: Sequence[str], asked: dict[str, Any]) -> tuple[subprocess.Popen[str], int]:
    """The process that has the libraries, and the number of the one that it has forked."""
    parent = _parent(tuple(modules))
    return parent, _ask(parent, asked)


def _ask(parent: subprocess.Popen[str], asked: dict[str, Any]) -> Any:
    assert parent.stdin is not None
    parent.stdin.write(json.dumps(asked) + "\n")
    parent.stdin.flush()
    return _answer(parent)


def _answer(parent: subprocess.Popen[str]) -> Any:
    assert parent.stdout is not None
    try:
        return json.loads(parent.stdout.readline())
    except BaseException:  # such as the time limit of a test: what is answered later is for no other test
        parent.kill()
        _parent.cache_clear()
        raise


@cache
def _parent(modules: tuple[str, ...]) -> subprocess.Popen[str]:
    """The process that has the libraries. It ends with this one."""
    command, env = [sys.executable, "-m", "tests.warm", *modules], {"PYTHONPATH": PACKAGES, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    parent = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **env}, stdin=pipe, stdout=pipe, text=True)
    atexit.register(parent.communicate)
    atexit.register(parent.kill)  # is called first
    return parent


# In the process that has the libraries.


def _serve(modules: Sequence[str]) -> tuple[dict[str, Any], list[int]] | None:
    """Fork for each line of JSON, and answer with the number of the process, and with its outcome when it has ended.

    That of a process with a log is told when somebody asks for it. In the child, return the line and the streams to
    write to; else nothing, at the end.
    """
    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()  # what is collected is written to, and copied for it
    for line in sys.stdin:
        asked = json.loads(line)
        if "ended" in asked:
            _tell(os.waitstatus_to_exitcode(os.waitpid(asked["ended"], 0)[1]))
            continue
        pipes = [] if "log" in asked else [os.pipe(), os.pipe()]
        child = os.fork()
        if not child:
            for to_read, _ in pipes:
                os.close(to_read)
            log = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            return asked, [to_write for _, to_write in pipes] or [os.open(asked["log"], log) for _ in range(2)]
        _tell(child)
        for _, to_write in pipes:
            os.close(to_write)
        if pipes:
            _tell(_outcome(child, [to_read for to_read, _ in pipes], asked["timeout"]))
    return None


def _tell(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _outcome(child: int, streams: list[int], timeout: float) -> tuple[int | None, str, str]:
    """The exit code of a process, or nothing if it had to be killed, and what it wrote to its two streams."""
    end, written, open_ones = time.monotonic() + timeout, dict.fromkeys(streams, b""), set(streams)
    while open_ones and (ready := select(open_ones, [], [], max(0.0, end - time.monotonic()))[0]):
        for stream in ready:
            chunk = os.read(stream, 1 << 16)
            written[stream] += chunk
            if not chunk:
                open_ones.discard(stream)
    if open_ones:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for stream in streams:
        os.close(stream)
    out, err = (text.decode() for text in written.values())
    return None if open_ones else code, out, NANOBIND.sub("", err)


def _free_nothing_at_exit() -> None:
    """Have the process end with its exit code as soon as the interpreter has."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):  # of Linux
        libc.on_exit(libc._exit, None)  # what was registered last is called first, before destructors


def _become(asked: dict[str, Any], streams: list[int]) -> None:
    """Do what is asked for, in a session of its own."""
    os.setsid()
    if "log" in asked and hasattr(libc := ctypes.CDLL(None), "prctl"):  # of Linux
        libc.prctl(1, signal.SIGKILL)  # it ends with the process that has forked it, and so with the tests
    os.chdir(asked["cwd"])
    for number, stream in enumerate([os.open(os.devnull, os.O_RDONLY), *streams]):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(asked["env"])
    if wandb := sys.modules.get("wandb.sdk.data_types._private"):
        Path(wandb.MEDIA_TMP.name).mkdir(exist_ok=True)  # made by the import; the process before removed it at its end
    if utils := sys.modules.get("torch._dynamo.utils"):
        # Imports what formats a table at the exit, which fails where files cannot be opened, and says so.
        atexit.unregister(utils.dump_compile_times)
    if not asked["frees_all"]:
        _free_nothing_at_exit()
    kind, what, *sys.argv[1:] = asked["arguments"]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(what, vars(sys.modules["__main__"]))


if __name__ == "__main__":
    if (_asked := _serve(sys.argv[1:])) is not None:
        _become(*_asked)
