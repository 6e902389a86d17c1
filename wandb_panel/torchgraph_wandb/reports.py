"""W&B reports about one watched run: its description, the chart and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchgraph_explorer.errors import NotFoundError, OptionError
from torchgraph_explorer.extras import installing
from torchgraph_wandb.panels import SECTION
from torchgraph_wandb.record_artifact import RunPath, run_path

ROWS, COLUMNS = 18, 24
"""Size of a panel in a report's grid, which is 24 columns wide."""


@dataclass(frozen=True, slots=True)
class LoggedModel:
    """One watched model, from the W&B run's configuration and summary.

    Attributes:
        key: The chart's key.
        preset: The preset that draws it; empty if it was never published.
        model: The model's name.
        description: The model in a sentence.
    """

    key: str
    preset: str
    model: str
    description: str

    @property
    def table_key(self) -> str:
        """The key of the table behind the chart."""
        return f"{self.key}_table"

    @property
    def page_key(self) -> str:
        """The key of the page."""
        return f"{self.key}_page"


def wandb_report(run: str, title: str = "", *, dry_run: bool = False) -> dict[str, Any] | str:
    """Build a report of the W&B run `entity/project/id` and save it; returns its address.

    With `dry_run`, nothing is saved, and the report's specification is returned.

    Raises:
        NotFoundError: There is no such run, or no model was watched in it.
        OptionError: wandb-workspaces is not installed.
    """
    path = run_path(run)
    found, charted = _look_up(path)
    report = _report(path, found, charted, title=title or f"Inside {found.name}")
    if dry_run:
        spec: dict[str, Any] = report._to_model().model_dump(by_alias=True, exclude_none=True, mode="json")
        return spec
    report.save()
    return str(report.url)


def _look_up(path: RunPath) -> tuple[Any, list[LoggedModel]]:
    """The run, and the models that were watched in it."""
    import wandb

    try:
        run: Any = wandb.Api(overrides={"entity": path.entity}).run(str(path))
        charted = logged_models(run.rawconfig, list(run.summary.keys()))
    except Exception as fault:  # wandb raises what its service, its transport and its server do
        raise NotFoundError(f"The W&B run {path} cannot be read: {fault}.") from fault
    if not charted:
        raise NotFoundError(
            f"The W&B run {path} has no panels of torchgraph explorer. watch(model, backend='wandb') logs them."
        )
    return run, charted


def logged_models(config: Mapping[str, Any], keys: Sequence[str]) -> list[LoggedModel]:
    """The watched models of a run, from its configuration and the keys of its summary."""
    internal = config.get("_wandb", {})
    visualize = internal.get("value", internal).get("visualize", {})
    found = []
    for table in keys:
        if table.startswith(f"{SECTION}/") and table.endswith("_table"):
            key = table.removesuffix("_table")
            panel = visualize.get(key, {}).get("panel_config", {})
            strings = panel.get("stringSettings") or {}
            model = strings.get("model", key.removeprefix(f"{SECTION}/"))
            found.append(LoggedModel(key, panel.get("panelDefId", ""), model, strings.get("description", "")))
    return found


def _report(path: RunPath, run: Any, charted: Sequence[LoggedModel], *, title: str) -> Any:
    wr = _workspaces()
    blocks = [wr.P(["Run ", wr.Link(text=str(run.name), url=str(run.url)), ", looked into with torchgraph explorer."])]
    for one in charted:
        # Without a filter, a report's run set is every run of the project.
        runs = wr.Runset(project=path.project, entity=path.entity, name=str(run.name), filters=f"ID == '{path.run}'")
        blocks += [wr.H2(one.model), wr.P(one.description), wr.PanelGrid(runsets=[runs], panels=_panels(wr, one))]
    return wr.Report(project=path.project, entity=path.entity, title=title, blocks=blocks)


def _panels(wr: Any, one: LoggedModel) -> list[Any]:
    from torchgraph_wandb.panels import THEME, fields

    page = wr.MediaBrowser(
        title=one.model,
        media_keys=[one.page_key],
        num_columns=1,
        layout=wr.Layout(x=0, y=ROWS if one.preset else 0, w=COLUMNS, h=ROWS),
    )
    if not one.preset:
        return [page]
    chart = wr.CustomChart(
        query={"summaryTable": {"tableKey": one.table_key}},
        chart_name=one.preset,
        chart_fields=fields(),
        chart_strings={"model": one.model, "description": one.description, "theme": THEME},
        layout=wr.Layout(x=0, y=0, w=COLUMNS, h=ROWS),
    )
    return [chart, page]


def _workspaces() -> Any:
    try:
        import wandb_workspaces.reports.v2 as reports
    except ImportError as missing:
        raise OptionError(f"Reports need the wandb-workspaces library: {installing('wandb')}") from missing
    return reports
