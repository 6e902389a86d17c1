"""Branches that come together with scales so different that one of them does not count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.rule import Rows, finding, held, named, quoted
from torchgraph_explorer.schema import Node

APART = 300.0
"""Ratio of the root mean squares of the largest and the smallest branch."""

SWAMPED = 100.0
"""The same ratio of a parameter and the tensor that it is added to."""

SOON = 3
"""In so many times the recorded steps."""

HELD = 0.5
"""Share of the recorded steps, up to the last one, at which it has to be so."""


GROWS = 1.25
"""What begins at zero, as an adapter, grows while the last third of its scales is so much larger than the first."""

GROWN, BEGINNING = 3.0, 3
"""A branch is used if its share has become so many times that of the first recorded steps; how many these are."""

AS_LARGE, LEAST_DIMENSIONS = 0.1, 2
"""A sum in which one part does not count is as large as the other, up to this share; and of how many dimensions."""


SUMMED = 10.0
"""What tensors are added or joined to is as large as the largest of them, up to this factor. A product is not."""


class _Junction(NamedTuple):
    """Tensors that come together before a call, or in the output of one.

    Attributes:
        place: The module that they go into.
        branches: Columns of their values.
        result: That of what they come together to; None if it is not recorded.
    """

    place: str
    branches: tuple[int, ...]
    result: int | None


def imbalanced_branches(evidence: Evidence) -> Iterator[Finding]:
    """One of the branches that come together is smaller than another by far, at half of the steps and to the end."""
    yield from _swamped(evidence)
    told: set[int] = set()
    for junction in _junctions(evidence):
        scales = evidence.rms[:, junction.branches]
        rows = np.flatnonzero((scales > 0).all(axis=1) & np.isfinite(scales).all(axis=1))
        if not len(rows):
            continue
        kept = held(scales[rows].max(axis=1) > APART * scales[rows].min(axis=1), share=HELD)
        usual = np.median(scales[rows], axis=0)
        least, most = int(usual.argmin()), int(usual.argmax())
        small, large = junction.branches[least], junction.branches[most]
        if kept is None or small in told or _comes_up(scales[rows[kept]], least, most):
            continue
        if scales[0, least] == 0 and _grows(scales[rows[kept], least]):
            continue
        if _has_grown(scales[rows], least, most):
            continue
        if junction.result is not None and not _is_sum(evidence.rms[rows[kept]], large, junction.result):
            continue
        told.add(small)
        at, other = evidence.series[small], evidence.series[large]
        yield finding(
            evidence,
            "imbalanced-branches",
            "warning",
            at=at,
            rows=rows[kept],
            numbers={"small": usual.min(), "large": usual.max(), "ratio": usual.max() / usual.min()},
            text=f"`{at.path}` of {named(at.module)} has a root mean square of {usual.min():.3g}. In "
            f"{named(junction.place)}, it meets `{other.path}` of {named(other.module)}, whose root mean square is "
            f"{usual.max():.3g}, and hardly counts.",
            advice="Normalise the branches before they are added or joined.",
            band=Band("rms", low=float(usual.max()) / APART),
        )


def _swamped(evidence: Evidence) -> Iterator[Finding]:
    """A parameter, such as of positions, that is added to a module's output and is larger than it by far."""
    places = evidence.places
    for number, call in enumerate(places.calls):
        source = places.producer(number) if _is_given_one(evidence, number) else None
        taken = [one for one in call.inputs if one.requires_grad]  # beside it there may be a mask
        if source is None or len(taken) != 1 or len(places.calls[source].outputs) != 1:
            continue
        before = places.calls[source]
        small = evidence.find(before.module, before.call, "output", before.outputs[0].path)
        large = evidence.find(call.module, call.call, "input", taken[0].path)
        if small is None or large is None:
            continue
        scales = evidence.rms[:, (small, large)]
        rows = np.flatnonzero((scales > 0).all(axis=1) & np.isfinite(scales).all(axis=1))
        kept = held(scales[rows, 1] > SWAMPED * scales[rows, 0], share=HELD) if len(rows) else None
        added = None if kept is None else _added(evidence, number, rows=rows[kept], scales=scales[rows[kept], 1])
        if kept is None or added is None:
            continue
        at, usual = evidence.series[added], np.median(scales[rows[kept]], axis=0)
        yield finding(
            evidence,
            "imbalanced-branches",
            "warning",
            at=at,
            rows=rows[kept],
            numbers={"small": usual[0], "large": usual[1], "ratio": usual[1] / usual[0]},
            text=f"`{quoted(at.path)}` of {named(at.module)} is added to the output of {named(before.module)}, which "
            f"has a root mean square of {usual[0]:.3g}. What goes into {named(call.module)} then has a root mean "
            f"square of {usual[1]:.3g}, so that output hardly counts.",
            advice="Initialise the parameter smaller, for example with a standard deviation of 0.02.",
        )
        return


