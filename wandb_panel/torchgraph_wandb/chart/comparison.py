"""The selected runs side by side: the strips of the pinned modules, in a column for each run.

All runs share the axis of a strip, its row and the step shown. Columns stand in the order in which W&B lists the runs.
"""

from __future__ import annotations

from torchgraph_wandb.chart.columns import sides, ticks, unpacked
from torchgraph_wandb.chart.strip_layout import GAP, SIDE, STRIP, TITLE, VALUES, StripArea
from torchgraph_wandb.chart.strip_marks import strip_marks
from torchgraph_wandb.chart.vega import (
    Spec,
    colour,
    dataset,
    derived,
    formula,
    group,
    keep,
    mark,
    on,
    state,
    text,
    when,
)
from torchgraph_wandb.tensor_rows import ROLES

AREA = StripArea("runs", "graph_w", "shown_in[datum.at]")

HEADER = 40
"""Height of the names of the runs, above the scrolled area. As high as the header of a pinned call's column."""

GUTTER = SIDE + VALUES
BETWEEN = 8
"""Pixels between two runs."""

LEAST_RUN, USUAL_RUN = 96, 190
"""The least width of a run's column, and the width that is enough."""

PIN_TITLE = 22
"""Height of the name of a pinned module."""


def comparison_signals() -> list[Spec]:
    """Which runs are shown, and how far they are scrolled."""
    is_here = "compared_w > 0 && x() > graph_w"
    is_down = "abs(event.deltaY) >= abs(event.deltaX) && !event.shiftKey"
    height = "(length(data('compared_rows')) ? peek(data('compared_rows')).bottom : 0)"
    return [
        derived("least_graph", "clamp(width*0.3, 180, 280)"),
        derived(
            "compared_w",
            "is_compared && !xray_on && length(pins) ? "
            f"min(width - least_graph, {GUTTER} + run_count*{USUAL_RUN + BETWEEN}) : 0",
        ),
        derived("compared_fit", f"max(1, floor((compared_w - {GUTTER}) / {LEAST_RUN + BETWEEN}))"),
        derived("compared_n", "min(run_count, compared_fit)"),
        derived("compared_run_w", f"max(1, (compared_w - {GUTTER})/max(1, compared_n) - {BETWEEN})"),
        state(
            "scroll_runs",
            "0",
            on(
                "wheel!",
                f"{is_here} && {is_down} ? clamp(scroll_runs + event.deltaY*0.6, 0, "
                f"max(0, {height} - stage_h + {HEADER + 8})) : scroll_runs",
            ),
            when("pins_text", "0"),
        ),
        derived("shown_in", "pluck(data('shown_steps'), 'index')"),
    ]


def comparison_data() -> list[Spec]:
    """The pinned calls, their tensors in all runs, and the strips of the runs that are visible."""
    return [
        dataset("shown_steps", "runs", *_shown_steps()),
        {"name": "compared_pins", "transform": _pins()},
        dataset("compared_tensors", "tensor_texts", *_tensors()),
        dataset("compared_rows", "compared_tensors", *_rows()),
        dataset("compared_titles", "compared_rows", keep("datum.pin_title > 0")),
        dataset("compared_runs", "runs", *_placed("datum.at")),
        dataset("strips_runs", "compared_tensors", *_strips()),
        dataset("axes_runs", "strips_runs", *_axes()),
        dataset("ticks_runs", "strips_runs", *ticks()),
    ]


def _shown_steps() -> list[Spec]:
    """For each run the index of the step shown: the last one of its steps up to the chosen one."""
    return [
        {"type": "flatten", "fields": ["step_texts"], "as": ["step_text"]},
        formula("is_reached", "chosen_step < 0 || toNumber(datum.step_text) <= chosen_step ? 1 : 0"),
        {"type": "aggregate", "groupby": ["at"], "fields": ["is_reached"], "ops": ["sum"], "as": ["reached"]},
        formula("index", "max(0, datum.reached - 1)"),
    ]


