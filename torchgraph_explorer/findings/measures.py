"""Statistics of series as numbers whose changes can be compared: logarithms of magnitudes, and shares of elements."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.moments import COLUMN, NON_FINITE

Floats: TypeAlias = npt.NDArray[np.float64]
Statistics: TypeAlias = npt.NDArray[np.float32]

MEASURES = ("size", "std", "largest", "mean", "zeros", "nonfinite")
"""What is compared of a series.

- `size`: logarithm of the root mean square. `std`, `largest`: logarithms of the standard deviation, and of the largest
  magnitude.
- `mean`: the mean divided by the root mean square. `zeros`: the share of zeros.
- `nonfinite`: the share of NaN and infinite elements.
"""

LOGARITHMS = ("size", "std", "largest")
"""The measures that are logarithms."""


def measures_of(statistics: Statistics) -> Floats:
    """The `MEASURES` of series, `[MEASURES, ...]`, from their `statistics`, `[STATISTICS, ...]`; NaN if not known."""
    column = {name: statistics[at].astype(np.float64) for name, at in COLUMN.items()}
    with np.errstate(all="ignore"):
        size = np.hypot(column["mean"], column["std"])
        largest = np.fmax(np.abs(column["min"]), np.abs(column["max"]))
        bad = statistics[NON_FINITE].astype(np.float64).sum(axis=0) / column["count"]
        found = np.stack(
            [
                np.log(np.maximum(size, 1e-45)),
                np.log(np.maximum(column["std"], 1e-45)),
                np.log(np.maximum(largest, 1e-45)),
                column["mean"] / np.maximum(size, 1e-45),
                column["zeros"] / column["sampled"],
                bad,
            ]
        )
    found[~np.isfinite(found)] = np.nan
    return found


def size_text(name: str, value: float) -> str:
    """A measure as people read it."""
    if np.isnan(value):
        return "none"
    if name in {"zeros", "nonfinite"}:
        return f"{100 * value:.3g} %"
    return f"{np.exp(value) if name != 'mean' else value:.3g}"
