"""The x-ray: modules in order of execution by steps, the loss above it, findings as marks; one for each run shown."""

from __future__ import annotations

from torchgraph_explorer.record.cells.statistics import CELL_STATISTICS
from torchgraph_wandb import xray_rows
from torchgraph_wandb.chart.datasets import PACKED, PART, RUN, run_lines
from torchgraph_wandb.chart.decoding import flag_at, float_bits, float_value, formatted, formatted_briefly, size_of
from torchgraph_wandb.chart.findings_list import SEVERITY_COLOUR, SEVERITY_SHAPE
from torchgraph_wandb.chart.vega import (
    Spec,
    channels,
    colour,
    dataset,
    derived,
    flatten,
    formula,
    group,
    keep,
    listed,
    mark,
    on,
    state,
    text,
    when,
)
from torchgraph_wandb.table import FIELDS
from torchgraph_wandb.text_encoding import ALPHABET, LIST_SEPARATOR, NOT_FINITE, NOT_RECORDED, SIZE_OCTAVES, TOP

BAR, NAMES, TICKS = 26, 16, 18
"""Heights of the bar, of the names of the runs, and of the steps below."""

BESIDE = 720
"""A panel as wide as this has the x-ray beside the graph; a smaller one has one of them at a time."""

LEAST_RUN, BETWEEN, RIGHT = 72, 10, 10
"""The least width of a run, the room between two, and the room right of the last one."""

LEAST_ROW, LARGEST_ROW, NAMED_ROW = 2, 26, 9
"""Heights of a row. Names are written in rows as high as the last one; of lower ones, of some."""

FOLDED_ROW, DEEP_ROW = 4, 9
"""Modules are folded so far that a row is as high as this; modules at a depth of 3 or more, so that it is named."""

FAR_LOW, FAR_HIGH = 1e6, 1e3
"""How far beyond the usual range of the runs, their median, one of them widens the range that all share."""

MENU_ROW, MENU_W = 20, 178
MARK = 64
"""Size of the mark of a finding, in square pixels."""

LABELS = tuple(one.label for one in CELL_STATISTICS)
SHARES = "".join(str(int(one.is_share)) for one in CELL_STATISTICS)


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
        derived("xray_has_loss", "has_xray && isFinite(xray_loss_high) && stage_h > 150"),
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
        derived("xray_named", f"max(1, ceil({NAMED_ROW}/xray_row_h))"),
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
    column = "clamp(floor((x() - xray_x - datum.left)/datum.w*datum.count), 0, datum.count - 1)"
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
        derived(
            "xray_row", f"{is_row} ? data('xray_shown')[xray_at.row] : {{module: '', key: '', inside: '', id: ''}}"
        ),
        derived("xray_matrix_at", place),
        derived("xray_text", f"{is_row} && xray_matrix_at >= 0 ? {cell} || '' : ''"),
        derived("xray_code", f"xray_text == '' ? {NOT_RECORDED} : {_code_at('xray_text', 'xray_at.column')}"),
        derived("xray_value", size_of("xray_code")),
        derived("xray_tip", f"xray_w > 0 && xray_at.over && {is_row} ? {_TIP} : []"),
    ]


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


def _code_at(text: str, at: str) -> str:
    high, low = (f"indexof(alphabet, substring({text}, 2*({at}) + {n}, 2*({at}) + {n + 1}))" for n in range(2))
    return f"({high}*64 + {low})"


def xray_data() -> list[Spec]:
    """The runs shown, their losses, rows and images, and the findings at them."""
    return [
        dataset("xrays", "wandb", *_runs()),
        dataset("xray_ranges", "xrays", *_ranges()),
        dataset(
            "xray_range_of_all",
            "xray_ranges",
            _extremes("low", "high", ("low_log", "usual_low"), ("high_log", "usual_high")),
        ),
        dataset("xray_runs", "xrays", *_visible()),
        dataset("xray_loss", "xrays", *_loss()),
        dataset("xray_loss_of_all", "xray_loss", _extremes("low", "high", ("mean", "usual"))),
        dataset("xray_loss_shown", "xray_loss", *_loss_shown()),
        dataset("xray_lines", "wandb", *_lines()),
        dataset("xray_union", "xray_lines", *_union()),
        dataset("xray_depths", "xray_union", *_depths()),
        dataset("xray_shown", "xray_union", *_shown()),
        dataset("xray_matrix", "xray_lines", *_matrix()),
        dataset("xray_ticks", "xray_runs", *_ticks()),
        dataset("xray_marks", "all_findings", *_marks()),
        {"name": "xray_choices", "transform": _menu_rows()},
    ]


