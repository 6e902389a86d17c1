"""The toolbar, the banners below it, the colour menu, the name of a dragged node, and the tooltip."""

from __future__ import annotations

from torchgraph_wandb.chart.signals import BANNER, TOOLBAR
from torchgraph_wandb.chart.strip_tooltips import STRIP_LINES
from torchgraph_wandb.chart.vega import MONO, Spec, colour, derived, group, mark, on, state, text
from torchgraph_wandb.table import LIST_SEPARATOR

TIP_LINE, TIP_CHARACTER = 14, 6.7
MENU_ROW, MENU_W, MENU_X = 20, 172, 86


def toolbar() -> Spec:
    """Buttons, the run, and the description of the model."""
    several, wide = "run_count > 1", "width >= 640"
    name_w = "clamp(width*0.22, 60, 340)"
    runs_w = f"({several} ? 56 + {name_w} : 0)"
    return group(
        "toolbar",
        *button("find", "'≡ modules'", x="6", width="74"),
        *button(
            "colour_button",
            f"({wide} ? 'colour: ' : '') + colour_names[colour_by] + ' ▾'",
            x=str(MENU_X),
            width="colour_button_w",
        ),
        *button("zoom_out", "'−'", x=after(6), width="22"),
        *button("zoom_in", "'+'", x=after(30), width="22"),
        *button("zoom_fit", "'all'", x=after(54), width="30"),
        *button("theme", "theme == 'dark' ? '☀' : '☾'", x=after(86), width="22"),
        *button("run_previous", "'◂'", x=after(116), width="20", is_there=several),
        *button("run_next", "'▸'", x=after(138), width="20", is_there=several),
        text(
            f"{several} ? (run_at + 1) + ' of ' + run_count + ':  ' + run_name : ''",
            x=after(164),
            y={"value": TOOLBAR / 2},
            limit=f"min({name_w}, width - {after(168)})",
            fontWeight={"value": 600},
        ),
        text(
            # The description begins with the class, which is usually the model's name too.
            "run_count == 0 || indexof(summary.description, summary.model + ':') == 0 ? summary.description : "
            "summary.model + '  ·  ' + summary.description",
            x=f"{after(118)} + {runs_w}",
            y={"value": TOOLBAR / 2},
            limit=f"max(1, width - {after(126)} - {runs_w} - (length(pins) > slots ? 130 : 0))",
            size=10.5,
            ink="soft",
        ),
        *_paging(),
        x={"value": 0},
        y={"value": 0},
        width="width",
        height={"value": TOOLBAR},
        fill=colour("paper"),
        stroke=colour("line"),
    )


def after(room: int) -> str:
    """Expression for the place so many pixels behind the colour button."""
    return f"({MENU_X + room} + colour_button_w)"


def _paging() -> list[Spec]:
    """Which of the pinned columns are visible, if there is no room for all."""
    is_there = "length(pins) > slots"
    span = "slots == 1 ? '' + (first + 1) : (first + 1) + '–' + (first + slots)"
    ground = mark(
        "rect",
        x="width - 130",
        y={"value": 1},
        width=f"{is_there} ? 130 : 0",
        height={"value": TOOLBAR - 2},
        fill=colour("paper"),
    )
    return [
        ground,
        *button("columns_previous", "'◂'", x="width - 124", width="20", is_there=is_there),
        text(
            f"{is_there} ? ({span}) + ' of ' + length(pins) : ''",
            x="width - 64",
            y={"value": TOOLBAR / 2},
            align={"value": "center"},
            size=10.5,
        ),
        *button("columns_next", "'▸'", x="width - 26", width="20", is_there=is_there),
    ]


def banners() -> list[Spec]:
    """Where NaN or infinity occurred first, and the notes on the record."""
    more = "summary.extent == '' ? '' : '   ·   ' + summary.extent + ' have NaN or infinity'"
    first = f"'✕  ' + first_nonfinite[4] + ({more}) + '   ·   click to go there'"
    return [
        *_banner("nonfinite_banner", first, y=str(TOOLBAR), height="nonfinite_banner_h", ink="bad"),
        *_banner(
            "notes_banner",
            f"'!  ' + join(split(summary.notes, '{LIST_SEPARATOR}'), ' ')",
            y=f"{TOOLBAR} + nonfinite_banner_h",
            height="notes_banner_h",
            ink="warn",
        ),
    ]


