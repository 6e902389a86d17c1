"""The model's outputs that gradients come back to: what they are, and of how many samples and classes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows
from torchgraph_explorer.schema import Series, TensorInfo

Floats = npt.NDArray[np.float64]

WITHIN = 1e-4
"""How exactly the rows of an output sum to one."""

ERRORS, MOST_ERROR = 4.0, 0.2
"""Standard errors by which the mean of sampled elements may be off, and what they may come to, of that mean: at two
steps at least."""

EQUAL = 1e-3
"""By how much the gradients of the samples differ at most where each is one over their number."""


def last_module(evidence: Evidence) -> str:
    """The module of the last call without calls inside; empty without any."""
    places = evidence.places
    return next((one.module for at, one in reversed([*enumerate(places.calls)]) if places.is_leaf(at)), "")


def is_softmax(evidence: Evidence, column: int, info: TensorInfo) -> bool:
    """Whether the elements lie between 0 and 1 and their mean is that of rows that sum to one."""
    return softmax_of(evidence, column, info) is not None


def softmax_of(evidence: Evidence, column: int, info: TensorInfo) -> tuple[int, int] | None:
    """Of an output of probabilities, how many classes and how many positions of a sample it has; None of others."""
    if not lie_within(evidence, column):
        return None
    means, spreads, count, sampled = (
        evidence.column(name, column).astype(np.float64) for name in ("mean", "std", "count", "sampled")
    )
    errors = np.where(count == sampled, 0.0, ERRORS * spreads / np.sqrt(sampled))
    for classes, positions in classes_and_positions(info):
        off, allowed = np.abs(means * classes - 1), WITHIN + rounding(info) + errors * classes
        is_known = np.isfinite(means) & (errors * classes < MOST_ERROR)
        if classes > 1 and is_known.sum() >= LEAST_ROWS and not (off > allowed).any():
            return classes, positions
    return None


def rounding(info: TensorInfo) -> float:
    """The largest relative error of an element by its dtype, if that has few digits."""
    return _ROUNDING.get(info.dtype, 0.0)


_ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def classes_and_positions(info: TensorInfo) -> Iterator[tuple[int, int]]:
    """How many classes an output may have, and how many positions each sample, of which each has an answer.

    The classes are the second dimension, as torch has it of `[samples, classes, ...]`; or the last one of sequences.
    """
    sizes = info.shape[1:]
    for classes in dict.fromkeys((*sizes[:1], *(sizes[-1:] if len(sizes) == 2 else ()))):
        if classes and all(sizes):
            yield classes, math.prod(size or 1 for size in sizes) // classes


class TrainedOutput(NamedTuple):
    """An output of the model that gradients come back to.

    Attributes:
        series: Its series.
        info: What it is; not a scalar.
        column: The column of its values.
        norms: That of the norms of its gradients.
    """

    series: Series
    info: TensorInfo
    column: int
    norms: int


def trained_outputs(evidence: Evidence) -> Iterator[TrainedOutput]:
    """The outputs of the model that gradients come back to."""
    for column in evidence.of_kind("value", "output"):
        one = evidence.series[column]
        info = evidence.places.tensor(one)
        norms = evidence.find(one.module, one.call, "output", one.path, "grad_norm")
        if not one.module and not one.call and info is not None and info.shape and norms is not None:
            yield TrainedOutput(one, info, column, norms)


def ends_with(evidence: Evidence, column: int, name: str) -> bool:
    """Whether a module of that class is the last one and its output, of one of its calls, the model's."""
    places, last = evidence.places, last_module(evidence)
    if not last or places.class_of(last) != name:
        return False
    outputs = (evidence.find(last, one.call, "output", "output") for one in places.calls if one.module == last)
    wanted = evidence.column("mean", column)
    return any(
        one is not None and np.array_equal(evidence.column("mean", one), wanted, equal_nan=True) for one in outputs
    )


def lie_within(evidence: Evidence, column: int) -> bool:
    """Whether all elements lie between 0 and 1 at all steps."""
    low, high = (evidence.column(name, column) for name in ("min", "max"))
    return bool(np.nanmin(low, initial=0) >= 0 and np.nanmax(high, initial=1) <= 1 + WITHIN)


def samples_of(evidence: Evidence, info: TensorInfo, column: int) -> Floats:
    """Rows of the first dimension at each step."""
    found: Floats = evidence.column("count", column).astype(np.float64) / sample_size(info)
    return found


def of_norm_one(evidence: Evidence, norms: int, scale: Floats, *, of: Sequence[str] = ("min", "max")) -> Rows:
    """The rows with gradients, if each sample's, times `scale`, is 1 at all of them; else none.

    Or, where `of` is other statistics of the samples' norms, these are.
    """
    found = np.stack([evidence.column(name, norms) * scale for name in of])
    rows = np.flatnonzero(np.isfinite(found).all(axis=0))
    return rows if (np.abs(found[:, rows] - 1) < EQUAL).all() else rows[:0]


def sample_size(info: TensorInfo) -> int:
    """Elements of one sample: of all dimensions but the first."""
    return math.prod(size or 1 for size in info.shape[1:])
