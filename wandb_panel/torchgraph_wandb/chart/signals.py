"""The signals of the chart: what is chosen, where things are, and what the pointer does."""

from __future__ import annotations

from torchgraph_wandb.chart.datasets import COLOUR_CHOICES
from torchgraph_wandb.chart.vega import FONT, OUTSIDE, Spec, derived, listed, on, state, when
from torchgraph_wandb.table import FIELDS
from torchgraph_wandb.text_encoding import ALPHABET, LIST_SEPARATOR

TOOLBAR = 30
BANNER = 22
TRAIL, LEGEND, HINT, TIME = 22, 16, 22, 26
"""Heights that the list of parents, a line of the legend, the hint and the time bar take from the graph."""

COLUMN = 260
LEAST_GRAPH = 280
DROP_ZONE = 150
LIST_ROW = 18
SLOTS = 6
"""Columns that can be visible at once; more can be pinned."""


def signals() -> list[Spec]:
    """All signals except those of the themes and of the columns beside the graph."""
    return [*_constants(), *_choices(), *_steps(), *_places(), *_pointer(), *_finding()]


def _constants() -> list[Spec]:
    constants: list[Spec] = [{"name": "alphabet", "value": ALPHABET}, {"name": "font", "value": FONT}]
    return [*constants, derived("colour_names", listed(COLOUR_CHOICES))]


def _choices() -> list[Spec]:
    """The chosen run, inside, columns and colours."""
    turn = "(run_at + {0} + length(data('runs'))) % length(data('runs'))"
    removed = "replace(pins_text, '\\n' + {0} + '\\n', '\\n')"
    nothing = ", ".join(f"{field}: ''" for field in FIELDS["summary"])
    no_parts = "['', '', '', '', '']"
    to_first = "first_nonfinite_key != '' && indexof(pins, first_nonfinite_key) < 0"
    return [
        state(
            "run_at",
            "0",
            on("@run_next:click", turn.format(1)),
            on("@run_previous:click", turn.format(-1)),
            on("@compared_run:click", "datum.at"),
            on("@xray_cells:click, @xray_name:click, @xray_mark:click", "indexof(run_ids, datum.run)"),
        ),
        derived("run_count", "length(data('runs'))"),
        derived("run", "run_count ? data('runs')[min(run_at, run_count - 1)].run : ''"),
        derived("run_name", "run_count ? data('runs')[min(run_at, run_count - 1)].name : ''"),
        derived("run_ids", "pluck(data('runs'), 'run')"),
        derived("steps_from", "run_count ? extent(pluck(data('runs'), 'from_step'))[0] : 0"),
        derived("steps_span", "run_count ? max(0.001, extent(pluck(data('runs'), 'to_step'))[1] - steps_from) : 1"),
        state("side_by_side", "true", on("@side_by_side:click", "!side_by_side")),
        derived("is_compared", "side_by_side && run_count > 1"),
        derived("summary", f"length(data('summary')) ? data('summary')[0] : {{{nothing}}}"),
        derived("steps", f"split(summary.steps, '{LIST_SEPARATOR}')"),
        derived("step_count", "summary.steps == '' ? 0 : length(steps)"),
        derived(
            "first_nonfinite",
            f"summary.first_nonfinite == '' ? {no_parts} : split(summary.first_nonfinite, '{LIST_SEPARATOR}')",
        ),
        derived("first_nonfinite_key", "first_nonfinite[2]"),
        state(
            "chosen",
            "''",
            on("@node:click", "moved < 5 && !event.shiftKey && datum.opens != '' ? datum.opens : chosen"),
            on("@trail_step:click", "datum.target"),
            on("@list_row:click", "datum.inside"),
            on("@nonfinite_banner:click", "first_nonfinite[3] != '' ? first_nonfinite[3] : chosen"),
            on("@finding_row:click, @xray_mark:click", "datum.inside != '' ? datum.inside : chosen"),
            on("@xray_cells:click", "xray_row.inside != '' ? xray_row.inside : chosen"),
            *(
                on(f"@find_{slot}:click", f"length(data('pin_{slot}')) ? data('pin_{slot}')[0].inside : chosen")
                for slot in range(SLOTS)
            ),
        ),
        derived("here", "indexof(pluck(data('insides'), 'key'), chosen) >= 0 ? chosen : summary.home"),
        # Vega cannot append to a list, so this is text: each key between line feeds.
        state(
            "pins_text",
            "'\\n'",
            on("@pin:click", f"datum.pin >= 0 ? {removed.format('datum.key')} : pins_text + datum.key + '\\n'"),
            on("@node:click", "event.shiftKey && datum.pin < 0 ? pins_text + datum.key + '\\n' : pins_text"),
            on("window:mouseup", "is_dropped && indexof(pins, dragged) < 0 ? pins_text + dragged + '\\n' : pins_text"),
            on("@nonfinite_banner:click", f"{to_first} ? pins_text + first_nonfinite_key + '\\n' : pins_text"),
            on(
                "@finding_row:click, @xray_mark:click",
                "datum.key != '' && indexof(pins, datum.key) < 0 ? pins_text + datum.key + '\\n' : pins_text",
            ),
            on(
                "@xray_cells:click",
                "event.shiftKey && xray_row.key != '' && indexof(pins, xray_row.key) < 0 ? "
                "pins_text + xray_row.key + '\\n' : pins_text",
            ),
            *(on(f"@close_{slot}:click", removed.format(f"pins[first + {slot}]")) for slot in range(SLOTS)),
            on("@compared_close:click", removed.format("datum.key")),
        ),
        derived("pins", "slice(split(pins_text, '\\n'), 1, -1)"),
        state("colour_by", "0", on("@colour_menu_row:click", "datum.at")),
        state(
            "colour_menu_open",
            "false",
            on("@colour_button:click", "!colour_menu_open"),
            on(f"@colour_menu_row:click, @find:click, {OUTSIDE}", "false"),
            on("window:keydown", "event.key == 'Escape' ? false : colour_menu_open"),
        ),
        # Of all selected runs, so that a colour means the same in each of them.
        derived("shades", "[extent(pluck(data('ranges'), 'low'))[0], extent(pluck(data('ranges'), 'high'))[1]]"),
    ]


