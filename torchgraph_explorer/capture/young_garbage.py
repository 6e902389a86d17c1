"""Keeps what a logged step makes from growing old in Python's garbage collector."""

from __future__ import annotations

import gc
import sys

MOST_YOUNG = 50_000
"""Objects that are searched at most, in about 2 ms. With the collector's own thresholds there are 7,700 at most."""


def collect_young() -> None:
    """Collect young objects, unless the collector is switched off. To be called before a logged step makes its own.

    The collector searches everything there is, which takes 0.2 s beside torch, when many objects have outlived two
    searches of the young ones. A logged step makes thousands that end with it. Right after such a search, the next one
    comes only when most of them have ended. From Python 3.14 on, everything is searched bit by bit.
    """
    if sys.version_info < (3, 14) and gc.isenabled() and _most_young() <= MOST_YOUNG:
        gc.collect(1)


def _most_young() -> int:
    """How many young objects there may be: those of the second generation have outlived so many searches."""
    first, searches, _ = gc.get_count()
    return first + searches * gc.get_threshold()[0]
