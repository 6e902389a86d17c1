"""Finds a softmax over one class, which is always right, or over one score: it gives 1 and teaches nothing.

The evidence is gradients of zero at an output of one number for each sample, from the first step to the last; or at the
layers of a module in which a recorded softmax goes over one element.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import operations
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import Flags, finding, named
from torchgraph_explorer.findings.rules.zero_gradients import matrices_by_zero_gradient

LEAST_STEPS = 4
"""Fewest recorded steps with a gradient of zero."""


def single_class(evidence: Evidence) -> Iterator[Finding]:
    """A softmax goes over one element: of the model's output, or of scores within the model."""
    found = list(_single_output(evidence))
    yield from found or _single_score(evidence)


def _single_output(evidence: Evidence) -> Iterator[Finding]:
    """The model gives one number for each sample, and a loss whose gradient is zero from the first step to the last.

    The parameters must have no gradient either. The second of an actor's two critics, of which the loss takes the
    smaller one, may have no gradient at its output, but the critics' own loss trains its parameters.
    """
    loss = judged(evidence)
    is_trained: Flags = np.any(evidence.peaks[:, evidence.of_kind("grad", "param")] > 0, axis=1)
    for series, info, column, norms in trained_outputs(evidence):
        longest = evidence.column("max", norms)
        rows = np.flatnonzero(np.isfinite(longest))
        has_one = len(info.shape) > 1 and info.shape[1] == 1
        is_zero = loss is None or not len(loss.values) or not loss.values.any()
        if not has_one or not is_zero or len(rows) < LEAST_STEPS or longest[rows].any() or is_trained[rows].any():
            continue
        yield finding(
            evidence,
            "single-class",
            "error",
            at=series,
            rows=rows,
            numbers={"steps": len(rows), "largest_output": float(np.nanmax(evidence.peaks[:, column]))},
            text=f"The model's output {_sizes(info.shape)} has one class, and the gradient that comes back is zero at "
            "each step: a softmax over one class is always 1, so a loss such as `cross_entropy` is zero whatever the "
            "model gives.",
            advice="For two classes, use `binary_cross_entropy_with_logits` with one output, or `cross_entropy` with "
            "two. For a regression, use a squared error.",
        )


def _single_score(evidence: Evidence) -> Iterator[Finding]:
    """Report a softmax over one element within a module some of whose layers only get gradients of zeros.

    Those are the layers before the softmax. Attention over a sequence of one place, with one query and one key, is left
    out: it may be given that on purpose.
    """
    reported: set[str] = set()
    for row, softmax in operations(evidence, "single"):
        is_module = evidence.places.class_of(softmax.module) == "Softmax"
        around = softmax.module.rpartition(".")[0] if is_module else softmax.module
        within = [name for name in _without_slope(evidence) if f"{name}.".startswith(f"{around}." if around else "")]
        if softmax.module in reported or softmax.before[-2:] == (1, 1) or not within:
            continue
        reported.add(softmax.module)
        yield finding(
            evidence,
            "single-class",
            "warning",
            at=softmax.module,
            rows=range(row, len(evidence)),
            numbers={"dimension": softmax.numbers[0]},
            text=f"In {named(softmax.module)}, a softmax of a tensor {[*softmax.before]} goes over dimension "
            f"{int(softmax.numbers[0])}, which has one element: it gives 1 whatever it is given, and "
            f"{named(within[0])} gets no gradient through it.",
            advice="Give the softmax the dimension of what is to be weighed against each other, such as the places of "
            "a sequence.",
        )


def _without_slope(evidence: Evidence) -> list[str]:
    """The called modules whose matrices have a gradient of zeros at each recorded step."""
    found: dict[str, bool] = {}
    for series, is_zero in matrices_by_zero_gradient(evidence, least=LEAST_STEPS):
        found[series.module] = found.get(series.module, True) and is_zero
    return [module for module, is_zero in found.items() if is_zero and module in evidence.places.called]


def _sizes(shape: tuple[int | None, ...]) -> str:
    """A shape as people write it: `[n, 1]`, with `n` for the samples and for sizes that vary."""
    return f"[{', '.join('n' if size is None or not at else str(size) for at, size in enumerate(shape))}]"
