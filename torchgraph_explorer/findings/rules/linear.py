"""Finds linear layers or convolutions with nothing between them, which together can do no more than one of them.

The evidence is that the output of one and the input of the next have the same statistics at all steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from torchgraph_explorer.finding import Finding, Severity
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.chance import at_chance
from torchgraph_explorer.findings.rules.loss import loss_not_falling
from torchgraph_explorer.findings.rules.rule import finding, named

LEAST_LAYERS = 3
"""Fewest layers one after the other that are reported: two may be a projection and a layer, on purpose."""

LEAST_OF_ALL = 2
"""As `LEAST_LAYERS`, if the model has no other layers, and so is one linear layer as a whole; or if they are
convolutions of one `Sequential`."""

_LAYERS = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d"})
"""Classes of linear layers. Convolutions over one place, or over each channel by itself, are left out: they are parts
of a convolution that is split on purpose."""

_PASSING = frozenset({"Identity", "Dropout"})
"""Classes of modules that hand their input on, but for noise."""


def missing_nonlinearity(evidence: Evidence) -> Iterator[Finding]:
    """Linear layers take each other's outputs as they are, although none is there to make the tensors smaller.

    That may be meant, as in a study of deep linear networks. With a dropout in between it is not: there it is a hidden
    layer's, which has an activation. Nor is it meant where such layers are all of a model that does not learn.
    """
    weighted = _weighted(evidence)
    for layers in _chains(evidence):
        is_whole = len(layers) == weighted or _are_in_sequence(evidence, layers)
        if len(layers) < (LEAST_OF_ALL if is_whole else LEAST_LAYERS):
            continue
        what = (
            "linear layer"
            if evidence.places.class_of(evidence.places.calls[layers[0]].module) == "Linear"
            else "convolution"
        )
        first, last = (evidence.places.calls[layers[at]].module for at in (0, -1))
        is_all = len(layers) == weighted and what == "linear layer"
        fails = is_all and (
            at_chance(evidence) is not None or any(one.severity == "warning" for one in loss_not_falling(evidence))
        )
        severity: Severity = "warning" if fails or _have_dropout(evidence, layers) else "info"
        between = "nothing but dropout" if _have_dropout(evidence, layers) else "nothing"
        yield finding(
            evidence,
            "missing-nonlinearity",
            severity,
            at=first,
            rows=range(len(evidence)),
            numbers={"layers": len(layers)},
            text=f"{len(layers)} {what}s, from {named(first)} to {named(last)}, follow each other with "
            f"{between} in between: together they can do no more than one {what}."
            f"{' They are the whole model, and it does not learn.' if fails else ''}",
            advice="Put an activation between them, such as ReLU or GELU. If there is one in `forward`, check that "
            "its result is used.",
        )


def _have_dropout(evidence: Evidence, layers: Sequence[int]) -> bool:
    """Whether a dropout is between two of them."""
    sources = (evidence.places.producer(at) for at in layers[1:])
    return any(
        source is not None and evidence.places.class_of(evidence.places.calls[source].module) == "Dropout"
        for source in sources
    )


def _are_in_sequence(evidence: Evidence, layers: Sequence[int]) -> bool:
    """Whether these calls are of convolutions of one `Sequential`, which runs nothing between them."""
    parents = {evidence.places.calls[at].module.rpartition(".")[0] for at in layers}
    is_linear = evidence.places.class_of(evidence.places.calls[layers[0]].module) == "Linear"
    return not is_linear and len(parents) == 1 and evidence.places.class_of(min(parents)) == "Sequential"


def _weighted(evidence: Evidence) -> int:
    """How many calls there are of modules with parameters of their own."""
    places = evidence.places
    return sum(bool(places.modules[call.module].params) for call in places.calls)


def _chains(evidence: Evidence) -> Iterator[list[int]]:
    """Runs of calls of linear layers, each of which is given what the one before it returned, without bottlenecks."""
    calls = range(len(evidence.places.calls))
    before = {at: _layer_before(evidence, at) for at in calls if _is_trained(evidence, at)}
    taken = {source for source in before.values() if source is not None}
    for last in (at for at in before if at not in taken):
        chain = [last]
        while (source := before.get(chain[-1])) is not None:
            chain.append(source)
        yield from _between_bottlenecks(evidence, chain[::-1])


def _is_trained(evidence: Evidence, number: int) -> bool:
    """Whether a call is one of a linear layer or convolution all of whose parameters are trained."""
    module = evidence.places.calls[number].module
    params, name = evidence.places.modules[module].params, evidence.places.class_of(module)
    if name != "Linear" and not _is_over_several(evidence, module):
        return False
    return name in _LAYERS and all(one.requires_grad for one in params)


def _is_over_several(evidence: Evidence, module: str) -> bool:
    """Whether a convolution goes over several places in each direction, and over all channels."""
    kernel = evidence.places.option(module, "kernel_size") or ""
    sizes = kernel.strip("()").replace(" ", "").split(",")
    return evidence.places.option(module, "groups") in {None, "1"} and "1" not in sizes


def _layer_before(evidence: Evidence, number: int) -> int | None:
    """The call of a trained layer of the same class whose output, to the last bit, goes into this call; or None."""
    places, source = evidence.places, number
    while (found := places.producer(source)) is not None and found < source:
        if not _takes_output(evidence, found, source):  # compared pair by pair, as a dropout changes what it is given
            return None
        class_found = places.class_of(places.calls[found].module)
        if class_found not in _PASSING:
            is_same_class = class_found == places.class_of(places.calls[number].module)
            return found if is_same_class and _is_trained(evidence, found) else None
        source = found
    return None


def _takes_output(evidence: Evidence, source: int, target: int) -> bool:
    """Whether the only output of one call is the only input of another one, by shape and numbers, at all steps."""
    before, after = evidence.places.calls[source], evidence.places.calls[target]
    if len(before.outputs) != 1 or len(after.inputs) != 1 or before.outputs[0].shape != after.inputs[0].shape:
        return False
    result = evidence.find(before.module, before.call, "output", before.outputs[0].path)
    taken = evidence.find(after.module, after.call, "input", after.inputs[0].path)
    if result is None or taken is None:
        return False
    names = ("min", "max", "mean", "l2_norm")
    if not np.isfinite(evidence.column("l2_norm", taken)).any():  # all NaN, which would count as equal below
        return False
    return all(
        np.array_equal(evidence.column(name, result), evidence.column(name, taken), equal_nan=True) for name in names
    )


def _between_bottlenecks(evidence: Evidence, chain: Sequence[int]) -> Iterator[list[int]]:
    """The parts of a chain of calls between bottlenecks.

    A bottleneck is a tensor with fewer elements than the input of the layer before it and the output of the layer after
    it: two layers around one have fewer weights than a single one, on purpose.
    """
    part = [chain[0]]
    for before, after in pairwise(chain):
        first, middle, last = _width(evidence, before, 0), _width(evidence, after, 0), _width(evidence, after, 1)
        if middle < min(first, last):
            yield part
            part = []
        part.append(after)
    yield part


def _width(evidence: Evidence, number: int, end: int) -> float:
    """The number of elements a sample of the first input (`end` 0) or output (`end` 1) of a call."""
    call = evidence.places.calls[number]
    return math.prod(size or 1 for size in (call.inputs, call.outputs)[end][0].shape[1:])
