"""The columns beside the graph: which tensors of a pinned call they show, and where."""

from __future__ import annotations

import math

from torchgraph_wandb.chart.decoding import float_bits, float_value
from torchgraph_wandb.chart.strip_images import strip_images
from torchgraph_wandb.chart.strip_layout import (
    BOX,
    COLUMN_STRIP_W,
    GAP,
    SECTION,
    SIDE,
    STRIP,
    TITLE,
    column_area,
    strip_x,
)
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
from torchgraph_wandb.heat_strips import ROWS
from torchgraph_wandb.text_encoding import CODE_WIDTH, FLOAT_WIDTH

HEADER = 44

DIGIT = 5.4
"""Width of a digit of a step's number, in pixels."""

FAR = 20.0
"""How many times as large as the median run's a run's values may be to widen the axis that all share."""

SECTIONS = {"input": "Input", "output": "Output", "attached": "Attached", "param": "Parameters"}


def column_signals(slot: int) -> list[Spec]:
    """The call in the column, and how far the column is scrolled."""
    height = f"(length(data('tensors_{slot}')) ? peek(data('tensors_{slot}')).bottom : 0)"
    limit = f"max(0, {height} - stage_h + {HEADER + 8})"
    is_here = f"slots > {slot} && x() >= graph_w + {slot}*column_w && x() < graph_w + {slot + 1}*column_w"
    is_down = "abs(event.deltaY) >= abs(event.deltaX) && !event.shiftKey"
    pinned = f"data('pin_{slot}')[0]"
    return [
        derived(f"key_{slot}", f"{slot} < slots ? pins[first + {slot}] : ''"),
        derived(f"owner_{slot}", f"length(data('pin_{slot}')) ? {pinned}.owner : ''"),
        derived(f"only_{slot}", f"length(data('pin_{slot}')) ? {pinned}.only : ''"),
        derived(f"params_{slot}", f"substring(owner_{slot}, 0, lastindexof(owner_{slot}, '#')) + '#*'"),
        derived(f"colour_{slot}", f"paint.pins[(first + {slot}) % length(paint.pins)]"),
        state(
            f"scroll_{slot}",
            "0",
            on(
                "wheel!",
                f"{is_here} && {is_down} ? clamp(scroll_{slot} + event.deltaY*0.6, 0, {limit}) : scroll_{slot}",
            ),
            when(f"key_{slot}", "0"),
        ),
    ]


def owners(slots: int) -> Spec:
    """The owners whose tensors are shown, each between line feeds."""
    shown = ", ".join(f"owner_{slot}, params_{slot}" for slot in range(slots))
    compared = (
        "[join(pluck(data('compared_pins'), 'owner'), '\\n'), join(pluck(data('compared_pins'), 'params'), '\\n')]"
    )
    return derived("owners", f"'\\n' + join(is_compared ? {compared} : [{shown}], '\\n') + '\\n'")


def axes() -> Spec:
    """The axis of each tensor over all selected runs, so that it stays when another run is chosen.

    A run whose values are very much larger than the median run's does not widen it, and is drawn as beyond it.
    """
    return dataset(
        "axes",
        "tensor_texts",
        *sides(),
        keep("isFinite(datum.low) && isFinite(datum.high)"),
        formula("size_log", "log(max(abs(datum.low), abs(datum.high)))"),
        {"type": "joinaggregate", "groupby": ["key"], "fields": ["size_log"], "ops": ["median"], "as": ["usual"]},
        keep(f"datum.size_log <= datum.usual + {math.log(FAR):.6f}"),
        {
            "type": "aggregate",
            "groupby": ["key"],
            "fields": ["low", "high"],
            "ops": ["min", "max"],
            "as": ["low", "high"],
        },
    )


KEY = "datum.tensor + ' ' + datum.side"
"""Identifies a strip in every run."""


