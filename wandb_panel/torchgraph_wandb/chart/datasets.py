"""The datasets of the chart: from the packed table to what is drawn."""

from __future__ import annotations

from torchgraph_wandb.chart.decoding import code, flag, number, short_code, size
from torchgraph_wandb.chart.vega import Spec, dataset, flatten, formula, keep
from torchgraph_wandb.node_statistics import LOOKS
from torchgraph_wandb.nonfinite_marks import GRADIENT_NAN, INSIDE, OWN, VALUE_INFINITY, VALUE_NAN
from torchgraph_wandb.table import FIELDS, LIST
from torchgraph_wandb.text_encoding import NOT_FINITE, NOT_RECORDED

TRAIL_LETTER = 5.9
"""Width of a letter in the list of parents, in pixels, about."""

HATCH = 8
"""Pixels between two lines of a hatching."""

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
        dataset("ranges", "wandb", *_lines("insides"), *_ranges()),
        dataset("trail", "here_inside", *_trail()),
        dataset("here_edges", "edges", keep("datum.inside == here")),
        dataset("here_nodes", "nodes", keep("datum.inside == here"), *_boxes(), *_shades(), *_marked()),
        dataset("bad_nodes", "here_nodes", keep("datum.is_bad")),
        dataset("badges", "here_nodes", keep("datum.badge != ''")),
        dataset("hatching", "bad_nodes", *_hatching()),
        dataset("modules", "nodes", *_modules()),
        dataset("listed", "modules", keep("datum.place > list_top && datum.place <= list_top + list_rows")),
        dataset("step_marks", "facts", *_step_marks()),
        dataset("reached", "step_marks", keep("datum.step <= wanted")),
        {"name": "look_choices", "transform": _look_choices()},
        {"name": "tip_lines", "transform": _tip_lines()},
    ]


RUN = "(isValid(datum.id) ? datum.id : '') + ' ' + datum.name"
"""What tells the selected runs apart. W&B puts their id and name into every row."""


def _part(part: str) -> Spec:
    """The lines of one part of the table of the chosen run, a datum each."""
    fields = [formula(field, f"datum.fields[{at}]") for at, field in enumerate(FIELDS[part])]
    return dataset(part, "mine", *_lines(part), formula("fields", "split(datum.line, '\\t')"), *fields)


def _lines(part: str) -> list[Spec]:
    """A datum for each line of a part."""
    project = {"type": "project", "fields": ["line"], "as": ["line"]}  # else every line would carry its whole cell
    return [keep(f"{PART} == '{part}'"), *flatten("line", f"split({PACKED}, '\\n')"), project]


def tensor_lines() -> list[Spec]:
    """A datum for each line of the tensors of all runs that stand in some column."""
    wanted = "substring(datum.line, 0, indexof(datum.line, '\\t'))"
    return [
        *_lines("tensors"),
        formula("owner", wanted),
        keep("datum.owner != '' && indexof(owners, datum.owner) >= 0"),
    ]


def _ranges() -> list[Spec]:
    """Between which logarithms the statistic lies that nodes are coloured by, in each run's inside of this key."""
    key, place = FIELDS["insides"].index("key"), FIELDS["insides"].index("ranges")
    return [
        formula("fields", "split(datum.line, '\\t')"),
        keep(f"look > 0 && datum.fields[{key}] == here"),
        formula("low_code", code(f"datum.fields[{place}]", "2*(look - 1)")),
        formula("high_code", code(f"datum.fields[{place}]", "2*(look - 1) + 1")),
        formula("low", f"log({number('datum.low_code')})"),
        formula("high", f"log({number('datum.high_code')})"),
    ]


