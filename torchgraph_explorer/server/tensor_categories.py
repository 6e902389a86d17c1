"""The kept samples of a tensor by category: what `api/tensor-line` answers with `by=category`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.record.tensors.reading import KeptTensor

COLUMNS = ("category", "count", "mean", "std")
"""The number of a category, how many samples have it, and the mean and the standard deviation of their own means."""


def category_rows(
    tensor: KeptTensor, numbers: npt.NDArray[Any], known: dict[str, int]
) -> Iterator[tuple[float, float, float, float]]:
    """A row for each category of the kept samples. Its number is that in `known`, to which new ones are added.

    Elements that are not finite count for nothing; a mean or standard deviation of nothing is NaN.

    Raises:
        NotFoundError: The samples have no categories.
    """
    if tensor.batch_dim is None or not tensor.categories or numbers.shape != tensor.values.shape:
        raise NotFoundError("The samples of this tensor have no categories: watcher.samples() gives them.")
    means = [_mean(sample) for sample in np.moveaxis(numbers, tensor.batch_dim, 0)]
    own: dict[str, list[float]] = {}
    for name, mean in zip(tensor.categories, means, strict=True):
        own.setdefault(name, []).append(mean)
    for name, found in own.items():
        good = np.array([one for one in found if np.isfinite(one)])
        facts = (float(good.mean()), float(good.std())) if good.size else (float("nan"), float("nan"))
        yield float(known.setdefault(name, len(known))), float(len(found)), *facts


def _mean(sample: npt.NDArray[Any]) -> float:
    good = sample[np.isfinite(sample)]
    return float(good.mean(dtype=np.float64)) if good.size else float("nan")
