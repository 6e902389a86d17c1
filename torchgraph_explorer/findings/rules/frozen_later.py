"""Finds optimizers that change nothing any more, as all that they have was frozen in the midst of the training.

The evidence is the names of the parameters in the optimizer's groups, and of those that require no gradient.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import by_optimizers, facts_at, module_around, rows_with
from torchgraph_explorer.findings.rules.rule import finding, named

LEAST_STEPS = 3
"""Fewest recorded updates, up to the last one, by an optimizer all of whose parameters are frozen."""


def stays_frozen(evidence: Evidence) -> Iterator[Finding]:
    """An optimizer's parameters had a gradient, and from some update on none of them requires one, though it steps.

    They were frozen for the update of others, or for an evaluation, and never unfrozen. Who means to train them no more
    has no reason to step their optimizer.
    """
    known = rows_with(evidence, lambda facts: facts.frozen_in_optimizer is not None and bool(facts.groups))
    for rows in by_optimizers(evidence, known).values():
        idle = [row for row in rows if _is_idle(evidence, row)]
        if len(idle) < LEAST_STEPS or idle != rows[-len(idle) :] or not _had_gradient(evidence, idle[0]):
            continue
        names = _names(evidence, idle[0])
        module = module_around(names)
        yield finding(
            evidence,
            "frozen-by-accident",
            "warning",
            at=module,
            rows=idle,
            numbers={"parameters": len(names), "updates": len(idle)},
            text=f"All parameters of {named(module)} that its optimizer has got gradients at first, and have "
            f"`requires_grad=False` from step {evidence.steps[idle[0]]} on. The optimizer still steps, and changes "
            "nothing.",
            advice="They were probably frozen for the update of another part, or for an evaluation, and not unfrozen: "
            "set `requires_grad_(True)` before their own loss is computed. In Lightning, call `untoggle_optimizer` "
            "after `toggle_optimizer`.",
        )


def _names(evidence: Evidence, row: int) -> list[str]:
    """The parameters of the model in the groups of the optimizers that make the update of a row."""
    return [name for group in facts_at(evidence, row).groups for name in group.parameters]


def _is_idle(evidence: Evidence, row: int) -> bool:
    """Whether all parameters in these groups are frozen."""
    names = _names(evidence, row)
    return bool(names) and {*names} <= {*(facts_at(evidence, row).frozen_in_optimizer or ())}


def _had_gradient(evidence: Evidence, row: int) -> bool:
    """Whether any of the parameters that are frozen at a row had a gradient before."""
    columns = (
        evidence.find(module, None, "param", path, "grad")
        for module, _, path in (name.rpartition(".") for name in _names(evidence, row))
    )
    return any(column is not None and evidence.is_there[:row, column].any() for column in columns)
