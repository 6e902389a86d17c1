"""What W&B's way with a specification demands of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from torchgraph_explorer.cli import main
from torchgraph_wandb.chart.spec import chart_spec
from torchgraph_wandb.presets import (
    PresetOwner,
    preset_id,
    preset_name,
    presets_file,
    published_preset,
    record_published,
)
from torchgraph_wandb.table import COLUMNS

SPEC = chart_spec()


def parts(value: object) -> Iterator[object]:
    """`value`, and everything within it."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        yield from parts(part)


def test_there_is_no_null() -> None:
    assert None not in [part for part in parts(SPEC) if not isinstance(part, (dict, list))]


def test_no_data_stands_in_the_specification() -> None:
    assert [data["name"] for data in SPEC["data"] if "values" in data or "url" in data] == []


def test_it_is_full_vega_with_a_dataset_that_wandb_fills() -> None:
    assert SPEC["$schema"] == "https://vega.github.io/schema/vega/v5.json"
    assert [data["name"] for data in SPEC["data"] if "wandb" in data["name"]] == ["wandb"]


def test_it_asks_for_the_columns_of_the_table_and_nothing_else() -> None:
    asked = set(re.findall(r"\$\{(\w+):(\w+)", json.dumps(SPEC)))
    assert asked == {("string", "theme"), *(("field", column) for column in COLUMNS)}


def test_no_mark_has_the_name_of_a_dataset() -> None:
    """In Vega a mark's name is a dataset too, of its items, and would take the other's owner."""
    named = {str(part["name"]) for part in parts(SPEC["marks"]) if isinstance(part, dict) and "name" in part}
    assert named.isdisjoint(data["name"] for data in SPEC["data"])


def test_it_is_small_enough_for_a_preset() -> None:
    assert len(json.dumps(SPEC)) < 310_000


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> PresetOwner:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return PresetOwner("https://wandb.example", "team")


def test_a_published_chart_is_remembered_by_server_and_entity(owner: PresetOwner) -> None:
    assert published_preset(owner) is None
    record_published(owner, preset_id(owner))
    assert published_preset(owner) == f"team/{preset_name()}"
    assert published_preset(PresetOwner(owner.server, "others")) is None
    assert published_preset(PresetOwner("https://elsewhere.example", owner.entity)) is None


def test_an_older_chart_does_not_count(owner: PresetOwner) -> None:
    record_published(owner, "team/torchgraph_v0_0123456789")
    assert published_preset(owner) is None


def test_a_published_chart_is_not_said_to_get_another_access(
    owner: PresetOwner, capsys: pytest.CaptureFixture[str]
) -> None:
    record_published(owner, preset_id(owner))
    publish = ["wandb", "publish", "--entity", owner.entity, "--server", owner.server]
    assert main(publish) == 0
    assert capsys.readouterr().out.strip() == preset_id(owner)
    assert main([*publish, "--access", "public"]) != 0
    assert "keeps the access that it was given then" in capsys.readouterr().err


def test_a_damaged_memory_is_begun_anew(owner: PresetOwner) -> None:
    presets_file().parent.mkdir(parents=True)
    presets_file().write_text("[", encoding="utf-8")
    assert published_preset(owner) is None
    record_published(owner, preset_id(owner))
    assert published_preset(owner) is not None