def _place(part: str, field: str) -> int:
    return FIELDS[part].index(field)


def _runs() -> list[Spec]:
    """A datum for each run that is to be shown, with what is common to its rows."""
    field = {name: f"datum.fields[{_place('xray', name)}]" for name in xray_rows.XRAY_FIELDS}
    recorded = [
        f"substring({field['ranges']}, {6 * n}, {6 * n + 3}) != '{_NAN}' ? {n} : " for n in range(len(CELL_STATISTICS))
    ]
    gap = "datum.count > 1 ? (toNumber(datum.first_steps[datum.count - 1]) - datum.from)/(datum.count - 1) : 1"
    return [
        keep(f"{PART} == 'xray'"),
        formula("run", RUN),
        keep("is_compared || datum.run == run"),
        formula("fields", f"split({PACKED}, '\\t')"),
        keep(f"{field['first']} != ''"),
        formula("at", "indexof(run_ids, datum.run)"),
        formula("first_steps", f"split({field['first']}, '{LIST_SEPARATOR}')"),
        formula("last_steps", f"split({field['last']}, '{LIST_SEPARATOR}')"),
        formula("count", "length(datum.first_steps)"),
        formula("from", "toNumber(datum.first_steps[0])"),
        formula("gap", gap),
        formula(
            "to",
            "max(toNumber(peek(datum.last_steps)) + min(1, datum.gap), toNumber(peek(datum.first_steps)) + datum.gap)",
        ),
        formula("first_recorded", "".join(recorded) + "-1"),
        *(formula(name, field[name]) for name in xray_rows.XRAY_FIELDS if name.startswith("loss")),
        formula("ranges", field["ranges"]),
    ]


def _ranges() -> list[Spec]:
    """The range of the statistic in each run."""
    low, high = (float_bits("datum.ranges", f"2*xray_by + {n}") for n in (0, 1))
    return [
        formula("low_code", low),
        formula("high_code", high),
        formula("low", float_value("datum.low_code")),
        formula("high", float_value("datum.high_code")),
        keep("isFinite(datum.low) && isFinite(datum.high)"),
        formula("low_log", "log(datum.low)"),
        formula("high_log", "log(datum.high)"),
    ]


def _extremes(low: str, high: str, *usual: tuple[str, str]) -> Spec:
    """The least `low`, the largest `high`, and medians, all over all data."""
    return {
        "type": "aggregate",
        "fields": [low, high, *(field for field, _ in usual)],
        "ops": ["min", "max", *("median" for _ in usual)],
        "as": ["low", "high", *(name for _, name in usual)],
    }


_NAN = ALPHABET[63] * 3


def _visible() -> list[Spec]:
    """The runs that there is room for, and where they are drawn: on an axis of steps that all share."""
    return [
        formula("column", "is_compared ? datum.at - runs_first : 0"),
        keep("xray_w > 0 && datum.column >= 0 && datum.column < xray_n"),
        formula("frame_x", f"xray_gutter + datum.column*(xray_run_w + {BETWEEN})"),
        formula("left", "datum.frame_x + xray_run_w*(datum.from - xray_from)/xray_span"),
        formula("w", "max(3, xray_run_w*(datum.to - datum.from)/xray_span)"),
    ]


def _loss() -> list[Spec]:
    """The loss of each column of each run."""
    found: list[Spec] = [keep("datum.loss != ''"), *flatten("step_at", "sequence(0, datum.count)")]
    for name in ("low", "high", "mean"):
        found += [
            formula(f"{name}_code", float_bits(f"datum.loss_{name}", "datum.step_at")),
            formula(name, float_value(f"datum.{name}_code")),
        ]
    return [*found, formula("is_bad", f"{flag_at('datum.loss_bad', 'datum.step_at')} > 0")]


