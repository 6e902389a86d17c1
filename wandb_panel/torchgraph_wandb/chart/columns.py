"""The columns beside the graph: the tensors of a pinned call as heat strips."""

from __future__ import annotations

from typing import Any

from torchgraph_wandb.chart.numbers import code, number, shown
from torchgraph_wandb.chart.parts import (
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
from torchgraph_wandb.chart.signals import TOOLBAR
from torchgraph_wandb.letters import FLOAT_LETTERS
from torchgraph_wandb.strips import INNER, MARKED, ROWS

HEADER, SECTION, TITLE, STRIP, GAP = 44, 22, 17, 60, 12
SIDE, MIDDLE = 8, 8
"""Margins beside the strips, and between the two of a tensor, in pixels."""

SECTIONS = {"input": "Input", "output": "Output", "attached": "Attached", "param": "Parameters"}

STRIP_W = f"((column_w - {2 * SIDE + MIDDLE}) / 2)"
AXIS = 2 * FLOAT_LETTERS


def column_signals(slot: int) -> list[Spec]:
    """What is in the column, and how far it is scrolled."""
    height = f"(length(data('tensors_{slot}')) ? peek(data('tensors_{slot}')).bottom : 0)"
    limit = f"max(0, {height} - stage_h + {HEADER + 8})"
    is_here = f"slots > {slot} && x() >= graph_w + {slot}*column_w && x() < graph_w + {slot + 1}*column_w"
    pinned = f"data('pin_{slot}')[0]"
    return [
        derived(f"key_{slot}", f"{slot} < slots ? pins[first + {slot}] : ''"),
        derived(f"owner_{slot}", f"length(data('pin_{slot}')) ? {pinned}.owner : ''"),
        derived(f"only_{slot}", f"length(data('pin_{slot}')) ? {pinned}.only : ''"),
        derived(f"params_{slot}", f"substring(owner_{slot}, 0, lastindexof(owner_{slot}, '#')) + '#*'"),
        derived(f"colour_{slot}", f"pin_colours[(first + {slot}) % length(pin_colours)]"),
        state(
            f"scroll_{slot}",
            "0",
            on("wheel!", f"{is_here} ? clamp(scroll_{slot} + event.deltaY * 0.6, 0, {limit}) : scroll_{slot}"),
            when(f"key_{slot}", "0"),
        ),
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
    ]


def _stacked() -> list[Spec]:
    """Where each tensor stands; the first of a role has the section's title above it."""
    return [
        {"type": "window", "groupby": ["role"], "ops": ["row_number"], "as": ["number"]},
        formula("title", f"datum.number == 1 ? {SECTION} : 0"),
        formula("height", f"datum.title + {TITLE + STRIP + GAP}"),
        {"type": "window", "ops": ["sum"], "fields": ["height"], "as": ["bottom"]},
        formula("top", "datum.bottom - datum.height + datum.title"),
    ]


def _unpacked() -> list[Spec]:
    """A datum for each strip, with its axis, and its heat as an image."""
    letters_a_step = ROWS // 2
    told = f"{AXIS} + {letters_a_step}*step_count"
    place = f"(datum.$x*{letters_a_step} + floor(datum.$y/2))"
    level = f"(floor(indexof(letters, substring(datum.heat, {place}, {place} + 1)) / (datum.$y % 2 ? 1 : 8)) % 8)"
    is_rim = f"datum.$y == 0 || datum.$y == {ROWS - 1}"
    marked = f"datum.$y == 0 && {level} == {MARKED} ? '#d41f1f'"
    return [
        formula("sides", "[0, 1]"),
        formula("pack", "[datum.values, datum.gradients]"),
        {"type": "flatten", "fields": ["pack", "sides"], "as": ["letters", "side"]},
        keep("datum.letters != ''"),
        formula("low_code", code("datum.letters", 0)),
        formula("high_code", code("datum.letters", 1)),
        formula("low", number("datum.low_code")),
        formula("high", number("datum.high_code")),
        formula("heat", f"substring(datum.letters, {AXIS}, {told})"),
        formula("told", f"substring(datum.letters, {told})"),
        formula("grid", f"{{width: step_count, height: {ROWS}, values: []}}"),
        {
            "type": "heatmap",
            "field": "grid",
            "as": "image",
            "color": {"expr": f"{marked} : {is_rim} ? rim_colours[{level}] : heat_colours[{level}]"},
            "opacity": {"expr": f"{level} > 0 ? 1 : 0"},
        },
    ]


def column(slot: int) -> Spec:
    """The marks of one column."""
    return group(
        f"column_{slot}",
        _scrolled(slot),
        *_header(slot),
        listens=True,
        x=f"graph_w + {slot}*column_w",
        y={"value": TOOLBAR},
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
            fill=colour("#f7f8fa"),
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
    tensors, strips = f"tensors_{slot}", f"strips_{slot}"
    left = f"({SIDE} + datum.side*({STRIP_W} + {MIDDLE}))"
    top = f"(datum.top + {TITLE} - scroll_{slot})"
    down = f"{STRIP}*(1 + {INNER}*datum.high/(datum.high - datum.low))/{ROWS}"
    zero = f"datum.low < 0 && datum.high > 0 ? {top} + {down} : {top}"
    kind = "datum.role == 'param' ? 'gradient' : 'gradient norm'"
    return group(
        f"inside_{slot}",
        text(
            f"{{{', '.join(f'{role}: {quotedtitle!r}' for role, quotedtitle in SECTIONS.items())}}}[datum.role]",
            data=tensors,
            x={"value": SIDE},
            y=f"datum.top - {SECTION // 2} - scroll_{slot}",
            fontWeight={"value": 600},
            opacity="datum.title ? 1 : 0",
            size=11.5,
        ),
        text(
            "datum.path",
            data=tensors,
            x={"value": SIDE},
            y=f"datum.top + 7 - scroll_{slot}",
            limit=STRIP_W,
            size=10.5,
            ink="soft",
        ),
        text(
            "datum.shape",
            data=tensors,
            x=f"column_w - {SIDE}",
            y=f"datum.top + 7 - scroll_{slot}",
            align={"value": "right"},
            limit=STRIP_W,
            size=10,
            ink="faint",
        ),
        mark(
            "image",
            data=strips,
            image={"field": "image"},
            x=left,
            y=top,
            width=STRIP_W,
            height={"value": STRIP},
            aspect="false",
            smooth="false",
        ),
        mark(
            "rule",
            data=strips,
            x=left,
            x2=f"{left} + {STRIP_W}",
            y=zero,
            stroke=colour("soft"),
            strokeDash={"value": [2, 2]},
            opacity="datum.low < 0 && datum.high > 0 ? 0.6 : 0",
        ),
        mark(
            "rule",
            data=strips,
            x=f"{left} + {STRIP_W}*(hover_step + 0.5)/max(1, step_count)",
            y=top,
            y2=f"{top} + {STRIP}",
            stroke=colour("ink"),
            opacity="hover_step >= 0 ? 0.55 : 0",
        ),
        mark(
            "rect",
            data=strips,
            name=f"strip_{slot}",
            listens=True,
            x=left,
            y=top,
            width=STRIP_W,
            height={"value": STRIP},
            fill={"value": "transparent"},
            stroke=colour("frame"),
            cursor={"value": "crosshair"},
        ),
        *(
            halo
            for said, down in ((shown("datum.high"), 8), (shown("datum.low"), STRIP - 7))
            for halo in haloed(said, data=strips, x=f"{left} + 3", y=f"{top} + {down}")
        ),
        text(
            f"datum.title ? ({kind}) : ''",
            data=tensors,
            x=f"{SIDE + MIDDLE} + {STRIP_W}",
            y=f"datum.top - {SECTION // 2} - scroll_{slot}",
            size=9.5,
            ink="faint",
        ),
        x={"value": 0},
        y={"value": HEADER - 4},
        width="column_w",
        height=f"max(0, stage_h - {HEADER - 4})",
    )


def haloed(said: str, *, data: str, **place: Any) -> list[Spec]:
    """Small text that can be read on any background."""
    edge: Spec = {"stroke": colour("paper"), "strokeWidth": {"value": 3}, "strokeOpacity": {"value": 0.8}}
    return [text(said, data=data, size=9, **place, **more) for more in (edge, {})]
