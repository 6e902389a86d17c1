"""Finds modules that are copies of each other and stay so, although each is trained.

The evidence is fingerprints of the parameters, which are equal where all elements are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.rule import finding, listed, named
from torchgraph_explorer.schema import EXTENT, Extent

LEAST_EQUAL = 3
"""Fewest different values that equal matrices have over the steps that are looked at; and how many of the first steps
with parameter groups tell what is trained."""

MOST_LOOKED_AT = 16
"""Most recorded steps that are looked at, spread evenly over the run."""


def identical_modules(evidence: Evidence) -> Iterator[Finding]:
    """Trained matrices of different modules have the same elements at all steps that are looked at, and change."""
    held = _held_by_optimizers(evidence)
    yield from _repeated(evidence, held)
    columns = [column for column in evidence.of_kind("value", "param") if _is_trained(evidence, column, held)]
    rows = np.unique(np.linspace(0, len(evidence) - 1, MOST_LOOKED_AT).round().astype(np.intp))
    if len(columns) < 2 or len(rows) <= LEAST_EQUAL:
        return
    reported = set[str]()
    for equal in _equal(evidence, columns, rows):
        modules = list(dict.fromkeys(evidence.series[column].module for column in equal))
        modules.sort(key=evidence.places.order)
        copies = _outermost_different(modules)
        if len(modules) < 2 or copies[0] in reported:
            continue
        reported.update(copies)
        others = ", ".join(map(named, copies[1:4]))
        yield finding(
            evidence,
            "identical-modules",
            "warning",
            at=copies[0],
            rows=rows,
            numbers={"copies": len(copies), "steps": len(rows)},
            text=f"The weights of {named(copies[0])} and {others} are equal at all recorded steps, and change: they "
            "begin as copies and get the same gradients, so all of them together learn what one would.",
            advice="Make each of them by itself, or initialise it again, instead of with `copy.deepcopy` or the same "
            "seed. Or train them on different samples.",
        )


def _repeated(evidence: Evidence, held: set[str]) -> Iterator[Finding]:
    """Report lists in which one trained module stands several times, as `[layer] * n` makes them.

    Some networks share their weights like that on purpose.
    """
    for name, module in evidence.places.modules.items():
        entries = (evidence.places.option(name, "same_module") or "").split(", ")
        first = f"{name}.{entries[0]}".removeprefix(".")
        if len(entries) < 2 or not any(one.startswith(f"{first}.") for one in held):
            continue
        names = [f"{name}.{entry}".removeprefix(".") for entry in entries]
        yield finding(
            evidence,
            "identical-modules",
            "info",
            at=first,
            rows=range(len(evidence)),
            numbers={"entries": len(entries)},
            text=f"{listed(names)} are one module: the {module.class_name} has it {len(entries)} times, so they share "
            "all their weights and train as one.",
            advice="If each was to have weights of its own, make each by itself: `[make() for _ in range(n)]` instead "
            "of `[layer] * n`.",
        )


def _held_by_optimizers(evidence: Evidence) -> set[str]:
    """The qualified names of the parameters that optimizers hold. A shared parameter has only one of its names."""
    rows = rows_with(evidence, lambda facts: bool(facts.groups))[:LEAST_EQUAL]
    return {name for row in rows for group in facts_at(evidence, row).groups for name in group.parameters}


def _is_trained(evidence: Evidence, column: int, held: set[str]) -> bool:
    """Whether a parameter is a matrix that an optimizer holds, and that has a gradient at most steps."""
    series = evidence.series[column]
    if f"{series.module}.{series.path}" not in held:
        return False
    info = evidence.places.tensor(series)
    grad = evidence.find(series.module, series.call, series.role, series.path, "grad")
    if dimensions(info) < 2 or info is None or not info.requires_grad or grad is None:
        return False
    peaks = evidence.peaks[:, grad]
    return bool(np.isfinite(peaks).any() and np.nanmedian(peaks) > 0)


def _equal(evidence: Evidence, columns: list[int], rows: npt.NDArray[np.intp]) -> Iterator[list[int]]:
    """The groups of columns whose tensors are equal to each other at all of `rows`, and change between these.

    Tensors whose elements are all one number are left out, and fingerprints that are not of all elements.
    """
    prints = _prints(evidence, columns, rows[-1:])[0]
    groups: dict[int, list[int]] = {}
    for column, fingerprint in zip(columns, prints.tolist(), strict=True):
        low, high = (evidence.column(name, column)[rows[-1]] for name in ("min", "max"))
        if low < high and fingerprint & EXTENT == Extent.ALL:
            groups.setdefault(fingerprint, []).append(column)
    for group in groups.values():
        if len(group) < 2 or not evidence.is_there[rows][:, group].all():
            continue
        found = _prints(evidence, group, rows)
        if (found == found[:, :1]).all() and len(np.unique(found[:, 0])) >= LEAST_EQUAL:
            yield group


def _prints(evidence: Evidence, columns: list[int], rows: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
    """The fingerprints of some series at some rows, `[rows, columns]`."""
    return np.stack([evidence.fingerprints(row)[columns] for row in rows.tolist()])


def _outermost_different(modules: list[str]) -> list[str]:
    """The names of the outermost modules around `modules`, one for each of these, that are not the same for all.

    For `a.0.linear` and `a.1.linear`, they are `a.0` and `a.1`.
    """
    parts = [name.split(".") for name in modules]
    levels = enumerate(zip(*parts, strict=False))
    first = next((depth for depth, level in levels if len({*level}) > 1), len(parts[0]))
    return [".".join(name[: first + 1]) for name in parts]
