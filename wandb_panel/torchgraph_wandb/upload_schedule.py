"""When a snapshot is uploaded: plain functions of the time, the last snapshot and the uploads so far.

An upload takes sockets that wandb frees only at the end of a run, so the number of uploads must stay small. Times are
in seconds from the first recorded step.
"""

from __future__ import annotations

import math

MAX_UPLOADS = 120
"""Files that a run uploads at most, tables and pages together."""

RESERVED_FOR_END = 2
"""Uploads kept for the end of the run: a table and a page."""

FIRST_SNAPSHOT = 1.0
"""When the first snapshot begins: it has a few steps, and is on the server within ten seconds."""

SECOND_SNAPSHOT = 20.0
"""When the second one begins: a first look at how the training goes."""

MAX_AGE = 60.0
"""How old the chart on the server may be."""

MAX_AGE_SHARE = 0.05
"""How old it may be as a share of the run so far, if that is longer."""

SEND_INTERVAL = 15.0
"""How often W&B's client sends what was logged. Allowed for while `MAX_AGE` applies; later it matters little."""

MAX_COST_SHARE = 0.1
"""The largest share of the time in which a snapshot is being made, in another process."""

SPREAD_UPLOADS = 10
"""When only so many uploads are left, after about fifteen hours, they are spread over the rest of `HORIZON`.

`MAX_AGE_SHARE` holds until then. If it held longer, `MAX_UPLOADS` would be used up on the second day.
"""

HORIZON = 30 * 86_400.0
"""How long the uploads last: thirty days. After that, the only upload is the one at the end."""

PAGE_GROWTH = 64
"""The large page comes with the snapshot at `SECOND_SNAPSHOT`, then whenever the run is so many times longer."""


def is_due(elapsed: float, last: float | None, uploads: int, *, making: float = 0.0) -> bool:
    """Whether to begin a snapshot now.

    Args:
        elapsed: Time since the first recorded step.
        last: When the last snapshot began; None before the first.
        uploads: Uploads so far.
        making: How long it took to make the last snapshot.
    """
    if uploads >= MAX_UPLOADS - RESERVED_FOR_END:
        return False
    if last is None:
        return elapsed >= FIRST_SNAPSHOT
    if elapsed - last < making / MAX_COST_SHARE:
        return False
    if last < SECOND_SNAPSHOT <= elapsed:
        return True
    arrives = elapsed + making  # until then, the last one is shown
    if MAX_AGE_SHARE * arrives < MAX_AGE:
        arrives += SEND_INTERVAL
    return arrives - last >= allowed_age(arrives, last, uploads)


def allowed_age(elapsed: float, last: float, uploads: int) -> float:
    """How old the snapshot that began at `last` may become, after `uploads` uploads."""
    usual = max(MAX_AGE, MAX_AGE_SHARE * elapsed)
    left = MAX_UPLOADS - RESERVED_FOR_END - uploads
    if left > SPREAD_UPLOADS:
        return usual
    if left < 1 or last >= HORIZON:
        return math.inf
    growth: float = (HORIZON / last) ** (1 / left)
    return max(usual, last * (growth - 1))


def is_page_due(elapsed: float, pages: int) -> bool:
    """Whether a snapshot that begins now includes the page, after `pages` uploads of it."""
    return elapsed >= SECOND_SNAPSHOT * float(PAGE_GROWTH) ** pages
