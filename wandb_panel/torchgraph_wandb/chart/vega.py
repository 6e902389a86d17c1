"""The parts that a Vega specification is made of.

W&B hands the specification on with every null turned into `{}` and everything frozen, so no part uses null, and no
dataset has inline values. Expressions are text in Vega's expression language.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

Spec: TypeAlias = dict[str, Any]

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def derived(name: str, expression: str) -> Spec:
    """A signal that follows others."""
    return {"name": name, "update": expression}


def state(name: str, first: str, *handlers: Spec) -> Spec:
    """A signal that is `first` to begin with, and is changed by events."""
    return {"name": name, "init": first, "on": list(handlers)}


def on(events: str, update: str) -> Spec:
    """On each of these events, the signal becomes `update`."""
    return {"events": events, "update": update}


def when(signal: str, update: str) -> Spec:
    """When another signal changes, this one becomes `update`."""
    return {"events": {"signal": signal}, "update": update}


def signal(expression: str) -> Spec:
    """A value that an expression gives."""
    return {"signal": expression}


def dataset(name: str, source: str, *transforms: Spec) -> Spec:
    """Data derived from other data."""
    return {"name": name, "source": source, "transform": list(transforms)}


def keep(expression: str) -> Spec:
    """Leaves out the data for which `expression` is false."""
    return {"type": "filter", "expr": expression}


def formula(field: str, expression: str) -> Spec:
    """Gives each datum a field."""
    return {"type": "formula", "as": field, "expr": expression}


def flatten(field: str, expression: str) -> list[Spec]:
    """A datum for each element of a list."""
    return [formula(field, expression), {"type": "flatten", "fields": [field]}]


def mark(kind: str, *, data: str = "", name: str = "", listens: bool = False, **encoding: Any) -> Spec:
    """Marks for each datum of `data`, or a single one; strings in `encoding` are expressions.

    `name` is what events are told by. Without `listens`, the pointer goes through them.
    """
    found: Spec = {"type": kind, "interactive": listens, "encode": {"update": channels(encoding)}}
    if name:
        found["name"] = name
    if data:
        found["from"] = {"data": data}
    return found


def channels(encoding: dict[str, Any]) -> Spec:
    """Channels from expressions; a `dict` is taken as it is."""
    return {
        channel: value if isinstance(value, dict) else {"signal": str(value)} for channel, value in encoding.items()
    }


def group(name: str, *marks: Spec, listens: bool = False, **encoding: Any) -> Spec:
    """A clipped area with marks in it; their coordinates begin at its corner."""
    found = mark("group", name=name, listens=listens, clip="true", **encoding)
    return {**found, "marks": list(marks)}


def text(
    said: str, *, data: str = "", name: str = "", size: float | str = 11, ink: str = "ink", **encoding: object
) -> Spec:
    """Text marks. `said` is an expression, `size` in pixels."""
    settings: Spec = {"font": {"value": FONT}, "fontSize": size, "fill": colour(ink), "baseline": {"value": "middle"}}
    return mark("text", data=data, name=name, listens=bool(name), text=said, **{**settings, **encoding})


def colour(name: str) -> Spec:
    """A colour by its name in the theme, see `themes`."""
    return signal(f"paint.{name}")


def listed(values: Iterable[str]) -> str:
    """A list of texts, as an expression."""
    return "[" + ", ".join(quoted(value) for value in values) + "]"


def quoted(value: str) -> str:
    r"""Text as an expression; tabs and line feeds may be written \t and \n."""
    return "'" + value.replace("'", "\\'") + "'"
