"""All the cases, by theme, and which faults each is run with."""

from __future__ import annotations

from collections.abc import Iterator

from tests.compatibility.case import Case
from tests.compatibility.cases import (
    arguments,
    autograd,
    compiled,
    control,
    earlier,
    frameworks,
    inline,
    inplace,
    layers,
    precision,
    structure,
    surroundings,
)
from tests.compatibility.faults import Fault, all_faults

CASES: tuple[Case, ...] = (
    *earlier.TABLE,
    *inplace.case.cases,
    *arguments.case.cases,
    *structure.case.cases,
    *control.case.cases,
    *autograd.case.cases,
    *precision.case.cases,
    *layers.case.cases,
    *surroundings.case.cases,
    *compiled.case.cases,
    *inline.case.cases,
    *frameworks.case.cases,
)

THOROUGH = {"awkward models: two inputs, in-place, reused": (0, 3), "autograd: activation checkpointing": (3,)}
"""Cases that are run with every fault there is, after so many calls that go well."""

PARTLY = {
    "precision and loops: a GradScaler that watch() is told of, as of the optimizer, clipping and a skipped step": (
        "update",
        "scale",
    ),
    "precision and loops: evaluations recorded as a phase of their own": ("phases", "first_of_each"),
}
"""Cases that are run with the faults which only they meet: those that have one of these in their name."""

FAULTS_A_CASE = 1


def thorough() -> Iterator[tuple[Case, Fault]]:
    """Each fault with a case that meets it: at once, or after some calls that go well."""
    parts = {**dict.fromkeys(THOROUGH, ("",)), **PARTLY}
    for case in CASES:
        for fault in all_faults():
            if any(part in fault.name for part in parts.get(case.id, ())):
                yield from ((case, Fault(fault.name, after)) for after in THOROUGH.get(case.id, (0, 3)))


def faults_for(case: Case) -> list[Fault]:
    """The faults that a case is run with. Others for each, so that together the cases meet all of them."""
    faults = all_faults()
    first = CASES.index(case) * FAULTS_A_CASE
    return [Fault(faults[(first + i) * 7 % len(faults)].name, 3 * (first % 2)) for i in range(FAULTS_A_CASE)]
