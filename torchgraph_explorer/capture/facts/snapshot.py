"""Remembers how a tensor was, to tell later whether something has written to it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torchgraph_explorer.capture.no_dispatch import ORDINARY, has_memory, is_readable

FIRST = 64
"""How many elements are compared: what is written through `.data`, or by code other than torch's, counts no version."""


class Snapshot(NamedTuple):
    """A tensor's version, and a copy of its first elements; None where they are not at hand."""

    version: int
    first: Tensor | None

    @classmethod
    def of(cls, tensor: Tensor) -> Snapshot:
        """How `tensor` is now. Waits for no device, and copies no more than `FIRST` elements."""
        first = _first(tensor)
        return cls(version_of(tensor), None if first is None else first.clone())

    def is_still(self, tensor: Tensor) -> bool:
        """Whether nothing has written to `tensor` since, as far as can be told."""
        if version_of(tensor) != self.version:
            return False
        if self.first is None:
            return True
        now = _first(tensor)
        return now is not None and torch.equal(self.first, now)


def version_of(tensor: Tensor) -> int:
    """How often a tensor was written to; 0 if torch does not count that."""
    return 0 if tensor.is_inference() else tensor._version


def _first(tensor: Tensor) -> Tensor | None:
    """The first elements of a tensor; None if reading them would wait for a device, or copy all elements.

    Fully sharded modules have no memory between their passes.
    """
    is_at_hand = type(tensor) in ORDINARY and tensor.is_cpu and tensor.is_contiguous() and is_readable(tensor)
    return tensor.detach().reshape(-1)[:FIRST] if is_at_hand and has_memory(tensor) else None
