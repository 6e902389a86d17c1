"""The list of all calls, to search and to jump to."""

from __future__ import annotations

from torchgraph_wandb.chart.signals import LIST_ROW
from torchgraph_wandb.chart.vega import Spec, colour, group, mark, shortened, text

TITLE_CHARACTER = 6.4
"""About the width of a character of a name in the list, in pixels."""


def module_list() -> Spec:
    """The list of calls; typing filters it, and a click shows the call in the graph."""
    row = f"32 + (datum.place - list_top - 1)*{LIST_ROW}"
    typed = "query == '' ? 'type to search ' + length(data('modules')) + ' calls' : query + '▏'"
    return group(
        "list",
        mark(
            "rect",
            x={"value": 6},
            y={"value": 6},
            width="list_w - 12",
            height={"value": 20},
            stroke=colour("accent"),
            cornerRadius={"value": 3},
        ),
        text(typed, x={"value": 12}, y={"value": 16}, fill="query == '' ? paint.faint : paint.ink"),
        mark(
            "rect",
            name="list_row",
            listens=True,
            data="listed",
            x={"value": 6},
            y=row,
            width="list_w - 12",
            height={"value": LIST_ROW},
            fill="datum.inside == here ? paint.glow : paint.paper",
            cursor={"value": "pointer"},
        ),
        mark(
            "rect",
            data="listed",
            x={"value": 6},
            y=f"{row} + 3",
            width={"value": 3},
            height={"value": LIST_ROW - 6},
            fill="paint.families[toNumber(datum.family)]",
        ),
        text(
            shortened("datum.title", "list_w*0.62", TITLE_CHARACTER),
            data="listed",
            x={"value": 14},
            y=f"{row} + {LIST_ROW // 2}",
            limit="list_w*0.62",
            fill="datum.is_nonfinite ? paint.bad : paint.ink",
        ),
        text(
            "datum.detail",
            data="listed",
            x="list_w - 12",
            y=f"{row} + {LIST_ROW // 2}",
            align={"value": "right"},
            limit="list_w*0.32",
            size=10,
            ink="faint",
        ),
        listens=True,
        x={"value": 0},
        y={"value": 0},
        width="list_open ? list_w : 0",
        height="list_open ? stage_h : 0",
        fill=colour("paper"),
        stroke=colour("frame"),
    )
