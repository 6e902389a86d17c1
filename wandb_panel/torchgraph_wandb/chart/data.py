"""The datasets of the chart: from the packed table to what is drawn."""

from __future__ import annotations

from torchgraph_wandb.chart.numbers import code, number
from torchgraph_wandb.chart.parts import Spec, dataset, flatten, formula, keep
from torchgraph_wandb.looks import LOOKS
from torchgraph_wandb.table import FIELDS, LIST

TRAIL_LETTER = 5.9
"""Width of a letter in the list of parents, in pixels, about."""

PART, PACKED = "datum['${field:part}']", "datum['${field:packed}']"
"""The table's columns; W&B puts their names in."""


def datasets() -> list[Spec]:
    """All but those of the columns beside the graph."""
    return [
        {"name": "wandb"},  # W&B fills it after the view is made, with the rows of all selected runs
        dataset("runs", "wandb", keep(f"{PART} == 'facts'"), formula("run", RUN)),
        dataset("mine", "wandb", formula("run", RUN), keep("datum.run == run")),
        *(_part(part) for part in FIELDS),
        dataset("here_inside", "insides", keep("datum.key == here")),
        dataset("trail", "here_inside", *_trail()),
        dataset("here_edges", "edges", keep("datum.inside == here")),
        dataset("here_nodes", "nodes", keep("datum.inside == here"), *_boxes(), *_shades()),
        dataset("modules", "nodes", *_modules()),
        dataset("listed", "modules", keep("datum.place > list_top && datum.place <= list_top + list_rows")),
        {"name": "tip_lines", "transform": _tip_lines()},
    ]


RUN = "(isValid(datum.id) ? datum.id : '') + ' ' + datum.name"
"""What tells the selected runs apart. W&B puts their id and name into every row."""


def _part(part: str) -> Spec:
    """The lines of one part of the table, a datum each."""
    fields = [formula(field, f"datum.fields[{at}]") for at, field in enumerate(FIELDS[part])]
    lines = flatten("line", f"split({PACKED}, '\\n')")
    project = {"type": "project", "fields": ["line"], "as": ["line"]}  # else every line would carry its whole cell
    split = formula("fields", "split(datum.line, '\\t')")
    return dataset(part, "mine", keep(f"{PART} == '{part}'"), *lines, project, split, *fields)


def _trail() -> list[Spec]:
    return [
        formula("parts", f"split(datum.trail, '{LIST}')"),
        *flatten("at", "sequence(0, length(datum.parts) / 2)"),
        formula("title", "datum.parts[2*datum.at]"),
        formula("target", "datum.parts[2*datum.at + 1]"),
        formula("room", f"length(datum.title)*{TRAIL_LETTER} + 18"),
        {"type": "window", "ops": ["sum"], "fields": ["room"], "as": ["end"]},
    ]


def _boxes() -> list[Spec]:
    """Where each node is on the screen: centre, width and height."""
    place = {"cx": "ox + {0}*zoom", "cy": "oy + {1}*zoom", "w": "{2}*zoom", "h": "{3}*zoom"}
    parts = [f"toNumber(datum.parts[{at}])" for at in range(4)]
    split = formula("parts", f"split(datum.box, '{LIST}')")
    return [split, *(formula(field, expression.format(*parts)) for field, expression in place.items())]


def _shades() -> list[Spec]:
    """The statistic that a node is coloured by, and its logarithm; NaN while it is the class."""
    return [
        formula("look_code", f"look == 0 ? 262143 : {code('datum.looks', 'look - 1')}"),
        formula("look_value", number("datum.look_code")),
        formula("shade", "datum.look_value > 0 ? log(datum.look_value) : NaN"),
        formula("pin", "indexof(pins, datum.key)"),
    ]


def _modules() -> list[Spec]:
    """The calls that agree with what was typed, numbered from 1."""
    said = "lower(datum.key + ' ' + datum.detail)"
    return [
        keep("datum.key == datum.owner"),
        keep(f"query == '' || indexof({said}, lower(query)) >= 0"),
        {"type": "window", "ops": ["row_number"], "as": ["place"]},
        formula("title", "datum.key == '#0' ? datum.label : replace(datum.key, regexp('#[0-9]+$'), '')"),
    ]


def _tip_lines() -> list[Spec]:
    return [
        {"type": "sequence", "start": 0, "stop": {"signal": "length(tip.lines)"}, "as": "at"},
        formula("said", "truncate(tip.lines[datum.at], 64)"),
        formula("letters", "length(datum.said)"),
    ]


LOOK_NAMES = ("class", *LOOKS)
