"""The bar on top, the node that is dragged, and the tooltip."""

from __future__ import annotations

from torchgraph_wandb.chart.parts import MONO, Spec, colour, derived, group, mark, on, state, text
from torchgraph_wandb.chart.signals import TOOLBAR
from torchgraph_wandb.chart.strip_tips import STRIP_LINES
from torchgraph_wandb.table import LIST

TIP_LINE, TIP_LETTER = 14, 6.7


def toolbar() -> Spec:
    """Buttons, the run, and what the model is."""
    several = "run_count > 1"
    name_w = "clamp(width*0.22, 134, 340)"
    runs_w = f"({several} ? 56 + {name_w} : 0)"
    return group(
        "toolbar",
        *button("find", "'≡ modules'", x="6", width="74"),
        *button("look", "'colour: ' + look_names[look]", x="86", width="172"),
        *button("zoom_out", "'−'", x="264", width="22"),
        *button("zoom_in", "'+'", x="288", width="22"),
        *button("zoom_fit", "'all'", x="312", width="30"),
        *button("run_previous", "'◂'", x="352", width="20", is_there=several),
        *button("run_next", "'▸'", x="374", width="20", is_there=several),
        text(
            f"{several} ? (run_at + 1) + ' of ' + run_count + ':  ' + run_name : ''",
            x={"value": 400},
            y={"value": TOOLBAR / 2},
            limit=name_w,
            fontWeight={"value": 600},
        ),
        text(
            # What is told begins with the class, which is most often the model's name too.
            "run_count == 0 || indexof(facts.told, facts.model + ':') == 0 ? facts.told : "
            "facts.model + '  ·  ' + facts.told",
            x=f"354 + {runs_w}",
            y={"value": TOOLBAR / 2},
            limit=f"max(1, width - 362 - {runs_w} - (length(pins) > slots ? 130 : 0))",
            size=10.5,
            ink="soft",
        ),
        *button("columns_previous", "'◂'", x="width - 124", width="20", is_there="length(pins) > slots"),
        text(
            "length(pins) > slots ? (first + 1) + '–' + (first + slots) + ' of ' + length(pins) : ''",
            x="width - 64",
            y={"value": TOOLBAR / 2},
            align={"value": "center"},
            size=10.5,
        ),
        *button("columns_next", "'▸'", x="width - 26", width="20", is_there="length(pins) > slots"),
        x={"value": 0},
        y={"value": 0},
        width="width",
        height={"value": TOOLBAR},
        fill=colour("paper"),
        stroke=colour("line"),
    )


def button(name: str, said: str, *, x: str, width: str, is_there: str = "true") -> list[Spec]:
    """A button of the bar; its clicks are those of the mark called `name`."""
    return [
        mark(
            "rect",
            name=name,
            listens=True,
            x=x,
            y={"value": 5},
            width=f"{is_there} ? {width} : 0",
            height={"value": TOOLBAR - 10},
            cornerRadius={"value": 3},
            fill=colour("#f7f8fa"),
            stroke=colour("frame"),
            opacity=f"{is_there} ? 1 : 0",
            cursor={"value": "pointer"},
        ),
        text(
            f"{is_there} ? {said} : ''",
            x=f"{x} + ({width})/2",
            y={"value": TOOLBAR / 2},
            align={"value": "center"},
            limit=f"{width} - 4",
        ),
    ]


def tip_signals() -> list[Spec]:
    """The lines of the tooltip and where it is."""
    return [
        state(
            "node_tip",
            "{lines: []}",
            on("@node:mousemove", f"{{lines: split(datum.told, '{LIST}')}}"),
            on("@node:mouseout, @node:mousedown", "{lines: []}"),
        ),
        derived("tip", f"{{lines: is_dragging ? [] : strip_tip.over ? {STRIP_LINES} : node_tip.lines}}"),
        derived("tip_w", f"length(tip.lines) ? extent(pluck(data('tip_lines'), 'letters'))[1] * {TIP_LETTER} + 16 : 0"),
        derived("tip_h", f"length(tip.lines) ? length(tip.lines) * {TIP_LINE} + 10 : 0"),
        derived("tip_x", "max(2, pointer[0] + 14 + tip_w > width ? pointer[0] - tip_w - 10 : pointer[0] + 14)"),
        derived("tip_y", "max(2, min(pointer[1] + 14, height - tip_h - 2))"),
    ]


def tooltip() -> Spec:
    """The tooltip, above everything else."""
    return group(
        "tooltip",
        text(
            "datum.said",
            data="tip_lines",
            x={"value": 8},
            y=f"{TIP_LINE / 2 + 5} + datum.at*{TIP_LINE}",
            fontWeight="datum.at ? 400 : 700",
            font={"value": MONO},
            size=11,
            fill={"value": "#ffffff"},
        ),
        x="tip_x",
        y="tip_y",
        width="tip_w",
        height="tip_h",
        fill=colour("ink"),
        cornerRadius={"value": 4},
        opacity={"value": 0.94},
    )


def ghost() -> Spec:
    """The name of the node that is being dragged."""
    return text(
        "is_dragging ? replace(dragged, regexp('#[0-9]+'), '') : ''",
        x="pointer[0] - 10",
        y="pointer[1] - 10",
        align={"value": "right"},
        size=12,
        ink="accent",
        fontWeight={"value": 600},
    )