def _loss_shown() -> list[Spec]:
    def place(name: str) -> str:
        value = f"(xray_loss_is_log ? log(datum.{name}) : datum.{name})"
        return f"xray_loss_h*(1 - clamp(({value} - xray_loss_from)/xray_loss_span, 0, 1))"

    return [
        keep("xray_loss_h > 0"),
        {
            "type": "lookup",
            "from": "xray_runs",
            "key": "run",
            "fields": ["run"],
            "values": ["left", "w"],
            "as": ["left", "w"],
        },
        keep("isNumber(datum.left)"),
        formula("x", "datum.left + (datum.step_at + 0.5)*datum.w/datum.count"),
        *(formula(f"{name}_y", f"xray_loss_y + ({place(name)})") for name in ("low", "high", "mean")),
    ]


def _lines() -> list[Spec]:
    """The rows of the runs shown, with their own cells and those with what is inside them."""
    own = len(xray_rows.ROW_FIELDS)
    plain = [formula(name, f"datum.fields[{at}]") for at, name in enumerate(xray_rows.ROW_FIELDS)]
    return [
        *run_lines("xray_rows"),
        keep("is_compared || datum.run == run"),
        formula("fields", "split(datum.line, '\\t')"),
        *plain,
        formula("own_cells", f"datum.fields[{own} + xray_by]"),
        formula("folded_cells", f"datum.fields[{own + len(CELL_STATISTICS)} + xray_by]"),
    ]


def _union() -> list[Spec]:
    """A row for each module of any run, in the order of execution."""
    names = ("module", "label", "above", "key", "inside")
    return [
        {
            "type": "aggregate",
            "groupby": ["id"],
            "fields": ["order", "order"],
            "ops": ["max", "argmax"],
            "as": ["latest", "one"],
        },
        {"type": "collect", "sort": {"field": "latest"}},
        *(formula(name, f"datum.one.{name}") for name in names),
        formula("depth", "toNumber(datum.one.depth)"),
        formula("inside_count", "toNumber(datum.one.inside_count)"),
    ]


def _depths() -> list[Spec]:
    """The depths down to which all rows have room."""
    return [
        {"type": "aggregate", "groupby": ["depth"], "ops": ["count"], "as": ["rows"]},
        {"type": "collect", "sort": {"field": "depth"}},
        {"type": "window", "ops": ["sum"], "fields": ["rows"], "as": ["reached"]},
        keep(f"datum.reached*(datum.depth < 3 ? {FOLDED_ROW} : {DEEP_ROW}) <= xray_rows_h"),
    ]


def _shown() -> list[Spec]:
    """The rows that are not folded away, numbered from 0."""
    parent = "'\\n' + substring(datum.above, length(datum.above) - 9, length(datum.above) - 1) + '\\n'"
    own = "'\\n' + datum.id + '\\n'"
    is_closed = f"indexof(xray_closed, {own}) >= 0"
    return [
        keep(f"datum.depth <= xray_depth || indexof(xray_opened, {parent}) >= 0"),
        keep("xray_closed == '\\n' || !test(regexp(xray_closed_pattern), datum.above)"),
        formula(
            "is_open",
            f"datum.inside_count > 0 && !({is_closed}) && "
            f"(datum.depth < xray_depth || indexof(xray_opened, {own}) >= 0)",
        ),
        {"type": "window", "ops": ["row_number"], "as": ["number"]},
        formula("place", "datum.number - 1"),
    ]


def _matrix() -> list[Spec]:
    """An image for each run: a pixel for each column and row. A row that the run does not have stays empty."""
    row: Spec = {"type": "lookup", "from": "xray_shown", "key": "id", "fields": ["id"]}
    run: Spec = {"type": "lookup", "from": "xray_runs", "key": "run", "fields": ["run"]}
    at = "datum.places[datum.$y] == datum.$y ? datum.$y : indexof(datum.places, datum.$y)"
    encoded = f"(substring(datum.texts[{at}] || '', 2*datum.$x, 2*datum.$x + 2) || '{_encoded(NOT_RECORDED)}')"
    code = _code_at(encoded, "0")
    along = f"(xray_is_share ? {size_of(code)} : ({code} - xray_low_code)/max(1, xray_high_code - xray_low_code))"
    return [
        {**row, "values": ["place", "is_open"], "as": ["place", "is_open"]},
        keep("isNumber(datum.place)"),
        formula("text", "!datum.is_open && datum.folded_cells != '' ? datum.folded_cells : datum.own_cells"),
        {"type": "aggregate", "groupby": ["run"], "fields": ["place"], "ops": ["values"], "as": ["rows"]},
        {**run, "values": ["left", "w", "count"], "as": ["left", "w", "count"]},
        keep("isNumber(datum.left)"),
        formula("places", "pluck(datum.rows, 'place')"),
        formula("texts", "pluck(datum.rows, 'text')"),
        formula("grid", "{width: datum.count, height: length(data('xray_shown')), values: []}"),
        {
            "type": "heatmap",
            "field": "grid",
            "as": "image",
            "color": {
                "expr": f"{encoded} == '{_encoded(NOT_FINITE)}' ? paint.bad : "
                f"paint.xray[floor(clamp({along}, 0, 1)*(length(paint.xray) - 0.001))]"
            },
            "opacity": {"expr": f"{encoded} == '{_encoded(NOT_RECORDED)}' ? 0 : 1"},
        },
    ]


