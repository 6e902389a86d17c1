"""Finds data that a generator's last activation cannot make, so that a discriminator tells it by its range alone.

The evidence is the module graph, in which one module is called with data and with a bounded output, and their ranges.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import Places
from torchgraph_explorer.findings.rules.outputs import sample_size
from torchgraph_explorer.findings.rules.rule import finding, named

RANGES = {"Sigmoid": (0.0, 1.0), "Hardsigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0), "Hardtanh": (-1.0, 1.0)}
"""The smallest and the largest output of activations that a generator ends with."""

BEYOND = 0.05
"""Least share of the data that lies beyond that range by `MARGIN` of its width, in the median of the steps."""

MARGIN = 0.05
"""As a share of the width of the range: noise that is added to the data reaches beyond it by little."""

LEAST_STEPS = 4
"""Fewest recorded steps with data."""

MOST_STEPS = 16
"""Most steps whose data is looked at."""


def data_beyond_generator(evidence: Evidence) -> Iterator[Finding]:
    """A module is given data, and at other times what a bounded activation made, whose range is smaller."""
    for judge, activation in _pairs(evidence).items():
        name = evidence.places.class_of(activation)
        low, high = RANGES[name]
        margin = MARGIN * (high - low)
        beyond = _shares_beyond(evidence, judge, activation, within=(low - margin, high + margin))
        if len(beyond) >= LEAST_STEPS and np.median([*beyond.values()]) > BEYOND:
            share = float(np.median([*beyond.values()]))
            yield finding(
                evidence,
                "targets-out-of-range",
                "warning",
                at=activation,
                rows=sorted(beyond),
                numbers={"low": low, "high": high, "beyond": share},
                text=f"{named(activation)} gives numbers between {low:g} and {high:g}, and {share:.0%} of the data "
                f"that {named(judge)} is given as well are beyond that range: what is generated cannot look like the "
                "data, and is told from it by its range alone.",
                advice=f"Scale the data to the range of the {name}, or leave out the {name} at the end of the "
                "generator.",
            )


def _pairs(evidence: Evidence) -> dict[str, str]:
    """Modules that the training loop gives what a bounded activation made, or data; and that activation's name.

    What was made has to be all that the module is given: beside the states that a critic is given as well, actions may
    have any range.
    """
    makers: dict[str, set[str | None]] = {}
    joined = set[str]()
    for graph in evidence.model.graphs:
        places = Places([graph])
        for number, call in enumerate(places.calls):
            if not call.module or call.parent is not None or len(call.inputs) != 1:
                continue
            before = places.producer(number)
            made = None if before is None else places.calls[before]
            makers.setdefault(call.module, set()).add(None if made is None else made.module)
            if made is not None and (not made.outputs or sample_size(made.outputs[0]) != sample_size(call.inputs[0])):
                joined.add(call.module)
    pairs = {judge: [*filter(None, names)] for judge, names in makers.items() if None in names and len(names) > 1}
    return {
        judge: name
        for judge, (name, *others) in pairs.items()
        if not others
        and judge not in joined
        and evidence.places.class_of(name) in RANGES
        and not name.startswith(f"{judge}.")
    }


def _shares_beyond(evidence: Evidence, judge: str, activation: str, *, within: tuple[float, float]) -> dict[int, float]:
    """The share of the data beyond a range, by row: of inputs that are none of what was generated in that step.

    What is detached on its way has no edge in the graph, but the same statistics.
    """
    made = [column for column in evidence.of_kind("value", "output") if evidence.series[column].module == activation]
    generated = np.stack([evidence.column("mean", column) for column in made], axis=1)
    found: dict[int, float] = {}
    for column in evidence.of_kind("value", "input"):
        if evidence.series[column].module != judge:
            continue
        means = evidence.column("mean", column)
        is_data = np.isfinite(means) & np.isfinite(generated).any(axis=1) & (means[:, None] != generated).all(axis=1)
        rows = np.flatnonzero(is_data)
        for row in rows[:: max(1, len(rows) // MOST_STEPS)].tolist():
            found[row] = 1 - evidence.share_within(column, row, within)
    return found
