"""Says what is wrong in a run while it is recorded, and once more at its end."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, TypeAlias

from torchgraph_explorer.console import info, reason, warn
from torchgraph_explorer.errors import TorchgraphError
from torchgraph_explorer.finding import Finding, Found, RuleFindings
from torchgraph_explorer.findings.engine import judge
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.own_rules import OwnRule, address_of, run_rules
from torchgraph_explorer.findings.report import as_lines, as_summary, from_plain
from torchgraph_explorer.record.remote import is_url
from torchgraph_explorer.run import Model, open_run
from torchgraph_explorer.schema import Finished, Frame, Record
from torchgraph_explorer.training.finding_process import FindingProcess, FindingProcessError

SECONDS_BEFORE = 2.0
"""A training that is shorter is looked at once, at its end, in its own process."""

SECONDS_TO_FINISH = 8.0
"""How long the end of a watch waits for the last look."""

MOST_CELLS_HERE = 500_000
"""Steps times series, 48 bytes each. Of a larger run, nothing is looked for in the training's process."""

Tell: TypeAlias = Callable[[Sequence[Finding]], None]


class LiveFindings:
    """A sink that starts the process which runs the rules, and hands on what that finds.

    All calls come from the writer's thread. The process reads the run's folder. What the user's own rules find is
    recorded, so that it stays with the run; what the package's rules find is not, since they can be run again.
    """

    def __init__(
        self,
        run_dir: str,
        model: str,
        *,
        rules: Sequence[OwnRule],
        tell: Sequence[Tell],
        says: bool,
        record: Callable[[Found], None] | None = None,
    ) -> None:
        """Look at `model` of the run in `run_dir`.

        Args:
            run_dir: The run's folder, or URL.
            model: The model's name in it.
            rules: Of the user's own.
            tell: Called with what is new.
            says: Whether it is also said in the terminal, with a summary at the end.
            record: Called with what `rules` found when that has changed.
        """
        self._run_dir, self._model = run_dir, model
        known = [(rule, address_of(rule)) for rule in rules]
        self._sent = [address for _, address in known if address is not None]
        self._here = [rule for rule, address in known if address is None]
        self._rules = tuple(rules)
        self._listeners, self._says = tuple(tell), says
        self._process: FindingProcess | None = None
        self._is_refused = False
        self._first: float | None = None
        self._frames = 0
        self._found: tuple[Finding, ...] | None = None
        self._record = record
        self._own: dict[str, RuleFindings] = {}
        self._recorded: set[object] = set()

    def also_tell(self, tell: Tell) -> None:
        """Call `tell` with what is new, too."""
        self._listeners += (tell,)

    def write(self, record: Record) -> None:
        """Take the next record: a step has come, or there are no more."""
        if isinstance(record, Frame):
            self._frames += 1
            self._first = monotonic() if self._first is None else self._first
        if isinstance(record, Finished):
            self._finish()
        else:
            self.when_idle()

    def when_idle(self) -> None:
        """Begin if it is time to, and hand on what is new."""
        if self._process is not None:
            self._take(self._process.messages())
        elif self._first is not None and not self._is_refused and monotonic() - self._first >= SECONDS_BEFORE:
            self._begin()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _begin(self) -> None:
        try:
            self._process = FindingProcess(self._run_dir, self._model, self._sent)
        except FindingProcessError as refusal:
            self._refuse(f"its process cannot be started: {refusal}")

    def _refuse(self, why: str) -> None:
        self._is_refused = True
        self.close()
        warn(
            f"{self._model}: findings are not looked for while it trains ({why}). Training goes on, and is recorded. "
            f"To look for them afterwards: {self._command}"
        )

    @property
    def _command(self) -> str:
        return f"torchgraph check {shlex.quote(self._run_dir)}"

    def _take(self, messages: Sequence[dict[str, Any]]) -> None:
        for one in messages:
            if "found" in one:
                self._found = from_plain(one["found"])
                self._own |= _own_of(one)
                self._record_own()
                self._tell([self._found[number] for number in one["new"]])
            elif "end" in one:
                self._found = from_plain(one["end"]) if one["end"] is not None else None
                self._own |= _own_of(one)
            elif "unloaded" in one:
                warn(
                    f"{self._model}: the rule {one['unloaded']!r} does not run while the model trains, since its file "
                    f"cannot be loaded in another process ({one['why']}). It runs at the end."
                )
                self._here += [rule for rule in self._rules if getattr(rule, "__qualname__", "") == one["unloaded"]]
            else:
                self._refuse(one.get("fault") or f"its process has ended with status {one['ended']}")

    def _finish(self) -> None:
        """Look once more, and sum up."""
        says, self._says = self._says, False  # the summary has what is new, too
        if self._process is not None:
            self._take(self._process.finish(SECONDS_TO_FINISH))
            self.close()
            if self._here:
                self._read(self._run_own)
        elif self._frames and not self._is_refused:
            self._read(self._look_once)
        self._record_own(is_last=True)
        if says and self._found:
            for line in as_summary(self._model, self._found, self._command):
                info(line)

    def _read(self, look: Callable[[Model], None]) -> None:
        """Call `look` with the record. The training has ended, so rules may run in its process."""
        if is_url(self._run_dir):
            return  # its last records are not uploaded yet
        with suppress(TorchgraphError):  # it could not be written, and there was a warning
            model = open_run(self._run_dir).model(self._model)
            if len(model):
                look(model)

    def _look_once(self, model: Model) -> None:
        if len(model) * len(model.series) <= MOST_CELLS_HERE:
            ran = run_rules(self._rules, model)
            self._own |= {one.rule: one for one in ran}
            self._found = judge(Evidence(model), own=ran)
            self._tell(self._found)

    def _run_own(self, model: Model) -> None:
        ran = run_rules(self._here, model)
        self._own |= {one.rule: one for one in ran}
        own = [one for rule in ran for one in rule.findings]
        self._found = (*(self._found or ()), *own)
        self._tell(own)

    def _record_own(self, *, is_last: bool = False) -> None:
        """Record what the user's rules found; before the end only if there is a finding more or less."""
        keys: set[object] = {(rule, one.key) for rule, found in self._own.items() for one in found.findings}
        if self._record is None or not self._own or (keys == self._recorded and not is_last):
            return
        self._recorded = keys
        self._record(Found(time.time(), tuple(self._own.values())))

    def _tell(self, new: Sequence[Finding]) -> None:
        if not new:
            return
        if self._says:
            for line in as_lines(new):
                info(line)
        for tell in self._listeners:
            try:
                tell(new)
            except Exception as fault:
                warn(f"{self._model}: a finding could not be reported ({reason(fault)}).")


def _own_of(message: dict[str, Any]) -> dict[str, RuleFindings]:
    """What each of the user's rules said, as the process tells it."""
    return {rule: RuleFindings(rule, from_plain(found)) for rule, found in message["own"]}
