"""A run shown in a notebook: the exported page, in an iframe that may run scripts and save files, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.server.export import STEPS, export_page

HEIGHT = 640
"""Pixels."""

NOT_TRUSTED = (
    "A run of torchgraph is here. Jupyter shows it if you trust this notebook: "
    "in the command palette (Ctrl-Shift-C), choose Trust Notebook."
)
"""What stands within the iframe. A browser shows the page instead; a notebook that was run elsewhere shows this alone,
since Jupyter removes iframes from it."""


_DARK = (
    'body[data-jp-theme-light="false"]',
    'body[data-vscode-theme-kind$="dark"]',
    'body[data-vscode-theme-kind$="contrast"]',
    "html[theme=dark]",
)
_LIGHT = ('body[data-jp-theme-light="true"]', 'body[data-vscode-theme-kind$="light"]', "html[theme=light]")
"""How JupyterLab (and Notebook 7), VS Code and Colab say which theme they have, where a cell's output can see it."""

_CLASS = "torchgraph-page"


def framed(attributes: str, *, height: int, inside: str = "") -> str:
    """An iframe with these `attributes`, as wide as its cell, and dark or light as the notebook is.

    A browser tells a page in an iframe the `color-scheme` of the iframe's element as what is preferred, also when it
    changes. Elsewhere the page follows the browser.
    """
    rules = "".join(
        f"{','.join(f'{host} .{_CLASS}' for host in hosts)}{{color-scheme:{scheme}}}"
        for hosts, scheme in ((_DARK, "dark"), (_LIGHT, "light"))
    )
    size = f"box-sizing: border-box; width: 100%; height: {int(height)}px"  # with its border, no wider than its cell
    style = f"{size}; border: 1px solid #8884; border-radius: 6px"
    return (
        f"<style>{rules}</style>"
        f'<iframe class="{_CLASS}" title="torchgraph" style="{style}" {attributes}>{inside}</iframe>'
    )


def iframe(
    run: RunRecord,
    *,
    height: int = HEIGHT,
    models: Sequence[str] | None = None,
    steps: int = STEPS,
    series: int | None = None,
    tensors: float = 0.0,
) -> str:
    """An iframe with the page of `run`; the page can neither see nor change what is around it.

    It is part of the notebook, so it is still there when the notebook is opened without Python.

    Raises:
        NotFoundError, OptionError, TorchgraphError: As in `export_page`.
    """
    page = export_page(run, models=models, steps=steps, series=series, tensors=tensors).decode()
    inner = page.replace("&", "&amp;").replace('"', "&quot;")
    sandbox = "allow-scripts allow-downloads"
    return framed(f'sandbox="{sandbox}" srcdoc="{inner}"', height=height, inside=NOT_TRUSTED)


def show(
    run: RunRecord,
    *,
    height: int = HEIGHT,
    models: Sequence[str] | None = None,
    steps: int = STEPS,
    series: int | None = None,
    tensors: float = 0.0,
) -> None:
    """Display `iframe` below the notebook's cell.

    Raises:
        OptionError: This is no notebook.
        NotFoundError, TorchgraphError: As in `export_page`.
    """
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        raise _no_notebook(run) from None
    if get_ipython() is None:
        raise _no_notebook(run)
    shown = iframe(run, height=height, models=models, steps=steps, series=series, tensors=tensors)
    display({"text/html": shown, "text/plain": repr(run)}, raw=True)  # type: ignore[no-untyped-call]


def _no_notebook(run: RunRecord) -> OptionError:
    return OptionError(
        f"show() works only in a notebook, and this is not one. Use export_page(run, 'page.html'), or on a "
        f"terminal: torchgraph export {run.path} -o page.html"
    )
