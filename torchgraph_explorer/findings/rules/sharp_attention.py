"""Finds attention that picks single keys before anything is learned, as its logits are too large for a softmax.

The evidence is the weights of attention at step 0, where a module takes or gives them, or where a function makes them.
"""

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
"""Least mean over the queries of the sum of the squares of a query's weights, of saturated attention. It is 1 if each
query picks one key, and one over the number of keys if all have the same weight."""

LEAST_KEYS = 8.0
"""Fewest keys that a query gives some weight, in the mean: of few, as behind a narrow mask, one may well have most."""

MADE = 0.5
"""Least share of the linear layers with initial weights: the attention of a pretrained network may well be sharp."""


def attention_saturated(evidence: Evidence) -> Iterator[Finding]:
    """At step 0, with initial weights, an attention gives nearly all weight of each query to one key."""
    if int(evidence.steps[0]) != 0 or not _begins_anew(evidence):
        return
    reported: set[str] = set()
    sharp = [weights for weights in _seen(evidence) if weights.sharpness > SHARP and weights.keys >= LEAST_KEYS]
    for weights in sharp:
        if weights.around not in reported and not any(weights.is_handed_on_from(other) for other in sharp):
            reported.add(weights.around)
            yield finding(
                evidence,
                "attention-saturated",
                "warning",
                at=weights.at,
                rows=[0],
                numbers={"sharpness": weights.sharpness, "keys": weights.keys},
                text=f"Before anything is learned, the attention in {named(weights.around)} gives nearly all weight to "
                f"one of {weights.keys:.0f} keys: the squares of a query's weights sum to {weights.sharpness:.2g} in "
                "the mean. Such a softmax passes hardly any gradient.",
                advice="Divide queries times keys by the root of their number of features, as "
                "`F.scaled_dot_product_attention` does, or normalise what goes into them.",
            )


class _Attention(NamedTuple):
    """Weights of attention at step 0.

    Attributes:
        at: Where a finding is: their series, or the module in which a function makes them.
        around: The name of the module that attends: the one around the module that takes or gives them, or in which a
            function makes them.
        sharpness: Sum of the squares of a query's weights, in the mean over the queries.
        keys: How many weights of a query are not zero, in the mean.
    """

    at: Series | str
    around: str
    sharpness: float
    keys: float

    @property
    def module(self) -> str:
        """The name of the module that takes or gives the weights, or in which a function makes them."""
        return self.at if isinstance(self.at, str) else self.at.module

    def is_handed_on_from(self, other: _Attention) -> bool:
        """Whether `other` are the same weights in a module inside of this one, which only returns them."""
        is_inside = other.module != self.module and f".{other.module}".startswith(f".{self.module}.".replace("..", "."))
        return is_inside and (other.sharpness, other.keys) == (self.sharpness, self.keys)


def _seen(evidence: Evidence) -> Iterator[_Attention]:
    """All weights of attention: first those that modules take or give, in the order of execution, then traced ones."""
    for column in sorted(_attentions(evidence), key=lambda column: _order(evidence, evidence.series[column])):
        series, info = evidence.series[column], evidence.places.tensor(evidence.series[column])
        keys = float((info.shape[-1] if info else None) or 0)
        sharpness = keys * float(evidence.rms[0, column]) ** 2
        keys_in_use = keys * (1 - float(evidence.zero_shares[0, column]))
        yield _Attention(series, series.module.rpartition(".")[0], sharpness, keys_in_use)
    for row, traced in operations(evidence, "attention"):
        if row == 0:
            yield _Attention(traced.module, traced.module, *traced.numbers[1:3])


def _order(evidence: Evidence, series: Series) -> int:
    return evidence.places.order(series.module, series.call)


def _attentions(evidence: Evidence) -> Iterator[int]:
    """The columns of inputs and outputs that are weights of attention, `[..., queries, keys]`, with as many of both.

    They are told by their mean at step 0, which is one over the number of keys.
    """
    for role in ("input", "output"):
        for column in evidence.of_kind("value", role):
            info = evidence.places.tensor(evidence.series[column])
            if info is not None and _is_square(info) and _sums_to_one(evidence, column, length=info.shape[-1] or 0):
                yield column


def _is_square(info: TensorInfo) -> bool:
    """Whether a tensor of floating point numbers has three or more dimensions, of which the last two are equal."""
    shape = info.shape
    return len(shape) > 2 and shape[-1] is not None and shape[-1] == shape[-2] and "float" in info.dtype


def _sums_to_one(evidence: Evidence, column: int, *, length: int) -> bool:
    """Whether a tensor has probabilities that sum to one over a last dimension of this size, by its mean at step 0."""
    mean, std, count, sampled = (
        float(evidence.column(name, column)[0]) for name in ("mean", "std", "count", "sampled")
    )
    error = 0.0 if count == sampled else ERRORS * std * length / np.sqrt(max(sampled, 1.0))
    return lie_within(evidence, column) and error < MOST_ERROR and abs(mean * length - 1) < WITHIN + error


def _begins_anew(evidence: Evidence) -> bool:
    """Whether at least a share `MADE` of the linear layers has initial weights at the first step."""
    linear = [
        weight
        for weight in evidence.places.weights()
        if weight.info.path == "weight" and "Linear" in weight.module.class_name
    ]
    return bool(linear) and sum(is_as_made(evidence, weight, row=0) for weight in linear) >= MADE * len(linear)
