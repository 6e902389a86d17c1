"""What was skipped while reading a run, told once."""

from __future__ import annotations

import warnings

from torchgraph_explorer.errors import TorchgraphWarning


class Notices:
    """Sentences about damage in one run: kept for whoever asks, and given as a `TorchgraphWarning` each."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._announced = 0

    @property
    def texts(self) -> tuple[str, ...]:
        """All of them, in the order in which they came up."""
        return tuple(self._texts)

    def add(self, text: str) -> None:
        """Note a sentence, unless it is known."""
        self._texts.setdefault(text)

    def announce(self) -> None:
        """Warn of what is new. To be called when all is in order again: a warning may be made an exception."""
        new = self.texts[self._announced :]
        self._announced += len(new)
        for text in new:
            warnings.warn(text, TorchgraphWarning, stacklevel=3)
