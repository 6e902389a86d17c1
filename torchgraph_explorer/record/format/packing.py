"""Histograms as few bytes: docs/format.md, Packed histograms.

A row is a walk over the buckets, upwards from the lowest. A token of 1 or more is the count of the current bucket,
and moves on to the next; a token 0 and a second token `r` skip `r` empty buckets. Tokens are LEB128 varints.
Many rows are packed and unpacked at once, without a Python loop over rows, buckets or bytes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import LAST_BUCKET, Histograms
from torchgraph_explorer.record.format.envelope import DamageError

Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

_TOKEN_BYTES = 5
"""The longest token: 32 bits, seven to a byte."""


def pack(histograms: Histograms) -> tuple[bytes, Ints]:
    """The packed rows, one after the other, and where each begins and the last one ends, `[rows + 1]`."""
    tokens, token_offsets = _tokens(histograms)
    sizes = np.ones(len(tokens), dtype=np.int64)
    for byte in range(1, _TOKEN_BYTES):
        sizes += tokens >= 1 << (7 * byte)
    ends = _offsets(sizes)
    data = np.empty(ends[-1], dtype=np.uint8)
    for byte in range(int(sizes.max(initial=0))):
        longer = sizes > byte
        more = (sizes[longer] > byte + 1).astype(np.int64) << 7
        data[ends[:-1][longer] + byte] = ((tokens[longer] >> (7 * byte)) & 0x7F) | more
    return data.tobytes(), ends[token_offsets]


def unpack(data: bytes, offsets: Ints) -> Histograms:
    """The histograms of the rows that lie in `data` at `offsets[r]:offsets[r + 1]`.

    Raises:
        DamageError: That is not what `pack` makes.
    """
    tokens, token_offsets = _read_tokens(np.frombuffer(data, dtype=np.uint8), offsets)
    zero = tokens == 0
    skip = np.zeros(len(tokens), dtype=np.bool_)
    skip[1:] = zero[:-1]
    _require_whole(zero, skip, token_offsets)
    if tokens[skip].max(initial=0) > 2 * LAST_BUCKET:
        raise DamageError
    is_count = ~(zero | skip)
    buckets = _walk(np.where(is_count, 1, tokens), token_offsets)[is_count] - 1
    if buckets.max(initial=-LAST_BUCKET) > LAST_BUCKET:
        raise DamageError
    entries = _offsets(is_count)[token_offsets]
    return Histograms(entries.astype(np.uint32), buckets.astype(np.int16), tokens[is_count].astype(np.uint32))


def _tokens(histograms: Histograms) -> tuple[Ints, Ints]:
    """The tokens to write, and the offsets of each row's tokens, `[rows + 1]`."""
    offsets = histograms.offsets.astype(np.int64)
    buckets = histograms.buckets.astype(np.int64)
    before = np.empty_like(buckets)
    before[1:] = buckets[:-1]
    before[offsets[:-1][np.diff(offsets) > 0]] = -LAST_BUCKET - 1
    gaps = buckets - before - 1
    ends = _offsets(np.where(gaps > 0, 3, 1))
    tokens = np.zeros(ends[-1], dtype=np.int64)
    tokens[ends[1:] - 1] = histograms.counts
    tokens[ends[1:][gaps > 0] - 2] = gaps[gaps > 0]
    return tokens, ends[offsets]


def _read_tokens(data: npt.NDArray[np.uint8], offsets: Ints) -> tuple[Ints, Ints]:
    """The tokens in `data`, and the offsets of each row's tokens, `[rows + 1]`."""
    last = data < 0x80
    stops = offsets[1:][np.diff(offsets) > 0]
    if len(data) != offsets[-1] or not last[stops - 1].all():
        raise DamageError
    ends = np.flatnonzero(last) + 1
    starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
    sizes = ends - starts
    if sizes.max(initial=0) > _TOKEN_BYTES:
        raise DamageError
    tokens = (data[starts] & 0x7F).astype(np.int64)
    for byte in range(1, int(sizes.max(initial=0))):
        longer = np.flatnonzero(sizes > byte)
        tokens[longer] |= (data[starts[longer] + byte] & 0x7F).astype(np.int64) << (7 * byte)
    if tokens.max(initial=0) > np.iinfo(np.uint32).max:
        raise DamageError
    return tokens, _offsets(last)[offsets]


def _require_whole(zero: Flags, skip: Flags, offsets: Ints) -> None:
    """Refuse a 0 that is not followed, in its own row, by a number of buckets above 0."""
    stops = offsets[1:][np.diff(offsets) > 0]
    if (zero & skip).any() or zero[stops - 1].any():
        raise DamageError


def _walk(steps: Ints, offsets: Ints) -> Ints:
    """The bucket that is reached after each of `steps`; every row starts from the lowest one."""
    reached = _offsets(steps)
    before = np.repeat(reached[offsets[:-1]], np.diff(offsets))
    return reached[1:] - before - LAST_BUCKET


def _offsets(sizes: npt.NDArray[np.int64] | Flags) -> Ints:
    """Where each of consecutive blocks begins, and the last one ends."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
