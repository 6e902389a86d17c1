"""What is wrong in a training: alerts, and the chart's words, through the real client."""

from __future__ import annotations

import json

import pytest

from tests.tables import thinned
from tests.wandb_panel.conftest import Online, Train
from tests.wandb_panel.loopback import Backend
from torchgraph_explorer import Finding, open_run
from torchgraph_explorer.findings.report import as_roots
from torchgraph_wandb.alerts import LONGEST_TITLE, Alerts
from torchgraph_wandb.table import FIELDS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wandb")]  # one training online, and one process that has wandb


@pytest.mark.parametrize(
    "seconds", thinned([pytest.param(0.0, id="at the end"), pytest.param(6.0, id="while it trains")], 1)
)
def test_an_error_is_alerted_of_once(seconds: float, train: Train, backend: Backend) -> None:
    train("broken", seconds=seconds)
    [alert] = backend.alerts
    assert (alert["title"], alert["severity"]) == ("dead-units in Sequential, step 0", "ERROR")
    assert alert["text"].startswith("dead-units at 1 output, steps 0 to ")


def test_the_chart_names_root_causes(train: Train, backend: Backend) -> None:
    told = train("broken", seconds=0.0).told
    rows = json.loads(backend.run_file(backend.only_run(), "torchgraph/Sequential_table"))["data"]
    summary = next(packed for part, packed in rows if part == "summary").split("\t")
    found = open_run(told["run_dir"]).model().findings()
    assert summary[1].endswith(f"20 steps recorded, 20 shown. Found: {'; '.join(as_roots(found))}")
    listed = [
        dict(zip(FIELDS["findings"], line.split("\t"), strict=True))
        for part, packed in rows
        if part == "findings"
        for line in packed.split("\n")
    ]
    assert [(one["kind"], int(one["level"])) for one in listed] == [(one.kind, int(bool(one.causes))) for one in found]
    for row, one in zip(listed, found, strict=True):
        assert one.text in " ".join(row["lines"].split("|"))
        assert one.advice in " ".join(row["lines"].split("|"))


def test_nothing_is_alerted_of_in_a_healthy_training(online: Online) -> None:
    assert online.backend.alerts == []


class Run:
    """A W&B run that notes its alerts."""

    def __init__(self) -> None:
        self.alerts: list[dict[str, object]] = []

    def alert(self, **alert: object) -> None:
        self.alerts.append(alert)


def test_errors_found_at_once_make_one_alert_and_warnings_none() -> None:
    nan = Finding(kind="nan", severity="error", module="head", step=3, text="It is NaN.", advice="Look.")
    dead = Finding(kind="dead-units", severity="error", module="act", step=1, last_step=2, text="Dead.")
    alerts, run = Alerts("M" * 100), Run()
    alerts.add([Finding(kind="mine", step=0, text="Text.")])
    alerts.add([nan, dead])
    alerts.send(run)
    alerts.send(run)
    [alert] = run.alerts
    assert alert["text"] == "nan at head, step 3: It is NaN.\n\ndead-units at act, steps 1 to 2: Dead.\n\nLook."
    assert len(str(alert["title"])) == LONGEST_TITLE
