"""The datasets of the chart: from the table to what is drawn."""

from __future__ import annotations

from torchgraph_wandb.chart.decoding import code_at, flag_at, float_bits, float_value, size_of
from torchgraph_wandb.chart.vega import Spec, dataset, flatten, formula, keep
from torchgraph_wandb.node_statistics import NODE_STATISTICS
from torchgraph_wandb.nonfinite_marks import GRADIENT_NAN, INSIDE, OWN, VALUE_INFINITY, VALUE_NAN
from torchgraph_wandb.table import FIELDS
from torchgraph_wandb.text_encoding import LIST_SEPARATOR, NOT_FINITE, NOT_RECORDED

TRAIL_CHARACTER = 5.9
"""About the width of a character in the list of parents, in pixels."""

STUB_CHARACTER = 5.6
"""About the width of a character in the label of a stub, in pixels."""

HATCH = 8
"""Pixels between two lines of the hatching."""

PART, PACKED = "datum['${field:part}']", "datum['${field:packed}']"
"""The table's columns; W&B fills in their names."""


def datasets() -> list[Spec]:
    """All datasets except those of the columns beside the graph."""
    return [
        {"name": "wandb"},  # W&B fills it after the view is made, with the rows of all selected runs
        dataset("runs", "wandb", keep(f"{PART} == 'summary'"), formula("run", RUN), *_run_steps()),
        dataset("mine", "wandb", formula("run", RUN), keep("datum.run == run")),
        *(_part(part) for part in ("summary", "insides", "nodes", "edges", "stubs")),
        _tensor_texts(),
        dataset("tensors", "tensor_texts", keep("datum.run == run")),
        dataset("here_inside", "insides", keep("datum.key == here")),
        dataset("ranges", "wandb", *_lines("insides"), *_ranges()),
        dataset("trail", "here_inside", *_trail()),
        dataset("here_edges", "edges", keep("datum.inside == here"), keep(_IS_LINE)),
        dataset("here_stubs", "stubs", keep("datum.inside == here"), *_stub_places()),
        dataset("here_calls", "nodes", keep("datum.inside == here"), *_boxes(), *_shades(), *_marked(), *_turns()),
        dataset("here_nodes", "here_calls", keep("datum.is_chosen")),
        dataset("repeated_nodes", "here_nodes", keep("datum.turns > 0")),
        dataset("call_cells", "here_calls", keep("datum.turns > 0")),
        dataset("nonfinite_nodes", "here_nodes", keep("datum.is_nonfinite")),
        dataset("badges", "here_nodes", keep("datum.badge != ''")),
        dataset("hatching", "nonfinite_nodes", *_hatching()),
        dataset("modules", "nodes", *_modules()),
        dataset("listed", "modules", keep("datum.place > list_top && datum.place <= list_top + list_rows")),
        dataset("step_marks", "summary", *_step_marks()),
        dataset("reached", "step_marks", keep("datum.step <= chosen_step")),
        {"name": "colour_choices", "transform": _colour_choices()},
        {"name": "tip_lines", "transform": _tip_lines()},
    ]


def _run_steps() -> list[Spec]:
    """The place of each run among the selected ones, and its steps."""
    steps = f"split({PACKED}, '\\t')[{FIELDS['summary'].index('steps')}]"
    return [
        {"type": "window", "ops": ["row_number"], "as": ["number"]},
        formula("at", "datum.number - 1"),
        formula("step_texts", f"split({steps}, '{LIST_SEPARATOR}')"),
        formula("count", "datum.step_texts[0] == '' ? 0 : length(datum.step_texts)"),
        formula("from_step", "datum.count ? toNumber(datum.step_texts[0]) : NaN"),
        formula("to_step", "datum.count ? max(toNumber(peek(datum.step_texts)), datum.from_step + 0.001) : NaN"),
    ]


RUN = "(isValid(datum.id) ? datum.id : '') + ' ' + datum.name"
"""Tells the selected runs apart. W&B puts their id and name into every row."""


def _part(part: str) -> Spec:
    """The lines of one part of the chosen run's table, a datum for each."""
    fields = [formula(field, f"datum.fields[{at}]") for at, field in enumerate(FIELDS[part])]
    return dataset(part, "mine", *_lines(part), formula("fields", "split(datum.line, '\\t')"), *fields)


