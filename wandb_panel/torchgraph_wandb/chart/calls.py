"""Repeated calls: a node for all of them, with a strip below it of those that the table holds."""

from __future__ import annotations

from torchgraph_wandb.chart.signals import SLOTS
from torchgraph_wandb.chart.vega import Spec, colour, mark, on, state
from torchgraph_wandb.text_encoding import LIST_SEPARATOR

BEHIND = (6, 3)
"""How far behind a node the others are seen, in pixels."""

STRIP, FOOT, SIDE = 8, 5, 10
"""The strip's height, and what is kept free below it and at its sides, in pixels of the graph."""


def call_signals() -> list[Spec]:
    """Which call of repeated modules is shown, by its place between the first one, 0, and the last one, 1."""
    places = "data('nodes')[indexof(pluck(data('nodes'), 'key'), {0})]"
    share = f"split(({places} || {{{{turn: ''}}}}).turn, '{LIST_SEPARATOR}')[2]"
    of = "isValid({0}) ? toNumber({0}) : call_share"
    steps = "data('call_cells')[0].turns - 1"
    is_key = "!list_open && length(data('call_cells'))"
    return [
        state(
            "call_share",
            "0",
            on("@call_cell:click", "datum.share"),
            on("@list_row:click, @finding_row:click, @xray_mark:click", of.format(share.format("datum.key"))),
            on("@xray_cells:click", of.format(share.format("xray_row.key"))),
            on("@nonfinite_banner:click", of.format(share.format("first_nonfinite_key"))),
            on(
                "window:keydown",
                f"{is_key} && event.key == ']' ? min(1, call_share + 1/({steps})) : "
                f"{is_key} && event.key == '[' ? max(0, call_share - 1/({steps})) : call_share",
            ),
            *(on(f"@find_{slot}:click", of.format(share.format(f"pins[first + {slot}]"))) for slot in range(SLOTS)),
        ),
    ]


def boxes_behind() -> list[Spec]:
    """The edges of further boxes, which say that a node stands for several calls."""
    return [
        mark(
            "rect",
            data="repeated_nodes",
            x=f"datum.cx - datum.w/2 + {away}*zoom",
            y=f"datum.cy - datum.h/2 + {away}*zoom",
            width="datum.w",
            height="datum.h",
            cornerRadius="datum.key == datum.owner ? 4 : 12",
            fill=colour("paper"),
            stroke=colour("frame"),
        )
        for away in BEHIND
    ]


def call_strips() -> Spec:
    """A cell for each call that the table holds, in the colours of nodes; a click shows that call."""
    fill = (
        "datum.is_nonfinite ? paint.bad : datum.is_missing ? paint.missing : "
        "isNumber(datum.shade) && !isNaN(datum.shade) ? scale('shade', datum.shade) : paint.bar"
    )
    return mark(
        "rect",
        name="call_cell",
        listens=True,
        data="call_cells",
        x=f"datum.cx - datum.w/2 + {SIDE}*zoom + datum.number*(datum.w - {2 * SIDE}*zoom)/datum.turns",
        y=f"datum.cy + datum.h/2 - {STRIP + FOOT}*zoom",
        width=f"max(1, (datum.w - {2 * SIDE}*zoom)/datum.turns - 1)",
        height=f"{STRIP}*zoom",
        fill=fill,
        stroke="datum.is_chosen ? paint.accent : paint.frame",
        strokeWidth="datum.is_chosen ? 2 : 0.5",
        cursor={"value": "pointer"},
    )
