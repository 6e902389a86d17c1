"""All the cases, by theme, and which faults each is run with."""

from __future__ import annotations

from tests.compatibility.case import Case
from tests.compatibility.cases import (
    arguments,
    autograd,
    compiled,
    control,
    earlier,
    frameworks,
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
    *frameworks.case.cases,
)

THOROUGH = ("awkward models: two inputs, in-place, reused", "autograd: activation checkpointing")
"""Cases that are run with every fault there is."""

FAULTS_A_CASE = 1


def faults_for(case: Case) -> list[Fault]:
    """The faults that a case is run with. Others for each, so that together the cases meet all of them."""
    faults = all_faults()
    first = CASES.index(case) * FAULTS_A_CASE
    return [Fault(faults[(first + i) * 7 % len(faults)].name, 3 * (first % 2)) for i in range(FAULTS_A_CASE)]
