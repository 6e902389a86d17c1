"""Modules that are copies of each other and stay so, although each is trained."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.schema import EXTENT, Extent

LEAST_EQUAL = 3
"""Recorded steps at which matrices have to be equal, with other elements than at the step before."""

MOST_LOOKED_AT = 16
"""Recorded steps that are looked at, spread over the run."""


def identical_modules(evidence: Evidence) -> Iterator[Finding]:
    """Trained matrices have the same elements at all recorded steps, and change."""
    held = _held_by_optimizers(evidence)
    columns = [one for one in evidence.of_kind("value", "param") if _is_trained(evidence, one, held)]
    rows = np.unique(np.linspace(0, len(evidence) - 1, MOST_LOOKED_AT).round().astype(np.intp))
    if len(columns) < 2 or len(rows) <= LEAST_EQUAL:
        return
    told = set[str]()
    for equal in _equal(evidence, columns, rows):
        modules = list(dict.fromkeys(evidence.series[one].module for one in equal))
        modules.sort(key=evidence.places.order)
        above = [*map(_above, _parted(modules))]
        if len(modules) < 2 or above[0] in told:
            continue
        told.update(above)
        others = ", ".join(named(one) for one in above[1:4])
        yield finding(
            evidence,
            "identical-modules",
            "warning",
            at=above[0],
            rows=rows,
            numbers={"copies": len(above), "steps": len(rows)},
            text=f"The weights of {named(above[0])} and {others} are equal at all recorded steps, and change: they "
            "begin as copies and get the same gradients, so all of them together learn what one would.",
            advice="Make each of them by itself, or initialise it again, instead of with `copy.deepcopy` or the same "
            "seed. Or train them on different samples.",
        )


def _held_by_optimizers(evidence: Evidence) -> set[str]:
    """The names of parameters that are trained. One that several modules share is there once."""
    rows = rows_with(evidence, lambda one: bool(one.groups))[:LEAST_EQUAL]
    return {name for row in rows for group in facts_at(evidence, row).groups for name in group.parameters}


def _is_trained(evidence: Evidence, column: int, held: set[str]) -> bool:
    one = evidence.series[column]
    if f"{one.module}.{one.path}" not in held:
        return False
    info = evidence.places.tensor(one)
    grad = evidence.find(one.module, one.call, one.role, one.path, "grad")
    if dimensions(info) < 2 or info is None or not info.requires_grad or grad is None:
        return False
    peaks = evidence.peaks[:, grad]
    return bool(np.isfinite(peaks).any() and np.nanmedian(peaks) > 0)


def _equal(evidence: Evidence, columns: list[int], rows: npt.NDArray[np.intp]) -> Iterator[list[int]]:
    """The groups of columns whose tensors have the same elements at all of `rows`, not all alike, and change."""
    prints = _prints(evidence, columns, rows[-1:])[0]
    groups: dict[int, list[int]] = {}
    for number, one in enumerate(prints.tolist()):
        low, high = (evidence.column(name, columns[number])[rows[-1]] for name in ("min", "max"))
        if low < high and one & EXTENT == Extent.ALL:
            groups.setdefault(one, []).append(columns[number])
    for group in groups.values():
        if len(group) < 2 or not evidence.is_there[rows][:, group].all():
            continue
        found = _prints(evidence, group, rows)
        if (found == found[:, :1]).all() and len(np.unique(found[:, 0])) >= LEAST_EQUAL:
            yield group


def _prints(evidence: Evidence, columns: list[int], rows: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
    """Fingerprints, `[rows, columns]`."""
    return np.stack([evidence.fingerprints(row)[columns] for row in rows.tolist()])


def _parted(modules: list[str]) -> list[tuple[list[str], int]]:
    """The parts of each name, with the number of the first part in which they differ."""
    parts = [one.split(".") for one in modules]
    at = next((number for number, level in enumerate(zip(*parts, strict=False)) if len({*level}) > 1), len(parts[0]))
    return [(one, at) for one in parts]


def _above(parted: tuple[list[str], int]) -> str:
    parts, at = parted
    return ".".join(parts[: at + 1])
