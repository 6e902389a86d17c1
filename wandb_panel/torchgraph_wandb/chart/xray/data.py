"""The runs shown, their losses, rows and images, and the findings at them."""

from __future__ import annotations

from torchgraph_explorer.record.cells.statistics import TENSOR_STATISTICS
from torchgraph_wandb import xray_rows
from torchgraph_wandb.chart.columns import label_place
from torchgraph_wandb.chart.datasets import PACKED, PART, RUN, run_lines
from torchgraph_wandb.chart.decoding import code_at, flag_at, float_bits, float_value, size_of
from torchgraph_wandb.chart.vega import Spec, dataset, flatten, formula, keep
from torchgraph_wandb.chart.xray.sizes import BETWEEN, DEEP_ROW, FOLDED_ROW, NAMED_ROW
from torchgraph_wandb.table import FIELDS
from torchgraph_wandb.text_encoding import ALPHABET, LIST_SEPARATOR, NOT_FINITE, NOT_RECORDED

LABEL_DEPTHS = (1, 2, 3, 99)
"""The levels of modules whose names get room one after the other; all that are deeper come last."""

ROUNDING = 1e-6
"""Pixels that two sums of floating-point numbers may differ by."""

FAR = 1e9
"""More rows, and more pixels, than there are."""


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
        dataset("xray_labels", "xray_shown", *_labels()),
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
        f"substring({field['ranges']}, {6 * n}, {6 * n + 3}) != '{_NAN}' ? {n} : "
        for n in range(len(TENSOR_STATISTICS))
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
    return [
        *found,
        formula("is_bad", f"{flag_at('datum.loss_bad', 'datum.step_at')} > 0"),
        formula("place", "datum.run + ' ' + datum.step_at"),
    ]


def _loss_shown() -> list[Spec]:
    def place(name: str) -> str:
        value = f"(xray_loss_is_log ? log(datum.{name}) : datum.{name})"
        share = f"clamp(({value} - xray_loss_from)/xray_loss_span, 0, 1)"
        return f"xray_loss_h*(xray_loss_low == xray_loss_high ? 0.5 : 1 - {share})"

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
        formula("is_point", "isFinite(datum.mean) && (!xray_loss_is_log || datum.mean > 0)"),
        {
            "type": "window",
            "groupby": ["run"],
            "ops": ["lag", "lead"],
            "fields": ["is_point", "is_point"],
            "as": ["is_before", "is_after"],
        },
        formula("is_alone", "datum.is_point && !datum.is_before && !datum.is_after"),
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
        formula("folded_cells", f"datum.fields[{own + len(TENSOR_STATISTICS)} + xray_by]"),
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
        {"type": "window", "sort": {"field": "latest"}, "ops": ["row_number"], "as": ["number"]},
        formula("place", "datum.number - 1"),
    ]


def _labels() -> list[Spec]:
    """Which rows are named: of those whose names would cover each other, the outer modules.

    From the outside in, a level of modules is named where the levels before leave room; if its own names are too close
    together there, each second, third, … of them.
    """
    middle = "(datum.place + 0.5)*xray_row_h"
    levels = [part for level, depth in enumerate(LABEL_DEPTHS) for part in _level(level, depth)]
    return [
        formula("y", f"max(datum.place ? 0 : {NAMED_ROW / 2}, {middle})"),
        formula("named_0", "!datum.place"),
        *levels,
        keep(f"datum.named_{len(LABEL_DEPTHS)}"),
    ]


def _level(level: int, depth: int) -> list[Spec]:
    """Names modules down to a depth beside those that are named already.

    Each level has fields of its own, because Vega computes a field anew only when one that it is computed from changes.
    """
    fields = ("named", "above", "below", "before", "after", "is_next", "turn", "last", "gap", "apart")
    named, above, below, before, after, is_next, turn, last, gap, apart = (f"{field}_{level}" for field in fields)
    by_place = {"type": "window", "sort": {"field": "place"}}
    room = f"min(datum.y - datum.{before}, datum.{after} - datum.y)"
    alike = {"groupby": [is_next, before]}
    return [
        formula(above, f"datum.{named} ? datum.y : {-FAR}"),
        formula(below, f"datum.{named} ? datum.y : {FAR}"),
        {**by_place, "ops": ["max"], "fields": [above], "as": [before], "frame": [-FAR, 0]},
        {**by_place, "ops": ["min"], "fields": [below], "as": [after], "frame": [0, FAR]},
        formula(is_next, f"!datum.{named} && datum.depth <= {depth} && {room} >= {NAMED_ROW - ROUNDING}"),
        {**by_place, **alike, "ops": ["lag", "row_number"], "fields": ["y", "y"], "as": [last, turn]},
        formula(gap, f"datum.{turn} == 1 ? {FAR} : datum.y - datum.{last}"),
        {"type": "joinaggregate", **alike, "ops": ["min"], "fields": [gap], "as": [apart]},
        formula(
            f"named_{level + 1}",
            f"datum.{named} || datum.{is_next} && (datum.{turn} - 1) % ceil({NAMED_ROW - ROUNDING}/datum.{apart}) == 0",
        ),
    ]


def _matrix() -> list[Spec]:
    """An image for each run: a pixel for each column and row. A row that the run does not have stays empty."""
    row: Spec = {"type": "lookup", "from": "xray_shown", "key": "id", "fields": ["id"]}
    run: Spec = {"type": "lookup", "from": "xray_runs", "key": "run", "fields": ["run"]}
    at = "datum.places[datum.$y] == datum.$y ? datum.$y : indexof(datum.places, datum.$y)"
    encoded = f"(substring(datum.texts[{at}] || '', 2*datum.$x, 2*datum.$x + 2) || '{_encoded(NOT_RECORDED)}')"
    code = code_at(encoded, "0")
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
                f"{encoded} == '{_encoded(0)}' && !xray_is_share ? paint.zero : "  # has no place on a logarithmic scale
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
        formula("content", "datum.tick == datum.count - 1 ? peek(datum.last_steps) : datum.first_steps[datum.tick]"),
        label_place("datum.left"),
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
        keep("datum.part != 'head'"),
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
