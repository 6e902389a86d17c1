"""Whether the x-ray is shown and where, its statistic and colours, the folding of modules, and the pointer."""

from __future__ import annotations

from torchgraph_explorer.record.cells.statistics import TENSOR_STATISTICS
from torchgraph_wandb.chart.decoding import code_at, formatted, size_of
from torchgraph_wandb.chart.vega import Spec, derived, listed, on, state, when
from torchgraph_wandb.chart.xray.sizes import (
    BAR,
    BESIDE,
    BETWEEN,
    LARGEST_ROW,
    LEAST_ROW,
    LEAST_RUN,
    MENU_W,
    NAMES,
    RAMP,
    RIGHT,
    TICKS,
)
from torchgraph_wandb.text_encoding import NOT_FINITE, NOT_RECORDED, SIZE_OCTAVES, TOP

FAR_LOW, FAR_HIGH = 1e6, 1e3
"""How far beyond the usual range of the runs, their median, one of them widens the range that all share."""

COLUMN = "clamp(floor((x() - xray_x - datum.left)/datum.w*datum.count), 0, datum.count - 1)"
"""The column under the pointer, of the run under it."""

LABELS = tuple(one.label for one in TENSOR_STATISTICS)
SHARES = "".join(str(int(one.is_share)) for one in TENSOR_STATISTICS)


def xray_signals() -> list[Spec]:
    """Whether it is shown and where, of which statistic, how modules are folded, and what the pointer is on."""
    return [*_choices(), *_places(), *_colours(), *_folding(), *_hovering()]


def _choices() -> list[Spec]:
    is_narrow = f"width < {BESIDE}"
    return [
        derived("xray_names", listed(LABELS)),
        derived("has_xray", "length(data('xrays')) > 0"),
        state(
            "xray_on",
            "true",
            on("@xray_button:click", "!xray_on"),
            on("@xray_cells:click, @xray_name:click", f"{is_narrow} ? false : xray_on"),
            when("pins_text", "length(split(pins_text, '\\n')) <= 2"),
        ),
        state("xray_chosen", "-1", on("@xray_menu_row:click", "datum.at")),
        derived("xray_by", "xray_chosen >= 0 ? xray_chosen : has_xray ? max(0, data('xrays')[0].first_recorded) : 0"),
        state(
            "xray_menu_open",
            "false",
            on("@xray_menu_button:click", "!xray_menu_open"),
            on(
                "@xray_menu_row:click, @stage:mousedown, @node:mousedown, @xray:mousedown, @xray_cells:mousedown",
                "false",
            ),
            on("window:keydown", "event.key == 'Escape' ? false : xray_menu_open"),
        ),
        derived("xray_w", f"xray_on && has_xray ? ({is_narrow} ? width : round(width*0.54)) : 0"),
        derived("xray_x", "width - xray_w"),
    ]


def _places() -> list[Spec]:
    fit = f"max(1, floor((xray_w - xray_gutter - {RIGHT}) / {LEAST_RUN + BETWEEN}))"
    last = "max(0, run_count - runs_n)"
    onwards = "(abs(event.deltaX) > 0 ? event.deltaX : event.deltaY) > 0 ? 1 : -1"
    sideways = "(abs(event.deltaX) > abs(event.deltaY) || event.shiftKey)"
    return [
        derived("xray_gutter", "clamp(xray_w*0.22, 74, 150)"),
        derived("xray_n", f"is_compared ? min(run_count, {fit}) : 1"),
        derived("runs_n", "xray_w ? xray_n : compared_n"),
        state(
            "runs_first",
            "0",
            on("@runs_next:click", f"min(runs_first + 1, {last})"),
            on("@runs_previous:click", "max(runs_first - 1, 0)"),
            on(
                "wheel",
                f"is_compared && {sideways} && x() > graph_w ? clamp(runs_first + ({onwards}), 0, {last}) : runs_first",
            ),
            when("runs_n", f"min(runs_first, {last})"),
            when("is_compared", "0"),
        ),
        derived("xray_run_w", f"max(1, (xray_w - xray_gutter - {RIGHT} + {BETWEEN})/max(1, xray_n) - {BETWEEN})"),
        derived("xray_from", "has_xray ? extent(pluck(data('xrays'), 'from'))[0] : 0"),
        derived("xray_span", "has_xray ? max(0.001, extent(pluck(data('xrays'), 'to'))[1] - xray_from) : 1"),
        derived("xray_names_h", f"is_compared ? {NAMES} : 0"),
        derived("xray_loss_name", "length(data('xray_loss')) ? data('xray_loss')[0].loss : ''"),
        derived("xray_has_loss", "has_xray && xray_loss_name != '' && stage_h > 150"),
        derived("xray_loss_h", "xray_has_loss ? clamp(stage_h*0.16, 26, 72) : 0"),
        derived("xray_loss_y", f"{BAR + 4} + xray_names_h"),
        derived("xray_rows_y", "xray_loss_y + (xray_loss_h ? xray_loss_h + 8 : 0)"),
        derived("xray_rows_h", f"max(10, stage_h - xray_rows_y - {TICKS})"),
    ]


