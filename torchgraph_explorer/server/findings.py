"""`api/findings`: what the rules say of a model. See http_api.md.

The rules take seconds for a long run, so they run in a thread of their own, and requests are answered with what was
found before. One model is judged at a time, since that needs memory: up to about 500 MB (`evidence.MOST_CELLS`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.console import reason
from torchgraph_explorer.errors import TorchgraphError
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.engine import judge
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.own_rules import OwnRule, run_rules
from torchgraph_explorer.findings.report import as_json
from torchgraph_explorer.record.model_record import ModelRecord

Json = dict[str, Any]

WAIT_SECONDS = 0.1
"""How long a request waits for the rules: those of a short run have then been run."""

PAUSE = 5.0
"""A run that is still written is judged again after so many times what the last time took."""

LEAST_PAUSE = 1.0
"""Seconds that are at least between the end of one time and the beginning of the next."""

MOST_FINDINGS = 200
"""Findings that are sent; the first ones, since root causes stand first."""

Key: TypeAlias = "tuple[object, ...]"
Steps: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(slots=True)
class _Judged:
    """What is known of one model. Whoever changes it holds the lock of `Findings`.

    Attributes:
        answer: What was found last; None before that.
        findings: The same as values.
        key: What the model was like then.
        times: How often it was judged.
        is_under_way: A thread is judging it.
        not_before: When it may be judged again, on `time.monotonic`.
        done: Set when a thread has finished.
    """

    answer: Json | None = None
    findings: Sequence[Finding] = ()
    key: Key = ()
    times: int = 0
    is_under_way: bool = False
    not_before: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)


class Findings:
    """What the rules say of the models of one run. For many threads."""

    def __init__(self, turn: threading.Lock | None = None, own: Sequence[OwnRule] = ()) -> None:
        """Judge a model only while holding `turn`, which several runs may share, also by the user's `own` rules."""
        self._turn, self._own = turn or threading.Lock(), own
        self._lock = threading.Lock()
        self._judged: dict[str, _Judged] = {}

    def answer(self, model: ModelRecord, *, epoch: int, client: str) -> Json:
        """The answer to a client that has the version `client`.

        `epoch` is the model's, as clients know it. Judging begins if the model has changed since the last time, and is
        waited for shortly.
        """
        judged, key = self._of(model.name), _key(model, epoch)
        with self._lock:
            if self._should_begin(judged, key):
                self._begin(judged, model, epoch)
        if judged.is_under_way:
            judged.done.wait(WAIT_SECONDS)
        with self._lock:
            version, is_complete = f"{epoch}.{judged.times}", judged.key == key
            found = judged.answer if judged.key[:1] == (epoch,) else None
        if version == client and found is not None:
            return {"version": version, "is_same": True, "is_complete": is_complete}
        return {"version": version, "is_same": False, "is_complete": is_complete, **(found or _answer())}

    def known(self, model: str) -> Sequence[Finding]:
        """What was found last of the model of this name; nothing before that."""
        return self._of(model).findings

    def _of(self, model: str) -> _Judged:
        with self._lock:
            return self._judged.setdefault(model, _Judged())

    def _should_begin(self, judged: _Judged, key: Key) -> bool:
        if judged.is_under_way or judged.key == key:
            return False
        return time.monotonic() >= judged.not_before or judged.key[:1] != key[:1]

    def _begin(self, judged: _Judged, model: ModelRecord, epoch: int) -> None:
        """Judge `model` in a new thread. If none can be started now, the next request tries again."""
        name = f"torchgraph findings {model.name}"
        thread = threading.Thread(target=self._judge, args=(judged, model, epoch), name=name, daemon=True)
        judged.done.clear()
        with suppress(RuntimeError):
            thread.start()
            judged.is_under_way = True

    def _judge(self, judged: _Judged, model: ModelRecord, epoch: int) -> None:
        with self._turn:
            begun = time.monotonic()
            try:
                key, (found, findings) = _key(model, epoch), _judged(model, self._own)
            except Exception as fault:  # the model is gone, or the fault is ours
                key, found, findings = (epoch,), _answer(problem=_problem(fault)), ()
            now = time.monotonic()
        with self._lock:
            judged.answer, judged.key, judged.times = found, key, judged.times + 1
            judged.findings = findings
            judged.not_before = now + max(LEAST_PAUSE, PAUSE * (now - begun))
            judged.is_under_way = False
        judged.done.set()


def findings_json(model: ModelRecord, own: Sequence[OwnRule] = ()) -> Json:
    """What the rules say of the model, or why they could not be run; a page has the same.

    `own` are rules of the user's, from a file that the user has named: a record names none that would be run.
    """
    return _judged(model, own)[0]


def _judged(model: ModelRecord, own: Sequence[OwnRule]) -> tuple[Json, Sequence[Finding]]:
    """The answer but for its version, and the findings in it."""
    try:
        evidence = Evidence(model)
        found = judge(evidence, own=run_rules(own, model))
    except Exception as fault:  # a record may be damaged, gone or crafted
        return _answer(problem=_problem(fault)), ()
    return _answer(found, steps=evidence.steps, recorded=len(model)), found[:MOST_FINDINGS]


def _problem(fault: Exception) -> str:
    """Why there are no findings. A fault of ours must not look like a healthy run."""
    if isinstance(fault, TorchgraphError):
        return str(fault)
    return f"The rules could not be run, which is a fault of torchgraph_explorer: {reason(fault)}."


def _answer(
    found: Sequence[Finding] = (), *, steps: Steps | None = None, recorded: int = 0, problem: str | None = None
) -> Json:
    """The answer but for its version. `steps` are those that were looked at, ascending."""
    sent = found[:MOST_FINDINGS]
    looked_at = None
    if steps is not None and len(steps):
        looked_at = {"steps": len(steps), "first": int(steps[0]), "last": int(steps[-1])}
    return {
        "findings": as_json("", {"": sent})["models"][0]["findings"],
        "left_out": len(found) - len(sent),
        "looked_at": looked_at,
        "recorded": recorded,
        "problem": problem,
    }


def _key(model: ModelRecord, epoch: int) -> Key:
    """What tells one state of the model from another; the epoch comes first."""
    logged = model.logged
    return (
        epoch,
        len(model),
        len(model.series),
        tuple(model.graph_revision(graph.id) for graph in model.graphs),
        (logged.epoch, logged.blocks),
        model.finished is not None,
        model.found_times,
    )
