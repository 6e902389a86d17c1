"""Describes the model's outputs that gradients come back to: what they are, and of how many samples and classes."""

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
"""Largest relative difference, which is rounding, of a sum of probabilities from one, or of an element beyond it."""

ERRORS, MOST_ERROR = 4.0, 0.2
"""How many standard errors the mean of sampled elements may be off by; and the most that these may be together, as a
share of the mean, at a step that tells anything."""

EQUAL = 1e-3
"""Largest relative difference, which is rounding, between norms of samples' gradients that should be equal."""


def last_module(evidence: Evidence) -> str:
    """The name of the leaf module that is called last; empty if there are no calls."""
    places = evidence.places
    return next((call.module for number, call in reversed([*enumerate(places.calls)]) if places.is_leaf(number)), "")


def is_softmax(evidence: Evidence, column: int, info: TensorInfo) -> bool:
    """Whether an output has probabilities that sum to one over its classes."""
    return softmax_of(evidence, column, info) is not None


def softmax_of(evidence: Evidence, column: int, info: TensorInfo) -> tuple[int, int] | None:
    """How many classes an output of probabilities has, and how many positions of each sample; None for other outputs.

    They are taken for probabilities if all lie between 0 and 1, and their mean is one over the number of classes.
    """
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
    """The largest relative rounding error of an element of a dtype of 16 bits; 0 for others, whose error is small."""
    return _ROUNDING.get(info.dtype, 0.0)


_ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
"""The largest relative rounding error of a dtype."""


def classes_and_positions(info: TensorInfo) -> Iterator[tuple[int, int]]:
    """How many classes an output may have, and how many positions of each sample then have an answer.

    The classes are the second dimension of `[samples, classes, ...]`, as torch's losses take it, or the last one of
    `[samples, length, classes]`. Nothing is yielded where a size varies from step to step.
    """
    sizes = info.shape[1:]
    for classes in dict.fromkeys((*sizes[:1], *(sizes[-1:] if len(sizes) == 2 else ()))):
        if classes and all(sizes):
            yield classes, math.prod(size or 1 for size in sizes) // classes


class TrainedOutput(NamedTuple):
    """An output of the model that gradients come back to.

    Attributes:
        series: The series of its values.
        info: Its shape and dtype. It has at least one dimension.
        column: The column of its values.
        norms: The column of the norms of the gradient of each sample.
    """

    series: Series
    info: TensorInfo
    column: int
    norms: int


def trained_outputs(evidence: Evidence) -> Iterator[TrainedOutput]:
    """The model's outputs that gradients come back to, but for scalars, such as its loss: each in the first such call.

    Several losses may each use another output, of another call.
    """
    found: dict[str, TrainedOutput] = {}
    for column in evidence.of_kind("value", "output"):
        series = evidence.series[column]
        if series.module:
            continue
        info = evidence.places.tensor(series)
        norms = evidence.find(series.module, series.call, "output", series.path, "grad_norm")
        known = found.get(series.path)
        is_first = known is None or (series.call or 0) < (known.series.call or 0)
        if is_first and info is not None and info.shape and norms is not None:
            found[series.path] = TrainedOutput(series, info, column, norms)
    yield from found.values()


def giver(evidence: Evidence, column: int, *classes: str) -> str | None:
    """The module of one of these classes that gives the model's output `column` in one of its calls; None without one.

    It is known by the values: those of the module's output have the same mean at all steps.
    """
    wanted = evidence.column("mean", column)
    for call in reversed(evidence.places.calls):
        if evidence.places.class_of(call.module) not in classes:
            continue
        output = evidence.find(call.module, call.call, "output", "output")
        if output is not None and np.array_equal(evidence.column("mean", output), wanted, equal_nan=True):
            return call.module
    return None


def last_of(evidence: Evidence, column: int, *classes: str) -> str | None:
    """As `giver`; without one, the last module if it is of one of these classes: a function may follow it."""
    last = last_module(evidence)
    return giver(evidence, column, *classes) or (last if evidence.places.class_of(last) in classes else None)


def ends_with(evidence: Evidence, column: int, name: str) -> bool:
    """Whether a module of the class `name` gives the model's output `column`."""
    return giver(evidence, column, name) is not None


def lie_within(evidence: Evidence, column: int) -> bool:
    """Whether all elements of a series lie between 0 and 1 at all steps, up to rounding."""
    low, high = (evidence.column(name, column) for name in ("min", "max"))
    return bool(np.nanmin(low, initial=0) >= 0 and np.nanmax(high, initial=1) <= 1 + WITHIN)


def samples_of(evidence: Evidence, info: TensorInfo, column: int) -> Floats:
    """The number of samples of an output, the size of its first dimension, `[steps]`; NaN where it is missing."""
    found: Floats = evidence.column("count", column).astype(np.float64) / sample_size(info)
    return found


def of_norm_one(evidence: Evidence, norms: int, scale: Floats, *, of: Sequence[str] = ("min", "max")) -> Rows:
    """The rows with gradients, if the norm of each sample's, times `scale`, is 1 at all of them; else no rows.

    `of` are the statistics of these norms that have to be 1: the smallest and the largest, or others.
    """
    found = np.stack([evidence.column(name, norms) * scale for name in of])
    rows = np.flatnonzero(np.isfinite(found).all(axis=0))
    return rows if (np.abs(found[:, rows] - 1) < EQUAL).all() else rows[:0]


def sample_size(info: TensorInfo) -> int:
    """The number of elements of one sample, over all dimensions but the first. Sizes that vary count as 1."""
    return math.prod(size or 1 for size in info.shape[1:])
