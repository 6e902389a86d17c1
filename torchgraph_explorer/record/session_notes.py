"""The note on a model that several sessions recorded one after the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def mixed_sessions(steps: Ints, order: Ints) -> tuple[str, ...]:
    """A sentence on the frames at `steps` that are older than frames of lower steps; empty without such frames.

    `order` numbers the session, or the launch of ranks, that wrote each frame; later ones have higher numbers.
    """
    older = steps[order < np.maximum.accumulate(order)]
    if not len(older):
        return ()
    if len(older) == 1:
        which = f"Step {older[0]} is"
    else:
        which = f"{len(older):,} of {len(steps):,} recorded steps, from {older[0]} to {older[-1]}, are"
    return (
        f"Two sessions are mixed: {which} of an earlier session than the steps before. The run was continued at a "
        f"lower step, and the training has not reached them again. To choose where a session begins, set watcher.step.",
    )
