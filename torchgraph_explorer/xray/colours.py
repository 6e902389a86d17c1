"""The colours of cells, as the viewer has them (`web/src/view/xray/xray.css`): the viridis map, even to the eye."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.cells.codes import Codes, decode, is_bad

Pixels = npt.NDArray[np.uint8]

STOPS = ((0x44, 0x01, 0x54), (0x3B, 0x52, 0x8B), (0x21, 0x91, 0x8C), (0x5E, 0xC9, 0x62), (0xFD, 0xE7, 0x25))
BAD_COLOUR = (0xC8, 0x14, 0x14)
EMPTY_COLOUR = (0xEC, 0xEE, 0xF2)
ZERO_COLOUR = (0x9A, 0xA0, 0xA8)
"""Of zero, which has no place on a logarithmic scale: a gradient that never came is not a small one."""

_USUAL = (0.001, 0.999)
"""Numbers beyond these shares of all cells have the colours of the ends."""

_DEEPEST = 1e-10
_NARROW = 1.02


@dataclass(frozen=True, slots=True)
class ColourScale:
    """Maps numbers to places on the ramp, from 0 to 1.

    Attributes:
        low: Numbers up to this have the first colour.
        high: Numbers from this on have the last one.
        is_log: The places are those of the logarithms.
    """

    low: float
    high: float
    is_log: bool

    def places(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The places of `values`, NaN for NaN."""
        with np.errstate(all="ignore"):
            if not self.is_log:
                return np.clip((values - self.low) / (self.high - self.low), 0, 1)
            span = np.log(self.high) - np.log(self.low)
            logs = np.log(np.maximum(values, 1e-300))
            found: npt.NDArray[np.float64] = np.clip((logs - np.log(self.low)) / span, 0, 1)
            return found


def scale_of(codes: Codes, *, is_share: bool) -> ColourScale:
    """The scale of all cells. Shares are from 0 to 1, other statistics logarithmic."""
    values = decode(codes).astype(np.float64)
    positive = np.sort(values[values > 0])
    if is_share or not len(positive):
        return ColourScale(0.0, 1.0, is_log=False)
    low, high = (float(positive[round(share * (len(positive) - 1))]) for share in _USUAL)
    low = max(low, high * _DEEPEST)
    return ColourScale(low, high, is_log=True) if high > low * _NARROW else ColourScale(low / 2, high * 2, is_log=True)


def pixels_of(codes: Codes, scale: ColourScale) -> Pixels:
    """The colour of each cell, `[..., 3]`. Each code of 16 bits is mixed once, however many cells have it."""
    with np.errstate(invalid="ignore"):  # codes that no cell has are NaN of other kinds
        return _mixed(np.arange(1 << 16, dtype=codes.dtype), scale)[codes]


def _mixed(codes: Codes, scale: ColourScale) -> Pixels:
    values = decode(codes).astype(np.float64)
    places = scale.places(values)
    along = np.nan_to_num(places) * (len(STOPS) - 1)
    stop = np.minimum(along.astype(np.int64), len(STOPS) - 2)
    ramp = np.array(STOPS, dtype=np.float64)
    mixed = ramp[stop] + (ramp[stop + 1] - ramp[stop]) * (along - stop)[..., None]
    mixed[np.isnan(places)] = EMPTY_COLOUR
    if scale.is_log:
        mixed[values == 0] = ZERO_COLOUR
    mixed[is_bad(codes)] = BAD_COLOUR
    found: Pixels = np.round(mixed).astype(np.uint8)
    return found
