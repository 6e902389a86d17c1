"""Says something in the terminal, where progress bars and results do not get mixed up with it."""

from __future__ import annotations

import sys


def say(sentence: str) -> None:
    """Write a line to stderr, marked as ours. A closed stderr is no reason to fail."""
    try:
        sys.stderr.write(f"torchgraph: {sentence}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return
