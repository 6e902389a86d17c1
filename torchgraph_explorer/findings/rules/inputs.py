"""What the model is given: inputs that carry nothing, as all their elements are the same, and outliers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import finding, quoted
from torchgraph_explorer.schema import Series

LEAST_STEPS = 4
"""Recorded steps."""

LEAST_ELEMENTS = 4
"""Elements of an input. A model may well be given a single number."""

TIMES = frozenset({"t", "time", "times", "timestep", "timesteps", "time_step", "time_steps", "sigma", "noise_level"})
"""Names of the parameter of `forward` that a diffusion model takes its time by."""

OUTLIER, MORE = 1e3, 30.0
"""Largest element of an input at some steps, over the median of all; and that of the model's output."""

OFTEN, LEAST_TO_COMPARE = 0.5, 8
"""Share of the steps at which a larger element is no outlier; and steps that are compared, at least."""


def constant_input(evidence: Evidence) -> Iterator[Finding]:
    """All elements of all inputs of the model are one number, at all steps."""
    columns = [one for one in evidence.of_kind("value", "input") if evidence.series[one].module == ""]
    columns = [one for one in columns if evidence.series[one].call == 0]
    known = [one for one in columns if evidence.is_there[:, one].any()]
    if not known or not all(_is_constant(evidence, one) for one in known):
        yield from _constant_time(evidence, known)
        return
    value = float(np.nanmedian(evidence.column("mean", known[0])))
    yield finding(
        evidence,
        "constant-input",
        "warning",
        at=evidence.series[known[0]],
        rows=range(len(evidence)),
        numbers={"value": value},
        text=f"All elements of the model's input are {value:.4g}, at all recorded steps: the input says nothing about "
        "the samples.",
        advice="Look at how the batch is made: words that are all looked up as unknown, a scale that rounds to zero, "
        "an array that was never filled.",
    )


def _is_constant(evidence: Evidence, column: int) -> bool:
    rows = np.flatnonzero(evidence.is_there[:, column])
    low, high, count = (evidence.column(name, column)[rows] for name in ("min", "max", "count"))
    return len(rows) >= LEAST_STEPS and bool((low == high).all() and (count >= LEAST_ELEMENTS).all())


def _constant_time(evidence: Evidence, columns: list[int]) -> Iterator[Finding]:
    """The time of a diffusion or flow is the same for all samples, at all steps."""
    for one in columns:
        name, low = _parameter(evidence, evidence.series[one]), evidence.column("min", one)
        values = low[np.isfinite(low)]
        if name not in TIMES or not _is_constant(evidence, one) or not (values == values[0]).all():
            continue
        yield finding(
            evidence,
            "constant-input",
            "warning",
            at=evidence.series[one],
            rows=range(len(evidence)),
            numbers={"value": float(values[0])},
            text=f"`{quoted(name)}`, which the model is given as `{evidence.series[one].path}`, is {values[0]:.4g} for "
            "all samples at all recorded steps: it learns nothing of other times.",
            advice="Hand the model the times that the noise was added for.",
        )


def _parameter(evidence: Evidence, series: Series) -> str:
    """The name of the parameter of `forward` that an input is passed as."""
    found = re.fullmatch(r"input\[(?:(\d+)|'(\w+)')\]", series.path)
    module = evidence.places.modules.get(series.module)
    if found is None or module is None:
        return ""
    names = module.forward_parameters
    return found[2] or (names[int(found[1])] if int(found[1]) < len(names) else "")


def input_outlier(evidence: Evidence) -> Iterator[Finding]:
    """At some steps, an input has an element far beyond all others, and so has what the model makes of it."""
    outputs = [one for one in evidence.of_kind("value", "output") if evidence.series[one].module == ""]
    for one in evidence.of_kind("value", "input"):
        series, info = evidence.series[one], evidence.places.tensor(evidence.series[one])
        if series.module or info is None or "float" not in info.dtype:
            continue
        rows = np.flatnonzero(evidence.is_there[:, one])
        peaks = evidence.peaks[rows, one]
        usual = float(np.median(peaks)) if len(rows) else 0.0
        is_out = peaks > OUTLIER * usual
        if len(rows) < LEAST_TO_COMPARE or not usual > 0 or not 0 < is_out.mean() < OFTEN:
            continue
        follows = [evidence.peaks[rows, each] for each in outputs]
        if not any(np.nanmax(of[is_out]) > MORE * np.nanmedian(of[~is_out]) for of in follows):
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
