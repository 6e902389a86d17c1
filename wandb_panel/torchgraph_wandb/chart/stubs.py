"""The labels of edges that are drawn as lines only when asked for."""

from __future__ import annotations

from torchgraph_wandb.chart.vega import Spec, colour, mark, on, state, text

HEIGHT = 13


def stub_signals() -> list[Spec]:
    """The number of the box whose stubs are drawn as lines."""
    return [
        state(
            "led",
            "''",
            on("@node:mouseover, @stub:mouseover", "datum.at"),
            on("@node:mouseout, @stub:mouseout", "''"),
            on("@stub:click", "''"),
        )
    ]


def stub_marks() -> list[Spec]:
    """The labels; a click marks the node at the other end, if there is only one."""
    return [
        mark(
            "rect",
            name="stub",
            listens=True,
            data="here_stubs",
            x="datum.left",
            y=f"datum.cy - {HEIGHT / 2}*zoom",
            width="datum.w",
            height=f"{HEIGHT}*zoom",
            cornerRadius=f"{HEIGHT / 2}*zoom",
            fill=colour("paper"),
            stroke="datum.at == led ? paint.accent : paint.line",
            cursor={"value": "pointer"},
        ),
        text(
            "datum.text",
            data="here_stubs",
            x="datum.left + datum.w/2",
            y="datum.cy",
            align={"value": "center"},
            size="9.5*zoom",
            ink="soft",
        ),
    ]
