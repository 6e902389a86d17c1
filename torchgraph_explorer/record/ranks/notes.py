"""The notes on a model that several ranks recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.model_index import SessionIndex
from torchgraph_explorer.schema import Finished

Ints = npt.NDArray[np.int64]


def finished_together(sessions: Sequence[SessionIndex]) -> Finished | None:
    """How the sessions of one launch ended; None while one is open. A note that only some have names their ranks."""
    ends = [one.finished for one in sessions]
    if len(ends) == 1 or None in ends:
        return None if None in ends else ends[0]
    steps = [end.steps for end in ends if end and end.steps is not None]
    bad = [end.not_finite for end in ends if end and end.not_finite is not None]
    first = min(bad, key=lambda one: one.step, default=None)
    return Finished(max(end.time for end in ends if end), _notes(sessions), max(steps, default=None), first)


def notes_so_far(sessions: Sequence[SessionIndex]) -> tuple[str, ...]:
    """What the sessions of one launch have noted while one of them is open; none once `finished_together` has it."""
    return _notes(sessions) if any(one.finished is None for one in sessions) else ()


def _notes(sessions: Sequence[SessionIndex]) -> tuple[str, ...]:
    ranks_of: dict[str, list[int]] = {}
    for one in sessions:
        for note in dict.fromkeys(one.finished.notes if one.finished else one.notes):
            ranks_of.setdefault(note, []).append(one.session.rank or 0)
    return tuple(note if len(of) == len(sessions) else f"{_named(of)}: {note}" for note, of in ranks_of.items())


def missing_ranks(steps: Ints, ranks: npt.NDArray[np.int32], world_sizes: Ints) -> tuple[str, ...]:
    """A sentence on the frames at `steps` that not all ranks wrote; empty if all of them did."""
    short = np.flatnonzero(ranks < world_sizes)
    if not len(short):
        return ()
    have, of = ranks[short], world_sizes[short]
    least = f"{have[0]}" if (have == have[0]).all() else f"{have.min()} to {have.max()}"
    if len(short) == len(steps):
        which = "Every step is"
    elif len(short) == 1:
        which = f"Step {steps[short[0]]} is"
    else:
        which = f"{len(short)} of {len(steps)} steps, the last of them {steps[short[-1]]}, are"
    return (f"{which} from {least} of {of.max()} ranks: the others recorded nothing there, or elsewhere.",)


def _named(ranks: Sequence[int]) -> str:
    return f"Rank {ranks[0]}" if len(ranks) == 1 else f"Ranks {', '.join(map(str, ranks))}"