def _banner(name: str, content: str, *, y: str, height: str, ink: str) -> list[Spec]:
    return [
        mark(
            "rect",
            name=name,
            listens=True,
            x={"value": 0},
            y=y,
            width="width",
            height=height,
            fill=colour(f"{ink}_soft"),
            stroke=colour(ink),
            opacity=f"{height} ? 1 : 0",
            cursor={"value": "pointer" if ink == "bad" else "default"},
        ),
        text(
            f"{height} ? {content} : ''",
            x={"value": 10},
            y=f"{y} + {BANNER / 2}",
            limit="width - 20",
            ink=ink,
            fontWeight={"value": 600},
        ),
    ]


def colour_menu() -> Spec:
    """The menu of what nodes can be coloured by."""
    return group(
        "menu",
        mark(
            "rect",
            name="colour_menu_row",
            listens=True,
            data="colour_choices",
            x={"value": 0},
            y=f"datum.at*{MENU_ROW}",
            width={"value": MENU_W},
            height={"value": MENU_ROW},
            fill="datum.at == colour_by ? paint.glow : paint.paper",
            cursor={"value": "pointer"},
        ),
        text(
            "(datum.at == colour_by ? '●  ' : '○  ') + datum.content",
            data="colour_choices",
            x={"value": 8},
            y=f"datum.at*{MENU_ROW} + {MENU_ROW / 2}",
        ),
        x={"value": MENU_X},
        y={"value": TOOLBAR - 3},
        width=f"colour_menu_open ? {MENU_W} : 0",
        height=f"colour_menu_open ? length(colour_names)*{MENU_ROW} : 0",
        fill=colour("paper"),
        stroke=colour("control"),
        opacity="colour_menu_open ? 1 : 0",
    )


def button(name: str, content: str, *, x: str, width: str, is_there: str = "true") -> list[Spec]:
    """A button of the toolbar; its clicks are events of the mark called `name`."""
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
            fill=colour("bar"),
            stroke=colour("frame"),
            opacity=f"{is_there} ? 1 : 0",
            cursor={"value": "pointer"},
        ),
        text(
            f"{is_there} ? {content} : ''",
            x=f"{x} + ({width})/2",
            y={"value": TOOLBAR / 2},
            align={"value": "center"},
            limit=f"{width} - 4",
        ),
    ]


def tip_signals() -> list[Spec]:
    """The lines of the tooltip, and its place."""
    marked = f"(datum.badge == '' ? '' : '{LIST_SEPARATOR}' + datum.badge + ' at step ' + steps[shown])"
    nothing = "{lines: []}"
    longest = "extent(pluck(data('tip_lines'), 'characters'))[1]"
    return [
        state(
            "node_tip",
            nothing,
            on("@node:mousemove", f"{{lines: split(datum.tooltip + {marked}, '{LIST_SEPARATOR}')}}"),
            on(
                "@nonfinite_banner:mousemove",
                "{lines: [first_nonfinite[4], summary.extent + ' have NaN or infinity', 'click to go there']}",
            ),
            on("@notes_banner:mousemove", f"{{lines: split(summary.notes, '{LIST_SEPARATOR}')}}"),
            on(
                "@node:mouseout, @node:mousedown, @nonfinite_banner:mouseout, @nonfinite_banner:mousedown, "
                "@notes_banner:mouseout",
                nothing,
            ),
        ),
        derived("tip", f"{{lines: is_dragging ? [] : strip_tip.over ? {STRIP_LINES} : node_tip.lines}}"),
        derived("tip_w", f"length(tip.lines) ? {longest} * {TIP_CHARACTER} + 16 : 0"),
        derived("tip_h", f"length(tip.lines) ? length(tip.lines) * {TIP_LINE} + 10 : 0"),
        derived("tip_x", "max(2, pointer[0] + 14 + tip_w > width ? pointer[0] - tip_w - 10 : pointer[0] + 14)"),
        derived("tip_y", "max(2, min(pointer[1] + 14, height - tip_h - 2))"),
    ]


def tooltip() -> Spec:
    """The tooltip, above everything else."""
    return group(
        "tooltip",
        text(
            "datum.content",
            data="tip_lines",
            x={"value": 8},
            y=f"{TIP_LINE / 2 + 5} + datum.at*{TIP_LINE}",
            fontWeight="datum.at ? 400 : 700",
            font={"value": MONO},
            size=11,
            ink="tip_ink",
        ),
        x="tip_x",
        y="tip_y",
        width="tip_w",
        height="tip_h",
        fill=colour("tip"),
        cornerRadius={"value": 4},
        opacity={"value": 0.94},
    )


def drag_label() -> Spec:
    """The name of the node that is being dragged, beside the pointer."""
    return text(
        "is_dragging ? replace(dragged, regexp('#[0-9]+'), '') : ''",
        x="pointer[0] - 10",
        y="pointer[1] - 10",
        align={"value": "right"},
        size=12,
        ink="accent",
        fontWeight={"value": 600},
    )
