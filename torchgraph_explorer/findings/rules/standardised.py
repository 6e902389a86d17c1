"""Finds models that standardise features over the samples of the batch by code of their own.

The evidence is what the live training measured of tensors between modules in the first steps.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, operations
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.schema import Role

LEAST_STEPS = 3
"""Fewest of the first recorded steps that were measured."""

EXACT = 2e-3
"""Largest mean of a feature over its standard deviation, and largest difference of these deviations, over the largest:
rounding, and a small number that is added to the variance."""

MOVED, OF_CHANCE = 0.1, 0.5
"""The same at later steps, to which scales and shifts may have been trained: the smaller of the first number, and the
second one times `1 / sqrt(samples)`, by which means differ from batch to batch that are not standardised in each."""

LEAST_VARIED = 0.5
"""Least share of the features that are not constant."""

_BATCH = ("batch", "bn", "norm1d", "instancenorm", "groupnorm", "whiten", "actnorm")
"""Parts of the names of classes that standardise over the batch on purpose, or over parts of what they are given."""


def standardised_over_batch(evidence: Evidence) -> Iterator[Finding]:
    """A tensor between modules has features of mean 0 and equal deviations over the samples, and no layer made it so.

    Samples have to be the first dimension of the model's input and output, and inputs have to change from step to step:
    where all data is one batch, features may well be standardised over it.
    """
    if not _has_samples_first(evidence):
        return
    seen: dict[tuple[str, Role], list[tuple[int, tuple[float, ...]]]] = {}
    for row, one in operations(evidence, "standardised"):
        seen.setdefault((one.module, "output" if one.numbers[0] else "input"), []).append((row, one.numbers[1:]))
    is_so = {
        place: [row for row, _ in measured] for place, measured in seen.items() if _are_standardised(evidence, measured)
    }
    made = [_statistics(evidence, place, rows) for place, rows in is_so.items() if _is_meant(evidence, place[0])]
    made += [_statistics(evidence, ("", "input"), rows) for rows in is_so.values()]
    for (module, role), rows in sorted(is_so.items(), key=lambda one: evidence.places.order(one[0][0])):
        if _is_meant(evidence, module) or not module:
            continue
        if any(one is not None and one == _statistics(evidence, (module, role), rows) for one in made):
            continue
        yield finding(
            evidence,
            "normalised-over-batch",
            "warning",
            at=module,
            rows=rows,
            numbers={"steps": len(rows)},
            text=f"What {named(module)} {'gives' if role == 'output' else 'is given'} has features of mean 0 and of "
            "equal standard deviations over the samples of the batch, and no batch normalisation made it: what the "
            "model gives for a sample depends on the other samples, also in evaluations, and is NaN for a single one.",
            advice="To normalise each sample over its features, take mean and deviation over `dim=-1`. To standardise "
            "inputs, use mean and deviation of the training data. `nn.BatchNorm1d` keeps running statistics for "
            "evaluations.",
        )
        return


def _are_standardised(evidence: Evidence, measured: list[tuple[int, tuple[float, ...]]]) -> bool:
    """Whether a tensor is exactly standardised at the first of these rows, and nearly so at all others."""
    if len(measured) < LEAST_STEPS or min(share for _, (_, _, share) in measured) < LEAST_VARIED:
        return False
    rows = [row for row, _ in measured]
    samples = np.array([facts_at(evidence, row).batch_size or 1 for row in rows])
    allowed = np.minimum(MOVED, OF_CHANCE / np.sqrt(samples))
    allowed[0] = EXACT
    return bool((np.array([numbers[:2] for _, numbers in measured]).max(axis=1) < allowed).all())


def _statistics(evidence: Evidence, place: tuple[str, Role], rows: list[int]) -> tuple[float, ...] | None:
    """The standard deviations of an input or output at some rows, by which tensors are told apart; None if unknown."""
    module, role = place
    column = evidence.find(module, 0, role, "output" if role == "output" else "input[0]")
    return None if column is None else tuple(evidence.column("std", column)[rows].tolist())


def _is_meant(evidence: Evidence, module: str) -> bool:
    """Whether a module is made to standardise over the batch, by its class, or is within such a one."""
    parents = [module[:at] for at, letter in enumerate(module) if letter == "."]
    return any(part in evidence.places.class_of(name).lower() for name in (*parents, module) for part in _BATCH)


def _has_samples_first(evidence: Evidence) -> bool:
    """Whether inputs and outputs of the model have the samples first, and its inputs change from step to step."""
    root, output = evidence.places.root, next(trained_outputs(evidence), None)
    if root is None or output is None or not root.inputs:
        return False
    firsts = {info.shape[:1] for info in (*root.inputs, output.info)}
    columns = [evidence.find("", root.call, "input", info.path) for info in root.inputs]
    varies = any(len(np.unique(evidence.column("mean", column))) > 1 for column in columns if column is not None)
    return len(firsts) == 1 and varies