def _steps() -> list[Spec]:
    """The step shown. Its number is kept, so that another run shows the same step."""
    at = "clamp(floor((x() - time_x)/max(1, time_w)*step_count), 0, max(0, step_count - 1))"
    pointed = f"({at}) >= step_count - 1 ? -1 : toNumber(steps[{at}])"
    return [
        derived("time_x", "96"),
        derived("time_w", "max(20, graph_w - 96 - 12)"),
        state(
            "chosen_step",
            "-1",
            on("@time:mousedown", pointed),
            on("[@time:mousedown, window:mouseup] > window:mousemove", pointed),
            on("@nonfinite_banner:click", "toNumber(first_nonfinite[1])"),
            on("@finding_row:click, @xray_mark:click", "datum.part == 'head' ? chosen_step : toNumber(datum.step)"),
            on("@xray_cells:click", "toNumber(xray_at.first)"),
            *(on(f"@strip_{name}:click", "toNumber(strip_tip.said)") for name in (*range(SLOTS), "runs")),
        ),
        derived("shown", "chosen_step < 0 ? max(0, step_count - 1) : max(0, length(data('reached')) - 1)"),
        derived("is_step_nonfinite", "length(data('step_marks')) > shown && (data('step_marks')[shown].mark & 1) == 1"),
    ]


