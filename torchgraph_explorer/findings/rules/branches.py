"""Finds branches that are added or joined with scales so different that one of them does not count.

The evidence is the root mean squares of the tensors whose edges meet in the module graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.rule import Rows, finding, held, named, quoted
from torchgraph_explorer.schema import Node, Role, TensorInfo

Floats = npt.NDArray[np.float64]

APART = 300.0
"""Largest ratio of the root mean squares of two branches of which both count."""

SWAMPED = 100.0
"""Largest ratio of the root mean square of a parameter to that of a tensor that it is added to, which still counts."""

SOON = 3
"""A small branch that grows is not reported if, at its rate, it comes to count within this many times the recorded
steps."""

LEAST_UPDATES = 10
"""Updates after which a small branch is reported at the earliest: those of small networks are often small at first, as
where the standard deviation of all weights begins at 0.02, and grow within a few updates."""

HELD = 0.5
"""Least share of the recorded steps, up to the last one, at which a branch is too small."""

GROWS = 1.25
"""Least ratio of the scale in the last third of the steps to that in the first third, of a branch that still grows. A
branch that begins at zero on purpose, as an adapter does, grows so."""

GROWN, BEGINNING = 3.0, 3
"""A branch has come into use if its share of the other one has grown by more than this factor; and the number of first
steps whose share it is compared with."""

AS_LARGE, LEAST_DIMENSIONS = 0.1, 2
"""How far the scale of a sum may be from that of its large part, as a share of that; and the fewest dimensions of a
parameter that can be the large part."""

SAME = 0.01
"""Largest range of the root mean square of a sum, over the largest, whose large part is the same at all steps."""

SUMMED = 10.0
"""Largest ratio, either way, of the scale of a sum or concatenation to that of its largest part."""


class _Junction(NamedTuple):
    """Tensors that come together before a call, or in the output of one.

    Attributes:
        place: The name of the module that they go into.
        branches: The columns of their values.
        nodes: The nodes of the graph that hand them on.
        result: The column of the values that they are combined to; None if these are not recorded.
    """

    place: str
    branches: tuple[int, ...]
    nodes: tuple[int, ...]
    result: int | None


def imbalanced_branches(evidence: Evidence) -> Iterator[Finding]:
    """One of the branches that come together is smaller than another by far, at half of the steps and to the end."""
    yield from _swamped(evidence)
    if evidence.steps[-1] - evidence.steps[0] < LEAST_UPDATES:
        return
    reported: set[int] = set()
    for junction in _junctions(evidence):
        scales = evidence.rms[:, junction.branches]
        rows = _positive_rows(scales)
        if not len(rows):
            continue
        kept = held(scales[rows].max(axis=1) > APART * scales[rows].min(axis=1), evidence.steps[rows], share=HELD)
        usual = np.median(scales[rows], axis=0)
        least, most = int(usual.argmin()), int(usual.argmax())
        small, large = junction.branches[least], junction.branches[most]
        if kept is None or small in reported or _will_count(scales[rows[kept]], least, most):
            continue
        if scales[0, least] == 0 and _grows(scales[rows[kept], least]):
            continue
        if _has_grown(scales[rows], least, most):
            continue
        if junction.result is not None and not _is_sum(evidence.rms[rows[kept]], large, junction.result):
            continue
        reported.add(small)
        at, other = evidence.series[small], evidence.series[large]
        is_residual = evidence.places.is_reached(junction.nodes[most], junction.nodes[least])
        yield finding(
            evidence,
            "imbalanced-branches",
            "info" if is_residual else "warning",
            at=at,
            rows=rows[kept],
            numbers={"small": usual.min(), "large": usual.max(), "ratio": usual.max() / usual.min()},
            text=f"`{at.path}` of {named(at.module)} has a root mean square of {usual.min():.3g}. In "
            f"{named(junction.place)}, it meets `{other.path}` of {named(other.module)}, whose root mean square is "
            f"{usual.max():.3g}, and hardly counts.{_RESIDUAL if is_residual else ''}",
            advice="Normalise the branches before they are added or joined.",
            band=Band("rms", low=float(usual.max()) / APART),
        )


_RESIDUAL = (
    " It is computed from the other one, as a residual branch is. Many of these begin small on purpose, and grow as "
    "they learn."
)


def _positive_rows(scales: Floats) -> Rows:
    """The rows of `scales`, `[steps, tensors]`, at which all of them are finite and above zero."""
    return np.flatnonzero((scales > 0).all(axis=1) & np.isfinite(scales).all(axis=1))


def _swamped(evidence: Evidence) -> Iterator[Finding]:
    """Report the first parameter, such as one of positions, that is added to a far smaller output of a module.

    The sum is not recorded as such: it is the input of the next call, and has about the scale of the parameter.
    """
    places = evidence.places
    for number, call in enumerate(places.calls):
        source = places.producer(number) if _is_given_one(evidence, number) else None
        taken = [info for info in call.inputs if info.requires_grad]  # beside it there may be a mask
        if source is None or len(taken) != 1 or len(places.calls[source].outputs) != 1:
            continue
        before = places.calls[source]
        small = evidence.find(before.module, before.call, "output", before.outputs[0].path)
        large = evidence.find(call.module, call.call, "input", taken[0].path)
        if small is None or large is None:
            continue
        scales = evidence.rms[:, (small, large)]
        rows = _positive_rows(scales)
        is_swamped = scales[rows, 1] > SWAMPED * scales[rows, 0]
        kept = held(is_swamped, evidence.steps[rows], share=HELD) if len(rows) else None
        added = None if kept is None else _added(evidence, number, rows=rows[kept], scales=scales[rows[kept], 1])
        if kept is not None and added is None and _is_constant_added(evidence, rows[kept], (small, large)):
            yield _swamped_by_constant(evidence, rows[kept], (small, large))
            return
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


def _is_constant_added(evidence: Evidence, rows: Rows, columns: tuple[int, int]) -> bool:
    """Whether an embedding's output, the first of the columns, becomes the second one as something is added to it.

    That is the same at all steps, so it is no parameter: a buffer, or computed from the places. A multiple of the
    output would have the same largest element, over the root mean square.
    """
    if evidence.places.class_of(evidence.series[columns[0]].module) != "Embedding" or len(rows) < LEAST_UPDATES:
        return False
    first, second = (evidence.column("count", column)[rows] for column in columns)
    scales, peaks = evidence.rms[rows][:, columns], evidence.peaks[rows][:, columns]
    is_same = np.array_equal(first, second) and np.ptp(scales[:, 1]) < SAME * scales[:, 1].max()
    shapes = peaks / scales
    return bool(is_same and (np.abs(shapes[:, 1] / shapes[:, 0] - 1) > AS_LARGE).all())


def _swamped_by_constant(evidence: Evidence, rows: Rows, columns: tuple[int, int]) -> Finding:
    at, other = (evidence.series[column] for column in columns)
    usual = np.median(evidence.rms[rows][:, columns], axis=0)
    return finding(
        evidence,
        "imbalanced-branches",
        "warning",
        at=at,
        rows=rows,
        numbers={"small": usual[0], "large": usual[1], "ratio": usual[1] / usual[0]},
        text=f"What {named(at.module)} gives has a root mean square of {usual[0]:.3g}. Numbers that are the same at "
        f"each step, such as positions in a buffer, are added to it: what goes into {named(other.module)} has a root "
        f"mean square of {usual[1]:.3g}, so the embedding hardly counts.",
        advice="Initialise the embedding with a standard deviation as large as that of the positions, or multiply it "
        "by the root of its size before they are added.",
    )


def _is_given_one(evidence: Evidence, call: int) -> bool:
    """Whether a call takes tensors that require a gradient from one node only. Others may be masks, made of data."""
    nodes = evidence.places.graph.nodes if evidence.places.graph else ()
    taken = [nodes[source] for source in evidence.places.taken.get(call, ())]
    return len([node for node in taken if node.tensor is None or node.tensor.requires_grad]) == 1


def _added(evidence: Evidence, call: int, *, rows: Rows, scales: Floats) -> int | None:
    """The column of the parameter, of a module around `call`, that has about the root mean squares `scales` at `rows`.

    None if there is none, of at least `LEAST_DIMENSIONS` dimensions.
    """
    around = {evidence.places.calls[outer].module for outer in evidence.places.ancestors(call)}
    for column in evidence.of_kind("value", "param"):
        series = evidence.series[column]
        if series.module in around and dimensions(evidence.places.tensor(series)) >= LEAST_DIMENSIONS:
            ratios = evidence.rms[rows, column] / scales
            if (np.abs(ratios - 1) < AS_LARGE).all():
                return column
    return None


def _will_count(scales: Floats, small: int, large: int) -> bool:
    """Whether the branch `small` of `scales`, `[steps, branches]`, grows so fast beside `large` that it soon counts.

    Branches that begin near zero on purpose do so.
    """
    third = max(len(scales) // 3, 1)
    first, last = (float(np.median(part[:, small] / part[:, large])) for part in (scales[:third], scales[-third:]))
    return last > 2 * first and last * (last / first) ** SOON > 1 / APART


def _has_grown(scales: Floats, small: int, large: int) -> bool:
    """Whether the branch `small` of `scales`, `[steps, branches]`, counts far more beside `large` than at first.

    Layers that learn a scale for a branch begin with a small one.
    """
    ratios = scales[:, small] / scales[:, large]
    return bool(np.median(ratios[-len(ratios) // 3 :]) > GROWN * np.median(ratios[:BEGINNING]))


def _grows(scales: Floats) -> bool:
    """Whether these scales of one branch, `[steps]`, still get larger."""
    third = max(len(scales) // 3, 1)
    return bool(np.median(scales[-third:]) > GROWS * np.median(scales[:third]))


def _is_sum(scales: Floats, large: int, result: int) -> bool:
    """Whether column `result` of `scales`, `[steps, series]`, may be column `large` added or joined to others."""
    ratios = scales[:, result] / scales[:, large]
    ratios = ratios[np.isfinite(ratios)]
    return not len(ratios) or 1 / SUMMED < float(np.median(ratios)) < SUMMED


def _junctions(evidence: Evidence) -> Iterator[_Junction]:
    """The nodes of the graph where two or more recorded tensors come together in one."""
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
        result = _result(evidence, node)
        known = {column: source for source in nodes if (column := _column(evidence, graph.nodes[source])) is not None}
        parts = [one for one in known if result is None or _fits(evidence, one, result)]
        if len(parts) >= 2:
            yield _Junction(_place(evidence, node), tuple(parts), tuple(known[one] for one in parts), result)


def _fits(evidence: Evidence, part: int, result: int) -> bool:
    """Whether a tensor may be added or joined to what has the column `result`, which is at least as large then.

    The weights of a weighted sum may have more elements than the sum.
    """
    few, many = (_elements(evidence.places.tensor(evidence.series[one])) for one in (part, result))
    return few is None or many is None or few <= many


def _elements(tensor: TensorInfo | None) -> int | None:
    """How many elements a tensor has; None if that is not known, or varies."""
    sizes = [] if tensor is None else [size for size in tensor.shape if size is not None]
    return None if tensor is None or len(sizes) < len(tensor.shape) else math.prod(sizes)


def _takes_one(evidence: Evidence, node: Node) -> bool:
    """Whether all that comes to a node goes into one tensor: the node is a call with one input, or no call."""
    return node.call is None or len(evidence.places.calls[node.call].inputs) == 1


def _place(evidence: Evidence, node: Node) -> str:
    """The name of the module whose call a node is, or else that it is inside of; empty for the model."""
    call = node.call if node.call is not None else node.inside
    return evidence.places.calls[call].module if call is not None else ""


def _result(evidence: Evidence, node: Node) -> int | None:
    """The column of the tensor that all that comes to a node is combined to; None if it is not recorded."""
    if node.call is not None:
        call = evidence.places.calls[node.call]
        return evidence.find(call.module, call.call, "input", call.inputs[0].path)
    if node.kind != "output" or node.inside is None or node.tensor is None:
        return None
    call = evidence.places.calls[node.inside]
    return evidence.find(call.module, call.call, "output", node.tensor.path)


def _column(evidence: Evidence, node: Node) -> int | None:
    """The column of the only floating point tensor that a node hands on: a call's output, or an input of a module.

    None for others, and for inputs without gradient: these are data, and masks of attention have values like -1e9.
    """
    places = evidence.places
    role: Role
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
    return evidence.find(call.module, call.call, role, tensor.path)
