"""Runs the rules over a model's record."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from torchgraph_explorer.console import reason
from torchgraph_explorer.finding import Finding, RuleFindings
from torchgraph_explorer.findings.calls import once_a_module
from torchgraph_explorer.findings.causes import in_order
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.own_rules import OwnRule, run_rules, with_recorded
from torchgraph_explorer.findings.rules import RULES
from torchgraph_explorer.findings.rules.rule import Rule
from torchgraph_explorer.record.model_record import ModelRecord

Rules: TypeAlias = Mapping[str, Rule]

MOST_OF_A_RULE = 50
"""How many findings of one rule are reported: the first ones, in the order of execution."""


def find(
    model: ModelRecord,
    rules: Rules = RULES,
    frames: Iterable[int] | None = None,
    *,
    own: Sequence[OwnRule] = (),
) -> tuple[Finding, ...]:
    """What the rules say of `model`, at all its frames or at the given ones: root causes first.

    The user's `own` rules look at the whole model. If a rule raises, that is reported as a finding of the kind
    `rule-failed`. What other rules of the user's found while the model trained is reported as it was recorded.

    Raises:
        RecordError: The run is gone.
    """
    return judge(Evidence(model, frames), rules, own=run_rules(own, model))


def judge(evidence: Evidence, rules: Rules = RULES, *, own: Sequence[RuleFindings] = ()) -> tuple[Finding, ...]:
    """What the rules say of `evidence`, with what the user's `own` found in its model: root causes first.

    Raises:
        RecordError: The run is gone.
    """
    if not len(evidence):
        return ()
    model, places = evidence.model, evidence.places
    found = list(_run("nan", rules["nan"], evidence)) if "nan" in rules else []
    if any(one.kind == "nan" for one in found):  # what comes after it is rubbish
        evidence = evidence.before(found[0].step)
    found += [one for name, rule in rules.items() if name != "nan" for one in _run(name, rule, evidence)]
    found += [one for rule in with_recorded(own, model) for one in rule.findings[:MOST_OF_A_RULE]]
    return in_order(found, places)


def _run(name: str, rule: Rule, evidence: Evidence) -> Iterator[Finding]:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():  # a record may hold any numbers, or none
            warnings.simplefilter("ignore", RuntimeWarning)
            found = once_a_module(rule(evidence), most=MOST_OF_A_RULE)
        yield from found
    except Exception as fault:  # whatever a rule does, the others' findings count
        yield Finding(
            kind="rule-failed",
            severity="info",
            step=int(evidence.steps[0]),
            last_step=int(evidence.steps[-1]),
            text=f"The rule {name!r} failed: {reason(fault)}. What it would have found is missing here.",
            advice="Report it at the project's issues, with the output of `torchgraph info`.",
        )
