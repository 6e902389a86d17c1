"""The log directories that TensorBoard was started with, and the names of the runs in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_URL = re.compile(r"[a-zA-Z][0-9a-zA-Z.]*://")


@dataclass(frozen=True, slots=True)
class Logdir:
    """A folder or URL that contains runs.

    Attributes:
        path: Its path or URL.
        group: Prefix of the names of its runs, from `--logdir_spec`; None without a prefix.
    """

    path: str
    group: str | None = None

    def name(self, run: str) -> str:
        """TensorBoard's name of the run whose path below this one is `run`."""
        return run if self.group is None else f"{self.group}/{run}"

    def below(self, name: str) -> str | None:
        """The path below this one of the run that TensorBoard names `name`; None if it is in another group."""
        if self.group is None:
            return name
        return name.removeprefix(f"{self.group}/") if name.startswith(f"{self.group}/") else None


def logdirs_of(flags: Any, logdir: str | None = None) -> tuple[Logdir, ...]:
    """The log directories in TensorBoard's `flags`, or else `logdir`."""
    given = getattr(flags, "logdir", None) or logdir
    if given:
        return (Logdir(_expanded(given)),)
    return tuple(_specified(getattr(flags, "logdir_spec", None) or ""))


def _specified(spec: str) -> Iterator[Logdir]:
    """The log directories in `--logdir_spec`: `group:path` or `path`, separated by commas, as TensorBoard reads it."""
    for part in filter(None, spec.split(",")):
        group, colon, path = part.partition(":")
        is_grouped = colon and not _URL.match(part) and not part.startswith("/") and not os.path.splitdrive(part)[0]
        yield Logdir(_expanded(path), group) if is_grouped else Logdir(_expanded(part))


def _expanded(path: str) -> str:
    return path if _URL.match(path) else str(Path(path).expanduser().resolve())
