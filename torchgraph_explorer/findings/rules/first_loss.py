"""Finds a network whose outputs begin so large that its loss begins far above that of a guess.

The evidence is the logged loss, the size of the model's output, and the gradients at it, which tell a cross entropy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.loss import judged, of_equal_logits
from torchgraph_explorer.findings.rules.outputs import EQUAL, TrainedOutput, sample_size, samples_of, trained_outputs
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.schema import Series

LARGE = 10.0
"""Least root mean square of logits that begin too large, and of the output of the first layer that made them so."""

ABOVE = 4.0
"""Least first loss, over that of equal logits, of a network that is sure of wrong answers."""

SURE = 1e-3
"""Largest probability of a wrong answer, and of a right one, that is near zero."""


def begins_far_off(evidence: Evidence) -> Iterator[Finding]:
    """The loss is a cross entropy of logits that are large at the first step, and begins far above that of equal ones.

    Who begins so has learned nothing, and is sure all the same. A trained network is sure of right answers.
    """
    loss = judged(evidence)
    if loss is None or not len(loss.values) or int(evidence.steps[0]) != 0 or loss.steps[0] != 0:
        return
    first = float(loss.values[0])
    for output in trained_outputs(evidence):
        size = float(evidence.rms[0, output.column])
        guess = _guess(evidence, output)
        if guess is None or not LARGE < size < math.inf or not ABOVE * guess < first < LARGE * size:
            continue
        at, inside = _first_large(evidence) or (output.series, size)
        where = "" if not at.module else f" {named(at.module)} is the first whose output has one above {LARGE:g}."
        yield finding(
            evidence,
            "bad-init-scale",
            "warning",
            at=at,
            rows=[0],
            numbers={"first": first, "guess": guess, "rms": size, "rms_inside": inside},
            text=f"The loss begins at {first:.3g}, where the same answer for all samples has {guess:.3g}: the outputs "
            f"begin with a root mean square of {size:.3g}, so the network is sure of answers that it has not learned."
            f"{where}",
            advice="Make what comes before the loss smaller at first: smaller initial weights, a normalisation, a mean "
            "instead of a sum, or a division by the root of the number of features or by the number of steps.",
        )
        return


def _guess(evidence: Evidence, output: TrainedOutput) -> float | None:
    """The loss of equal logits, if that of this output is a cross entropy; else None.

    Gradients of one of several classes sum to zero over these. For a binary one, they tell the probability of the wrong
    answer, which is near zero for some samples, near one for others, and never more.
    """
    if sample_size(output.info) > 1:
        return of_equal_logits(evidence)
    samples = float(samples_of(evidence, output.info, output.column)[0])
    low, high = (samples * float(evidence.column(name, output.norms)[0]) for name in ("min", "max"))
    is_binary = 0 <= low < SURE and abs(high - 1) < SURE + EQUAL
    return math.log(2) if is_binary else None


def _first_large(evidence: Evidence) -> tuple[Series, float] | None:
    """The first output of a layer that is large, and its size.

    None if there is none, so that it is between the modules that the size comes.
    """
    places = evidence.places
    for number, call in enumerate(places.calls):
        column = evidence.find(call.module, call.call, "output", "output")
        if column is None or not call.module or not places.is_leaf(number):
            continue
        size = float(evidence.rms[0, column])
        if np.isfinite(size) and size > LARGE:
            return evidence.series[column], size
    return None
