"""The process that runs the rules while a model trains: reads the run's folder, and writes what is new to stdout.

Its first line of input says what to look at. `finish` asks for what there is at the end. When its input ends, or the
training's process is gone, it ends. Torch is not imported, unless a rule of the user's does that.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any, Protocol, TypeAlias

from torchgraph_explorer.console import reason
from torchgraph_explorer.errors import TorchgraphError, TorchgraphWarning
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.live import LiveModel
from torchgraph_explorer.findings.own_rules import OwnRule, RuleAddress
from torchgraph_explorer.findings.report import plain
from torchgraph_explorer.record.model_record import ModelRecord

NICENESS = 10
"""How nice the process is: the training comes first."""

FINISH = "finish"
"""The line of input that asks for the end."""


class SupportsRefresh(Protocol):
    """The part of `Run` that is used here."""

    def refresh(self) -> bool:
        """Read what is new."""

    def model(self, name: str | None = None) -> ModelRecord:
        """One of its models."""


OpenRun: TypeAlias = Callable[[str], SupportsRefresh]


def main(open_run: OpenRun) -> None:
    """Do what the first line of input asks for, until the input ends."""
    out = _own_output()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    warnings.simplefilter("ignore", TorchgraphWarning)  # a run that is being written may end in the middle of a step
    asked = json.loads(sys.stdin.readline() or "null")
    if asked is None:
        return
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    try:
        _watch(asked, open_run, lines, out=out)
    except Exception as fault:  # the training's process tells it
        _tell(out, {"fault": reason(fault)})


def _own_output() -> IO[str]:
    """The stream to the process of the training. From now on, what a rule of the user's prints is dropped."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return out


def _read(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line.strip())
    lines.put("")


def _watch(asked: dict[str, Any], open_run: OpenRun, lines: queue.SimpleQueue[str], *, out: IO[str]) -> None:
    sys.path.extend(path for path in asked["path"] if path not in sys.path)
    own = [rule for one in asked["rules"] if (rule := _loaded(RuleAddress(*one), out=out)) is not None]
    run: SupportsRefresh | None = None
    live: LiveModel | None = None
    line: str | None = None
    while line is None:
        line = _next(lines, seconds=asked["seconds"])
        if line == "" or (os.name == "posix" and os.getppid() != asked["parent"]):
            return
        try:
            run = run or open_run(asked["run"])
            run.refresh()
            live = live or LiveModel(run.model(asked["model"]), own)
            found = live.finish() if line == FINISH else live.look()
        except TorchgraphError:  # nothing is written yet, or the folder is gone
            continue
        if found:
            places = _places(found, live.findings)
            _tell(out, {"found": plain(live.findings), "new": places, "own": _plain_own(live)})
    end = {"end": plain(live.findings), "own": _plain_own(live)} if live is not None else {"end": None, "own": []}
    _tell(out, end)


def _plain_own(live: LiveModel) -> list[tuple[str, list[dict[str, Any]]]]:
    """What each of the user's rules said, as plain values. The process of the training records it."""
    return [(one.rule, plain(one.findings)) for one in live.own]


def _next(lines: queue.SimpleQueue[str], *, seconds: float) -> str | None:
    with suppress(queue.Empty):
        return lines.get(timeout=seconds)
    return None


def _loaded(address: RuleAddress, *, out: IO[str]) -> OwnRule | None:
    try:
        return address.load()
    except (Exception, SystemExit) as fault:  # whatever the user's file does
        _tell(out, {"unloaded": address.name, "why": reason(fault)})
        return None


def _places(found: Sequence[Finding], among: Sequence[Finding]) -> list[int]:
    numbers = {id(one): number for number, one in enumerate(among)}
    return [numbers[id(one)] for one in found]


def _tell(out: IO[str], message: dict[str, Any]) -> None:
    with suppress(OSError):  # the training's process is gone
        out.write(json.dumps(message) + "\n")
        out.flush()
