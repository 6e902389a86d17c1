"""The columns of a statistics matrix, and what a fingerprint is of."""

from __future__ import annotations

from enum import IntEnum

STATISTICS = (
    "count",
    "sampled",
    "nan",
    "positive_infinity",
    "negative_infinity",
    "zeros",
    "min",
    "max",
    "mean",
    "absolute_mean",
    "std",
    "l2_norm",
)
"""The columns of a statistics matrix, in order. All are float32.

- `count`: elements of the whole tensor. `nan`, `positive_infinity`, `negative_infinity`: how many of those, exactly.
- `sampled`: finite elements that the statistics below and the histogram were computed from. `zeros`: how many of
  those were zero, so `zeros / sampled` is the fraction of zeros.
- `min`, `max`, `mean`, `absolute_mean`, `std` (population): of the sampled elements; NaN when there were none.
- `l2_norm`: of all finite elements; estimated as `sqrt(mean square x finite elements)` when a sample was taken.
"""


class Extent(IntEnum):
    """What a fingerprint is of: the two lowest bits of it.

    - `NONE`: of nothing; there is no fingerprint.
    - `ALL`: of all bits of all elements of the tensor.
    - `SAMPLE`: of the sampled elements as float32, for tensors on an accelerator that are sampled or have a type with
      numbers that are no float32.
    """

    NONE = 0
    ALL = 1
    SAMPLE = 2


EXTENT = 3
"""The bits of a fingerprint that are its `Extent`."""