def _pins() -> list[Spec]:
    """The pinned calls; of an attached tensor, the call that it is in."""
    own = "substring(datum.key, 0, lastindexof(datum.key, '@'))"
    is_call = "test(regexp('#[0-9]+$'), datum.key)"
    return [
        {"type": "sequence", "start": 0, "stop": {"signal": "is_compared ? length(pins) : 0"}, "as": "at"},
        formula("key", "pins[datum.at]"),
        formula("owner", f"{is_call} ? datum.key : {own}"),
        formula("params", f"{is_call} ? substring(datum.key, 0, lastindexof(datum.key, '#')) + '#*' : ''"),
    ]


def _tensors() -> list[Spec]:
    """The tensors of the pinned calls in every run; of a pinned attached tensor, only that one."""
    keys, params = (f"pluck(data('compared_pins'), '{name}')" for name in ("key", "params"))
    attached = "datum.role == 'attached' ? indexof(pins, datum.owner + '@' + datum.path) : -1"
    return [
        keep("is_compared"),
        formula("pin", f"max(indexof({keys}, datum.owner), indexof({params}, datum.owner), {attached})"),
        keep("datum.pin >= 0"),
        formula("at", "indexof(run_ids, datum.run)"),
        formula("tensor", "datum.owner + ' ' + datum.role + ' ' + datum.path"),
        formula("role_order", "indexof([" + ", ".join(f"'{role}'" for role in ROLES) + "], datum.role)"),
        formula("has_values", "datum.values == '' ? 0 : 1"),
        formula("has_gradients", "datum.gradients == '' ? 0 : 1"),
        {"type": "window", "ops": ["row_number"], "as": ["number"]},
    ]


def _rows() -> list[Spec]:
    """A datum for each tensor of any run, and its place below the others."""
    height = f"datum.pin_title + {TITLE} + (datum.has_values + datum.has_gradients)*{STRIP + 4} + {GAP}"
    return [
        {
            "type": "aggregate",
            "groupby": ["tensor", "pin", "role_order"],
            "fields": ["number", "number", "has_values", "has_gradients"],
            "ops": ["min", "argmin", "max", "max"],
            "as": ["number", "first", "has_values", "has_gradients"],
        },
        {"type": "collect", "sort": {"field": ["pin", "role_order", "number"]}},
        {"type": "window", "groupby": ["pin"], "ops": ["row_number"], "as": ["in_pin"]},
        formula("pin_title", f"datum.in_pin == 1 ? {PIN_TITLE} : 0"),
        formula("height", height),
        {"type": "window", "ops": ["sum"], "fields": ["height"], "as": ["bottom"]},
        formula("top", "datum.bottom - datum.height + datum.pin_title"),
        formula("name", "datum.first.name"),
        formula("shape", "datum.first.shape"),
        formula("role", "datum.first.role"),
        formula("key", "pins[datum.pin]"),
    ]


def _placed(at: str) -> list[Spec]:
    """Only the runs that are visible, and where their columns begin."""
    return [
        formula("column", f"{at} - runs_first"),
        keep("compared_w > 0 && datum.column >= 0 && datum.column < compared_n"),
        formula("left", f"{GUTTER} + datum.column*(compared_run_w + {BETWEEN})"),
    ]


def _strips() -> list[Spec]:
    """A datum for each strip. All begin and end where their steps are on the axis of the longest run."""
    own: Spec = {"type": "lookup", "key": "at", "from": "runs", "fields": ["at"]}
    row: Spec = {"type": "lookup", "key": "tensor", "from": "compared_rows", "fields": ["tensor"]}
    return [
        *_placed("datum.at"),
        {
            **own,
            "values": ["step_texts", "count", "from_step", "to_step", "name"],
            "as": ["steps", "count", "from_step", "to_step", "run_name"],
        },
        {**row, "values": ["top", "has_values"], "as": ["row_top", "has_value_strip"]},
        keep("isNumber(datum.row_top) && datum.count > 0"),
        *sides(),
        formula("top", f"datum.row_top + (datum.side && datum.has_value_strip ? {STRIP + 4} : 0)"),
        formula("x", "datum.left + compared_run_w*(datum.from_step - steps_from)/steps_span"),
        formula("w", "max(4, compared_run_w*(datum.to_step - datum.from_step)/steps_span)"),
        *unpacked(),
    ]


