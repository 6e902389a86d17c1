"""Finds gradients that get lost on their way from the loss to the first layers.

The evidence is the norms of the gradients of weight matrices, relative to the weights, along the order of execution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.judges import flat_for_generator
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named, share_of_training
from torchgraph_explorer.findings.rules.ties import sharing_embeddings
from torchgraph_explorer.schema import Series

Floats = npt.NDArray[np.float64]

LOST = 1e-4
"""A layer has lost its gradient if the norm of this over that of its weights is less than this share of the largest
such ratio of any layer."""

LOST_BESIDE_USUAL = 1e-2
"""A layer has lost its gradient only if its ratio is also less than this share of the median one of the layers after
it. A gradient that decays evenly over the layers to `LOST` passes the root of that in the middle. A last layer with
small weights alone may have a ratio thousands of times that of all others, which says nothing of the first ones."""

LOST_AT_ONCE = 1e-5
"""As `LOST`, where all lost layers take the same tensors, as those of query and key do. Their gradient is small without
any fault as long as attention gives all keys the same weight."""

MOST = 0.5
"""Largest share of the steps at which layers may get hardly any gradient without a report."""

LEAST_STEPS = 5
"""Fewest updates from the first to the last recorded step with a gradient: in the first few, a layer that lets hardly
any gradient through may open."""

LEAST_LAYERS = 3
"""Fewest weight matrices of a model that is looked at."""

_LESS = (
    "Use an activation that does not saturate (ReLU, GELU), He or Xavier initialisation, normalisation or "
    "residual connections; look for activations of only zeros in between."
)

_ZEROS = (
    "Look in between for a factor of zero, such as a gate or a mask that nothing trains, and for an operation with a "
    "derivative of zero: rounding, `sign`, a comparison, `clamp` out of its range, activations of only zeros. "
    "A quantisation needs a straight-through estimator, `x + (q - x).detach()`. In float16, a small loss needs a "
    "`GradScaler`."
)


class _Layer(NamedTuple):
    """A weight matrix of a module; sorted by the module's place in the order of execution.

    Attributes:
        order: That place.
        module: The module's name.
        value: The column of the weights.
        grad: The column of their gradient.
    """

    order: int
    module: str
    value: int
    grad: int


def vanishing_gradient(evidence: Evidence) -> Iterator[Finding]:
    """The first layers get far less gradient than later ones, relative to their weights, at most steps.

    Or a generator gets far less than at first.
    """
    yield from flat_for_generator(evidence)
    layers = _not_before_zeros(evidence, sorted(_layers(evidence)))
    if len(layers) < LEAST_LAYERS:
        return
    ratios = _gradient_ratios(evidence, layers)
    # The gradient of a last layer that shares an embedding's weights is also that of the embedding.
    shared = sharing_embeddings(evidence, [layer.value for layer in layers])
    unshared = [at for at, layer in enumerate(layers) if layer.value not in shared]
    if len(unshared) >= LEAST_LAYERS and np.nanmax(ratios[:, unshared], initial=0) > 0:
        layers, ratios = [layers[at] for at in unshared], ratios[:, unshared]
    largest = np.nanmax(ratios, axis=1, initial=0)
    rows = np.flatnonzero(largest > 0)
    if len(rows) < LEAST_ROWS or int(evidence.steps[rows[-1]] - evidence.steps[rows[0]]) < LEAST_STEPS:
        return
    is_lost = ratios[rows] < LOST * largest[rows, None]
    lost = next((at for at, steps in enumerate(is_lost.sum(axis=0)) if 2 * steps <= len(rows)), 0)
    if not lost or _is_beside(evidence, layers[:lost], layers[lost:]):
        return
    # Only what comes after the lost layers has a gradient that could reach them.
    behind = [at for at in range(lost, len(layers)) if _leads_to(evidence, layers[:lost], layers[at])]
    largest = np.nanmax(ratios[:, behind], axis=1, initial=0)
    usual = np.nanmedian(ratios[:, behind], axis=1) if behind else largest
    is_first_lost = (ratios[rows, 0] < LOST * largest[rows]) & (ratios[rows, 0] < LOST_BESIDE_USUAL * usual[rows])
    share = share_of_training(evidence, rows[is_first_lost]) / share_of_training(evidence, rows)
    if is_first_lost.mean() <= MOST or share <= MOST:
        return
    if _begins_closed(evidence, layers[0], layers) and _opens(ratios[rows, 0] / largest[rows]):
        return
    if _take_the_same(evidence, layers[:lost]):
        shares = ratios[rows, :lost].max(axis=1) / largest[rows]
        if not np.nanmedian(shares) < LOST_AT_ONCE:
            return
    seen = rows[is_lost[:, 0]]
    begins = _where_it_begins(ratios[seen], lost)
    is_zero = not ratios[seen, :lost].any()
    amount = (
        "a gradient of zeros" if is_zero else f"less than {LOST:g} of the gradient of others, relative to their weights"
    )
    first, last = named(layers[0].module), named(layers[lost - 1].module)
    which = f"{first}, gets" if lost == 1 else f"from {first} to {last}, get"
    yield finding(
        evidence,
        "vanishing-gradient",
        "warning",
        at=layers[0].module,
        rows=seen,
        numbers={
            "relative_gradient": np.median(ratios[seen, 0]),
            "largest_relative_gradient": np.median(largest[seen]),
            "layers": lost,
            "lost_over_layers": begins - lost + 1,
        },
        text=f"{lost} of {len(layers)} layers, {which} {amount}. It gets lost on its way back from "
        f"{named(layers[begins].module)} to {last}.",
        advice=_ZEROS if is_zero else _LESS,
    )


def _is_beside(evidence: Evidence, lost: list[_Layer], others: list[_Layer]) -> bool:
    """Whether gradient reaches the tensors that `lost` take through `others`, which are beside them, not after them.

    So it is with query and key: the layer of the values takes what they take. A lost layer counts as beside another one
    if others take all that it takes. It also counts as such if that is true of a layer of the same parent module, as
    attention may take its queries from elsewhere.
    """
    taken = evidence.places.taken
    reached = frozenset[int]().union(*(taken.get(layer.order, ()) for layer in others))
    parallel = {(_parent(layer.module), taken[layer.order]) for layer in others if taken.get(layer.order)}
    around = {_parent(layer.module) for layer in lost if (_parent(layer.module), taken.get(layer.order)) in parallel}
    return all(
        (taken.get(layer.order) and taken[layer.order] <= reached) or _parent(layer.module) in around for layer in lost
    )


def _parent(module: str) -> str:
    return module.rpartition(".")[0]


def _leads_to(evidence: Evidence, first: list[_Layer], later: _Layer) -> bool:
    """Whether data may come from any of the layers `first` to `later`."""
    return any(evidence.places.leads_to(layer.order, later.order) for layer in first)


def _take_the_same(evidence: Evidence, layers: list[_Layer]) -> bool:
    """Whether these are several layers that all take the same tensors."""
    taken = {evidence.places.taken.get(layer.order) for layer in layers}
    return len(layers) > 1 and len(taken) == 1 and None not in taken


def _where_it_begins(ratios: Floats, lost: int) -> int:
    """The index of the layer from which on, backwards, the gradient only gets smaller until the first `lost` layers.

    `ratios` are those of `_gradient_ratios` at some steps. Their median over the steps counts.
    """
    usual = np.nan_to_num(np.median(ratios, axis=0))
    at = lost
    while at + 1 < len(usual) and usual[at + 1] > usual[at]:
        at += 1
    return at


def _gradient_ratios(evidence: Evidence, layers: list[_Layer]) -> Floats:
    """The norm of the gradient over that of the weights, `[steps, layers]`.

    Weights that are smaller than torch makes them, as those of a policy's last layer are at first on purpose, count as
    if they were not: any gradient is large beside small weights, and what comes before them gets less.

    NaN where either is missing, where the weights are zero, and for weights that were zero at the first step, as those
    of an adapter: any gradient is large beside these.
    """
    norm = evidence.matrix("l2_norm").astype(np.float64)
    weights = norm[:, [layer.value for layer in layers]]
    is_measure = (weights > 0) & (weights[0] != 0)
    made = np.maximum(weights, [_norm_as_made(evidence, layer) for layer in layers])
    return np.divide(
        norm[:, [layer.grad for layer in layers]], made, out=np.full_like(weights, np.nan), where=is_measure
    )


def _norm_as_made(evidence: Evidence, layer: _Layer) -> float:
    """The norm of a layer's weights as torch makes them: evenly between plus and minus one over the root of the inputs.

    0 if its sizes are not known.
    """
    info = evidence.places.tensor(evidence.series[layer.value])
    sizes = [] if info is None else [size or 0 for size in info.shape]
    inputs = math.prod(sizes[1:])
    return math.sqrt(sizes[0] / 3) if inputs else 0.0


def _not_before_zeros(evidence: Evidence, layers: list[_Layer]) -> list[_Layer]:
    """`layers` without those that get no gradient at first only because a layer after them begins as zeros.

    The first layer of an adapter is such one: its gradient grows with the weights of the second one. If no other layer
    has a gradient at the first step either, all of `layers` are returned.
    """
    norm = evidence.matrix("l2_norm")
    is_any_open = any(norm[0, layer.grad] > 0 for layer in layers if norm[0, layer.value] != 0)
    return [layer for layer in layers if not _begins_closed(evidence, layer, layers)] if is_any_open else layers


def _begins_closed(evidence: Evidence, layer: _Layer, layers: list[_Layer]) -> bool:
    """Whether a layer gets no gradient at the first step, and some later, since one after it begins as zeros."""
    norm = evidence.matrix("l2_norm")
    is_closed = norm[0, layer.grad] == 0 and np.nanmax(norm[:, layer.grad], initial=0) > 0
    return bool(is_closed) and _leads_to_any(evidence, layer, [other for other in layers if norm[0, other.value] == 0])


def _opens(shares: npt.NDArray[np.float64]) -> bool:
    """Whether a layer's share of the gradient still doubles from one quarter of the steps to the next."""
    late = max(len(shares) // 4, 1)
    return bool(np.nanmedian(shares[-late:]) > 2 * np.nanmedian(shares[-2 * late : -late]))


def _leads_to_any(evidence: Evidence, first: _Layer, later: list[_Layer]) -> bool:
    """Whether data may come from `first` to any of the layers `later` that are executed after it."""
    return any(first.order < layer.order and evidence.places.leads_to(first.order, layer.order) for layer in later)


def _layers(evidence: Evidence) -> Iterator[_Layer]:
    """The weight matrices that have a gradient, without embeddings.

    Those of a module that has layers inside, as the states of Mamba, are left out: it is not known between which of
    these layers they act.
    """
    places = evidence.places
    matrices = [grad for grad in evidence.of_kind("grad", "param") if _is_matrix(evidence, evidence.series[grad])]
    inner = {evidence.series[grad].module for grad in matrices} & places.called
    around = {outer for name in inner for outer in _around(name)}
    for grad in matrices:
        module, path = evidence.series[grad].module, evidence.series[grad].path
        value = evidence.find(module, None, "param", path)
        if value is not None and module not in around and "Embedding" not in places.class_of(module):
            yield _Layer(places.order(module), module, value, grad)


def _is_matrix(evidence: Evidence, parameter: Series) -> bool:
    return dimensions(evidence.places.tensor(parameter)) >= 2


def _around(module: str) -> Iterator[str]:
    """The names of all modules that `module` is in."""
    while module:
        module = module.rpartition(".")[0]
        yield module
