"""Reports: what is saved to the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.wandb_panel.conftest import Online
from torchgraph_explorer.cli import main
from torchgraph_wandb.presets import preset_name

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wandb")]  # one training online, and one process that has wandb


def panels(spec: Any) -> Iterator[dict[str, Any]]:
    """Everything in a report that has a panel's type."""
    if isinstance(spec, dict):
        if "viewType" in spec:
            yield spec
        for part in spec.values():
            yield from panels(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from panels(part)


def check(spec: dict[str, Any], run: str) -> None:
    chart, page = panels(spec)
    assert (chart["viewType"], chart["config"]["panelDefId"]) == ("Vega2", f"ent/{preset_name()}")
    assert '"torchgraph/Net_table"' in json.dumps(chart)
    assert chart["config"]["fieldSettings"] == {"part": "part", "packed": "packed"}
    assert (page["viewType"], page["config"]["mediaKeys"]) == ("Media Browser", ["torchgraph/Net_page"])
    grid = next(block for block in spec["blocks"] if block["type"] == "panel-grid")
    [run_set] = grid["metadata"]["runSets"]
    assert [(one["key"]["name"], one["op"], one["value"]) for one in run_set["filters"]["filters"]] == [
        ("name", "=", run)
    ]
    text = json.dumps(spec["blocks"])
    assert "131 parameters" in text or "1,283 parameters" in text
    assert text.count("10 steps recorded, 10 shown") == 2
    assert f"/ent/p/runs/{run}" in text


def test_a_dry_run_prints_the_specification_and_saves_nothing(online: Online) -> None:
    run = online.backend.only_run().name
    said = online.torchgraph("wandb", "report", "--run", f"ent/p/{run}", "--title", "Look", "--dry-run")
    spec = json.loads(said)
    assert spec["displayName"] == "Look"
    check(spec["spec"], run)
    assert "Look" not in [view["displayName"] for view in online.backend.views.values()]


def test_a_saved_report_holds_the_chart_and_the_page(online: Online) -> None:
    run = online.backend.only_run().name
    said = online.torchgraph("wandb", "report", "--run", f"ent/p/{run}", "--title", "Saved")
    [view] = [view for view in online.backend.views.values() if view["displayName"] == "Saved"]
    check(view["spec"], run)
    assert said.strip().splitlines()[-1].startswith(online.backend.address)


def test_publishing_again_says_the_same_preset(online: Online) -> None:
    said = online.torchgraph("wandb", "publish", "--entity", "ent", "--server", online.backend.address)
    assert said.strip().splitlines()[-1] == f"ent/{preset_name()}"


def test_publishing_to_nobody_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wandb", "publish", "--entity", ""]) == 2
    assert "--entity is empty. Name the user or team" in capsys.readouterr().err
