"""All the cases, by theme, and the faults that each is run with."""

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
from tests.compatibility.faults import Fault, calls_of

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

AWKWARD = "awkward models: two inputs, in-place, reused"

THOROUGH = {AWKWARD: (0, 3), "autograd: activation checkpointing": (3,)}
"""Cases that are run with a fault in every function they call, after so many calls that go well."""

FURTHER = (
    "precision and loops: a GradScaler that watch() is told of, as of the optimizer, clipping and a skipped step",
    "precision and loops: evaluations recorded as a phase of their own",
    "precision and loops: gradients written by hand, without autograd",
    "autograd: an exception in backward",
    "inputs and outputs: tensors of eleven dimensions",
    "inputs and outputs: a sparse matrix",
    "inputs and outputs: a strided nested tensor",
    "inputs and outputs: conjugated and negated views",
    "inputs and outputs: a wrapper subclass whose operations are dispatched in Python",
    "in-place: chunks, splits and unbound parts that are changed later",
    "structure: modules added while training",
    "structure: layers frozen and thawed between steps",
    "structure: a model that calls itself",
    "structure: a hundred calls of one module",
    "surroundings: inference threads between the steps, with and without gradients",
    "surroundings: an inference thread that calls the model during the step",
    "surroundings: a scripted submodule",
    "compiled, and logged compiled: the whole model, fullgraph",
    "compiled, and logged compiled: a part of the model in place",
    "compiled: in place, then watched",
)
"""Cases that are run with faults in the functions that only they call; the first that calls one."""

TRIES = 6
"""Faults that a case is tried with until it meets one."""


def faults_in(function: str) -> list[tuple[Case, Fault]]:
    """The cases that meet a fault in the function with this full name: at once, or after some calls that go well."""
    cases = {case.id: case for case in CASES}
    met = [
        (cases[name], Fault(function, after))
        for name, many in THOROUGH.items()
        for after in many
        if calls_of(cases[name]).get(function, 0) > after
    ]
    if met:
        return met
    calling = next((cases[name] for name in FURTHER if calls_of(cases[name]).get(function)), None)
    return [(calling, Fault(function))] if calling is not None else []


def faults_for(case: Case) -> Iterator[Fault]:
    """The faults to try a case with: of functions that most models need, others for each case; else of one it calls."""
    needed = sorted(calls_of(next(each for each in CASES if each.id == AWKWARD)))
    first = CASES.index(case)
    for i in range(TRIES):
        yield Fault(needed[(first * 7 + i * 31) % len(needed)], 3 * (first % 2))
    yield Fault(min(calls_of(case)))


def is_first_of_its_theme(case: Case) -> bool:
    """Whether it stands for its theme, where one case of each is enough."""
    return case is next(each for each in CASES if each.theme == case.theme and not each.missing and not each.cannot)
