"""Gradients that get lost on their way from the loss to the first layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.findings.rules.ties import sharing_embeddings
from torchgraph_explorer.schema import Series

LOST = 1e-4
"""A layer whose gradient, relative to its weights, is less than this share of the largest one's has lost it."""

LOST_AT_ONCE = 1e-5
"""The same where all lost layers take the same tensors, as query, key and value do: at first, attention averages."""

LEAST_LAYERS = 3

_LESS = (
    "Use an activation that does not saturate (ReLU, GELU), He or Xavier initialisation, normalisation or "
    "residual connections; look for activations of only zeros in between."
)

_ZEROS = (
    "Look in between for an operation with a derivative of zero: rounding, `sign`, a comparison, `clamp` out of its "
    "range, activations of only zeros. A quantisation needs a straight-through estimator, `x + (q - x).detach()`. In "
    "float16, a small loss needs a `GradScaler`."
)


class _Layer(NamedTuple):
    """A weight matrix: its module's place in the order of execution, and the columns of its values and gradient."""

    order: int
    module: str
    value: int
    grad: int


def vanishing_gradient(evidence: Evidence) -> Iterator[Finding]:
    """The first layers get far less gradient than later ones, relative to their weights, at most steps."""
    layers = _not_before_zeros(evidence, sorted(_layers(evidence)))
    if len(layers) < LEAST_LAYERS:
        return
    reach = _reach(evidence, layers)
    # The gradient of a last layer that shares an embedding's weights is also that of the embedding.
    shared = sharing_embeddings(evidence, [one.value for one in layers])
    measure = [at for at, one in enumerate(layers) if one.value not in shared]
    if len(measure) >= LEAST_LAYERS and np.nanmax(reach[:, measure], initial=0) > 0:
        layers, reach = [layers[at] for at in measure], reach[:, measure]
    most = np.nanmax(reach, axis=1, initial=0)
    rows = np.flatnonzero(most > 0)
    is_lost = reach[rows] < LOST * most[rows, None]
    kept = next((at for at, share in enumerate(is_lost.sum(axis=0)) if 2 * share <= len(rows)), 0)
    if not kept or _is_beside(evidence, layers[:kept], layers[kept:]):
        return
    behind = [at for at in range(kept, len(layers)) if _leads_to(evidence, layers[:kept], layers[at])]
    most = np.nanmax(reach[:, behind], axis=1, initial=0)  # what goes another way than the gradient of the first ones
    if 2 * (reach[rows, 0] < LOST * most[rows]).sum() <= len(rows):
        return
    if _take_the_same(evidence, layers[:kept]):
        shares = reach[rows, :kept].max(axis=1) / most[rows]
        if not np.nanmedian(shares) < LOST_AT_ONCE:
            return
    seen = rows[is_lost[:, 0]]
    begins = _where_it_begins(reach[seen], kept)
    is_zero = not reach[seen, :kept].any()
    amount = (
        "a gradient of zeros" if is_zero else f"less than {LOST:g} of the gradient of others, relative to their weights"
    )
    first, last = named(layers[0].module), named(layers[kept - 1].module)
    which = f"{first}, gets" if kept == 1 else f"from {first} to {last}, get"
    yield finding(
        evidence,
        "vanishing-gradient",
        "warning",
        at=layers[0].module,
        rows=seen,
        numbers={
            "relative_gradient": np.median(reach[seen, 0]),
            "largest_relative_gradient": np.median(most[seen]),
            "layers": kept,
            "lost_over_layers": begins - kept + 1,
        },
        text=f"{kept} of {len(layers)} layers, {which} {amount}. It gets lost on its way back from "
        f"{named(layers[begins].module)} to {last}.",
        advice=_ZEROS if is_zero else _LESS,
    )


