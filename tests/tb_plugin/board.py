"""TensorBoard as a process, as its users start it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np

from tests import warm
from tests.processes import wait_for

SECONDS_TO_START = 60.0

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # whoever imports it in this process gets an ImportError
{before}
from tensorboard.main import run_main
run_main()
"""

FAST, SLOW = "--load_fast=true", "--load_fast=false"
LOADERS = (FAST, SLOW)
"""With the Rust data server and without it."""


@dataclass(frozen=True)
class Board:
    """A TensorBoard that answers.

    Attributes:
        url: Of its page, with any path prefix.
        log: File that takes what it says.
    """

    url: str
    log: Any

    def get(self, path: str, **query: object) -> bytes:
        """What it answers below `data/`."""
        with urlopen(f"{self.url}data/{path}{'?' if query else ''}{urlencode(query)}", timeout=30) as answer:
            return bytes(answer.read())

    def json(self, path: str, **query: object) -> Any:
        return json.loads(self.get(path, **query))

    def api(self, route: str, **query: object) -> Any:
        """What our plugin answers to one of its JSON routes."""
        return self.json(f"plugin/torchgraph/api/{route}", **query)

    def error(self, route: str, **query: object) -> str:
        """The sentence with which our plugin refuses."""
        try:
            self.api(route, **query)
        except HTTPError as refusal:
            return str(json.load(refusal)["error"])
        raise AssertionError(f"{route} was answered")

    def runs(self) -> dict[str, Any]:
        """The runs that our tab lists, by name."""
        return {run["run"]: run for run in self.api("runs")["runs"]}

    def steps(self, run: str, model: str = "net") -> list[int]:
        """The steps that our tab shows."""
        held = {"epoch": -1, "frames": 0, "series": 0}
        return list(self.api("updates", run=run, model=model, **held)["frames"]["step"])

    def history_steps(self, run: str, series: int, model: str = "net") -> int:
        """How many steps of a series our tab draws."""
        packed = self.get("plugin/torchgraph/api/history", run=run, model=model, series=series, **{"from": 0})
        length = int(np.frombuffer(packed[:4], "<u4")[0])
        [frames, *_] = json.loads(packed[4 : 4 + length])["arrays"]
        return int(frames["shape"][0])

    def scalars(self, run: str, tag: str) -> list[int]:
        """The steps that TensorBoard's own dashboard shows; none if it does not know the run yet."""
        try:
            return [step for _, step, _ in self.json("plugin/scalars/scalars", run=run, tag=tag)]
        except HTTPError:
            return []

    def is_active(self) -> bool:
        return bool(self.json("plugins_listing")["torchgraph"]["enabled"])

    def said(self) -> str:
        """What it has said in its terminal."""
        self.log.seek(0)
        return str(self.log.read())


LOADED = (
    *("tensorboard.main", "tensorboard.default"),
    *("tensorboard.data.server_ingester", "tensorboard.backend.application"),
)
"""Of TensorBoard, what it imports when it starts."""


@contextmanager
def tensorboard(*arguments: str, before: str = "") -> Iterator[Board]:
    """A TensorBoard which could not import torch. `before` runs first in its process."""
    command = ["-c", WITHOUT_TORCH.format(before=before), "--reload_interval=1", *arguments, "--port=0"]
    with (
        tempfile.NamedTemporaryFile("w+") as log,
        warm.started(*command, modules=LOADED, log=log.name) as process,
    ):
        yield _listening(lambda: Path(f"/proc/{process}").exists(), log)


@contextmanager
def running(*command: str) -> Iterator[Board]:
    """What `command` starts on a free port, until the block ends."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen([*command, "--port=0"], stdout=log, stderr=log, start_new_session=True)
        try:
            yield _listening(lambda: process.poll() is None, log)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its data server too
            process.wait()


def _listening(is_there: Callable[[], bool], log: Any) -> Board:
    """The board, once it answers."""
    address: list[str] = []

    def has_said_where() -> bool:
        assert is_there(), Board("", log).said()
        address[:] = re.findall(r"at (http://\S+)", Board("", log).said())
        return bool(address) and answers(address[0])

    assert wait_for(has_said_where, SECONDS_TO_START), Board("", log).said()
    return Board(address[0], log)


def answers(url: str) -> bool:
    """Something is served there."""
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, OSError):
        return False
