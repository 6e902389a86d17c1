"""What one watched model shows in a W&B run: a custom chart over a table, and a page.

Everything is added to the run's current history row with `commit=False` and without a step, so that the run's own step
is neither moved nor named; whatever the training logs next goes into that row or ends it, as it always did. So that
what is shown does not wait for that, the run's summary says it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from torchgraph_wandb.table import COLUMNS, FIELDS

Shown: TypeAlias = "Mapping[str, object]"
"""What the run's summary says of panels, by their keys."""

THEME = "light"
"""Of the chart, until somebody chooses another one in the panel's settings, or in the chart."""

SECONDS = 20

SECTION = "torchgraph"
"""W&B puts panels whose keys begin alike into one section."""


def chart_key(model: str) -> str:
    """The chart's key in the run."""
    return f"{SECTION}/{_plain(model)}"


def table_key(model: str) -> str:
    """The key of the table behind it; W&B's own way to name it."""
    return f"{chart_key(model)}_table"


def page_key(model: str) -> str:
    """The page's key."""
    return f"{chart_key(model)}_page"


def _plain(model: str) -> str:
    return re.sub(r"[^\w-]+", "_", model).strip("_") or "model"


def fields() -> dict[str, str]:
    """Which column stands for which field of the chart."""
    return {column: column for column in COLUMNS}


def log_chart(run: Any, model: str, rows: list[tuple[str, str]], *, preset: str | None) -> Shown:
    """Log the table, and that `preset` draws it, unless None: then only the table, as when that was said before."""
    import wandb

    table: Any = wandb.Table(columns=list(COLUMNS), data=[list(row) for row in rows])
    # Bound beforehand it is a file of the run. Logged unbound it would become an artifact too, for which wandb waits
    # for its server every time, and keeps twice as many sockets open.
    table.bind_to_run(run, table_key(model), run.step)
    if preset is None:
        run.log({table_key(model): table}, commit=False)
    else:
        strings = {"model": model, "told": facts(rows)["told"], "theme": THEME}
        run.log({chart_key(model): wandb.plot_table(preset, table, fields(), strings)}, commit=False)
    return {table_key(model): table.to_json(run)}


def log_page(run: Any, model: str, page: str) -> Shown:
    """Log the page as it is: without `inject`, which would put a remote stylesheet into it."""
    import wandb

    html = wandb.Html(page, inject=False, data_is_not_path=True)
    run.log({page_key(model): html}, commit=False)
    return {page_key(model): html.to_json(run)}


def show(run: Any, shown: Shown) -> None:
    """Put `shown` in the run's summary, where its panels look.

    A row does so too, but only when the training's next `run.log` ends it, which may be long after.
    """
    run.summary.update(dict(shown))


def show_at_once(run: Any, shown: Shown) -> None:
    """Tell the server of `shown` now: the client sends a summary every 15 seconds only, and a run may be killed."""
    import wandb

    path = f"{run.entity}/{run.project}/{run.id}"
    try:
        api: Any = wandb.Api(overrides={"base_url": str(run.settings.base_url), "entity": run.entity}, timeout=SECONDS)
        api.run(path).summary.update(dict(shown))
    except Exception:  # of its service, its transport or its server; the chart comes with the next summary
        return


def facts(rows: list[tuple[str, str]]) -> Mapping[str, str]:
    """What the table says of the model as a whole."""
    line = next(packed for part, packed in rows if part == "facts")
    return dict(zip(FIELDS["facts"], line.split("\t"), strict=True))
