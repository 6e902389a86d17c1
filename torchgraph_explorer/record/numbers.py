"""Whole numbers that a caller passes."""

from __future__ import annotations

import operator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import OptionError


def whole(given: object, name: str) -> int:
    """`given`, which was passed as `name`, as an int.

    Raises:
        OptionError: It is no whole number.
    """
    try:
        return operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise OptionError(f"{name}={given!r:.80} is not a whole number.") from None


def whole_numbers(given: npt.ArrayLike, name: str) -> npt.NDArray[np.int64]:
    """`given`, a number or several, which were passed as `name`, as an array `[n]`.

    Raises:
        OptionError: They are no whole numbers, or a mask.
    """
    try:
        numbers = np.asarray(given).reshape(-1)
    except ValueError:  # lists of different lengths
        numbers = np.empty(1, np.object_)
    if len(numbers) and numbers.dtype.kind not in "iu":
        raise OptionError(f"{name}={given!r:.80} are not whole numbers. Pass numbers of frames, such as range(10).")
    return numbers.astype(np.int64)
