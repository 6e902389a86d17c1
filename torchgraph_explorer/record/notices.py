"""What was skipped while reading a run: each fault is warned of once."""

from __future__ import annotations

import time
import warnings

from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.record.folder import SegmentFile
from torchgraph_explorer.record.ownership import Owner
from torchgraph_explorer.record.scan import Scanner

MOST = 64
"""Sentences about damage that are kept; further ones are only counted."""

_STALE_SECONDS = 60.0
"""An incomplete record is reported as such when its file has not grown for this long."""


class Notices:
    """Sentences about one run: kept in `texts`, and each given as a `TorchgraphWarning` once.

    They are about damage, and about what a newer release has added that this one does not know.
    """

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._standing: dict[str, tuple[str, ...]] = {}
        self._unlisted = 0
        self._unknown: dict[str, dict[object, int]] = {}
        self._announced: set[object] = set()

    @property
    def texts(self) -> tuple[str, ...]:
        """All sentences: damage in the order in which it was found, then what this release does not know."""
        return tuple(self._by_subject().values())

    def add(self, text: str) -> None:
        """Note a sentence, unless it was noted before."""
        if len(self._texts) < MOST:
            self._texts.setdefault(text)
        elif text not in self._texts:
            self._unlisted += 1

    def stand(self, subject: str, texts: tuple[str, ...]) -> None:
        """Note sentences on `subject` in place of those before, which may have come to be untrue."""
        self._standing[subject] = texts

    def add_unknown(self, what: str, source: object, count: int = 1) -> None:
        """Note that `source`, which may be read again, has `count` of `what` of a kind that is not known here."""
        self._unknown.setdefault(what, {})[source] = count

    def announce(self) -> None:
        """Warn of what is new. Call it when the state is consistent: a warning may be turned into an exception."""
        new = {subject: text for subject, text in self._by_subject().items() if subject not in self._announced}
        self._announced |= set(new)
        for text in new.values():
            warnings.warn(text, TorchgraphWarning, stacklevel=3)

    def _by_subject(self) -> dict[object, str]:
        """The sentences by a key that stays the same when a number in the sentence grows."""
        found: dict[object, str] = {text: text for text in [*self._texts]}
        for texts in [*self._standing.values()]:
            found |= {text: text for text in texts[:MOST]}
        if self._unlisted:
            found[None] = f"damage was found {self._unlisted:,} more times; only the first {MOST} are listed"
        for what, sources in list(self._unknown.items()):
            found[what,] = f"written by a newer release: {_counted(sum(list(sources.values())), what)} not shown"
        return found


def _counted(count: int, what: str) -> str:
    if count == 1:
        return f"1 {what} of unknown kind is"
    return f"{count:,} {what if what.endswith('s') else f'{what}s'} of unknown kind are"


def note_a_torn_end(file: SegmentFile, scanner: Scanner, notices: Notices, *, part: str = "") -> None:
    """Note that a file ends within a record, which has been read that far, unless it may still be written."""
    if scanner.position < file.size and not scanner.is_lost and time.time() - file.modified > _STALE_SECONDS:
        what = f"record at byte {scanner.position} is incomplete; its writer was interrupted"
        notices.add(f"segment {part}{file.name}: {what}")


def note_size(file: SegmentFile, notices: Notices, *, part: str = "") -> None:
    """Note that a file is larger than a segment can be."""
    notices.add(f"segment {part}{file.name}: it has {file.size:,} bytes, more than a segment can, and was skipped")


def note_a_copy(name: str, step: int, notices: Notices) -> None:
    """Note that the segment called `name` has a record that is a copy of another one."""
    notices.add(f"segment {name}: it has the record of step {step} twice, and another one may be lost in its place")


def note_foreign(file: SegmentFile, owner: Owner, notices: Notices, *, at: int, part: str = "") -> None:
    """Note once, of a file that is `owner`'s, that the record at byte `at` is of another session."""
    if not owner.has_others:
        owner.has_others = True
        what = f"from byte {at} on, it has records of another session, which were skipped"
        notices.add(f"segment {part}{file.name}: {what}")
