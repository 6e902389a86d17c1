"""Attention that picks single keys before anything is learned: its logits are too large for a softmax."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import operations
from torchgraph_explorer.findings.rules.made import is_as_made
from torchgraph_explorer.findings.rules.outputs import ERRORS, MOST_ERROR, WITHIN, lie_within
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.schema import Series, TensorInfo

SHARP = 0.5
"""Sum of the squares of a query's weights, in the mean: 1 if it picks one key, and one over their number if none."""

LEAST_KEYS = 8.0
"""Keys that a query gives some weight, in the mean: of few, as behind a narrow mask, one may well have most of it."""

MADE = 0.5
"""Share of the linear layers whose weights are as torch makes them: of a pretrained network, attention may be sharp."""


def attention_saturated(evidence: Evidence) -> Iterator[Finding]:
    """At step 0, with weights as they were made, the weights of an attention are nearly 1 at one key of each query."""
    if int(evidence.steps[0]) != 0 or not _begins_anew(evidence):
        return
    told: set[str] = set()
    sharp = [one for one in _seen(evidence) if one.sharpness > SHARP and one.keys >= LEAST_KEYS]
    for one in sharp:
        if one.around not in told and not any(one.is_handed_on_from(other) for other in sharp):
            told.add(one.around)
            yield finding(
                evidence,
                "attention-saturated",
                "warning",
                at=one.at,
                rows=[0],
                numbers={"sharpness": one.sharpness, "keys": one.keys},
                text=f"Before anything is learned, the attention in {named(one.around)} gives nearly all weight to "
                f"one of {one.keys:.0f} keys: the squares of a query's weights sum to {one.sharpness:.2g} in the mean. "
                "Such a softmax passes hardly any gradient.",
                advice="Divide queries times keys by the root of their number of features, as "
                "`F.scaled_dot_product_attention` does, or normalise what goes into them.",
            )


class _Attention(NamedTuple):
    """Weights of attention at step 0.

    Attributes:
        at: What to name: their series, or the module in which a function makes them.
        around: The module that they are of.
        sharpness: Sum of the squares of a query's weights.
        keys: How many of these are not zero.
    """

    at: Series | str
    around: str
    sharpness: float
    keys: float

    @property
    def module(self) -> str:
        """The module that takes or gives them, or in which a function makes them."""
        return self.at if isinstance(self.at, str) else self.at.module

    def is_handed_on_from(self, other: _Attention) -> bool:
        """Whether `other` are the same weights in a module inside of this one's, which only hands them on."""
        is_inside = other.module != self.module and f".{other.module}".startswith(f".{self.module}.".replace("..", "."))
        return is_inside and (other.sharpness, other.keys) == (self.sharpness, self.keys)


def _seen(evidence: Evidence) -> Iterator[_Attention]:
    """Those that a module takes or gives, then those that were seen while the first step was traced."""
    for column in sorted(_attentions(evidence), key=lambda one: _order(evidence, evidence.series[one])):
        one, info = evidence.series[column], evidence.places.tensor(evidence.series[column])
        length = float((info.shape[-1] if info else None) or 0)
        sharpness = length * float(evidence.rms[0, column]) ** 2
        yield _Attention(
            one, one.module.rpartition(".")[0], sharpness, length * (1 - float(evidence.zero_shares[0, column]))
        )
    for row, seen in operations(evidence, "attention"):
        if row == 0:
            yield _Attention(seen.module, seen.module, *seen.numbers[1:3])


def _order(evidence: Evidence, one: Series) -> int:
    return evidence.places.order(one.module, one.call)


def _attentions(evidence: Evidence) -> Iterator[int]:
    """The columns of weights of attention: square in the last two dimensions, each row of which sums to one."""
    for role in ("input", "output"):
        for column in evidence.of_kind("value", role):
            info = evidence.places.tensor(evidence.series[column])
            if info is not None and _is_square(info) and _sums_to_one(evidence, column, length=info.shape[-1] or 0):
                yield column


def _is_square(info: TensorInfo) -> bool:
    shape = info.shape
    return len(shape) > 2 and shape[-1] is not None and shape[-1] == shape[-2] and "float" in info.dtype


def _sums_to_one(evidence: Evidence, column: int, *, length: int) -> bool:
    mean, std, count, sampled = (
        float(evidence.column(name, column)[0]) for name in ("mean", "std", "count", "sampled")
    )
    error = 0.0 if count == sampled else ERRORS * std * length / np.sqrt(max(sampled, 1.0))
    return lie_within(evidence, column) and error < MOST_ERROR and abs(mean * length - 1) < WITHIN + error


def _begins_anew(evidence: Evidence) -> bool:
    linear = [
        one for one in evidence.places.weights() if one.info.path == "weight" and "Linear" in one.module.class_name
    ]
    return bool(linear) and sum(is_as_made(evidence, one, row=0) for one in linear) >= MADE * len(linear)
