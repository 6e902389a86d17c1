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
    loops,
    precision,
    structure,
    surroundings,
)
from tests.compatibility.faults import Fault, all_faults, calls_of, until_after

CASES: tuple[Case, ...] = (
    *earlier.TABLE,
    *inplace.case.cases,
    *arguments.case.cases,
    *structure.case.cases,
    *control.case.cases,
    *autograd.case.cases,
    *precision.case.cases,
    *loops.case.cases,
    *layers.case.cases,
    *surroundings.case.cases,
    *compiled.case.cases,
    *inline.case.cases,
    *frameworks.case.cases,
)

AWKWARD = "awkward models: two inputs, in-place, reused"
INLINE = "compiled, and logged compiled: the whole model, compiled and not called before it is watched"

THOROUGH = {AWKWARD: (0, 3), "autograd: activation checkpointing": (3,)}
"""Cases that are run with a fault in every function they call, after so many calls that go well."""

FURTHER = (
    "precision and loops: watch(optimizer=, scaler=) with a GradScaler, clipping and a skipped step",
    "precision and loops: watch(optimizer=) with Adam, foreach",
    "precision and loops: evaluations recorded as a phase of their own",
    "precision and loops: every third step logged",
    "precision and loops: what calls cost is recorded",
    "precision and loops: gradients written by hand, without autograd",
    "training loops: nine micro-batches in an update",
    "training loops: LBFGS, which calls a closure several times",
    "training loops: a GAN in one module, which is never called itself",
    "training loops: a GAN of which every second step is logged, and the next one of the other optimizer",
    "training loops: a frozen teacher that the loop calls under no_grad, and a rollout of the student",
    "training loops: a head that replaces the one that the optimizer has",
    "training loops: a model that was made again, of which the optimizer has the one before",
    "training loops: two calls of an autoencoder's halves, with noise between them",
    "training loops: an optimizer whose state was loaded",
    "layers: a language model with attention and dropout by functions",
    "layers: one number for each sample",
    "layers: a policy that samples actions",
    "in-place: a module that writes into its input",
    "inputs and outputs: conjugated and negated views",
    "inputs and outputs: expanded, transposed and channels-last tensors",
    "inputs and outputs: a compressed sparse matrix",
    "inputs and outputs: sparse gradients of an embedding",
    "inputs and outputs: a strided nested tensor",
    "inputs and outputs: a jagged nested tensor",
    "inputs and outputs: a wrapper subclass whose operations are dispatched in Python",
    "autograd: an exception in backward",
    "autograd: views made under no_grad, given to modules: of a result, of a parameter, written to since, made a leaf",
    "structure: moved to another type while training",
    "structure: layers unfrozen one after the other, from the last one",
    "structure: modules added while training",
    "structure: modules replaced while training",
    "structure: a hundred calls of one module",
    "structure: modules that draw random numbers in extra_repr",
    "surroundings: inference threads between the steps, with and without gradients",
    "surroundings: an inference thread that calls the model during the step",
    "surroundings: each training step in a thread of its own",
    "surroundings: a traced submodule",
    "compiled: a function that calls the model",
    "compiled: in place, then watched",
    "compiled: watched, then with the default backend, as in the last case",
    "compiled, and logged compiled: two passes in an update",
    INLINE,
)
"""Cases that are run with faults in the functions that those of `THOROUGH` do not both call."""

LIKE = {"compiled, and logged compiled": INLINE}
"""A case that shows which functions one of a theme is likely to call, where these are not those that most call."""


def faults_in(function: str) -> Iterator[tuple[Case, Fault]]:
    """The faults in one function, by its full name, each with a case that meets it: two cases where as many call it."""
    met: set[str] = set()
    for name in (*THOROUGH, *(name for name in FURTHER if name not in THOROUGH)):
        if name in THOROUGH or len(met) < 2:
            for after in THOROUGH.get(name, (0,)):
                case, fault = case_of(name), Fault(function, after)
                if calls_of(case).get(function, 0) > after:
                    met.add(name)
                    yield until_after(case, fault) if name in THOROUGH else case, fault


def faults_for(case: Case) -> Iterator[Fault]:
    """Faults to try a case with until it meets one: of functions that most models need, in another order for each.

    Those that a case like it needs as well come first.
    """
    first = CASES.index(case)
    after = 3 * (first % 2)
    needed = [fault.name for fault in all_faults() if fault.name in calls_of(case_of(AWKWARD))]
    in_turn = [needed[(7 * first + 31 * at) % len(needed)] for at in range(len(needed))]
    like = calls_of(case_of(LIKE.get(case.theme, AWKWARD)))
    for name in sorted(in_turn, key=lambda name: like.get(name, 0) <= after):
        yield Fault(name, after)


def case_of(name: str) -> Case:
    """The case with this id."""
    return next(case for case in CASES if case.id == name)


def group_of(case: Case) -> str:
    """The tests of a case share its unwatched training; those that load the same, the seconds to load it."""
    return "frameworks" if case.needs else case.loads or case.id


def is_first_of_its_theme(case: Case) -> bool:
    """Whether it stands for its theme, where one case of each is enough."""
    return case is next(each for each in CASES if each.theme == case.theme and not each.missing and not each.cannot)


NTH = 6
"""Of a theme, the first case and every so manieth after it stand for the others, where training is broken or kept."""


def stands_for_its_theme(case: Case) -> bool:
    """Whether `make test` also runs it with a fault, and with all tensors kept. It trains and records each case."""
    return [each for each in CASES if each.theme == case.theme].index(case) % NTH == 0 or is_first_of_its_theme(case)


def is_fast(case: Case) -> bool:
    """Whether `make fast` trains it: one of each theme."""
    return not case.slow and is_first_of_its_theme(case)