def _encoded(code: int) -> str:
    return ALPHABET[code >> 6] + ALPHABET[code & 63]


def _ticks() -> list[Spec]:
    """The first and the last step below each run, and one between where there is room."""
    wide = "length(peek(datum.last_steps))*5.4 + 6"
    return [
        formula(
            "places",
            f"datum.count < 2 || 2*({wide}) > datum.w ? [datum.count - 1] : "
            f"datum.count > 2 && 3*({wide}) < datum.w ? [0, floor((datum.count - 1)/2), datum.count - 1] : "
            "[0, datum.count - 1]",
        ),
        {"type": "flatten", "fields": ["places"], "as": ["tick"]},
        formula("tick_x", "datum.left + (datum.tick + 0.5)/datum.count*datum.w"),
        formula("align", "datum.tick == 0 ? 'left' : datum.tick == datum.count - 1 ? 'right' : 'center'"),
        formula(
            "label_x",
            "datum.align == 'left' ? datum.left : datum.align == 'right' ? datum.left + datum.w : datum.tick_x",
        ),
        formula("content", "datum.tick == datum.count - 1 ? peek(datum.last_steps) : datum.first_steps[datum.tick]"),
    ]


def _marks() -> list[Spec]:
    """Where findings begin; those of the whole run stand at the loss. One in a folded module stands at that."""
    lookup: Spec = {"type": "lookup", "from": "xray_shown", "key": "id"}
    above: Spec = {"type": "lookup", "from": "xray_union", "key": "id", "fields": ["module"], "values": ["above"]}
    chain: list[Spec] = []
    names = ["place_0"]
    for level in range(1, 6):
        end = 10 * (level - 1)
        chain += [
            formula(
                f"outer_{level}",
                f"substring(datum.above, length(datum.above) - {end + 9}, length(datum.above) - {end + 1})",
            ),
            {**lookup, "fields": [f"outer_{level}"], "values": ["place"], "as": [f"place_{level}"]},
        ]
        names.append(f"place_{level}")
    places = " : ".join(f"isNumber(datum.{name}) ? datum.{name}" for name in names)
    return [
        {
            "type": "lookup",
            "from": "xray_runs",
            "key": "run",
            "fields": ["run"],
            "values": ["left", "w", "count"],
            "as": ["left", "w", "count"],
        },
        keep("isNumber(datum.left)"),
        {**above, "as": ["own_above"]},
        formula("above", "datum.own_above || ''"),
        {**lookup, "fields": ["module"], "values": ["place"], "as": ["place_0"]},
        *chain,
        formula("place", f"{places} : -1"),
        formula("is_whole", "datum.module == '' || datum.place < 0"),
        keep("!datum.is_whole || xray_loss_h > 0"),
        formula("mark_x", "datum.left + (clamp(toNumber(datum.column), 0, datum.count - 1) + 0.5)*datum.w/datum.count"),
        formula(
            "mark_y",
            "datum.is_whole ? xray_loss_y + 6 : xray_rows_y + (datum.place + 0.5)*xray_row_h - xray_scroll",
        ),
        keep("datum.is_whole || (datum.mark_y > xray_rows_y - 1 && datum.mark_y < xray_rows_y + xray_rows_h)"),
    ]