def _colours() -> list[Spec]:
    is_share = f"toNumber(substring('{SHARES}', xray_by, xray_by + 1)) == 1"
    return [
        derived("xray_is_share", is_share),
        derived(
            "xray_range", "has_xray ? data('xray_range_of_all')[0] : {low: 0, high: 0, usual_low: 0, usual_high: 0}"
        ),
        derived(
            "xray_low",
            f"xray_is_share ? xray_range.low : max(xray_range.low, exp(xray_range.usual_low)/{FAR_LOW})",
        ),
        derived(
            "xray_high",
            f"xray_is_share ? xray_range.high : min(xray_range.high, exp(xray_range.usual_high)*{FAR_HIGH})",
        ),
        derived("xray_label_w", f"min({MENU_W}, max(150, xray_w - 270), xray_w*0.5)"),
        derived(
            "xray_has_ramp",
            "xray_w > 330 && isFinite(xray_low) && isFinite(xray_high) && xray_high > 0",
        ),
        derived("xray_keys_x", f"xray_label_w + (xray_has_ramp ? {100 + RAMP * 7} : 16)"),
        derived("xray_low_code", _code("xray_low")),
        derived("xray_high_code", _code("xray_high")),
        derived(
            "xray_loss_range",
            "length(data('xray_loss')) ? data('xray_loss_of_all')[0] : {low: NaN, high: NaN, usual: 0}",
        ),
        derived("xray_loss_low", "xray_loss_range.low"),
        derived(
            "xray_loss_high",
            "xray_loss_range.usual > 0 ? "
            f"min(xray_loss_range.high, xray_loss_range.usual*{FAR_HIGH}) : xray_loss_range.high",
        ),
        derived("xray_loss_is_log", "xray_loss_low > 0 && xray_loss_high/xray_loss_low > 30"),
        derived("xray_loss_from", "xray_loss_is_log ? log(xray_loss_low) : xray_loss_low"),
        derived(
            "xray_loss_span",
            "max(1e-12, (xray_loss_is_log ? log(xray_loss_high) : xray_loss_high) - xray_loss_from)",
        ),
    ]


def _code(value: str) -> str:
    """The code of a size, see `text_encoding.size_codes`."""
    octaves = f"log({value})/LN2 + {SIZE_OCTAVES // 2}"
    return f"({value} > 0 ? 1 + ({octaves})/{SIZE_OCTAVES}*{TOP - 1} : 1)"


def _folding() -> list[Spec]:
    """Which modules are folded. Rows down to a depth are shown, and what a click has opened or closed."""
    own = "'\\n' + datum.id + '\\n'"
    without = "replace({1}, " + own + ", '\\n')"
    changed = "(datum.inside_count > 0 && {0} ? " + without + " + datum.id + '\\n' : " + without + ")"
    height = "xray_row_h*length(data('xray_shown'))"
    is_here = "xray_w > 0 && x() > xray_x"
    is_down = "abs(event.deltaY) >= abs(event.deltaX) && !event.shiftKey"
    return [
        derived("xray_depth", "length(data('xray_depths')) ? max(1, peek(data('xray_depths')).depth) : 1"),
        state("xray_opened", "'\\n'", on("@xray_label:click", changed.format("!datum.is_open", "xray_opened"))),
        state("xray_closed", "'\\n'", on("@xray_label:click", changed.format("datum.is_open", "xray_closed"))),
        derived("xray_closed_pattern", "'/(' + join(slice(split(xray_closed, '\\n'), 1, -1), '|') + ')/'"),
        derived(
            "xray_row_h",
            f"clamp(xray_rows_h/max(1, length(data('xray_shown'))), {LEAST_ROW}, {LARGEST_ROW})",
        ),
        state(
            "xray_scroll",
            "0",
            on(
                "wheel!",
                f"{is_here} && {is_down} ? clamp(xray_scroll + event.deltaY*0.5, 0, max(0, {height} - xray_rows_h)) "
                ": xray_scroll",
            ),
            when("xray_row_h", "0"),
        ),
    ]


