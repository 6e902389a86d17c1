"""Which steps the first rank keeps, told to the others by a file in the run's folder.

No rank waits for another while it trains. At the end, the others wait for a while for what the first one still decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from torchgraph_explorer.record.folder import TENSORS, plugin_folder
from torchgraph_explorer.record.remote import is_url
from torchgraph_explorer.schema import Session

FILE = "asked-{}.jsonl"
"""One file for each model, by a hash of its name: a run may have several, and evaluations are a model of their own.

A line for each step that was asked for: its number, and why. At the end of a session, a line that says `null`.
"""

MOST_BYTES = 1 << 20
"""The most bytes that are read at once."""

HELD_LONGER = 8
"""Steps that the other ranks hold in memory longer than the first one, whose decisions come later."""


class Decisions(Protocol):
    """What is asked for, between the ranks.

    Attributes:
        held_longer: Steps that are held in memory longer.
        is_first: This rank decides.
        is_over: Nothing more will be asked for elsewhere.
    """

    held_longer: int
    is_first: bool
    is_over: bool

    def publish(self, step: int, reason: str) -> None:
        """Tell the other ranks that this one was asked to keep `step`."""

    def news(self) -> Iterator[tuple[int, str]]:
        """What was asked for elsewhere since this was last called."""

    def end(self) -> None:
        """Nothing more will be asked for here."""


class Alone:
    """One process trains the model, or nothing tells the ranks of each other: each decides for itself."""

    held_longer, is_first, is_over = 0, True, True

    def publish(self, step: int, reason: str) -> None:
        """Do nothing."""

    def news(self) -> Iterator[tuple[int, str]]:
        """There are none."""
        return iter(())

    def end(self) -> None:
        """Do nothing."""


class FirstRank:
    """The rank that decides."""

    held_longer, is_first, is_over = 0, True, True

    def __init__(self, file: Path) -> None:
        """Write to `file`."""
        self._file = file

    def publish(self, step: int, reason: str) -> None:
        """Tell the others."""
        self._write([step, reason])

    def news(self) -> Iterator[tuple[int, str]]:
        """There are none: nobody else decides."""
        return iter(())

    def end(self) -> None:
        """Tell the others, so that they need not wait for more."""
        self._write(None)

    def _write(self, line: object) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class OtherRank:
    """A rank that does as the first one decides."""

    held_longer, is_first = HELD_LONGER, False

    def __init__(self, file: Path) -> None:
        """Read what comes to `file` from now on: what is there is of an earlier session."""
        self._file = file
        self._at = file.stat().st_size if file.is_file() else 0
        self.is_over = False

    def publish(self, step: int, reason: str) -> None:
        """Do nothing: it does not decide."""

    def news(self) -> Iterator[tuple[int, str]]:
        """What the first rank has asked for since. Lines that are not complete are read later."""
        with suppress(FileNotFoundError), self._file.open("rb") as file:
            file.seek(self._at)
            data = file.read(MOST_BYTES)
            whole, end, _ = data.rpartition(b"\n")
            self._at += len(whole) + len(end)
            for line in whole.splitlines():
                self.is_over |= line == b"null"
                with suppress(ValueError, TypeError):
                    step, reason = json.loads(line)
                    yield int(step), str(reason)

    def end(self) -> None:
        """Do nothing: it does not decide."""


def decisions(session: Session, run_dir: str | None) -> Decisions:
    """How the rank of `session` learns what is asked for. At a URL, each rank decides for itself."""
    if session.rank is None or session.world_size < 2 or run_dir is None or is_url(run_dir):
        return Alone()
    of_model = sha256(session.model.encode(errors="surrogatepass")).hexdigest()[:12]
    file = plugin_folder(Path(run_dir), TENSORS) / FILE.format(of_model)
    return FirstRank(file) if session.rank == 0 else OtherRank(file)
