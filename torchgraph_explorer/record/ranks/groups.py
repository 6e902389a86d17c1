"""Which sessions of a model belong to one launch: the ranks of one distributed training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from torchgraph_explorer.schema import Session


class Member(NamedTuple):
    """A session's place among the sessions of its model.

    Attributes:
        launch: Number of the launch that it was begun in; later ones have larger numbers.
        rank: Its rank there.
    """

    launch: int
    rank: int


@dataclass(frozen=True, slots=True)
class _Latest:
    """The launch that began last.

    Attributes:
        number: Its number.
        world_size: How many ranks it has.
        seen: The ranks whose sessions were added.
        created: When the last of them began.
    """

    number: int = -1
    world_size: int = 0
    seen: frozenset[int] = frozenset()
    created: float = -math.inf


@dataclass(frozen=True, slots=True)
class Launches:
    """How the sessions of one model belong together.

    Attributes:
        members: By the session's id.
        has_ranks: Some session is that of a rank. If none is, sessions are not merged by rank.
    """

    members: Mapping[str, Member] = field(default_factory=dict)
    has_ranks: bool = False
    _last: _Latest = _Latest()

    @property
    def latest(self) -> tuple[str, ...]:
        """The sessions of the last launch, by rank."""
        last = max((member.launch for member in self.members.values()), default=0)
        together = {one: member for one, member in self.members.items() if member.launch == last}
        return tuple(sorted(together, key=lambda one: together[one].rank))

    def with_session(self, session: Session) -> Launches | None:
        """The launches with `session` added; None if it began before another, so that all have to be grouped anew."""
        last = self._last
        if session.created < last.created:
            return None
        if session.world_size != last.world_size or session.rank in last.seen:
            last = _Latest(last.number + 1, session.world_size)
        seen = last.seen if session.rank is None else last.seen | {session.rank}
        last = replace(last, seen=seen, created=session.created)
        members = {**self.members, session.id: Member(last.number, session.rank or 0)}
        return Launches(members, self.has_ranks or session.rank is not None, last)


def launches(sessions: Iterable[Session]) -> Launches:
    """Group `sessions` by launch: in the order in which they began, a launch begins where a rank occurs again.

    The ranks of a launch begin within seconds, and the next launch begins when they are gone. Consecutive sessions
    without a rank count as one launch.
    """
    found = Launches()
    for session in sorted(sessions, key=lambda one: one.created):
        found = found.with_session(session) or found
    return found