def _lines(part: str) -> list[Spec]:
    """A datum for each line of a part."""
    project = {"type": "project", "fields": ["line"], "as": ["line"]}  # otherwise every line would carry its whole cell
    return [keep(f"{PART} == '{part}'"), *flatten("line", f"split({PACKED}, '\\n')"), project]


def run_lines(part: str, *fields: str) -> list[Spec]:
    """A datum for each line of a part, of all selected runs, with its run and these fields."""
    return [
        keep(f"{PART} == '{part}'"),
        formula("run", RUN),
        *flatten("line", f"split({PACKED}, '\\n')"),
        {"type": "project", "fields": ["line", "run"], "as": ["line", "run"]},
        *(_fields(part, *fields) if fields else []),
    ]


def _fields(part: str, *names: str) -> list[Spec]:
    """These fields of each line."""
    return [
        formula("fields", "split(datum.line, '\\t')"),
        *(formula(name, f"datum.fields[{FIELDS[part].index(name)}]") for name in names),
    ]


def _tensor_texts() -> Spec:
    """The lines of the tensors, of all selected runs, that some column shows."""
    owner = "substring(datum.line, 0, indexof(datum.line, '\\t'))"
    return dataset(
        "tensor_texts",
        "wandb",
        *run_lines("tensors"),
        formula("owner", owner),
        keep("datum.owner != '' && indexof(owners, '\\n' + datum.owner + '\\n') >= 0"),
        *_fields("tensors", *FIELDS["tensors"]),
    )


def _ranges() -> list[Spec]:
    """The range of the logarithm of the statistic that nodes are coloured by, in the inside shown, of each run."""
    key, ranges = FIELDS["insides"].index("key"), FIELDS["insides"].index("ranges")
    return [
        formula("fields", "split(datum.line, '\\t')"),
        keep(f"colour_by > 0 && datum.fields[{key}] == here"),
        formula("low_code", float_bits(f"datum.fields[{ranges}]", "2*(colour_by - 1)")),
        formula("high_code", float_bits(f"datum.fields[{ranges}]", "2*(colour_by - 1) + 1")),
        formula("low", f"log({float_value('datum.low_code')})"),
        formula("high", f"log({float_value('datum.high_code')})"),
    ]


def _trail() -> list[Spec]:
    lookup: Spec = {"type": "lookup", "from": "insides", "key": "key", "fields": ["target"]}
    return [
        formula("parts", f"split(datum.trail, '{LIST_SEPARATOR}')"),
        *flatten("at", "sequence(0, length(datum.parts) / 2)"),
        formula("target", "datum.parts[2*datum.at + 1]"),
        {**lookup, "values": ["marks"], "as": ["all_marks"]},
        formula("is_nonfinite", f"isValid(datum.all_marks) && {flag_at('datum.all_marks', 'shown')} > 0"),
        formula("title", "(datum.is_nonfinite ? '✕ ' : '') + datum.parts[2*datum.at]"),
        formula("room", f"length(datum.title)*{TRAIL_CHARACTER} + 18"),
        {"type": "window", "ops": ["sum"], "fields": ["room"], "as": ["end"]},
    ]


_IS_LINE = "datum.ends == '' || indexof('/' + datum.ends + '/', '/' + led + '/') >= 0"
"""Stubs are lines only while the pointer is on one of their ends."""


def _stub_places() -> list[Spec]:
    """The place of each label on the screen: its left end, its middle, and its width."""
    room = f"length(datum.text)*{STUB_CHARACTER} + 8"
    x = "ox + toNumber(datum.x)*zoom"
    return [
        formula("w", f"({room})*zoom"),
        formula("left", f"datum.arrives == '1' ? {x} - datum.w - 2*zoom : {x}"),
        formula("cy", "oy + toNumber(datum.y)*zoom"),
    ]


def _turns() -> list[Spec]:
    """Which of the calls of a repeated module this is, and whether it is the one to show."""
    part = "toNumber(datum.turn_parts[{}])"
    return [
        formula("turn_parts", f"split(datum.turn, '{LIST_SEPARATOR}')"),
        formula("turns", f"datum.turn == '' ? 0 : {part.format(1)}"),
        formula("number", part.format(0)),
        formula("share", f"datum.turns ? {part.format(2)} : 0"),
        formula("is_chosen", f"!datum.turns || (call_share >= {part.format(3)} && call_share < {part.format(4)})"),
        formula("middle", "datum.cy - (datum.turns ? 6*zoom : 0)"),
    ]