def _is_given_one(evidence: Evidence, call: int) -> bool:
    """Whether a call takes from one place what gradients go back to; a mask may be made of the model's input."""
    nodes = evidence.places.graph.nodes if evidence.places.graph else ()
    taken = [nodes[one] for one in evidence.places.taken.get(call, ())]
    return len([one for one in taken if one.tensor is None or one.tensor.requires_grad]) == 1


def _added(evidence: Evidence, call: int, *, rows: Rows, scales: npt.NDArray[np.float64]) -> int | None:
    """The column of a matrix of a module around `call` that has these root mean squares."""
    around = {evidence.places.calls[one].module for one in evidence.places.ancestors(call)}
    for column in evidence.of_kind("value", "param"):
        one = evidence.series[column]
        if one.module in around and dimensions(evidence.places.tensor(one)) >= LEAST_DIMENSIONS:
            ratios = evidence.rms[rows, column] / scales
            if (np.abs(ratios - 1) < AS_LARGE).all():
                return column
    return None


def _comes_up(scales: npt.NDArray[np.float64], small: int, large: int) -> bool:
    """Whether a branch grows so that it soon counts, as those do that begin at zero on purpose."""
    third = max(len(scales) // 3, 1)
    first, last = (float(np.median(some[:, small] / some[:, large])) for some in (scales[:third], scales[-third:]))
    return last > 2 * first and last * (last / first) ** SOON > 1 / APART


def _has_grown(scales: npt.NDArray[np.float64], small: int, large: int) -> bool:
    """Whether a branch counts far more than at the beginning: layers that learn a scale begin with a small one."""
    ratios = scales[:, small] / scales[:, large]
    return bool(np.median(ratios[-len(ratios) // 3 :]) > GROWN * np.median(ratios[:BEGINNING]))


def _grows(scales: npt.NDArray[np.float64]) -> bool:
    """Whether what was zero at the first step still gets larger."""
    third = max(len(scales) // 3, 1)
    return bool(np.median(scales[-third:]) > GROWS * np.median(scales[:third]))


def _is_sum(scales: npt.NDArray[np.float64], large: int, result: int) -> bool:
    """Whether the column `result` may be what the column `large` was added or joined to."""
    ratios = scales[:, result] / scales[:, large]
    ratios = ratios[np.isfinite(ratios)]
    return not len(ratios) or 1 / SUMMED < float(np.median(ratios)) < SUMMED


def _junctions(evidence: Evidence) -> Iterator[_Junction]:
    """Where two or more tensors come together that gradient flows back to, or data."""
    graph = evidence.places.graph
    if graph is None:
        return
    sources: dict[int, list[int]] = {}
    for edge in evidence.places.edges:
        sources.setdefault(edge.target, []).append(edge.source)
    for target, nodes in sorted(sources.items()):
        node = graph.nodes[target]
        if len(nodes) < 2 or not _takes_one(evidence, node):
            continue
        columns = [_column(evidence, graph.nodes[one]) for one in nodes]
        known = tuple(dict.fromkeys(one for one in columns if one is not None))
        if len(known) >= 2:
            yield _Junction(_place(evidence, node), known, _result(evidence, node))


def _takes_one(evidence: Evidence, node: Node) -> bool:
    """Whether the tensors come together in one: a call with one input, or an output."""
    return node.call is None or len(evidence.places.calls[node.call].inputs) == 1


def _place(evidence: Evidence, node: Node) -> str:
    call = node.call if node.call is not None else node.inside
    return evidence.places.calls[call].module if call is not None else ""


def _result(evidence: Evidence, node: Node) -> int | None:
    """The column of what comes together in a node."""
    if node.call is not None:
        call = evidence.places.calls[node.call]
        return evidence.find(call.module, call.call, "input", call.inputs[0].path)
    if node.kind != "output" or node.inside is None or node.tensor is None:
        return None
    call = evidence.places.calls[node.inside]
    return evidence.find(call.module, call.call, "output", node.tensor.path)


def _column(evidence: Evidence, node: Node) -> int | None:
    """The column of the tensor that a node hands on, if it is one of floating point numbers.

    Data that goes in is left out: masks of attention have values like -1e9.
    """
    places = evidence.places
    if node.call is not None:
        call, outputs = places.calls[node.call], places.calls[node.call].outputs
        tensor = outputs[0] if len(outputs) == 1 else None
        role = "output"
    elif node.kind == "input" and node.inside is not None and node.tensor is not None and node.tensor.requires_grad:
        call, tensor, role = places.calls[node.inside], node.tensor, "input"
    else:
        return None
    if tensor is None or "float" not in tensor.dtype:
        return None
    return evidence.find(call.module, call.call, "input" if role == "input" else "output", tensor.path)
