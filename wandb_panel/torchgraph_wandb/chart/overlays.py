"""The bar on top, what stands out below it, the menu of colours, the node that is dragged, and the tooltip."""

from __future__ import annotations

from torchgraph_wandb.chart.signals import BANNER, TOOLBAR
from torchgraph_wandb.chart.strip_tooltips import STRIP_LINES
from torchgraph_wandb.chart.vega import MONO, Spec, colour, derived, group, mark, on, state, text
from torchgraph_wandb.table import LIST

TIP_LINE, TIP_LETTER = 14, 6.7
MENU_ROW, MENU_W, MENU_X = 20, 172, 86


def toolbar() -> Spec:
    """Buttons, the run, and what the model is."""
    several, wide = "run_count > 1", "width >= 640"
    name_w = "clamp(width*0.22, 60, 340)"
    runs_w = f"({several} ? 56 + {name_w} : 0)"
    return group(
        "toolbar",
        *button("find", "'≡ modules'", x="6", width="74"),
        *button("look", f"({wide} ? 'colour: ' : '') + look_names[look] + ' ▾'", x=str(MENU_X), width="look_w"),
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
            # What is told begins with the class, which is most often the model's name too.
            "run_count == 0 || indexof(facts.told, facts.model + ':') == 0 ? facts.told : "
            "facts.model + '  ·  ' + facts.told",
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
    """Expression for a place so far behind the button of the colours."""
    return f"({MENU_X + room} + look_w)"


def _paging() -> list[Spec]:
    """Which of the pinned columns are seen, where there is no room for all."""
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
    """Where NaN or infinity came up first, and what is to be known of how sessions join."""
    more = "facts.extent == '' ? '' : '   ·   ' + facts.extent + ' have NaN or infinity'"
    first = f"'✕  ' + first_bad[4] + ({more}) + '   ·   click to go there'"
    return [
        *_banner("trouble", first, y=str(TOOLBAR), height="trouble_h", ink="bad"),
        *_banner(
            "session_note",
            f"'!  ' + join(split(facts.notes, '{LIST}'), ' ')",
            y=f"{TOOLBAR} + trouble_h",
            height="note_h",
            ink="warn",
        ),
    ]


def _banner(name: str, said: str, *, y: str, height: str, ink: str) -> list[Spec]:
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
            f"{height} ? {said} : ''",
            x={"value": 10},
            y=f"{y} + {BANNER / 2}",
            limit="width - 20",
            ink=ink,
            fontWeight={"value": 600},
        ),
    ]


def look_menu() -> Spec:
    """What nodes can be coloured by, to choose from."""
    return group(
        "menu",
        mark(
            "rect",
            name="look_row",
            listens=True,
            data="look_choices",
            x={"value": 0},
            y=f"datum.at*{MENU_ROW}",
            width={"value": MENU_W},
            height={"value": MENU_ROW},
            fill="datum.at == look ? paint.glow : paint.paper",
            cursor={"value": "pointer"},
        ),
        text(
            "(datum.at == look ? '●  ' : '○  ') + datum.said",
            data="look_choices",
            x={"value": 8},
            y=f"datum.at*{MENU_ROW} + {MENU_ROW / 2}",
        ),
        x={"value": MENU_X},
        y={"value": TOOLBAR - 3},
        width=f"look_open ? {MENU_W} : 0",
        height=f"look_open ? length(look_names)*{MENU_ROW} : 0",
        fill=colour("paper"),
        stroke=colour("control"),
        opacity="look_open ? 1 : 0",
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
            fill=colour("bar"),
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
    marked, nothing = f"(datum.badge == '' ? '' : '{LIST}' + datum.badge + ' at step ' + steps[shown])", "{lines: []}"
    return [
        state(
            "node_tip",
            nothing,
            on("@node:mousemove", f"{{lines: split(datum.told + {marked}, '{LIST}')}}"),
            on(
                "@trouble:mousemove",
                "{lines: [first_bad[4], facts.extent + ' have NaN or infinity', 'click to go there']}",
            ),
            on("@session_note:mousemove", f"{{lines: split(facts.notes, '{LIST}')}}"),
            on(
                "@node:mouseout, @node:mousedown, @trouble:mouseout, @trouble:mousedown, @session_note:mouseout",
                nothing,
            ),
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