def _boxes() -> list[Spec]:
    """The place of each node on the screen: centre, width and height."""
    channels = {"cx": "ox + {0}*zoom", "cy": "oy + {1}*zoom", "w": "{2}*zoom", "h": "{3}*zoom"}
    parts = [f"toNumber(datum.parts[{at}])" for at in range(4)]
    split = formula("parts", f"split(datum.box, '{LIST_SEPARATOR}')")
    return [split, *(formula(field, expression.format(*parts)) for field, expression in channels.items())]


def _shades() -> list[Spec]:
    """The statistic that a node is coloured by at the step shown, and its logarithm; NaN without a statistic."""
    index = f"shown*{len(NODE_STATISTICS)} + colour_by - 1"
    code = code_at("datum.statistics", index)
    return [
        formula("statistic_code", f"colour_by == 0 || datum.statistics == '' ? -1 : {code}"),
        formula("statistic", size_of("datum.statistic_code")),
        formula("shade", "datum.statistic > 0 ? log(datum.statistic) : NaN"),
        formula("is_missing", f"datum.statistic_code == {NOT_RECORDED}"),
        formula("is_statistic_nonfinite", f"datum.statistic_code == {NOT_FINITE}"),
        formula("pin", "indexof(pins, datum.key)"),
    ]


def _marked() -> list[Spec]:
    """Whether a node, or something inside it, has NaN or infinity at the step shown."""
    what = (
        f"(datum.mark & {VALUE_NAN | GRADIENT_NAN} ? 'NaN' : '∞') + "
        f"(datum.mark & {VALUE_NAN | VALUE_INFINITY} ? '' : ' gradient')"
    )
    return [
        formula("mark", f"max(0, {flag_at('datum.marks', 'shown')})"),
        formula("is_nonfinite", f"(datum.mark & {OWN}) > 0 || datum.is_statistic_nonfinite"),
        formula("badge", f"datum.is_nonfinite ? {what} : datum.mark & {INSIDE} ? 'NaN, ∞ inside' : ''"),
        formula("badge_w", "length(datum.badge)*5.6 + 8"),
    ]


def _hatching() -> list[Spec]:
    """The lines across a node, from its left or lower side to its upper or right side."""
    left, top = "(datum.cx - datum.inner_w/2)", "(datum.cy - datum.inner_h/2)"
    rim = "(datum.key == datum.owner ? 2 : 8)"  # tensors have rounded nodes
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
    """The calls that match what was typed, numbered from 1."""
    searched = "lower(datum.key + ' ' + datum.detail)"
    title = "datum.key == '#0' ? datum.label : replace(datum.key, regexp('#[0-9]+$'), '')"
    return [
        keep("datum.key == datum.owner"),
        {"type": "window", "ops": ["row_number"], "as": ["order"]},
        keep(f"query == '' || indexof({searched}, lower(query)) >= 0"),
        {
            "type": "window",
            "sort": {"field": "order"},
            "ops": ["row_number"],
            "as": ["place"],
        },  # also of what comes back
        formula("is_nonfinite", f"{flag_at('datum.marks', 'shown')} > 0"),
        formula("title", f"(datum.is_nonfinite ? '✕ ' : '') + ({title})"),
    ]


def _step_marks() -> list[Spec]:
    """A datum for each step, and whether it has NaN or infinity."""
    return [
        keep("datum.steps != ''"),
        formula("numbers", f"split(datum.steps, '{LIST_SEPARATOR}')"),
        *flatten("at", "sequence(0, length(datum.numbers))"),
        formula("step", "toNumber(datum.numbers[datum.at])"),
        formula("mark", f"max(0, {flag_at('datum.nonfinite', 'datum.at')})"),
    ]


def _colour_choices() -> list[Spec]:
    return [
        {"type": "sequence", "start": 0, "stop": {"signal": "colour_menu_open ? length(colour_names) : 0"}, "as": "at"},
        formula("content", "colour_names[datum.at]"),
    ]


def _tip_lines() -> list[Spec]:
    return [
        {"type": "sequence", "start": 0, "stop": {"signal": "length(tip.lines)"}, "as": "at"},
        formula("content", "truncate(tip.lines[datum.at], 64)"),
        formula("characters", "length(datum.content)"),
    ]


COLOUR_CHOICES = ("class", *NODE_STATISTICS)
