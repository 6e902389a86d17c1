"""The chart's specification as a preset of a W&B entity.

A preset is never changed, and a name never used again: it is made of the specification itself. What has been published
is remembered on this machine, by server and entity, since W&B cannot be asked which presets there are.
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

TABLE_VERSION = 2
"""Of what the table holds. A chart of another version cannot read it."""

TITLE = "torchgraph explorer"
SECONDS = 20


class PresetError(TorchgraphError):
    """The server does not take the chart."""


@dataclass(frozen=True, slots=True)
class PresetOwner:
    """Where presets are: the server's address, and who owns them."""

    server: str
    entity: str


def preset_name() -> str:
    """The name of the current specification: `torchgraph_v1_` and a hash of it."""
    text = json.dumps(chart_spec(), sort_keys=True)
    return f"torchgraph_v{TABLE_VERSION}_{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def publish_chart(place: PresetOwner, *, access: Access = "private") -> str:
    """The preset's id, `entity/name`; published with `access` if it has not been from this machine.

    Raises:
        PresetError: The server refuses.
    """
    known = remembered(place)
    if known is not None:
        return known
    chart = _create(place, access)
    remember(place, chart)
    return chart


def _create(place: PresetOwner, access: Access) -> str:
    import wandb

    name = preset_name()
    try:
        api = wandb.Api(overrides={"base_url": place.server, "entity": place.entity}, timeout=SECONDS)
        chart: str = api.create_custom_chart(
            entity=place.entity,
            name=name,
            display_name=f"{TITLE} {name.removeprefix('torchgraph_')}",
            spec_type="vega2",
            access=access,
            spec=chart_spec(),
        )
    except Exception as fault:  # wandb raises what its service, its transport and its server do
        if re.search("already exist|duplicate", str(fault), re.IGNORECASE):  # not: the entity "does not exist"
            return f"{place.entity}/{name}"  # from another machine, and the name says that it is the same
        raise PresetError(
            f"The chart cannot be published to {place.entity} at {place.server}: {fault}. "
            f"Somebody who may write there can do it once for all: torchgraph wandb publish --entity {place.entity}"
        ) from fault
    return chart


def remembered(place: PresetOwner) -> str | None:
    """The current preset's id, if it was published there from this machine."""
    known = _read().get(place.server, {}).get(place.entity)
    return known if known == f"{place.entity}/{preset_name()}" else None


def expected(place: PresetOwner) -> str:
    """The id that the current preset has, or will have."""
    return f"{place.entity}/{preset_name()}"


def remember(place: PresetOwner, chart: str) -> None:
    """Keep that `chart` is published. A home that cannot be written to only costs another try next time."""
    known = _read()
    known.setdefault(place.server, {})[place.entity] = chart
    try:
        path = memory()
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(known, file, indent=1)
        Path(file.name).replace(path)  # two trainings may do this at once
    except (OSError, RuntimeError):
        return


def memory() -> Path:
    """Where it is kept which charts are published.

    Raises:
        RuntimeError: The user has no home.
    """
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "torchgraph" / "wandb_charts.json"


def _read() -> dict[str, dict[str, str]]:
    try:
        known = json.loads(memory().read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):
        return {}
    return known if isinstance(known, dict) else {}