def _hovering() -> list[Spec]:
    """The row and the column under the pointer."""
    column = COLUMN
    row = "floor((y() - top - xray_rows_y + xray_scroll)/xray_row_h)"
    nothing = "{over: false, run: '', run_name: '', column: 0, row: -1, first: '', last: ''}"
    at_cell = (
        f"{{over: true, run: datum.run, run_name: datum.name, column: {column}, row: {row}, "
        f"first: datum.first_steps[{column}], last: datum.last_steps[{column}]}}"
    )
    is_row = "xray_at.row >= 0 && xray_at.row < length(data('xray_shown'))"
    place = "indexof(pluck(data('xray_matrix'), 'run'), xray_at.run)"
    matrix = "data('xray_matrix')[xray_matrix_at]"
    cell = f"{matrix}.texts[indexof({matrix}.places, xray_at.row)]"
    return [
        state("xray_at", nothing, on("@xray_cells:mousemove", at_cell), on("@xray_cells:mouseout", nothing)),
        state(
            "xray_loss_at",
            "''",
            on("@xray_loss_area:mousemove", f"datum.run + ' ' + {column}"),
            on("@xray_loss_area:mouseout", "''"),
        ),
        derived("xray_loss_place", "indexof(pluck(data('xray_loss'), 'place'), xray_loss_at)"),
        derived("xray_loss_point", f"xray_loss_place < 0 ? {_NO_LOSS} : data('xray_loss')[xray_loss_place]"),
        derived(
            "xray_row", f"{is_row} ? data('xray_shown')[xray_at.row] : {{module: '', key: '', inside: '', id: ''}}"
        ),
        derived("xray_matrix_at", place),
        derived("xray_text", f"{is_row} && xray_matrix_at >= 0 ? {cell} || '' : ''"),
        derived("xray_code", f"xray_text == '' ? {NOT_RECORDED} : {code_at('xray_text', 'xray_at.column')}"),
        derived("xray_value", size_of("xray_code")),
        derived(
            "xray_tip",
            f"xray_w > 0 && xray_at.over && {is_row} ? {_TIP} : xray_w > 0 && xray_loss_place >= 0 ? {_LOSS_TIP} : []",
        ),
    ]


_NO_LOSS = "{run: '', name: '', step_at: 0, first_steps: [], last_steps: [], mean: 0, low: 0, high: 0, is_bad: false}"
_STEPS = (
    "(xray_loss_point.first_steps[xray_loss_point.step_at] == xray_loss_point.last_steps[xray_loss_point.step_at] ? "
    "'step ' : 'steps ' + xray_loss_point.first_steps[xray_loss_point.step_at] + ' to ') + "
    "xray_loss_point.last_steps[xray_loss_point.step_at] + (is_compared ? ' of ' + xray_loss_point.name : '')"
)
_LOSS_TIP = (
    f"split(xray_loss_name + '\\n' + {_STEPS} + '\\n' + "
    f"(!isFinite(xray_loss_point.mean) ? 'no finite value' : xray_loss_point.low == xray_loss_point.high ? "
    f"{formatted('xray_loss_point.mean')} : 'mean ' + {formatted('xray_loss_point.mean')} + ', from ' + "
    f"{formatted('xray_loss_point.low')} + ' to ' + {formatted('xray_loss_point.high')}) + "
    "(xray_loss_point.is_bad ? '\\nNaN or infinity' : ''), '\\n')"
)
_SAID = (
    f"xray_code == {NOT_FINITE} ? 'NaN or infinity' : xray_code == {NOT_RECORDED} ? 'not recorded' : "
    f"xray_names[xray_by] + ': ' + {formatted('xray_value')}"
)
_TIP = (
    "split((xray_row.module == '' ? summary.model : xray_row.module) + '\\n' + "
    "(xray_at.first == xray_at.last ? 'step ' + xray_at.first : "
    "'the largest of steps ' + xray_at.first + ' to ' + xray_at.last) + "
    f"(is_compared ? ' of ' + xray_at.run_name : '') + '\\n' + ({_SAID}) + "
    "(xray_row.inside_count > 0 && !xray_row.is_open ? "
    "'\\nwith the ' + xray_row.inside_count + ' modules inside it' : '') + '\\nclick to go there', '\\n')"
)