def _trail() -> list[Spec]:
    lookup: Spec = {"type": "lookup", "from": "insides", "key": "key", "fields": ["target"]}
    return [
        formula("parts", f"split(datum.trail, '{LIST}')"),
        *flatten("at", "sequence(0, length(datum.parts) / 2)"),
        formula("target", "datum.parts[2*datum.at + 1]"),
        {**lookup, "values": ["marks"], "as": ["all_marks"]},
        formula("is_bad", f"isValid(datum.all_marks) && {flag('datum.all_marks', 'shown')} > 0"),
        formula("title", "(datum.is_bad ? '✕ ' : '') + datum.parts[2*datum.at]"),
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
    """The statistic that a node is coloured by at the step shown, and its logarithm; NaN while it is the class."""
    place = f"shown*{len(LOOKS)} + look - 1"
    return [
        formula("look_code", f"look == 0 || datum.looks == '' ? -1 : {short_code('datum.looks', place)}"),
        formula("look_value", size("datum.look_code")),
        formula("shade", "datum.look_value > 0 ? log(datum.look_value) : NaN"),
        formula("is_missing", f"datum.look_code == {NOT_RECORDED}"),
        formula("is_lost", f"datum.look_code == {NOT_FINITE}"),
        formula("pin", "indexof(pins, datum.key)"),
    ]


def _marked() -> list[Spec]:
    """Whether a node has NaN or infinity at the step shown, or something inside it."""
    what = (
        f"(datum.mark & {VALUE_NAN | GRADIENT_NAN} ? 'NaN' : '∞') + "
        f"(datum.mark & {VALUE_NAN | VALUE_INFINITY} ? '' : ' gradient')"
    )
    return [
        formula("mark", f"max(0, {flag('datum.marks', 'shown')})"),
        formula("is_bad", f"(datum.mark & {OWN}) > 0 || datum.is_lost"),
        formula("badge", f"datum.is_bad ? {what} : datum.mark & {INSIDE} ? 'NaN, ∞ inside' : ''"),
        formula("badge_w", "length(datum.badge)*5.6 + 8"),
    ]


def _hatching() -> list[Spec]:
    """The lines across a node, from its left or lower side to its upper or right one."""
    left, top = "(datum.cx - datum.inner_w/2)", "(datum.cy - datum.inner_h/2)"
    rim = "(datum.key == datum.owner ? 2 : 8)"  # what has no owner is rounded
    return [
        formula("inner_w", f"max(0, datum.w - {rim})"),
        formula("inner_h", f"max(0, datum.h - {rim})"),
        *flatten("along", f"sequence({HATCH / 2}, datum.inner_w + datum.inner_h, {HATCH})"),
        formula("x1", f"{left} + max(0, datum.along - datum.inner_h)"),
        formula("y1", f"{top} + min(datum.along, datum.inner_h)"),
        formula("x2", f"{left} + min(datum.along, datum.inner_w)"),
        formula("y2", f"{top} + max(0, datum.along - datum.inner_w)"),
    ]


def _modules() -> list[Spec]:
    """The calls that agree with what was typed, numbered from 1."""
    said = "lower(datum.key + ' ' + datum.detail)"
    title = "datum.key == '#0' ? datum.label : replace(datum.key, regexp('#[0-9]+$'), '')"
    return [
        keep("datum.key == datum.owner"),
        keep(f"query == '' || indexof({said}, lower(query)) >= 0"),
        {"type": "window", "ops": ["row_number"], "as": ["place"]},
        formula("is_bad", f"{flag('datum.marks', 'shown')} > 0"),
        formula("title", f"(datum.is_bad ? '✕ ' : '') + ({title})"),
    ]


def _step_marks() -> list[Spec]:
    """A datum for each step, and whether it has NaN or infinity."""
    return [
        keep("datum.steps != ''"),
        formula("numbers", f"split(datum.steps, '{LIST}')"),
        *flatten("at", "sequence(0, length(datum.numbers))"),
        formula("step", "toNumber(datum.numbers[datum.at])"),
        formula("mark", f"max(0, {flag('datum.bad', 'datum.at')})"),
    ]


def _look_choices() -> list[Spec]:
    return [
        {"type": "sequence", "start": 0, "stop": {"signal": "look_open ? length(look_names) : 0"}, "as": "at"},
        formula("said", "look_names[datum.at]"),
    ]


def _tip_lines() -> list[Spec]:
    return [
        {"type": "sequence", "start": 0, "stop": {"signal": "length(tip.lines)"}, "as": "at"},
        formula("said", "truncate(tip.lines[datum.at], 64)"),
        formula("letters", "length(datum.said)"),
    ]


LOOK_NAMES = ("class", *LOOKS)