def _is_beside(evidence: Evidence, lost: list[_Layer], others: list[_Layer]) -> bool:
    """Whether `others` take all that each of `lost` takes, as a value does beside query and key.

    Or all that one of them takes that is in the same module: attention may make other queries of what it is given.
    """
    taken = evidence.places.taken
    reached = frozenset[int]().union(*(taken.get(one.order, ()) for one in others))
    parallel = {(_parent(one.module), taken[one.order]) for one in others if taken.get(one.order)}
    around = {_parent(one.module) for one in lost if (_parent(one.module), taken.get(one.order)) in parallel}
    return all((taken.get(one.order) and taken[one.order] <= reached) or _parent(one.module) in around for one in lost)


def _parent(module: str) -> str:
    return module.rpartition(".")[0]


def _leads_to(evidence: Evidence, first: list[_Layer], later: _Layer) -> bool:
    return any(evidence.places.leads_to(one.order, later.order) for one in first)


def _take_the_same(evidence: Evidence, layers: list[_Layer]) -> bool:
    """Whether these are several layers beside each other."""
    taken = {evidence.places.taken.get(one.order) for one in layers}
    return len(layers) > 1 and len(taken) == 1 and None not in taken


def _where_it_begins(reach: npt.NDArray[np.float64], kept: int) -> int:
    """The last layer from whose gradient on, backwards, it only gets less until it is lost before `kept`."""
    usual = np.nan_to_num(np.median(reach, axis=0))
    at = kept
    while at + 1 < len(usual) and usual[at + 1] > usual[at]:
        at += 1
    return at


def _reach(evidence: Evidence, layers: list[_Layer]) -> npt.NDArray[np.float64]:
    """The norm of the gradient over that of the weights, `[steps, layers]`; NaN where either is missing, or 0.

    NaN also for weights that were zero at the first step, as those of an adapter, which anything is large beside.
    """
    norm = evidence.matrix("l2_norm").astype(np.float64)
    weights = norm[:, [one.value for one in layers]]
    is_measure = (weights > 0) & (weights[0] != 0)
    return np.divide(
        norm[:, [one.grad for one in layers]], weights, out=np.full_like(weights, np.nan), where=is_measure
    )


def _not_before_zeros(evidence: Evidence, layers: list[_Layer]) -> list[_Layer]:
    """Without those that no gradient comes to at the first step, as a layer after them begins as zeros: in adapters.

    Their gradient grows with that layer's weights. Where nothing else gets any then, they are all there is to look at.
    """
    norm = evidence.matrix("l2_norm")
    zeros = [one for one in layers if norm[0, one.value] == 0]
    closed = {
        one
        for one in layers
        if norm[0, one.grad] == 0
        and np.nanmax(norm[:, one.grad], initial=0) > 0
        and _leads_to_any(evidence, one, zeros)
    }
    is_any_open = any(norm[0, one.grad] > 0 for one in layers if one not in zeros)
    return [one for one in layers if one not in closed] if is_any_open else layers


def _leads_to_any(evidence: Evidence, first: _Layer, later: list[_Layer]) -> bool:
    return any(first.order < one.order and evidence.places.leads_to(first.order, one.order) for one in later)


def _layers(evidence: Evidence) -> Iterator[_Layer]:
    """Not those of a module with layers inside, as the states of Mamba: nobody knows after which of these they act."""
    places = evidence.places
    matrices = [grad for grad in evidence.of_kind("grad", "param") if _is_matrix(evidence, evidence.series[grad])]
    inner = {evidence.series[grad].module for grad in matrices} & places.called
    around = {outer for name in inner for outer in _around(name)}
    for grad in matrices:
        one = evidence.series[grad]
        value = evidence.find(one.module, one.call, one.role, one.path)
        if value is not None and one.module not in around and "Embedding" not in places.class_of(one.module):
            yield _Layer(places.order(one.module), one.module, value, grad)


def _is_matrix(evidence: Evidence, parameter: Series) -> bool:
    return dimensions(evidence.places.tensor(parameter)) >= 2


def _around(module: str) -> Iterator[str]:
    """The names of all modules that `module` is in."""
    while module:
        module = module.rpartition(".")[0]
        yield module
