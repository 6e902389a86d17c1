"""Finds the means of latents that only a penalty trains, because what decodes them passes no gradient back.

The evidence is that their gradient is the same multiple of themselves at all steps, as that of a square is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.latents import named_latents
from torchgraph_explorer.findings.rules.outputs import sample_size, trained_outputs
from torchgraph_explorer.findings.rules.rule import Rows, finding, named, quoted

LEAST_STEPS = 4
"""Fewest recorded steps with a gradient. At that many, a part of it from elsewhere would show."""

SAME = 1e-4
"""Largest difference between the multiples at two steps, as a share of them, which is rounding."""

CHANGED = 0.05
"""Least change of the size of the means between two steps, as a share of it: else their multiples tell nothing."""


def only_penalised(evidence: Evidence) -> Iterator[Finding]:
    """The gradient of the means is that of the divergence from the prior alone: they are sampled without a gradient."""
    for output, gradient in [*_named(evidence)] or _returned(evidence):
        rows, multiple = _multiples(evidence, output, gradient)
        if len(rows) < LEAST_STEPS:
            continue
        means = evidence.series[output]
        what = f"the output of {named(means.module)}" if means.module else f"`{quoted(means.path)}` of the model"
        yield finding(
            evidence,
            "no-gradient",
            "warning",
            at=means,
            rows=rows,
            numbers={"multiple": multiple, "steps": len(rows)},
            text=f"The gradient at {what} is {multiple:.3g} times the values at each of {len(rows)} steps: only a "
            "penalty on their size trains them, such as the divergence from the prior. What decodes the latents passes "
            "no gradient back to what encodes them.",
            advice="Draw the latents with `rsample()` instead of `sample()`, or as `mean + std * randn_like(std)`. "
            "Look for `.detach()` and `torch.no_grad()` between encoder and decoder.",
        )


def _named(evidence: Evidence) -> Iterator[tuple[int, int]]:
    """The columns of the outputs of layers that give means, by their names, and of the norms of their gradients."""
    for name in named_latents(evidence):
        output = evidence.find(name, 0, "output", "output")
        gradient = evidence.find(name, 0, "output", "output", "grad_norm")
        if output is not None and gradient is not None:
            yield output, gradient


def _returned(evidence: Evidence) -> list[tuple[int, int]]:
    """As much, of two outputs of the model with one shape, behind a first one that is larger, as reconstructions are.

    One of them is that of the means; the other one, of spreads, has gradients that are no multiple of itself.
    """
    outputs = [*trained_outputs(evidence)]
    if len(outputs) != len(("output", "mean", "spread")) or outputs[1].info.shape != outputs[2].info.shape:
        return []
    first, *others = outputs
    found = [(one.column, one.norms) for one in others]
    is_one = sum(len(_multiples(evidence, *one)[0]) > 0 for one in found) == 1
    return found if is_one and sample_size(first.info) > sample_size(others[0].info) else []


def _multiples(evidence: Evidence, output: int, gradient: int) -> tuple[Rows, float]:
    """The rows at which the gradient is the same multiple of the output, and that; no rows if it is not."""
    sizes, lengths = (evidence.column("l2_norm", column).astype(np.float64) for column in (output, gradient))
    is_whole = evidence.column("count", output) == evidence.column("sampled", output)
    rows = np.flatnonzero(np.isfinite(sizes) & np.isfinite(lengths) & (sizes > 0) & is_whole)
    multiples = lengths[rows] / sizes[rows]
    if not len(rows) or not multiples.min() > 0 or sizes[rows].max() < (1 + CHANGED) * sizes[rows].min():
        return rows[:0], 0.0
    is_same = multiples.max() <= (1 + SAME) * multiples.min()
    return (rows if is_same else rows[:0]), float(multiples[0])
