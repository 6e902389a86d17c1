"""Finds a generator that learns nothing more, because its loss is flat where a discriminator is sure of itself.

The evidence is the outputs of the discriminator for what was generated, and the gradients in these steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import is_one_number
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.rule import finding, held, named
from torchgraph_explorer.schema import Call

FLAT = 0.01
"""Largest gradient of the generator, and at the discriminator's logits, over that of the first steps, of a loss that is
flat."""

HELD = 0.5
"""Least share of the generator's steps, up to the last one, at which it is."""

LEAST_STEPS = 20
"""Fewest steps of the generator."""

SURE, SURE_LOGIT = 0.02, -4.0
"""Largest probability, or logit of one, with which a discriminator that is sure takes generated samples for data."""

FIRST = 3
"""How many of the first steps tell how large the gradients were."""

Floats = npt.NDArray[np.float64]


class Pair(NamedTuple):
    """A module that judges with one number a sample, and one whose samples it is given, with optimizers of their own.

    Attributes:
        judge: The name of the former.
        maker: The name of the latter.
        rows: The steps that update the latter alone.
    """

    judge: str
    maker: str
    rows: list[int]


def flat_for_generator(evidence: Evidence) -> Iterator[Finding]:
    """The gradient of a generator has nearly vanished, as the discriminator gives 0 for all that it makes.

    A loss like `log(1 - D(G(z)))` is flat there. Its negative form `-log(D(G(z)))` is not, nor is a score without a
    sigmoid. At logits, the gradient vanishes as well; at probabilities, it is that of a logarithm.
    """
    for judge, maker, steps in pairs_of(evidence):
        made, judged = _gradients(evidence, maker), _at_outputs(evidence, judge)
        rows = np.array([row for row in steps if made[row] > 0 and judged[row] > 0], np.intp)
        if len(rows) < LEAST_STEPS:
            continue
        first, first_judged = (float(np.median(found[rows[:FIRST]])) for found in (made, judged))
        is_flat = made[rows] < FLAT * first
        if not _gives_probabilities(evidence, judge):
            is_flat &= judged[rows] < FLAT * first_judged
        kept = held(is_flat & _is_sure(evidence, judge, rows), evidence.steps[rows], share=HELD)
        if kept is None:
            continue
        yield finding(
            evidence,
            "vanishing-gradient",
            "warning",
            at=maker,
            rows=rows[kept],
            numbers={"first": first, "last": float(made[rows[-1]]), "steps": len(kept)},
            text=f"The gradient of {named(maker)} falls to {made[rows[-1]] / first:.1g} of what it was at first, since "
            f"{named(judge)} is sure that it is given no data: the loss is flat there, as `log(1 - D(G(z)))` is, and "
            f"{named(maker)} learns nothing more.",
            advice="Train the generator with `-log(D(G(z)))`, which is the binary cross entropy with labels of 1, and "
            "make the discriminator weaker: a lower learning rate, fewer steps or fewer units.",
        )


def pairs_of(evidence: Evidence) -> Iterator[Pair]:
    """Two modules that the training loop calls, and updates in turn, of which one is given what the other made."""
    judges = judges_of(evidence)
    called = sorted({call.module for call in _called_by_loop(evidence)}) if judges else []
    updated = {name: updates_of(evidence, name) for name in called}
    for judge in judges:
        for maker, rows in updated.items():
            alone = sorted(rows - updated[judge])
            if alone and updated[judge] - rows and _is_given(evidence, judge, maker):
                yield Pair(judge, maker, alone)


def judges_of(evidence: Evidence) -> list[str]:
    """The parts that the training loop calls itself, and that give one number for each sample."""
    calls = _called_by_loop(evidence)
    return sorted({call.module for call in calls if len(call.outputs) == 1 and is_one_number(call.outputs[0])})


def _called_by_loop(evidence: Evidence) -> list[Call]:
    """The calls of parts of the model that the training loop makes itself."""
    return [call for graph in evidence.model.graphs for call in graph.calls if call.module and call.parent is None]


def updates_of(evidence: Evidence, module: str) -> set[int]:
    """The rows at which an optimizer that has parameters of a module makes an update."""
    rows = rows_with(evidence, lambda facts: bool(facts.groups))
    return {
        row
        for row in rows
        if any(name.startswith(f"{module}.") for group in facts_at(evidence, row).groups for name in group.parameters)
    }


def _is_given(evidence: Evidence, judge: str, maker: str) -> bool:
    """Whether inputs of one module have the statistics of outputs of another one at several steps.

    What is detached on its way has no edge in the graph.
    """
    given = [one for one in evidence.of_kind("value", "input") if evidence.series[one].module == judge]
    made = outputs_of(evidence, maker)
    means = evidence.matrix("mean")
    is_same = means[:, given][:, :, None] == means[:, made][:, None, :]
    return bool(is_same.any(axis=(1, 2)).sum() >= FIRST)


def _gradients(evidence: Evidence, module: str) -> Floats:
    """The norm of the gradients of a module's parameters, `[steps]`."""
    columns = [
        one for one in evidence.of_kind("grad", "param") if f"{evidence.series[one].module}.".startswith(f"{module}.")
    ]
    found: Floats = np.sqrt(np.nansum(evidence.matrix("l2_norm")[:, columns].astype(np.float64) ** 2, axis=1))
    return found


def _at_outputs(evidence: Evidence, module: str) -> Floats:
    """The largest mean norm of a sample's gradient at the outputs of a module, `[steps]`; 0 where there is none."""
    columns = [one for one in evidence.of_kind("grad_norm", "output") if evidence.series[one].module == module]
    found = np.nan_to_num(evidence.matrix("mean")[:, columns].astype(np.float64))
    return found.max(axis=1) if columns else np.zeros(len(evidence))


def outputs_of(evidence: Evidence, module: str) -> list[int]:
    """The columns of the values of a module's outputs."""
    return [one for one in evidence.of_kind("value", "output") if evidence.series[one].module == module]


def _gives_probabilities(evidence: Evidence, judge: str) -> bool:
    """Whether all outputs of a judge are between 0 and 1."""
    columns = outputs_of(evidence, judge)
    low, high = (evidence.matrix(name)[:, columns] for name in ("min", "max"))
    return bool(columns) and bool(np.nanmin(low) >= 0 and np.nanmax(high) <= 1)


def _is_sure(evidence: Evidence, judge: str, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """At which rows the smallest mean of the outputs of a judge, of those of a step, shows that it is sure."""
    columns = outputs_of(evidence, judge)
    means = np.nanmin(evidence.matrix("mean")[rows][:, columns], axis=1)
    found: npt.NDArray[np.bool_] = means < (SURE if _gives_probabilities(evidence, judge) else SURE_LOGIT)
    return found
