"""What rules of the user's own found, as a record and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import cast, get_args

from torchgraph_explorer.finding import SEVERITIES, Band, BandStatistic, Finding, Found, RuleFindings
from torchgraph_explorer.printable import LONGEST_TEXT, printable, printable_path
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.format.messages import KIND_NAMES, KINDS
from torchgraph_explorer.record.limits import EVIDENCE, FOUND, LAST_CALL, LAST_STEP, NOTE_TEXT, RULES, moment

_SEVERITY_NAMES = MappingProxyType(dict(enumerate(SEVERITIES, start=1)))


def found_message(found: Found) -> pb.Found:
    """`found` as it stands in a segment: of many rules and findings, the first ones."""
    rules, room = [], FOUND
    for one in found.rules[:RULES]:
        kept = one.findings[:room]
        rules.append(pb.RuleFindings(rule=printable(one.rule), findings=_messages(kept)))
        room -= len(kept)
    return pb.Found(time=found.time, rules=rules)


def found_value(message: pb.Found) -> Found:
    """What `message` was made of.

    Raises:
        DamageError: It is larger than ours, or something in it is out of range.
    """
    if len(message.rules) > RULES or sum(len(one.findings) for one in message.rules) > FOUND:
        raise DamageError("it has too many findings")
    return Found(
        moment(message.time, "time"), tuple(RuleFindings(_short(one.rule), _values(one)) for one in message.rules)
    )


def _messages(findings: Sequence[Finding]) -> list[pb.Finding]:
    numbers = {id(one): number for number, one in enumerate(findings)}
    return [
        pb.Finding(
            kind=printable(one.kind),
            severity=one.severity.upper(),
            module=None if one.module is None else printable_path(one.module),
            call=one.call,
            path=None if one.path is None else printable(one.path),
            step=max(one.step, 0),
            last_step=max(one.last_step, 0),
            evidence={printable(name): value for name, value in [*one.evidence.items()][:EVIDENCE]},
            text=printable(one.text, most=LONGEST_TEXT, lines=True),
            advice=printable(one.advice, most=LONGEST_TEXT, lines=True),
            causes=[at for cause in one.causes if (at := numbers.get(id(cause), number)) < number],
            band=None if one.band is None else _band_message(one.band),
        )
        for number, one in enumerate(findings)
    ]


def _band_message(band: Band) -> pb.Finding.Band:
    low, high = (None if end is None or not math.isfinite(end) else end for end in (band.low, band.high))
    return pb.Finding.Band(statistic=band.statistic, kind=KINDS[band.kind], low=low, high=high)


def _values(rule: pb.RuleFindings) -> tuple[Finding, ...]:
    found: list[Finding] = []
    for one in rule.findings:
        found.append(_value(one, found))
    return tuple(found)


def _value(one: pb.Finding, before: Sequence[Finding]) -> Finding:
    if max(one.step, one.last_step) > LAST_STEP or one.call > LAST_CALL:
        raise DamageError("a finding is at a step or call that no training reaches")
    if len(one.evidence) > EVIDENCE or any(cause >= len(before) for cause in one.causes):
        raise DamageError("a finding has too many numbers, or a cause that does not stand before it")
    return Finding(
        kind=_short(one.kind),
        severity=_SEVERITY_NAMES.get(one.severity, "warning"),
        module=_short(one.module) if one.HasField("module") else None,
        call=one.call if one.HasField("call") else None,
        path=_short(one.path) if one.HasField("path") else None,
        step=one.step,
        last_step=one.last_step,
        evidence={_short(name): value for name, value in one.evidence.items()},
        text=_short(one.text),
        advice=_short(one.advice),
        causes=tuple(before[cause] for cause in dict.fromkeys(one.causes)),
        band=_band(one.band) if one.HasField("band") else None,
    )


def _band(band: pb.Finding.Band) -> Band | None:
    """The band; None if a later release knows its statistic or series, and this one does not."""
    if band.statistic not in get_args(BandStatistic) or band.kind not in KIND_NAMES:
        return None
    low, high = band.low if band.HasField("low") else None, band.high if band.HasField("high") else None
    if not all(end is None or math.isfinite(end) for end in (low, high)):
        return None
    return Band(cast("BandStatistic", band.statistic), KIND_NAMES[band.kind], low, high)  # type: ignore[arg-type]


def _short(text: str) -> str:
    if len(text) > NOTE_TEXT:
        raise DamageError(f"a finding has a text of {len(text):,} characters")
    return text
