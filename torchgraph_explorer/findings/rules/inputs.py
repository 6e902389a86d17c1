"""What the model is given carries nothing: all its elements are the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import finding

LEAST_STEPS = 4
"""Recorded steps."""

LEAST_ELEMENTS = 4
"""Elements of an input. A model may well be given a single number."""


def constant_input(evidence: Evidence) -> Iterator[Finding]:
    """All elements of all inputs of the model are one number, at all steps."""
    columns = [one for one in evidence.of_kind("value", "input") if evidence.series[one].module == ""]
    columns = [one for one in columns if evidence.series[one].call == 0]
    known = [one for one in columns if evidence.is_there[:, one].any()]
    if not known or not all(_is_constant(evidence, one) for one in known):
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