def _axes() -> list[Spec]:
    """The axis of each strip, written once, left of the first run."""
    return [
        {
            "type": "aggregate",
            "groupby": ["key", "top", "side"],
            "fields": ["axis_low", "axis_high", "has_axis"],
            "ops": ["min", "max", "max"],
            "as": ["axis_low", "axis_high", "has_axis"],
        },
        formula("x", str(GUTTER)),
    ]


def comparison() -> Spec:
    """The area on the right, with a column for each run."""
    return group(
        "compared",
        _scrolled(),
        *_header(),
        listens=True,
        x="graph_w",
        y="top",
        width="compared_w",
        height="compared_w ? stage_h : 0",
        fill=colour("paper"),
        stroke=colour("line"),
    )


def _header() -> list[Spec]:
    """The name of each run over its column; a click shows the run in the graph."""
    is_chosen = "datum.run == run"
    return [
        mark(
            "rect",
            x={"value": 0},
            y={"value": 0},
            width="compared_w",
            height=f"compared_w ? {HEADER - 4} : 0",
            fill=colour("bar"),
        ),
        mark(
            "rect",
            name="compared_run",
            listens=True,
            data="compared_runs",
            x="datum.left - 3",
            y={"value": 2},
            width="compared_run_w + 6",
            height={"value": HEADER - 8},
            cornerRadius={"value": 3},
            fill=f"{is_chosen} ? paint.glow : paint.bar",
            cursor={"value": "pointer"},
        ),
        text(
            "datum.name",
            data="compared_runs",
            x="datum.left",
            y={"value": 12},
            size=11,
            fontWeight={"value": 600},
            limit="compared_run_w",
            dir={"value": "rtl"},
            ink="ink",
        ),
        text(
            "datum.count ? 'to step ' + datum.step_texts[datum.count - 1] : 'no step'",
            data="compared_runs",
            x="datum.left",
            y={"value": 26},
            size=9.5,
            limit="compared_run_w",
            ink="faint",
        ),
    ]


def _scrolled() -> Spec:
    """The strips of all runs, with the names of modules and tensors in lines across them."""
    title = f"datum.top - {PIN_TITLE // 2} - scroll_runs"
    line = "datum.top + 7 - scroll_runs"
    named = "datum.key == '#0' ? summary.model : replace(datum.key, regexp('#[0-9]+'), '')"
    gradient = "datum.role == 'param' ? 'gradient' : 'gradient norm'"
    kind = f"datum.has_values && datum.has_gradients ? ': values, and ' + ({gradient}) : ''"
    return group(
        "compared_inside",
        mark(
            "rect",
            data="compared_titles",
            x={"value": 0},
            y=f"{title} - {PIN_TITLE / 2 - 1}",
            width="compared_w",
            height={"value": PIN_TITLE - 2},
            fill=colour("bar"),
        ),
        mark(
            "rect",
            data="compared_titles",
            x={"value": 0},
            y=f"{title} - {PIN_TITLE / 2 - 1}",
            width={"value": 3},
            height={"value": PIN_TITLE - 2},
            fill="paint.pins[datum.pin % length(paint.pins)]",
        ),
        text(
            named,
            data="compared_titles",
            x={"value": SIDE + 2},
            y=title,
            size=11.5,
            fontWeight={"value": 600},
            limit="compared_w - 34",
            dir={"value": "rtl"},
        ),
        text(
            "'×'",
            data="compared_titles",
            name="compared_close",
            x="compared_w - 10",
            y=title,
            align={"value": "right"},
            size=15,
            ink="soft",
            cursor={"value": "pointer"},
        ),
        text(
            f"datum.name + ({kind})",
            data="compared_rows",
            x={"value": SIDE},
            y=line,
            size=10.5,
            ink="soft",
            limit="compared_w - 100",
        ),
        text(
            "datum.shape",
            data="compared_rows",
            x=f"compared_w - {SIDE}",
            y=line,
            align={"value": "right"},
            size=10,
            ink="faint",
            limit="90",
        ),
        *strip_marks(AREA, axes="axes_runs"),
        x={"value": 0},
        y={"value": HEADER - 4},
        width="compared_w",
        height=f"compared_w ? max(0, stage_h - {HEADER - 4}) : 0",
    )
