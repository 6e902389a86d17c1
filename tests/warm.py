"""Python processes that have imported torch already. Importing it, and wandb, takes longer than what most tests do.

A process that has the libraries forks one for each `run`. Its streams, folder, environment and arguments are its own,
and it ends as any Python process does: through the interpreter's exit, with its threads joined and atexit called.
What is only true of a process in which nothing is imported yet is tested with `subprocess`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from select import select
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = os.pathsep.join(map(str, (ROOT, ROOT / "tb_plugin", ROOT / "wandb_panel")))

TORCH = ("torch", "torch._dynamo")
"""The second is imported by the first optimizer."""
WANDB = (*TORCH, "wandb", "wandb.apis.public", "wandb.sdk.launch", "requests")
"""The last three are imported by the first run that begins."""


def run(
    *arguments: str,
    modules: Sequence[str] = TORCH,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    timeout: float = 90,
) -> subprocess.CompletedProcess[str]:
    """What `python ARGUMENTS` does, which are `-c SCRIPT ...` or `-m MODULE ...`, in a process that has `modules`."""
    with tempfile.TemporaryDirectory() as folder:
        streams = [f"{folder}/out", f"{folder}/err"]
        asked = {"arguments": arguments, "cwd": str(cwd), "env": env or dict(os.environ), "streams": streams}
        code = _parent(tuple(modules)).ask(asked, timeout)
        out, err = (Path(stream).read_text(encoding="utf-8") for stream in streams)
    if code is None:
        raise subprocess.TimeoutExpired(arguments, timeout, out, err)
    return subprocess.CompletedProcess(arguments, code, out, err)


@cache
def _parent(modules: tuple[str, ...]) -> _Parent:
    return _Parent(modules)


class _Parent:
    """The process that has the libraries, as long as this one lives."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        command, env = [sys.executable, "-m", "tests.warm", *modules], {"PYTHONPATH": PACKAGES, "OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **env}, stdin=pipe, stdout=pipe, bufsize=0
        )
        atexit.register(self._end)

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, asked: dict[str, Any], timeout: float) -> int | None:
        """Its exit code, or nothing if it had to be killed."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        child, is_late = int(self._process.stdout.readline()), False
        if not select([self._process.stdout], [], [], timeout)[0]:
            is_late = True
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        code = int(self._process.stdout.readline())
        return None if is_late else code


# In the process that has the libraries.


def _serve(modules: Sequence[str]) -> dict[str, Any] | None:
    """Fork for each line of JSON. Returns what was asked for in the child, and nothing at the end."""
    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()  # what is collected is written to, and copied for it
    while line := os.read(0, 1 << 20):
        while not line.endswith(b"\n"):
            line += os.read(0, 1 << 20)
        child = os.fork()
        if not child:
            return dict(json.loads(line))
        os.write(1, b"%d\n" % child)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return None


def _become(asked: dict[str, Any]) -> None:
    os.setsid()
    os.chdir(asked["cwd"])
    for stream, name in enumerate((os.devnull, *asked["streams"])):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.dup2(file, stream)
        os.close(file)
    os.environ.clear()
    os.environ.update(asked["env"])
    if wandb := sys.modules.get("wandb.sdk.data_types._private"):
        Path(wandb.MEDIA_TMP.name).mkdir(exist_ok=True)  # made by the import; the process before removed it at its end
    kind, what, *sys.argv[1:] = asked["arguments"]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(what, vars(sys.modules["__main__"]))


if __name__ == "__main__":
    if (_asked := _serve(sys.argv[1:])) is not None:
        _become(_asked)
