"""The toolbar, the banners below it, the colour menu, the name of a dragged node, and the tooltip."""

from __future__ import annotations

from torchgraph_wandb.chart.signals import BANNER, TOOLBAR
from torchgraph_wandb.chart.strip_tooltips import STRIP_LINES
from torchgraph_wandb.chart.vega import MONO, Spec, colour, derived, group, mark, on, state, text
from torchgraph_wandb.text_encoding import LIST_SEPARATOR

TIP_LINE, TIP_CHARACTER = 14, 6.7
MENU_ROW, MENU_W = 20, 172
MENU_X = "(find_w + 12)"


def toolbar() -> Spec:
    """Buttons, the run, and the description of the model."""
    several, wide = "run_count > 1", "width >= 640"
    return group(
        "toolbar",
        *button("find", f"{wide} ? '≡ modules' : '≡'", x="6", width="find_w"),
        *button(
            "colour_button",
            f"({wide} ? 'colour: ' : '') + colour_names[colour_by] + ' ▾'",
            x=MENU_X,
            width="colour_button_w",
        ),
        *button("zoom_out", "'−'", x=after(6), width="22"),
        *button("zoom_in", "'+'", x=after(30), width="22"),
        *button("zoom_fit", "'all'", x=after(54), width="30"),
        *button("theme", "theme == 'dark' ? '☀' : '☾'", x=after(86), width="22"),
        *button("xray_button", "'x-ray'", x=after(112), width="42", is_there="has_xray", is_on="xray_on"),
        *button(
            "findings_button",
            "(error_count ? '✕ ' : warning_count ? '▲ ' : '● ') + finding_count",
            x="findings_x",
            width="40",
            is_there="finding_count > 0",
            is_on="findings_open",
        ),
        *button(
            "side_by_side",
            "side_w > 40 ? 'side by side' : '▥'",
            x="side_x",
            width="side_w - 4",
            is_there=several,
            is_on="side_by_side",
        ),
        *button("run_previous", "'◂'", x="runs_x", width="20", is_there="is_turned"),
        *button("run_next", "'▸'", x="runs_x + 22", width="20", is_there="is_turned"),
        text(
            "is_turned ? (run_at + 1) + ' of ' + run_count + ':  ' + run_name : ''",
            x="runs_x + 48",
            y={"value": TOOLBAR / 2},
            limit="max(1, min(name_w, width - runs_x - 52))",
            fontWeight={"value": 600},
        ),
        text(
            # The description begins with the class, which is usually the model's name too.
            "run_count == 0 || indexof(summary.description, summary.model + ':') == 0 ? summary.description : "
            "summary.model + '  ·  ' + summary.description",
            x="text_x + 4",
            y={"value": TOOLBAR / 2},
            limit="max(1, width - text_x - 10 - paging_w)",
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


def toolbar_signals() -> list[Spec]:
    """Widths of buttons, and where the later ones begin."""
    return [
        derived("after_colours", f"{MENU_X} + colour_button_w"),
        derived("is_turned", "run_count > 1 && !(is_compared && width < 640)"),  # a click on a name does it too
        derived("name_w", "clamp(width*0.2, 40, 300)"),
        derived("findings_x", "after_colours + 112 + (has_xray ? 46 : 0)"),
        derived("side_x", "findings_x + (finding_count ? 44 : 0)"),
        derived("runs_x", "side_x + (run_count > 1 ? side_w : 0)"),
        derived("text_x", "runs_x + (is_turned ? 56 + name_w : 0)"),
        derived("find_w", "width < 640 ? 24 : 74"),
        derived("side_w", "width < 900 ? 26 : 82"),
        derived("paging_w", "slots > 0 && length(pins) > slots || is_paged ? 130 : 0"),
        derived("is_paged", "(xray_w > 0 || compared_w > 0) && is_compared && run_count > runs_n"),
    ]


def after(room: int) -> str:
    """Expression for the place so many pixels behind the colour button."""
    return f"(after_colours + {room})"


def _paging() -> list[Spec]:
    """Which of the pinned columns are visible, or of the runs, if there is no room for all."""
    columns = "slots > 0 && length(pins) > slots"
    ground = mark(
        "rect",
        x="width - 130",
        y={"value": 1},
        width="paging_w",
        height={"value": TOOLBAR - 2},
        fill=colour("paper"),
    )
    return [
        ground,
        *_pages("columns", "first", "slots", count="length(pins)", is_there=columns),
        *_pages("runs", "runs_first", "runs_n", count="run_count + ' runs'", is_there="is_paged"),
    ]


def _pages(name: str, first: str, visible: str, *, count: str, is_there: str) -> list[Spec]:
    span = f"{visible} == 1 ? '' + ({first} + 1) : ({first} + 1) + '–' + ({first} + {visible})"
    return [
        *button(f"{name}_previous", "'◂'", x="width - 124", width="20", is_there=is_there),
        text(
            f"{is_there} ? ({span}) + ' of ' + {count} : ''",
            x="width - 64",
            y={"value": TOOLBAR / 2},
            align={"value": "center"},
            size=10.5,
        ),
        *button(f"{name}_next", "'▸'", x="width - 26", width="20", is_there=is_there),
    ]


def banners() -> list[Spec]:
    """Where NaN or infinity occurred first, and the notes on the record."""
    more = "summary.extent == '' ? '' : '   ·   ' + summary.extent + ' have NaN or infinity'"
    first = f"'✕  ' + first_nonfinite[4] + ({more}) + '   ·   click to go there'"
    return [
        *_banner("nonfinite_banner", first, y=str(TOOLBAR), height="nonfinite_banner_h", ink="bad", leads=True),
        *_banner(
            "findings_banner",
            "(error_count ? '✕  ' : warning_count ? '▲  ' : '●  ') + findings_text",
            y=f"{TOOLBAR} + nonfinite_banner_h",
            height="findings_banner_h",
            ink="worst",
            leads=True,
        ),
        *_banner(
            "notes_banner",
            f"'!  ' + join(split(summary.notes, '{LIST_SEPARATOR}'), ' ')",
            y=f"{TOOLBAR} + nonfinite_banner_h + findings_banner_h",
            height="notes_banner_h",
            ink="warn",
        ),
    ]


def _banner(name: str, content: str, *, y: str, height: str, ink: str, leads: bool = False) -> list[Spec]:
    """A line across the panel; with `leads`, a click leads somewhere."""
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
            cursor={"value": "pointer" if leads else "default"},
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
        x=MENU_X,
        y={"value": TOOLBAR - 3},
        width=f"colour_menu_open ? {MENU_W} : 0",
        height=f"colour_menu_open ? length(colour_names)*{MENU_ROW} : 0",
        fill=colour("paper"),
        stroke=colour("control"),
        opacity="colour_menu_open ? 1 : 0",
    )


def button(name: str, content: str, *, x: str, width: str, is_there: str = "true", is_on: str = "false") -> list[Spec]:
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
            fill=f"{is_on} ? paint.glow : paint.bar",
            stroke=f"{is_on} ? paint.accent : paint.frame",
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
            on(
                "@findings_banner:mousemove, @findings_button:mousemove",
                f"findings_open ? {nothing} : {{lines: first_finding.tip_lines}}",  # the list itself says it
            ),
            on("@finding_row:mousemove", "{lines: datum.tip_lines}"),
            on("@xray_loss_name:mousemove", "{lines: [xray_loss_name]}"),
            on("@xray_mark:mousemove", f"{{lines: split(datum.lines, '{LIST_SEPARATOR}')}}"),
            on(
                "@compared_run:mousemove, @xray_name:mousemove",
                "{lines: [datum.name, 'run ' + datum.run, 'click: show it in the graph']}",
            ),
            on("@notes_banner:mousemove", f"{{lines: split(summary.notes, '{LIST_SEPARATOR}')}}"),
            on(
                "@node:mouseout, @node:mousedown, @nonfinite_banner:mouseout, @nonfinite_banner:mousedown, "
                "@notes_banner:mouseout, @findings_banner:mouseout, @findings_button:mouseout, @finding_row:mouseout, "
                "@findings_banner:mousedown, @findings_button:mousedown, "
                "@finding_row:mousedown, @xray_mark:mouseout, @xray_mark:mousedown, @compared_run:mouseout, "
                "@xray_name:mouseout, @xray_loss_name:mouseout",
                nothing,
            ),
        ),
        derived(
            "tip",
            f"{{lines: is_dragging ? [] : strip_tip.over ? {STRIP_LINES} : "
            "length(node_tip.lines) ? node_tip.lines : xray_tip}",
        ),
        derived("tip_room", f"length(tip.lines) ? {longest} * {TIP_CHARACTER} : 1"),
        derived("tip_scale", "min(1, (width - 20) / tip_room)"),  # a small panel is narrower than long lines
        derived("tip_w", "length(tip.lines) ? tip_room*tip_scale + 16 : 0"),
        derived("tip_line", f"{TIP_LINE}*tip_scale"),
        derived("tip_h", "length(tip.lines) ? length(tip.lines)*tip_line + 10 : 0"),
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
            y="tip_line/2 + 5 + datum.at*tip_line",
            fontWeight="datum.at ? 400 : 700",
            font={"value": MONO},
            size="11*tip_scale",
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