def sides() -> list[Spec]:
    """A datum for each strip of a tensor, with its axis."""
    return [
        formula("tensor", "datum.owner + ' ' + datum.role + ' ' + datum.path"),
        formula("sides", "[0, 1]"),
        formula("pack", "[datum.values, datum.gradients]"),
        {"type": "flatten", "fields": ["pack", "sides"], "as": ["encoded", "side"]},
        keep("datum.encoded != ''"),
        formula("low_code", float_bits("datum.encoded", 0)),
        formula("high_code", float_bits("datum.encoded", 1)),
        formula("low", float_value("datum.low_code")),
        formula("high", float_value("datum.high_code")),
        formula("key", KEY),
    ]


def column_data(slot: int) -> list[Spec]:
    """The tensors of the column, one below the other, and their strips."""
    own = f"datum.owner == owner_{slot}"
    is_wanted = (
        f"owner_{slot} != '' && (only_{slot} != '' ? {own} && datum.role == 'attached' && datum.path == only_{slot} : "
        f"{own} || datum.owner == params_{slot})"
    )
    return [
        dataset(f"pin_{slot}", "nodes", keep(f"key_{slot} != '' && datum.key == key_{slot}")),
        dataset(f"tensors_{slot}", "tensors", keep(is_wanted), *_stacked()),
        dataset(f"strips_{slot}", f"tensors_{slot}", *_unpacked()),
        dataset(f"ticks_{slot}", f"strips_{slot}", *ticks()),
    ]


def _stacked() -> list[Spec]:
    """The place of each tensor; the first one of a role has the section's title above it."""
    return [
        {"type": "window", "groupby": ["role"], "ops": ["row_number"], "as": ["number"]},
        formula("title", f"datum.number == 1 ? {SECTION} : 0"),
        formula("height", f"datum.title + {TITLE + STRIP + GAP}"),
        {"type": "window", "ops": ["sum"], "fields": ["height"], "as": ["bottom"]},
        formula("top", "datum.bottom - datum.height + datum.title"),
    ]


def _unpacked() -> list[Spec]:
    """A datum for each strip of the column."""
    return [
        *sides(),
        formula("run", "''"),
        formula("run_name", "''"),
        formula("steps", "steps"),
        formula("count", "step_count"),
        formula("x", strip_x("datum.side")),
        formula("w", COLUMN_STRIP_W),
        *unpacked(),
    ]


def unpacked() -> list[Spec]:
    """The parts of the text of a strip, the axis of all runs, and the images."""
    begin = 2 * FLOAT_WIDTH
    cells = f"{begin} + datum.count"
    statistics = f"{cells} + {CODE_WIDTH * ROWS}*datum.count"
    return [
        {
            "type": "lookup",
            "from": "axes",
            "key": "key",
            "fields": ["key"],
            "values": ["low", "high"],
            "as": ["axis_low", "axis_high"],
        },
        formula("has_axis", "isFinite(datum.low) && isNumber(datum.axis_low)"),
        formula("is_own_axis", "!datum.has_axis || (datum.low == datum.axis_low && datum.high == datum.axis_high)"),
        formula("flags", f"substring(datum.encoded, {begin}, {cells})"),
        formula("cells", f"substring(datum.encoded, {cells}, {statistics})"),
        formula("statistics", f"substring(datum.encoded, {statistics})"),
        *strip_images(),
    ]


def label_place(left: str) -> Spec:
    """The middle of a step's number: at its tick, but within the plot that begins at `left`."""
    half = f"length(datum.content)*{DIGIT / 2}"
    return formula("label_x", f"clamp(datum.tick_x, {left} + {half}, max({left} + {half}, {left} + datum.w - {half}))")


def ticks() -> list[Spec]:
    """The steps written below a strip: the first, the last, and one between where there is room."""
    wide = "length(datum.steps[datum.count - 1])*5 + 4"
    between, middle = f"3*({wide}) < datum.w", "[0, floor((datum.count - 1)/2), datum.count - 1]"
    places = (
        f"datum.count < 2 || 2*({wide}) > datum.w ? [datum.count - 1] : "
        f"datum.count > 2 && {between} ? {middle} : [0, datum.count - 1]"
    )
    return [
        keep("datum.count > 0"),
        formula("places", places),
        {"type": "flatten", "fields": ["places"], "as": ["tick"]},
        formula("tick_x", "datum.x + (datum.tick + 0.5)/datum.count*datum.w"),
        formula("content", "datum.steps[datum.tick]"),
        label_place("datum.x"),
    ]


