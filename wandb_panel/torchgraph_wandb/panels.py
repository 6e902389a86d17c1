"""The panels of one watched model in a W&B run: a custom chart over a table, and a page.

Everything is added to the run's current history row with `commit=False` and without a step, so that the run's step does
not change. What the training logs next goes into that row or ends it, as without us. The panels are also put into the
run's summary, so that they do not have to wait for that.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any, TypeAlias

from torchgraph_wandb.table import COLUMNS, FIELDS

SummaryValues: TypeAlias = "Mapping[str, object]"
"""Values of panels in the run's summary, by key."""

THEME = "light"
"""The chart's theme, until the user chooses another one in the panel's settings or in the chart."""

SECONDS = 20
"""Timeout of a request to the server."""

LONGEST_KEY = 40
"""Characters of a model's name in keys: W&B makes names of files of them."""

SECTION = "torchgraph"
"""W&B puts panels whose keys begin with the same word into one section."""


def chart_key(model: str) -> str:
    """The chart's key in the run."""
    return f"{SECTION}/{_plain(model)}"


def table_key(model: str) -> str:
    """The key of the table behind the chart, as W&B names it."""
    return f"{chart_key(model)}_table"


def page_key(model: str) -> str:
    """The page's key."""
    return f"{chart_key(model)}_page"


def _plain(model: str) -> str:
    """`model` as a part of keys and of file names: `Net (eval)` is `Net_eval`; other odd names have a checksum."""
    plain = re.sub(r"[^\w-]+", "_", model).strip("_")[:LONGEST_KEY] or "model"
    if len(model) <= LONGEST_KEY and re.fullmatch(r"[\w-]+( \([\w-]+\))?", model):
        return plain
    return f"{plain}-{zlib.crc32(model.encode('utf-8', errors='surrogatepass')):08x}"


def fields() -> dict[str, str]:
    """The column of each field of the chart."""
    return {column: column for column in COLUMNS}


def log_chart(run: Any, model: str, rows: list[tuple[str, str]], *, preset: str | None) -> SummaryValues:
    """Log the table and that `preset` draws it; with None, only the table, because the preset was logged before."""
    import wandb

    table: Any = wandb.Table(columns=list(COLUMNS), data=[list(row) for row in rows])
    # A table that is bound first is a file of the run. Otherwise it would become an artifact too: wandb then waits for
    # its server every time, and keeps twice as many sockets open.
    table.bind_to_run(run, table_key(model), run.step)
    if preset is None:
        run.log({table_key(model): table}, commit=False)
    else:
        strings = {"model": model, "description": table_summary(rows)["description"], "theme": THEME}
        run.log({chart_key(model): wandb.plot_table(preset, table, fields(), strings)}, commit=False)
    return {table_key(model): table.to_json(run)}


def log_page(run: Any, model: str, page: str) -> SummaryValues:
    """Log the page unchanged: `inject` would add a remote stylesheet."""
    import wandb

    html = wandb.Html(page, inject=False, data_is_not_path=True)
    run.log({page_key(model): html}, commit=False)
    return {page_key(model): html.to_json(run)}


def update_summary(run: Any, shown: SummaryValues) -> None:
    """Put `shown` into the run's summary, where its panels look.

    A row does that too, but only when the training's next `run.log` ends it, which may be much later.
    """
    run.summary.update(dict(shown))


def update_summary_now(run: Any, shown: SummaryValues) -> None:
    """Send `shown` to the server now: the client sends the summary only every 15 seconds, and a run may be killed."""
    import wandb

    path = f"{run.entity}/{run.project}/{run.id}"
    try:
        api: Any = wandb.Api(overrides={"base_url": str(run.settings.base_url), "entity": run.entity}, timeout=SECONDS)
        api.run(path).summary.update(dict(shown))
    except Exception:  # of its service, its transport or its server; the chart comes with the next summary
        return


def table_summary(rows: list[tuple[str, str]]) -> Mapping[str, str]:
    """The fields of the table's part `summary`."""
    line = next(packed for part, packed in rows if part == "summary")
    return dict(zip(FIELDS["summary"], line.split("\t"), strict=True))