def _places() -> list[Spec]:
    """The places of the graph and of the columns."""
    wheeled = "abs(event.deltaX) > abs(event.deltaY) || event.shiftKey"
    last = "max(0, length(pins) - slots)"
    onwards = "(abs(event.deltaX) > 0 ? event.deltaX : event.deltaY) > 0 ? 1 : -1"
    return [
        derived("colour_button_w", "width < 640 ? 112 : 172"),
        derived("capacity", f"min({SLOTS}, max(1, floor((width - {LEAST_GRAPH}) / {COLUMN})))"),
        derived("slots", "xray_on || is_compared ? 0 : min(length(pins), capacity)"),
        state(
            "first",
            "0",
            when("pins_text", "max(0, length(split(pins_text, '\\n')) - 2 - capacity)"),
            on("@columns_next:click", f"min(first + 1, {last})"),
            on("@columns_previous:click", "max(first - 1, 0)"),
            on("wheel", f"{wheeled} && slots && x() > graph_w ? clamp(first + ({onwards}), 0, {last}) : first"),
        ),
        derived("column_w", f"min({COLUMN}, width * 0.6)"),
        derived("right_w", "xray_w || compared_w || slots * column_w"),
        derived("graph_w", "right_w >= width ? width : max(60, width - right_w)"),
        derived("nonfinite_banner_h", f"summary.first_nonfinite != '' ? {BANNER} : 0"),
        derived("notes_banner_h", f"summary.notes != '' ? {BANNER} : 0"),
        derived("top", f"{TOOLBAR} + nonfinite_banner_h + findings_banner_h + notes_banner_h"),
        derived("stage_h", "max(40, height - top)"),
        derived("here_w", "length(data('here_inside')) ? toNumber(data('here_inside')[0].width) : 100"),
        derived("here_h", "length(data('here_inside')) ? toNumber(data('here_inside')[0].height) : 100"),
        derived("trail_left", "length(data('trail')) ? min(0, graph_w - 12 - peek(data('trail')).end) : 0"),
        derived("time_h", f"step_count > 0 && stage_h > 120 ? {TIME} : 0"),
        # In a small panel the graph needs the room: then the legend has one line, for what is coloured or marked.
        derived("has_shades", "colour_by > 0 && stage_h > 160"),
        derived(
            "has_kinds",
            "stage_h > 300 ? colour_by > 0 || summary.first_nonfinite != '' : "
            "stage_h > 160 && !colour_by && summary.first_nonfinite != ''",
        ),
        derived("has_heat", "(slots > 0 || compared_w > 0) && stage_h > 300"),
        derived("legend_lines", "(has_shades ? 1 : 0) + (has_kinds ? 1 : 0) + (has_heat ? 1 : 0)"),
        derived("legend_h", f"legend_lines ? legend_lines*{LEGEND} + 6 : 0"),
        derived("hint_h", f"length(pins) == 0 && colour_by == 0 && legend_lines == 0 && run_count > 0 ? {HINT} : 0"),
        derived("foot", "time_h + legend_h + hint_h + 2"),
        derived("sight_w", "max(40, graph_w - 24)"),
        derived("sight_h", f"max(40, stage_h - {TRAIL + 8} - foot)"),
        derived("whole", "min(sight_w / here_w, sight_h / here_h)"),
        derived("fit", "clamp(whole, 0.6, 1.25)"),
        state("camera", "{k: 1, x: 0, y: 0}", *_camera()),
        derived("zoom", "fit * camera.k"),
        derived("base_x", "graph_w/2 - here_w*fit/2"),
        derived("base_y", f"{TRAIL + 8} + max(0, sight_h/2 - here_h*fit/2)"),
        derived("ox", "base_x + camera.x"),
        derived("oy", "base_y + camera.y"),
    ]


def _camera() -> list[Spec]:
    """How the graph is moved and enlarged. The point under the pointer stays in place."""
    wheel = "clamp(camera.k * pow(1.0015, -event.deltaY), 0.2, 8)"
    is_graph = "x() < graph_w && y() > top && xray_w < width && !(list_open && x() < list_w)"
    wheeled = _zoomed(wheel, "x()", "(y() - top)")
    return [
        on("wheel!", f"{is_graph} ? {wheeled} : camera"),
        on("@zoom_in:click", _zoomed("min(camera.k*1.3, 8)", "graph_w/2", "stage_h/2")),
        on("@zoom_out:click", _zoomed("max(camera.k/1.3, 0.2)", "graph_w/2", "stage_h/2")),
        on("@zoom_fit:click", "{k: min(1, whole/fit), x: here_w*(fit - min(whole, fit))/2, y: 0}"),
        when("here", "{k: 1, x: 0, y: 0}"),
        when("run", "{k: 1, x: 0, y: 0}"),
        on(
            "window:mousemove",
            "press.on ? {k: camera.k, x: press.cx + x() - press.x, y: press.cy + y() - press.y} : camera",
        ),
    ]


