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
    """The running statistics of a batch normalisation are those of the last batch alone, or never change."""
    for name in sorted(evidence.places.called, key=evidence.places.order):
        if "BatchNorm" not in evidence.places.class_of(name):
            continue
        momentum = number(evidence.places.option(name, "momentum"))
        if momentum >= MOST_MOMENTUM and evidence.places.option(name, "track_running_stats") == "True":
            text = (
                f"Each batch replaces {momentum:.0%} of the running statistics of {named(name)}: in eval mode it "
                "normalises by those of the last batch alone."
            )
            advice = (
                "Use `momentum=0.1` or less. It is the share of the new batch; in Keras and TensorFlow, it is "
                "that of the old statistics: 0.99 there is 0.01 here."
            )
        elif momentum == 0 and _is_new_and_trained(evidence, name):
            text = (
                f"No batch changes the running statistics of {named(name)}, as its momentum is 0: they stay the "
                "mean 0 and variance 1 that they began with, so in eval mode it does not normalise."
            )
            advice = (
                "Use `momentum=0.1`. It is the share of the new batch; in Keras and TensorFlow, it is that of "
                "the old statistics. `momentum=None` takes the mean of all batches."
            )
        else:
            continue
        yield finding(
            evidence,
            "norm-momentum",
            "warning",
            at=name,
            rows=range(len(evidence)),
            numbers={"momentum": momentum},
            text=text,
            advice=advice,
        )


def _is_new_and_trained(evidence: Evidence, name: str) -> bool:
    """Whether a batch normalisation begins with the weight and bias of a new one, and is trained in training mode.

    That of a trained network, whose running statistics are to stay, has other ones.
    """
    if evidence.places.option(name, "track_running_stats") != "True" or not len(evidence) or evidence.steps[0] != 0:
        return False
    facts = evidence.training[0]
    for path, expected in (("weight", 1.0), ("bias", 0.0)):
        column = evidence.find(name, None, "param", path)
        info = None if column is None else evidence.places.tensor(evidence.series[column])
        if column is None or info is None or not info.requires_grad:
            return False
        low, high = (float(evidence.column(statistic, column)[0]) for statistic in ("min", "max"))
        if not low == high == expected:
            return False
    return facts is not None and (name in facts.other_mode) is not facts.is_training


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