def _menu_rows() -> list[Spec]:
    return [
        {"type": "sequence", "start": 0, "stop": {"signal": "xray_menu_open ? length(xray_names) : 0"}, "as": "at"},
        formula("content", "xray_names[datum.at]"),
    ]


def xray() -> Spec:
    """The area on the right, or everything in a small panel."""
    return group(
        "xray",
        *_bar(),
        *_run_names(),
        *_loss_marks(),
        _rows(),
        *_labels(),
        *_lines_across(),
        *_tick_marks(),
        *_finding_marks(),
        *_drop_target(),
        *_menu(),
        listens=True,
        x="xray_x",
        y="top",
        width="xray_w",
        height="xray_w ? stage_h : 0",
        fill=colour("paper"),
        stroke=colour("line"),
    )


def _bar() -> list[Spec]:
    """The statistic, and what its colours stand for."""
    y, ramp = BAR / 2 + 1, 10
    label_w = f"min({MENU_W}, xray_w*0.5)"
    is_there = "xray_w > 0"
    begin = f"({label_w} + 12)"
    is_ramp = f"{is_there} && isFinite(xray_low) && isFinite(xray_high) && xray_high > 0 && xray_w > 330"
    low, high = (formatted_briefly(f"xray_{end}") for end in ("low", "high"))
    cells = [
        mark(
            "rect",
            x=f"{begin} + 44 + {step}*7",
            y={"value": y - 5},
            width={"value": 7},
            height={"value": 10},
            fill=f"paint.xray[floor({step}/{ramp - 1}*(length(paint.xray) - 1))]",
            opacity=f"{is_ramp} ? 1 : 0",
        )
        for step in range(ramp)
    ]
    red = f"({begin} + 44 + {ramp * 7} + 48)"
    is_red = f"{is_there} && xray_w > 440"
    return [
        mark(
            "rect",
            name="xray_menu_button",
            listens=True,
            x={"value": 4},
            y={"value": 4},
            width=f"{is_there} ? {label_w} : 0",
            height={"value": BAR - 6},
            cornerRadius={"value": 3},
            fill=colour("bar"),
            stroke=colour("frame"),
            cursor={"value": "pointer"},
        ),
        text(
            f"{is_there} ? xray_names[xray_by] + ' ▾' : ''",
            x={"value": 11},
            y={"value": y},
            limit=f"{label_w} - 12",
            fontWeight={"value": 600},
        ),
        text(
            f"{is_ramp} ? {low} : ''", x=f"{begin} + 40", y={"value": y}, align={"value": "right"}, size=10, ink="soft"
        ),
        *cells,
        text(f"{is_ramp} ? {high} : ''", x=f"{begin} + 48 + {ramp * 7}", y={"value": y}, size=10, ink="soft"),
        mark(
            "rect",
            x=red,
            y={"value": y - 5},
            width={"value": 10},
            height={"value": 10},
            fill=colour("bad"),
            opacity=f"{is_red} ? 1 : 0",
        ),
        text(f"{is_red} ? 'NaN, ∞' : ''", x=f"{red} + 14", y={"value": y}, size=10, ink="soft"),
    ]


def _run_names() -> list[Spec]:
    """The name of each run over its x-ray; a click shows the run in the graph."""
    return [
        mark(
            "rect",
            name="xray_name",
            listens=True,
            data="xray_runs",
            x="datum.frame_x - 2",
            y={"value": BAR},
            width="xray_run_w + 4",
            height=f"is_compared ? {NAMES} : 0",
            cornerRadius={"value": 3},
            fill="datum.run == run ? paint.glow : paint.paper",
            cursor={"value": "pointer"},
        ),
        text(
            "is_compared ? datum.name : ''",
            data="xray_runs",
            x="datum.frame_x",
            y={"value": BAR + NAMES / 2},
            size=10.5,
            limit="xray_run_w",
            dir={"value": "rtl"},
            fontWeight={"value": 600},
        ),
    ]


