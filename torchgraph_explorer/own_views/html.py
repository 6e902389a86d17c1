"""What a view returned, as an HTML page. Matplotlib and plotly are not imported here: a figure brings its own."""

from __future__ import annotations

import base64
import html
import re
import sys
from io import BytesIO
from typing import Any

from torchgraph_explorer.errors import TorchgraphError
from torchgraph_explorer.printable import printable

SHARPNESS = 2.0
"""Pixels of a matplotlib figure for one of the page, so that it is sharp on dense screens."""

ALLOWED = "HTML text, a matplotlib figure or a plotly figure"

_WHOLE = re.compile(r"\s*(<!--.*?-->\s*)*<(!doctype|html)\b", re.IGNORECASE | re.DOTALL)

STYLE = """
:root { color-scheme: %s; }
body { margin: 12px; font: 14px/1.5 system-ui, sans-serif; }
img, svg, canvas { max-width: 100%%; height: auto; }
table { border-collapse: collapse; }
td, th { padding: 2px 8px; text-align: left; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.fault { color: light-dark(#a4262c, #ff9a94); }
"""


class NotShownError(TorchgraphError, TypeError):
    """A view returned something that is no page."""


def page_of(made: object, *, theme: str) -> str:
    """The page that shows what a view returned. One without anything says so.

    Raises:
        NotShownError: It is nothing that can be shown.
    """
    if isinstance(made, str):
        if not made.strip():
            return wrapped("<p>The view returned an empty text.</p>", theme=theme)
        return made if _WHOLE.match(made) else wrapped(made, theme=theme)
    if _is_a(made, "matplotlib.figure", "FigureBase"):
        return wrapped(_picture(made), theme=theme)
    if _is_a(made, "plotly.basedatatypes", "BaseFigure"):
        return wrapped(_plot(made), theme=theme)
    raise NotShownError(f"The view returned {printable(repr(made))}. Return {ALLOWED}.")


def fault_page(sentence: str, traceback: str, *, theme: str) -> str:
    """A page that says why there is no other."""
    told = f"<pre>{html.escape(traceback)}</pre>" if traceback else ""
    return wrapped(f'<p class="fault">{html.escape(sentence)}</p>{told}', theme=theme)


def wrapped(body: str, *, theme: str) -> str:
    """A whole page around a part of one."""
    head = f'<head><meta charset="utf-8"><style>{STYLE % theme}</style></head>'
    return f"<!doctype html><html>{head}<body>{body}</body></html>"


def _is_a(made: object, module: str, name: str) -> bool:
    """Whether it is of a class of a library, which need not be installed."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(made, found)


def _picture(figure: Any) -> str:
    """A matplotlib figure as a PNG image."""
    data = BytesIO()
    figure.savefig(data, format="png", dpi=SHARPNESS * figure.dpi)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")  # pyplot keeps every figure that it made
    encoded = base64.b64encode(data.getvalue()).decode("ascii")
    width = figure.get_figwidth() * figure.dpi
    return f'<img style="width: {width:.0f}px" alt="" src="data:image/png;base64,{encoded}">'


def _plot(figure: Any) -> str:
    """A plotly figure, with the library that draws it: nothing is loaded from elsewhere."""
    return str(figure.to_html(full_html=False, include_plotlyjs=True, config={"responsive": True}))
