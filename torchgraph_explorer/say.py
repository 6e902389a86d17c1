"""Says something in the terminal, where progress bars and results do not get mixed up with it."""

from __future__ import annotations

import sys
import warnings

from torchgraph_explorer.errors import TorchgraphWarning


def say(sentence: str) -> None:
    """Write a line to stderr, marked as ours. A closed stderr is no reason to fail."""
    try:
        sys.stderr.write(f"torchgraph: {sentence}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


def warn(sentence: str) -> None:
    """Warn of what is not recorded. Never raises, also where warnings are errors: training is not to end by ours."""
    try:
        warnings.warn(sentence, TorchgraphWarning, stacklevel=3)
    except TorchgraphWarning:
        say(sentence)
