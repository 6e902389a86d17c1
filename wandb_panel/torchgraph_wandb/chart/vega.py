"""Builders of the parts of a Vega specification.

W&B turns every null of the specification into `{}` and freezes it, so no part uses null, and no dataset has inline
values. Expressions are text in Vega's expression language.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

Spec: TypeAlias = dict[str, Any]

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


OUTSIDE = ", ".join(
    f"@{name}:mousedown"
    for name in ("stage", "node", "xray", "xray_cells", "xray_label", "xray_menu_button", "compared", "compared_run")
)
"""Events that close menus and lists: a press on anything else."""


def derived(name: str, expression: str) -> Spec:
    """A signal that is computed from others."""
    return {"name": name, "update": expression}


def state(name: str, first: str, *handlers: Spec) -> Spec:
    """A signal that begins as `first` and is changed by events."""
    return {"name": name, "init": first, "on": list(handlers)}


def on(events: str, update: str) -> Spec:
    """Sets the signal to `update` on each of these events."""
    return {"events": events, "update": update}


def when(signal: str, update: str) -> Spec:
    """Sets the signal to `update` when another signal changes."""
    return {"events": {"signal": signal}, "update": update}


def signal(expression: str) -> Spec:
    """A value computed by an expression."""
    return {"signal": expression}


def dataset(name: str, source: str, *transforms: Spec) -> Spec:
    """A dataset derived from another one."""
    return {"name": name, "source": source, "transform": list(transforms)}


def keep(expression: str) -> Spec:
    """Removes the data for which `expression` is false."""
    return {"type": "filter", "expr": expression}


def formula(field: str, expression: str) -> Spec:
    """Gives each datum a field."""
    return {"type": "formula", "as": field, "expr": expression}


def flatten(field: str, expression: str) -> list[Spec]:
    """A datum for each element of a list."""
    return [formula(field, expression), {"type": "flatten", "fields": [field]}]


def mark(kind: str, *, data: str = "", name: str = "", listens: bool = False, **encoding: Any) -> Spec:
    """Marks for each datum of `data`, or a single mark; strings in `encoding` are expressions.

    Events name the marks by `name`. Without `listens`, the pointer passes through them.
    """
    found: Spec = {"type": kind, "interactive": listens, "encode": {"update": channels(encoding)}}
    if name:
        found["name"] = name
    if data:
        found["from"] = {"data": data}
    return found


def channels(encoding: dict[str, Any]) -> Spec:
    """Channels from expressions; a `dict` is left as it is."""
    return {
        channel: value if isinstance(value, dict) else {"signal": str(value)} for channel, value in encoding.items()
    }


def group(name: str, *marks: Spec, listens: bool = False, **encoding: Any) -> Spec:
    """A clipped area with marks in it, whose coordinates begin at its corner."""
    found = mark("group", name=name, listens=listens, clip="true", **encoding)
    return {**found, "marks": list(marks)}


def text(
    content: str, *, data: str = "", name: str = "", size: float | str = 11, ink: str = "ink", **encoding: object
) -> Spec:
    """Text marks. `content` is an expression, `size` is in pixels."""
    settings: Spec = {"font": signal("font"), "fontSize": size, "fill": colour(ink), "baseline": {"value": "middle"}}
    return mark("text", data=data, name=name, listens=bool(name), text=content, **{**settings, **encoding})


def shortened(content: str, width: str, character: float) -> str:
    """A text that is too long for `width`, without its middle: names of modules often differ at their ends only."""
    fits = f"floor(({width})/{character})"
    begin, end = f"substring({content}, 0, ceil({fits}/2) - 1)", f"slice({content}, 1 - floor({fits}/2))"
    return f"(length({content}) > {fits} ? {begin} + '…' + {end} : {content})"


def colour(name: str) -> Spec:
    """A colour by its name in the theme; see `themes`."""
    return signal(f"paint.{name}")


def listed(values: Iterable[str]) -> str:
    """A list of strings, as an expression."""
    return "[" + ", ".join(quoted(value) for value in values) + "]"


def quoted(value: str) -> str:
    r"""A string as an expression; tabs and line feeds may be written \t and \n."""
    return "'" + value.replace("'", "\\'") + "'"
