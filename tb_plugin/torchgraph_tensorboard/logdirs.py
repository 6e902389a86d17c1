"""Which folders TensorBoard was pointed at, and what the runs below them are called."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_URL = re.compile(r"[a-zA-Z][0-9a-zA-Z.]*://")


@dataclass(frozen=True, slots=True)
class Root:
    """A folder or URL of runs.

    Attributes:
        path: Where it is.
        group: What stands before the names of its runs, as `--logdir_spec` allows; None for nothing.
    """

    path: str
    group: str | None = None

    def name(self, run: str) -> str:
        """What TensorBoard calls the run that is `run` from here."""
        return run if self.group is None else f"{self.group}/{run}"

    def below(self, name: str) -> str | None:
        """The run that TensorBoard calls `name`, from here; None if it can be none of ours."""
        if self.group is None:
            return name
        return name.removeprefix(f"{self.group}/") if name.startswith(f"{self.group}/") else None


def roots(flags: Any, logdir: str | None = None) -> tuple[Root, ...]:
    """The folders that TensorBoard was started with, by its `flags`, or by `logdir` alone."""
    given = getattr(flags, "logdir", None) or logdir
    if given:
        return (Root(_expanded(given)),)
    return tuple(_specified(getattr(flags, "logdir_spec", None) or ""))


def _specified(spec: str) -> Iterator[Root]:
    """What `--logdir_spec` names: `group:path` or `path`, separated by commas, as TensorBoard reads it."""
    for part in filter(None, spec.split(",")):
        group, colon, path = part.partition(":")
        is_grouped = colon and not _URL.match(part) and not part.startswith("/") and not os.path.splitdrive(part)[0]
        yield Root(_expanded(path), group) if is_grouped else Root(_expanded(part))


def _expanded(path: str) -> str:
    return path if _URL.match(path) else str(Path(path).expanduser().resolve())