def _loss_marks() -> list[Spec]:
    """The loss of each run: a line through the means of the columns, and a band from the least to the largest."""
    is_there = "isFinite(datum.{0}) && (!xray_loss_is_log || datum.{0} > 0)"
    band = {
        "x": "datum.x",
        "y": "datum.low_y",
        "y2": "datum.high_y",
        "fill": colour("loss"),
        "fillOpacity": {"value": 0.25},
        "defined": is_there.format("low"),
    }
    line = {
        "x": "datum.x",
        "y": "datum.mean_y",
        "stroke": colour("loss"),
        "strokeWidth": {"value": 1.4},
        "defined": is_there.format("mean"),
    }
    curves: Spec = {
        "type": "group",
        "interactive": False,
        "from": {"facet": {"name": "xray_curve", "data": "xray_loss_shown", "groupby": "run"}},
        "marks": [
            {
                "type": kind,
                "interactive": False,
                "from": {"data": "xray_curve"},
                "encode": {"update": channels(encoding)},
            }
            for kind, encoding in (("area", band), ("line", line))
        ],
    }
    place: Spec = {"x": "xray_gutter - 5", "align": {"value": "right"}, "size": 9.5, "ink": "faint"}
    low, high = (formatted_briefly(f"xray_loss_{end}") for end in ("low", "high"))
    name = "xray_has_loss && length(data('xray_loss')) ? data('xray_loss')[0].loss : ''"
    return [
        mark(
            "rect",
            data="xray_runs",
            x="datum.frame_x",
            y="xray_loss_y",
            width="xray_run_w",
            height="xray_loss_h",
            fill=colour("bar"),
        ),
        curves,
        mark(
            "rect",
            data="xray_loss_shown",
            x="datum.left + datum.step_at*datum.w/datum.count",
            y="xray_loss_y",
            width="datum.is_bad ? max(1.5, datum.w/datum.count) : 0",
            height={"value": 4},
            fill=colour("bad"),
        ),
        text(name, x={"value": 6}, y="xray_loss_y + xray_loss_h/2", size=10.5, ink="soft", limit="xray_gutter - 48"),
        text(f"xray_has_loss ? {high} : ''", y="xray_loss_y + 4", **place),
        text(f"xray_has_loss && xray_loss_h > 24 ? {low} : ''", y="xray_loss_y + xray_loss_h - 4", **place),
        text(
            "xray_loss_is_log && xray_loss_h > 40 ? 'log' : ''",
            **{**place, "y": "xray_loss_y + xray_loss_h/2", "size": 9},
        ),
    ]


def _rows() -> Spec:
    """The cells, clipped to their area."""
    return group(
        "xray_rows",
        mark(
            "rect",
            data="xray_runs",
            x="datum.left - xray_gutter",
            y={"value": 0},
            width="datum.w",
            height="xray_row_h*length(data('xray_shown')) - xray_scroll",
            fill=colour("missing"),
        ),
        mark(
            "image",
            data="xray_matrix",
            image={"field": "image"},
            x="datum.left - xray_gutter",
            y="-xray_scroll",
            width="datum.w",
            height="xray_row_h*length(data('xray_shown'))",
            aspect="false",
            smooth="false",
        ),
        mark(
            "rect",
            x={"value": 0},
            y="xray_at.row*xray_row_h - xray_scroll",
            width=f"xray_w - xray_gutter - {RIGHT}",
            height="xray_at.over ? xray_row_h : 0",
            stroke=colour("ink"),
            fill={"value": "transparent"},
        ),
        mark(
            "rect",
            name="xray_cells",
            listens=True,
            data="xray_runs",
            x="datum.left - xray_gutter",
            y={"value": 0},
            width="datum.w",
            height="xray_rows_h",
            fill={"value": "transparent"},
            cursor={"value": "crosshair"},
        ),
        x="xray_gutter",
        y="xray_rows_y",
        width="max(0, xray_w - xray_gutter)",
        height="xray_w ? xray_rows_h : 0",
    )


def _labels() -> list[Spec]:
    """The names of rows; a click folds a module, or opens it."""
    y = "max(datum.place ? 0 : 5, (datum.place + 0.5)*xray_row_h) - xray_scroll"
    is_named = "datum.place % xray_named == 0"
    sign = "datum.inside_count > 0 ? (datum.is_open ? '▾ ' : '▸ ') : ''"
    return [
        group(
            "xray_gutter_area",
            text(
                f"{is_named} ? ({sign}) + datum.label : ''",
                data="xray_shown",
                name="xray_label",
                x="6 + min(datum.depth, 5)*7",
                y=y,
                size="clamp(xray_row_h - 1, 8.5, 11)",
                limit="max(10, xray_gutter - 12 - min(datum.depth, 5)*7)",
                dir={"value": "rtl"},
                fill="datum.key != '' && datum.key == found ? paint.accent : datum.inside_count > 0 ? paint.ink : "
                "paint.soft",
                cursor="datum.inside_count > 0 ? 'pointer' : 'default'",
            ),
            x={"value": 0},
            y="xray_rows_y",
            width="xray_w ? xray_gutter : 0",
            height="xray_w ? xray_rows_h : 0",
        )
    ]


