"""When a snapshot is uploaded: plain functions of the time, the last snapshot and the uploads so far.

Uploads cost sockets that wandb frees only at the end of a run, so their number is what has to stay small. Times are in
seconds, and begin with the first recorded step.
"""

from __future__ import annotations

import math

MOST = 120
"""Files that a run uploads at most, tables and pages together."""

AT_END = 2
"""Of those, kept for the end: a table and a page."""

FIRST = 1.0
"""When the first snapshot is begun: with a few steps in it, and on the server within ten seconds."""

EARLY = 20.0
"""When the second one is begun, a first look at how training goes."""

AGE = 60.0
"""What the chart on the server may be old."""

AGE_SHARE = 0.05
"""What it may be old as a share of the run so far, if that is longer."""

SENDING = 15.0
"""How often W&B's client sends what was logged. That is allowed for as long as `AGE` counts, and little after that."""

COST_SHARE = 0.1
"""Of the time, at most, in which a snapshot is being made. That happens in another process."""

SPREAD = 10
"""Uploads that are spread over what is left of `HORIZON` when only they are left: after some fifteen hours.

`AGE_SHARE` holds until then. `MOST` would be used up on the second day if it held for longer.
"""

HORIZON = 30 * 86_400.0
"""How long the uploads last: thirty days. After that the next one is that at the end."""

PAGE_GROWTH = 64
"""The large page comes with the snapshot at `EARLY`, and again after times that are so many times as long."""


def is_due(elapsed: float, last: float | None, uploads: int, *, making: float = 0.0) -> bool:
    """Whether to begin a snapshot now.

    Args:
        elapsed: Since the first recorded step.
        last: When the last snapshot was begun; None before the first.
        uploads: So far.
        making: How long the last one took to be made.
    """
    if uploads >= MOST - AT_END:
        return False
    if last is None:
        return elapsed >= FIRST
    if elapsed - last < making / COST_SHARE:
        return False
    if last < EARLY <= elapsed:
        return True
    arrives = elapsed + making  # until then, what is shown is the last one
    if AGE_SHARE * arrives < AGE:
        arrives += SENDING
    return arrives - last >= allowed_age(arrives, last, uploads)


def allowed_age(elapsed: float, last: float, uploads: int) -> float:
    """How old the snapshot that was begun at `last` may become, while `uploads` have been made."""
    usual = max(AGE, AGE_SHARE * elapsed)
    left = MOST - AT_END - uploads
    if left > SPREAD:
        return usual
    if left < 1 or last >= HORIZON:
        return math.inf
    growth: float = (HORIZON / last) ** (1 / left)
    return max(usual, last * (growth - 1))


def is_page_due(elapsed: float, pages: int) -> bool:
    """Whether a snapshot that is begun now has the page, when so many pages were uploaded."""
    return elapsed >= EARLY * float(PAGE_GROWTH) ** pages
