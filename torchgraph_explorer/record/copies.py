"""Making one sound copy of several damaged ones."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from torchgraph_explorer.record.format.envelope import DamageError

_ENOUGH = 3
"""Copies that have a majority among them."""


class DamagedCopies:
    """Damaged copies of what is written more than once, until they are enough to tell how it was.

    A large graph has damage in every copy where something is flipped every few kilobytes, but seldom in the same place.
    """

    def __init__(self) -> None:
        self._copies: dict[tuple[object, ...], list[bytes]] = {}

    def mended(self, name: object, copy: bytes, check: int) -> bytes:
        """What `copy` and the earlier copies of `name` were, whose crc32 was `check`.

        Raises:
            DamageError: That is not clear yet.
        """
        copies = self._copies.setdefault((name, check, len(copy)), [])
        copies.append(copy)
        if len(copies) < _ENOUGH:
            raise DamageError
        del copies[:-_ENOUGH]
        one, other, third = (np.frombuffer(each, dtype=np.uint8) for each in copies)
        most: bytes = (one & other | one & third | other & third).tobytes()
        if crc32(most) != check:
            raise DamageError
        return most