def _lines_across() -> list[Spec]:
    """The step shown, in every run."""
    begin = "xray_loss_h ? xray_loss_y : xray_rows_y"
    at = "datum.left + datum.w*(chosen_step + 0.5*min(1, datum.gap) - datum.from)/(datum.to - datum.from)"
    return [
        mark(
            "rule",
            data="xray_runs",
            x=f"clamp({at}, datum.left, datum.left + datum.w)",
            y=begin,
            y2="xray_rows_y + min(xray_rows_h, xray_row_h*length(data('xray_shown')))",
            stroke=colour("accent"),
            strokeWidth={"value": 1.5},
            opacity="chosen_step >= 0 ? 0.95 : 0",
        )
    ]


def _tick_marks() -> list[Spec]:
    y = "xray_rows_y + min(xray_rows_h, xray_row_h*length(data('xray_shown')))"
    count = "length(data('xray_shown'))"
    is_cut = f"xray_w > 0 && xray_row_h*{count} > xray_rows_h + 1"
    shown = "floor(xray_scroll/xray_row_h + 1) + '–' + floor((xray_scroll + xray_rows_h)/xray_row_h)"
    return [
        text(
            f"{is_cut} ? {shown} + ' of ' + {count} + ', scroll' : ''",
            x={"value": 6},
            y=f"{y} + 10",
            size=9.5,
            ink="soft",
            limit="xray_gutter - 6",
        ),
        mark("rule", data="xray_ticks", x="datum.tick_x", y=y, y2=f"{y} + 3", stroke=colour("control")),
        text(
            "datum.content",
            data="xray_ticks",
            x="datum.label_x",
            y=f"{y} + 10",
            align="datum.align",
            size=9.5,
            ink="faint",
        ),
    ]


def _finding_marks() -> list[Spec]:
    return [
        mark(
            "symbol",
            name="xray_mark",
            listens=True,
            data="xray_marks",
            x="datum.mark_x",
            y="datum.mark_y",
            size=f"datum.level == '0' ? {MARK} : {MARK * 0.55}",
            shape=SEVERITY_SHAPE,
            fill=SEVERITY_COLOUR,
            stroke={"value": "#ffffff"},
            strokeWidth={"value": 1.5},
            cursor={"value": "pointer"},
        )
    ]


def _drop_target() -> list[Spec]:
    """What shows that a node can be dropped here."""
    return [
        mark(
            "rect",
            x={"value": 6},
            y={"value": 6},
            width="is_dragging && xray_w ? xray_w - 12 : 0",
            height="is_dragging && xray_w ? stage_h - 12 : 0",
            cornerRadius={"value": 8},
            fill=colour("glow"),
            stroke=colour("accent"),
            strokeDash={"value": [5, 4]},
            opacity="is_dragging && xray_w ? 0.9 : 0",
        ),
        text(
            "is_dragging && xray_w ? 'drop here' : ''",
            x="xray_w/2",
            y={"value": 30},
            align={"value": "center"},
            ink="accent",
        ),
    ]


def _menu() -> list[Spec]:
    return [
        mark(
            "rect",
            name="xray_menu_row",
            listens=True,
            data="xray_choices",
            x={"value": 4},
            y=f"{BAR - 1} + datum.at*{MENU_ROW}",
            width={"value": MENU_W + 4},
            height={"value": MENU_ROW},
            fill="datum.at == xray_by ? paint.glow : paint.paper",
            stroke=colour("line"),
            cursor={"value": "pointer"},
        ),
        text(
            "(datum.at == xray_by ? '●  ' : '○  ') + datum.content",
            data="xray_choices",
            x={"value": 12},
            y=f"{BAR - 1} + datum.at*{MENU_ROW} + {MENU_ROW / 2}",
        ),
    ]