def _zoomed(k: str, x: str, y: str) -> str:
    """The camera with enlargement `k`; the point (`x`, `y`) of the graph's area stays in place."""
    moved = "({0} - base_{1}) - (({0} - base_{1}) - camera.{1}) * ({2}) / camera.k"
    return f"{{k: {k}, x: {moved.format(x, 'x', k)}, y: {moved.format(y, 'y', k)}}}"


def _pointer() -> list[Spec]:
    """Pressing, dragging, hovering."""
    nothing = "{on: false, x: 0, y: 0, cx: 0, cy: 0}"
    pressed = "{{on: {0}, x: x(), y: y(), cx: camera.x, cy: camera.y}}"
    return [
        state(
            "press",
            nothing,
            on("@stage:mousedown", pressed.format("true")),
            on("@node:mousedown", pressed.format("false")),
            on("window:mouseup", "{on: false, x: press.x, y: press.y, cx: 0, cy: 0}"),
        ),
        state("pointer", "[0, 0]", on("window:mousemove", "[x(), y()]")),
        state(
            "moved",
            "0",
            on("@stage:mousedown, @node:mousedown", "0"),
            on("window:mousemove", "max(moved, abs(x() - press.x) + abs(y() - press.y))"),
        ),
        state("dragged", "''", on("mousedown", "datum && isValid(datum.cx) ? datum.key : ''")),
        state(
            "is_dragging",
            "false",
            on("window:mousemove", "(event.buttons & 1) == 1 && dragged != '' && moved > 4"),
            on("window:mouseup", "false"),
        ),
        state("is_dropped", "false", on("window:mousemove", _DROPPED)),
        derived("drop_x", f"right_w ? graph_w : max(60, graph_w - {DROP_ZONE})"),
        state("hovered", "''", on("@node:mouseover", "datum.key"), on("@node:mouseout", "''")),
    ]


_DROPPED = (
    "(event.buttons & 1) == 1 && dragged != '' && moved > 4 && indexof(pins, dragged) < 0 && "
    "x() > drop_x && x() < width && y() > top && y() < height"
)


_SCROLLED = (
    "list_open && x() < list_w ? "
    "clamp(list_top + (event.deltaY > 0 ? 3 : -3), 0, max(0, length(data('modules')) - 3)) : list_top"
)


_LED_TO = (
    "datum.leads != '' ? "
    "(data('here_nodes')[indexof(pluck(data('here_nodes'), 'at'), datum.leads)] || {key: found}).key : found"
)
"""The node at the other end of a stub."""


def _finding() -> list[Spec]:
    """The list of modules, and the text typed into it."""
    typed = (
        "!list_open ? query : event.key == 'Backspace' ? slice(query, 0, -1) : "
        "length(event.key) == 1 && !event.ctrlKey && !event.metaKey ? query + event.key : query"
    )
    return [
        state(
            "list_open",
            "false",
            on("@find:click", "!list_open"),
            on(f"@list_row:click, @colour_button:click, {OUTSIDE}", "false"),
            on("window:keydown", "event.key == 'Escape' ? false : list_open"),
        ),
        state("query", "''", on("window:keydown", typed), when("list_open", "''")),
        state(
            "list_top",
            "0",
            on("wheel!", _SCROLLED),
            when("query", "0"),
        ),
        derived("list_w", "min(300, graph_w)"),
        derived("list_rows", f"list_open ? floor((stage_h - 34) / {LIST_ROW}) : 0"),
        state(
            "found",
            "''",
            on("@list_row:click", "datum.key"),
            *_finds(),
            on("@nonfinite_banner:click", "first_nonfinite_key"),
            on("@finding_row:click, @xray_mark:click", "datum.key"),
            on("@xray_cells:click", "xray_row.key"),
            on("@stub:click", _LED_TO),
            on("@stage:mousedown", "''"),
        ),
    ]


def _finds() -> list[Spec]:
    return [on(f"@find_{slot}:click", f"pins[first + {slot}]") for slot in range(SLOTS)]
