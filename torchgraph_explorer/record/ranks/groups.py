"""Which sessions of a model belong to one launch: the ranks of one distributed training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
class Launches:
    """How the sessions of one model belong together.

    Attributes:
        members: By the session's id.
        has_ranks: Some session is that of a rank. If none is, sessions are not merged by rank.
    """

    members: Mapping[str, Member] = field(default_factory=dict)
    has_ranks: bool = False

    @property
    def latest(self) -> tuple[str, ...]:
        """The sessions of the last launch, by rank."""
        last = max((member.launch for member in self.members.values()), default=0)
        together = {one: member for one, member in self.members.items() if member.launch == last}
        return tuple(sorted(together, key=lambda one: together[one].rank))


def launches(sessions: Iterable[Session]) -> Launches:
    """Group `sessions` by launch: in the order in which they began, a launch begins where a rank occurs again.

    The ranks of a launch begin within seconds, and the next launch begins when they are gone. Consecutive sessions
    without a rank count as one launch.
    """
    found: dict[str, Member] = {}
    launch, seen, world_size = -1, set[int](), 0
    for session in sorted(sessions, key=lambda one: one.created):
        if session.world_size != world_size or session.rank in seen:
            launch, seen, world_size = launch + 1, set(), session.world_size
        if session.rank is not None:
            seen.add(session.rank)
        found[session.id] = Member(launch, session.rank or 0)
    return Launches(found, any(session.rank is not None for session in sessions))