def column(slot: int) -> Spec:
    """The marks of one column."""
    return group(
        f"column_{slot}",
        _scrolled(slot),
        *_header(slot),
        listens=True,
        x=f"graph_w + {slot}*column_w",
        y="top",
        width=f"{slot} < slots ? column_w : 0",
        height=f"{slot} < slots ? stage_h : 0",
        fill=colour("paper"),
        stroke=colour("line"),
    )


def _header(slot: int) -> list[Spec]:
    node = f"data('pin_{slot}')[0]"
    is_known = f"length(data('pin_{slot}'))"
    key = f"(key_{slot} == '#0' && {is_known} ? {node}.label : replace(key_{slot}, regexp('#[0-9]+'), ''))"
    return [
        mark(
            "rect",
            x={"value": 0},
            y={"value": 0},
            width="column_w",
            height={"value": HEADER - 4},
            fill=colour("bar"),
        ),
        mark("rect", x={"value": 0}, y={"value": 0}, width="column_w", height={"value": 3}, fill=f"colour_{slot}"),
        text(
            key,
            x={"value": SIDE},
            y={"value": 15},
            size=12,
            limit="column_w - 66",
            fontWeight={"value": 600},
            dir={"value": "rtl"},
        ),
        text(
            f"{is_known} ? {node}.detail + '  ' + {node}.shape : 'not called in this run'",
            x={"value": SIDE},
            y={"value": 30},
            size=10,
            limit="column_w - 66",
            ink="faint",
        ),
        text(
            "'find'",
            name=f"find_{slot}",
            x="column_w - 24",
            y={"value": 16},
            align={"value": "right"},
            ink="accent",
            cursor={"value": "pointer"},
        ),
        text(
            "'×'",
            name=f"close_{slot}",
            x="column_w - 8",
            y={"value": 16},
            align={"value": "right"},
            size=16,
            ink="soft",
            cursor={"value": "pointer"},
        ),
    ]


def _scrolled(slot: int) -> Spec:
    tensors = f"tensors_{slot}"
    kind = "datum.role == 'param' ? 'gradient' : 'gradient norm'"
    section = f"datum.top - {SECTION // 2} - scroll_{slot}"
    line = f"datum.top + 7 - scroll_{slot}"
    half: Spec = {"limit": f"{COLUMN_STRIP_W} + 30"}
    name: Spec = {"limit": f"datum.shape == '' ? column_w - {2 * SIDE} : {half['limit']}"}
    has_none = "datum.gradients == '' && datum.shape != ''"
    return group(
        f"inside_{slot}",
        text(
            f"{{{', '.join(f'{role}: {content!r}' for role, content in SECTIONS.items())}}}[datum.role]",
            data=tensors,
            x={"value": SIDE},
            y=section,
            fontWeight={"value": 600},
            opacity="datum.title ? 1 : 0",
            size=11.5,
        ),
        text("datum.name", data=tensors, x={"value": SIDE}, y=line, size=10.5, ink="soft", **name),
        text(
            "datum.shape",
            data=tensors,
            x=f"column_w - {SIDE}",
            y=line,
            align={"value": "right"},
            size=10,
            ink="faint",
            **half,
        ),
        text(f"datum.title ? ({kind}) : ''", data=tensors, x=strip_x("1"), y=section, size=9.5, ink="faint"),
        text(
            f"{has_none} ? 'none recorded' : ''",
            data=tensors,
            x=f"{strip_x('1')} + {COLUMN_STRIP_W}/2",
            y=f"{line} + {TITLE - 7 + BOX / 2}",
            align={"value": "center"},
            size=9.5,
            ink="faint",
        ),
        *strip_marks(column_area(slot)),
        x={"value": 0},
        y={"value": HEADER - 4},
        width="column_w",
        height=f"max(0, stage_h - {HEADER - 4})",
    )
