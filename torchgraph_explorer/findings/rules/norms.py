"""Finds normalisations over a single element, and batch normalisations that only remember the last batch.

The evidence is the options in the modules' `extra_repr`.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import finding, named, number

MOST_MOMENTUM = 0.9
"""Least share of the running statistics that a batch replaces which is too large. In Keras, `momentum` is the share
that stays, and is often 0.99."""

_OVER_FEATURES = frozenset({"LayerNorm", "RMSNorm"})
"""Classes that normalise over the features of a single sample."""


def norm_momentum(evidence: Evidence) -> Iterator[Finding]:
    """The running statistics of a batch normalisation are those of the last batch alone."""
    for name in sorted(evidence.places.called, key=evidence.places.order):
        if "BatchNorm" not in evidence.places.class_of(name):
            continue
        momentum = number(evidence.places.option(name, "momentum"))
        if momentum >= MOST_MOMENTUM and evidence.places.option(name, "track_running_stats") == "True":
            yield finding(
                evidence,
                "norm-momentum",
                "warning",
                at=name,
                rows=range(len(evidence)),
                numbers={"momentum": momentum},
                text=f"Each batch replaces {momentum:.0%} of the running statistics of {named(name)}: in eval mode it "
                "normalises by those of the last batch alone.",
                advice="Use `momentum=0.1` or less. It is the share of the new batch; in Keras and TensorFlow, it is "
                "that of the old statistics: 0.99 there is 0.01 here.",
            )


def normalised_alone(evidence: Evidence) -> Iterator[Finding]:
    """A normalisation over a single element gives the same for every input."""
    places = evidence.places
    for name in sorted(places.called, key=places.order):
        is_over_features = places.class_of(name) in _OVER_FEATURES
        is_of_one = is_over_features and any(value == "(1,)" for _, value in places.modules[name].extra_repr)
        if is_of_one or _is_of_one_channel(evidence, name):
            yield finding(
                evidence,
                "normalised-alone",
                "warning",
                at=name,
                rows=range(len(evidence)),
                numbers={"elements": 1},
                text=f"{named(name)} normalises over a single element. At most its sign is left, so the output is the "
                "same whatever comes in, and no gradient comes back.",
                advice="Normalise over the features before they become one number, or leave it out.",
            )


def _is_of_one_channel(evidence: Evidence, name: str) -> bool:
    """Whether this is a `GroupNorm` with as many groups as channels, and each channel has one element in all calls."""
    places = evidence.places
    groups, channels = (places.option(name, option) for option in ("num_groups", "num_channels"))
    shapes = [call.inputs[0].shape for call in places.calls if call.module == name and call.inputs]
    is_single = bool(shapes) and all(len(shape) > 1 and all(size == 1 for size in shape[2:]) for shape in shapes)
    return places.class_of(name) == "GroupNorm" and groups is not None and groups == channels and is_single
