"""Repairs a record from several damaged copies of it."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from torchgraph_explorer.record.format.envelope import DamageError

_ENOUGH = 3
"""Copies that are needed for a majority."""


_MOST_BYTES = 1 << 27
"""Bytes of the copies that are kept. Those of our graphs have some hundred kilobytes."""


class DamagedCopies:
    """Damaged copies of records that are written more than once, kept until they suffice to restore the content.

    If bits flip every few kilobytes, every copy of a large graph is damaged, but seldom in the same place.
    """

    def __init__(self) -> None:
        self._copies: dict[tuple[object, ...], list[bytes]] = {}
        self._size = 0

    def repaired(self, name: object, copy: bytes, check: int) -> bytes:
        """The content of `name`, with crc32 `check`, by the majority of `copy` and its earlier copies, bit by bit.

        Raises:
            DamageError: The copies do not suffice yet.
        """
        copies = self._copies.setdefault((name, check, len(copy)), [])
        if self._size + len(copy) > _MOST_BYTES:
            raise DamageError
        copies.append(copy)
        self._size += len(copy)
        if len(copies) < _ENOUGH:
            raise DamageError
        self._size -= sum(map(len, copies[:-_ENOUGH]))
        del copies[:-_ENOUGH]
        one, other, third = (np.frombuffer(each, dtype=np.uint8) for each in copies)
        most: bytes = (one & other | one & third | other & third).tobytes()
        if crc32(most) != check:
            raise DamageError
        return most
