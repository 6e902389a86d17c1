"""The chart's specification as a preset of a W&B entity.

A preset is never changed, and its name is never used again: the name contains a hash of the specification. Which
presets have been published is remembered on this machine, by server and entity, since W&B cannot list them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from torchgraph_explorer.errors import TorchgraphError
from torchgraph_wandb.chart.spec import chart_spec

Access: TypeAlias = Literal["private", "public"]

TABLE_VERSION = 3
"""Version of the table's contents. A chart of another version cannot read it."""

TITLE = "torchgraph explorer"
SECONDS = 20
"""Timeout of a request to the server."""


class PresetError(TorchgraphError):
    """The server refuses the chart."""


@dataclass(frozen=True, slots=True)
class PresetOwner:
    """The address of the server that holds presets, and the user or team that owns them."""

    server: str
    entity: str


def preset_name() -> str:
    """The name of the current specification: `torchgraph_v3_` and a hash."""
    text = json.dumps(chart_spec(), sort_keys=True)
    return f"torchgraph_v{TABLE_VERSION}_{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def publish_chart(owner: PresetOwner, *, access: Access = "private") -> str:
    """Publish the preset, unless it was published from this machine before; returns its id, `entity/name`.

    Raises:
        PresetError: The server refuses.
    """
    known = published_preset(owner)
    if known is not None:
        return known
    chart = _create(owner, access)
    record_published(owner, chart)
    return chart


def _create(owner: PresetOwner, access: Access) -> str:
    import wandb

    name = preset_name()
    try:
        api = wandb.Api(overrides={"base_url": owner.server, "entity": owner.entity}, timeout=SECONDS)
        chart: str = api.create_custom_chart(
            entity=owner.entity,
            name=name,
            display_name=f"{TITLE} {name.removeprefix('torchgraph_')}",
            spec_type="vega2",
            access=access,
            spec=chart_spec(),
        )
    except Exception as fault:  # wandb raises what its service, its transport and its server do
        if re.search("already exist|duplicate", str(fault), re.IGNORECASE):  # not: the entity "does not exist"
            return f"{owner.entity}/{name}"  # from another machine; the hash in the name says it is the same
        raise PresetError(
            f"The chart cannot be published to {owner.entity} at {owner.server}: {fault}. "
            f"Someone who may write there can publish it once for everyone: "
            f"torchgraph wandb publish --entity {owner.entity}"
        ) from fault
    return chart


def published_preset(owner: PresetOwner) -> str | None:
    """The id of the current preset, if it was published there from this machine; else None."""
    known = _read().get(owner.server, {}).get(owner.entity)
    return known if known == f"{owner.entity}/{preset_name()}" else None


def preset_id(owner: PresetOwner) -> str:
    """The id that the current preset has once it is published."""
    return f"{owner.entity}/{preset_name()}"


def record_published(owner: PresetOwner, chart: str) -> None:
    """Remember that `chart` is published. A home that cannot be written to costs another try next time."""
    known = _read()
    known.setdefault(owner.server, {})[owner.entity] = chart
    try:
        path = presets_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(known, file, indent=1)
        Path(file.name).replace(path)  # two trainings may do this at the same time
    except (OSError, RuntimeError):
        return


def presets_file() -> Path:
    """The file that lists the published charts.

    Raises:
        RuntimeError: The user has no home directory.
    """
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "torchgraph" / "wandb_charts.json"


def _read() -> dict[str, dict[str, str]]:
    try:
        known = json.loads(presets_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):
        return {}
    return known if isinstance(known, dict) else {}
