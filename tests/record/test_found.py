"""What rules of the user's own found while a model trained stays with the run, as data."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.record.examples import FOUND, frame, other_session, segment, write
from torchgraph_explorer import Finding
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.finding import Found, RuleFindings
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import enveloped
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import Finished


def test_what_was_found_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, frame(0), Finished(9.0), FOUND)  # the last look comes after the training's end
    [grows, quiet] = open_run(tmp_path).model().found_by_rules
    assert (grows, quiet) == FOUND.rules
    assert grows.findings[1].causes == (grows.findings[0],)


def test_findings_tell_it_beside_those_of_the_package(tmp_path: Path) -> None:
    write(tmp_path, frame(0), FOUND)
    found = open_run(tmp_path).model().findings()
    assert [(one.kind, one.severity, one.module, one.step) for one in found] == [
        ("rate-too-high", "error", None, 3),
        ("too-large", "warning", "fc", 4),
    ]


def test_each_record_replaces_what_its_session_wrote_before(tmp_path: Path) -> None:
    write(tmp_path, frame(0), FOUND, Found(9.0, (RuleFindings("grows", ()),)))
    assert open_run(tmp_path).model().findings() == ()


def test_of_each_rule_the_latest_session_counts(tmp_path: Path) -> None:
    write(tmp_path, frame(0), FOUND)
    later = Found(9.0, (RuleFindings("other", (Finding(kind="odd", step=7, text="Odd."),)),))
    write(tmp_path, later, session=other_session("later", created=5_000.0))
    assert {one.kind for one in open_run(tmp_path).model().findings()} == {"rate-too-high", "too-large", "odd"}


def test_a_rule_that_is_run_again_replaces_what_it_found_then(tmp_path: Path) -> None:
    def grows(_model: object) -> list[Finding]:
        return [Finding(kind="mended", step=0, text="Fine.")]

    grows.__qualname__ = "grows"
    write(tmp_path, frame(0), FOUND)
    assert [one.kind for one in open_run(tmp_path).model().findings(rules=[grows])] == ["mended"]


def test_a_refresh_shows_what_came_since(tmp_path: Path) -> None:
    write(tmp_path, frame(0))
    run = open_run(tmp_path)
    before = run.model().found_times
    write(tmp_path, FOUND)
    assert run.refresh()
    assert (before, run.model().found_times) == ((), (FOUND.time,))


def one(**fields: object) -> pb.Found:
    return pb.Found(time=1.0, rules=[pb.RuleFindings(rule="r", findings=[pb.Finding(kind="k", **fields)])])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(pb.Found(time=math.nan), id="no time"),
        pytest.param(pb.Found(rules=[pb.RuleFindings()] * 300), id="many rules"),
        pytest.param(pb.Found(rules=[pb.RuleFindings(findings=[pb.Finding()] * 2000)]), id="many findings"),
        pytest.param(one(causes=[0]), id="its own cause"),
        pytest.param(one(step=2**63), id="a late step"),
        pytest.param(one(call=2**32 - 1), id="a late call"),
        pytest.param(one(text=20_000 * "x"), id="a long text"),
        pytest.param(one(evidence={str(number): 0.0 for number in range(300)}), id="many numbers"),
    ],
)
def test_what_makes_no_sense_is_skipped(found: pb.Found, tmp_path: Path) -> None:
    write(tmp_path, frame(0))
    with segment(tmp_path).open("ab") as file:
        file.write(enveloped(pb.Head(found=found).SerializeToString()))
    with pytest.warns(TorchgraphWarning, match="is damaged and was skipped"):
        assert open_run(tmp_path).model().found_by_rules == ()


def test_what_only_a_later_release_knows_is_told_without_it(tmp_path: Path) -> None:
    write(tmp_path, frame(0))
    later = one(severity=9, text="New.", band=pb.Finding.Band(statistic="kurtosis", kind="VALUE", low=1.0))
    with segment(tmp_path).open("ab") as file:
        file.write(enveloped(pb.Head(found=later).SerializeToString()))
    [found] = open_run(tmp_path).model().findings()
    assert (found.severity, found.band, found.text) == ("warning", None, "New.")
