"""A finding: what a rule says of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from torchgraph_explorer.schema import Kind

Severity: TypeAlias = Literal["info", "warning", "error"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
"""From the least to the most severe."""


BandStatistic: TypeAlias = Literal[
    "elements", "mean", "std", "rms", "absolute_mean", "l2_norm", "min", "max", "largest", "zero_fraction"
]
"""What a band bounds: the elements themselves, or a statistic of them. `largest` is the largest magnitude."""


@dataclass(frozen=True, slots=True)
class Band:
    """What the rule allows of the tensor that the finding is about, in the units of the viewer's strips.

    Attributes:
        statistic: What is bounded.
        kind: Which series of the tensor it is read from.
        low: The lowest value that the rule allows; None without a bound.
        high: The highest one; None without a bound.
    """

    statistic: BandStatistic
    kind: Kind = "value"
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule says of a run.

    Attributes:
        kind: Which rule: a kind such as `dead-units`, which `explain` explains.
        severity: `error`: the training is broken. `warning`: it very likely suffers. `info`: worth knowing.
        module: Qualified name of the module; empty for the model itself, None for the whole run.
        call: Which call of it in the step; None if it is of no single call.
        path: Which tensor, as in `TensorInfo.path`; None if it is of no single tensor.
        step: The first recorded step at which it was seen.
        last_step: The last one; by default the first one.
        evidence: The numbers it rests on, by name.
        text: What is wrong, in a sentence or two.
        advice: What to try.
        causes: The findings that it follows from, if any. In a list they stand before it.
        band: What the rule allows; None if that is no fixed range of one tensor's values or statistic.

    Example:
        >>> for finding in open_run("runs").model().findings():
        ...     print(finding.severity, finding.kind, finding.module, finding.step)
    """

    kind: str
    severity: Severity = "warning"
    module: str | None = None
    call: int | None = None
    path: str | None = None
    step: int
    last_step: int = -1
    evidence: Mapping[str, float] = field(default_factory=dict)
    text: str
    advice: str = ""
    causes: tuple[Finding, ...] = field(default=())
    band: Band | None = None

    def __post_init__(self) -> None:
        """Fill in the last step."""
        if self.last_step < self.step:
            object.__setattr__(self, "last_step", self.step)

    @property
    def key(self) -> tuple[str, str | None, int | None, str | None]:
        """What makes it the same finding at another time."""
        return self.kind, self.module, self.call, self.path

    def is_at_least(self, severity: Severity) -> bool:
        """Whether it is as severe as `severity`, or more."""
        return SEVERITIES.index(self.severity) >= SEVERITIES.index(severity)


class RuleFindings(NamedTuple):
    """What one rule of the user's own says of a run.

    Attributes:
        rule: The function's qualified name.
        findings: Causes, if any, stand before what follows from them.
    """

    rule: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What rules of the user's own found while a model trained: the findings alone, not the rules.

    It replaces what the session wrote before.

    Attributes:
        time: When it was written, in seconds since the epoch.
        rules: What each rule found, also if that is nothing.
    """

    time: float
    rules: tuple[RuleFindings, ...]
