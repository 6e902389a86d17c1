"""Runs the rules again and again over one model of a run that is being written, and says what is new."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from torchgraph_explorer.finding import Finding, RuleFindings
from torchgraph_explorer.findings.engine import judge
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.own_rules import OwnRule, run_rules
from torchgraph_explorer.record.model_record import ModelRecord

MOST_CELLS = 1_000_000
"""How many steps times series are held in memory at most, 48 bytes each. Of a finished run, more are read."""

GROWTH = 1.1
"""The rules run again when the number of recorded steps has grown by this factor. So their cost for each step is the
same in a short and in a long run."""

LEAST_SHARE_BETWEEN = 19.0
"""The rules rest for so many times the time that they took. So they use 5 % of one core at most."""

LEAST_STEPS = 8
"""How many steps have to be recorded before anything but `nan` is reported."""

PERSISTENCE, ENOUGH = 2.0, 50
"""A finding is reported if it is still there when the record has grown by this factor, or by so many steps."""

SLOW = {"loss-not-falling": 8.0}
"""Kinds that many healthy trainings show at first. They are reported if they are still there when the record has grown
by this factor."""

AT_ONCE = ("nan",)
"""Kinds that are reported at once, since they do not pass."""

_Key: TypeAlias = "tuple[str, str | None, int | None, str | None]"


class Novelty:
    """Decides when a finding is reported: once, after it has been there for a while."""

    def __init__(self) -> None:
        self._since: dict[_Key, int] = {}
        self._told: set[_Key] = set()

    def new(self, findings: Sequence[Finding], *, frames: int, at_end: bool = False) -> list[Finding]:
        """Those of `findings` that are to be reported now. `frames` is how many frames the rules looked at."""
        self._since = {one.key: self._since.get(one.key, frames) for one in findings}
        sure = [one for one in findings if at_end or self._has_held(one, frames=frames)]
        causes = {cause.key for one in sure for cause in one.causes}  # which are told with what follows from them
        wanted = causes.union(one.key for one in sure) - self._told
        self._told |= wanted
        return [one for one in findings if one.key in wanted]

    def _has_held(self, one: Finding, *, frames: int) -> bool:
        if one.kind in AT_ONCE:
            return True
        since = self._since[one.key]
        needed = SLOW[one.kind] * since if one.kind in SLOW else min(PERSISTENCE * since, since + ENOUGH)
        return frames >= max(LEAST_STEPS, needed)


class LiveModel:
    """One model of a run that is being written, with what the rules said of it last.

    Attributes:
        findings: What they said then.
        own: What each of the user's rules said then, which is among those.
    """

    def __init__(
        self,
        model: ModelRecord,
        own: Sequence[OwnRule] = (),
        *,
        most: int = MOST_CELLS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Look at `model`, also with the user's `own` rules.

        `most` is how many steps times series are held in memory. `clock` gives seconds.
        """
        self.findings: tuple[Finding, ...] = ()
        self.own: tuple[RuleFindings, ...] = ()
        self._model, self._rules, self._most, self._clock = model, own, most, clock
        self._evidence: Evidence | None = None
        self._novelty = Novelty()
        self._searched = self._judged = 0
        self._rests_until = float("-inf")

    def look(self) -> list[Finding]:
        """What is new, in the state of the run at its latest refresh. Most calls return at once, without a look.

        Raises:
            RecordError: The run is gone.
        """
        return self._judge() if self._is_due() else []

    def finish(self) -> list[Finding]:
        """What is new at the end of the run.

        Raises:
            RecordError: The run is gone.
        """
        return self._judge(at_end=True)

    def _is_due(self) -> bool:
        frames, searched = len(self._model), self._searched
        self._searched = frames
        if any(one.kind in AT_ONCE for one in self.findings):
            searched = frames  # more of it is no news
        if frames > searched and self._model.nonfinite(searched, frames).any():
            return True
        return frames >= max(self._judged + 1, self._judged * GROWTH) and self._clock() >= self._rests_until

    def _judge(self, *, at_end: bool = False) -> list[Finding]:
        began = self._clock()
        self._evidence = Evidence(self._model, most=self._most, earlier=self._evidence)
        self._judged = frames = len(self._model)
        self.own = run_rules(self._rules, self._model)
        self.findings = judge(self._evidence, own=self.own)
        ended = self._clock()
        self._rests_until = ended + LEAST_SHARE_BETWEEN * (ended - began)
        return self._novelty.new(self.findings, frames=frames, at_end=at_end)
