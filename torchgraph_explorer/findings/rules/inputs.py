"""Finds inputs of the model whose elements are all the same number, and inputs with outliers.

The evidence is the statistics of the model's inputs and outputs over the steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import finding, quoted
from torchgraph_explorer.schema import Series

LEAST_STEPS = 4
"""Fewest recorded steps at which a constant input is reported."""

LEAST_ELEMENTS = 4
"""Fewest elements of a constant input that is reported. A model may well be given a single number."""

TIMES = frozenset({"t", "time", "times", "timestep", "timesteps", "time_step", "time_steps", "sigma", "noise_level"})
"""Names of the parameter of `forward` by which a diffusion model is given its time."""

OUTLIER, MORE = 1e3, 30.0
"""Least ratio of the largest magnitude of an input at a step with an outlier to the median of the steps; and of the
largest magnitude of the model's output at such steps to that at others."""

OFTEN, LEAST_TO_COMPARE = 0.5, 8
"""Largest share of the steps that have outliers: more of them are usual values; and fewest steps that are compared."""


def constant_input(evidence: Evidence) -> Iterator[Finding]:
    """All elements of each input of the model are equal, at all steps; or those of the time of a diffusion are."""
    columns = [column for column in evidence.of_kind("value", "input") if evidence.series[column].module == ""]
    columns = [column for column in columns if evidence.series[column].call == 0]
    known = [column for column in columns if evidence.is_there[:, column].any()]
    if not known or not all(_is_constant(evidence, column) for column in known):
        yield from _constant_time(evidence, known)
        return
    values = evidence.column("min", known[0])[evidence.is_there[:, known[0]]]
    is_same = bool((values == values[0]).all())
    what = f"are {values[0]:.4g}, at all recorded steps" if is_same else "are equal to each other at each recorded step"
    yield finding(
        evidence,
        "constant-input",
        "warning",
        at=evidence.series[known[0]],
        rows=range(len(evidence)),
        numbers={"value": float(values[0])},
        text=f"All elements of the model's input {what}: the input says nothing about the samples.",
        advice="Look at how the batch is made: words that are all looked up as unknown, a scale that rounds to zero, "
        "an array that was never filled.",
    )


def _is_constant(evidence: Evidence, column: int) -> bool:
    """Whether the elements of an input are all equal, and finite, at each of several steps."""
    rows = np.flatnonzero(evidence.is_there[:, column])
    low, high, count = (evidence.column(name, column)[rows] for name in ("min", "max", "count"))
    is_equal = np.isfinite(low) & (low == high)
    return len(rows) >= LEAST_STEPS and bool(is_equal.all() and (count >= LEAST_ELEMENTS).all())


def _constant_time(evidence: Evidence, columns: list[int]) -> Iterator[Finding]:
    """Report a time of a diffusion or flow that is the same for all samples, at all steps."""
    for column in columns:
        series, low = evidence.series[column], evidence.column("min", column)
        name, values = _parameter(evidence, series), low[np.isfinite(low)]
        if name not in TIMES or not _is_constant(evidence, column) or not (values == values[0]).all():
            continue
        yield finding(
            evidence,
            "constant-input",
            "warning",
            at=series,
            rows=range(len(evidence)),
            numbers={"value": float(values[0])},
            text=f"`{quoted(name)}`, which the model is given as `{series.path}`, is {values[0]:.4g} for all samples "
            "at all recorded steps: it learns nothing of other times.",
            advice="Hand the model the times that the noise was added for.",
        )


def _parameter(evidence: Evidence, series: Series) -> str:
    """The name of the parameter of `forward` that an input is passed as; empty if it is not known."""
    found = re.fullmatch(r"input\[(?:(\d+)|'(\w+)')\]", series.path)
    module = evidence.places.modules.get(series.module)
    if found is None or module is None:
        return ""
    names = module.forward_parameters
    return found[2] or (names[int(found[1])] if int(found[1]) < len(names) else "")


def input_outlier(evidence: Evidence) -> Iterator[Finding]:
    """At some steps, an input has an element far beyond its usual ones, and so has the model's output."""
    outputs = [column for column in evidence.of_kind("value", "output") if evidence.series[column].module == ""]
    for column in evidence.of_kind("value", "input"):
        series, info = evidence.series[column], evidence.places.tensor(evidence.series[column])
        if series.module or info is None or "float" not in info.dtype:
            continue
        rows = np.flatnonzero(evidence.is_there[:, column])
        peaks = evidence.peaks[rows, column]
        usual = float(np.median(peaks)) if len(rows) else 0.0
        is_out = peaks > OUTLIER * usual
        if len(rows) < LEAST_TO_COMPARE or not usual > 0 or not 0 < is_out.mean() < OFTEN:
            continue
        results = (evidence.peaks[rows, output] for output in outputs)
        if not any(np.nanmax(result[is_out]) > MORE * np.nanmedian(result[~is_out]) for result in results):
            continue
        largest = float(peaks.max())
        yield finding(
            evidence,
            "input-outlier",
            "warning",
            at=series,
            rows=rows[is_out],
            numbers={"largest": largest, "usual": usual, "steps": float(is_out.sum())},
            text=f"`{series.path}` has an element of {largest:.3g} at {is_out.sum()} of {len(rows)} recorded steps, "
            f"{largest / usual:.2g} times as large as the largest one usually is: an outlier, or another unit, in some "
            "samples.",
            advice="Look for the samples with such values. Drop or clip them before you take means and standard "
            "deviations of the data.",
        )
