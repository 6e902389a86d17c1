"""What is drawn of the x-ray: the bar, the loss, the cells, the names of modules, and findings."""

from __future__ import annotations

from torchgraph_wandb.chart.decoding import formatted_briefly
from torchgraph_wandb.chart.findings_list import SEVERITY_COLOUR, SEVERITY_SHAPE
from torchgraph_wandb.chart.vega import Spec, channels, colour, group, mark, text
from torchgraph_wandb.chart.xray.sizes import BAR, MARK, MENU_ROW, MENU_W, NAMED_ROW, NAMES, RAMP, RIGHT

LOSS_CHARACTER = 6.0
"""About the width of a character of the loss's name, in pixels."""


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
    y, ramp = BAR / 2 + 1, RAMP
    label_w, is_there, begin, is_ramp = "xray_label_w", "xray_w > 0", "(xray_label_w + 12)", "xray_has_ramp"
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
        *_key("bad", "NaN, ∞", x="xray_keys_x", is_there="xray_w > xray_keys_x + 54"),
        *_key("zero", "zero", x="xray_keys_x + 60", is_there="!xray_is_share && xray_w > xray_keys_x + 98"),
    ]


def _key(ink: str, name: str, *, x: str, is_there: str) -> list[Spec]:
    """What a colour beside the scale stands for."""
    y = BAR / 2 + 1
    side: Spec = {"value": 10}
    square = mark(
        "rect", x=x, y={"value": y - 5}, width=side, height=side, fill=colour(ink), opacity=f"{is_there} ? 1 : 0"
    )
    return [square, text(f"{is_there} ? '{name}' : ''", x=f"{x} + 14", y={"value": y}, size=10, ink="soft")]


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
    """The loss of each run: a line through the means of the columns, and a band from the least to the largest.

    A column whose neighbours have no number has a dot, since a line needs two.
    """
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
    is_one = "xray_loss_low == xray_loss_high"
    room = "xray_gutter - 48"
    whole = "xray_loss_name"
    last = f"substring({whole}, lastindexof({whole}, '/') + 1)"  # train/loss
    name = f"length({whole})*{LOSS_CHARACTER} > {room} ? {last} : {whole}"
    is_number = "xray_has_loss && isFinite(xray_loss_high)"
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
            "symbol",
            data="xray_loss_shown",
            x="datum.x",
            y="datum.mean_y",
            size="datum.is_alone ? 14 : 0",
            fill=colour("loss"),
        ),
        mark(
            "rect",
            data="xray_loss_shown",
            x="datum.left + datum.step_at*datum.w/datum.count",
            y="xray_loss_y",
            width="datum.is_bad ? max(1.5, datum.w/datum.count) : 0",
            height={"value": 4},
            fill=colour("bad"),
        ),
        mark(
            "rect",
            name="xray_loss_area",
            listens=True,
            data="xray_runs",
            x="datum.frame_x",
            y="xray_loss_y",
            width="xray_run_w",
            height="xray_loss_h",
            fill={"value": "transparent"},
        ),
        text(
            name,
            name="xray_loss_name",
            x={"value": 6},
            y="xray_loss_y + xray_loss_h/2",
            size=10.5,
            ink="soft",
            limit=room,
        ),
        text(f"{is_number} ? {high} : ''", y=f"xray_loss_y + ({is_one} ? xray_loss_h/2 : 4)", **place),
        text(
            f"{is_number} && !({is_one}) && xray_loss_h > 24 ? {low} : ''", y="xray_loss_y + xray_loss_h - 4", **place
        ),
        text(f"xray_has_loss && !({is_number}) ? 'NaN' : ''", **{**place, "y": "xray_loss_y + xray_loss_h/2"}),
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
    y = "datum.y - xray_scroll"
    is_whole = f"{y} <= xray_rows_h - {NAMED_ROW / 2 - 1}"
    sign = "datum.inside_count > 0 ? (datum.is_open ? '▾ ' : '▸ ') : ''"
    return [
        group(
            "xray_gutter_area",
            text(
                f"{is_whole} ? ({sign}) + datum.label : ''",
                data="xray_labels",
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
            f"{is_cut} ? {shown} + ' of ' + {count} + (xray_gutter > 120 ? ', scroll' : ' ↕') : ''",
            x={"value": 6},
            y=f"{y} + 10",
            size=9.5,
            ink="soft",
            limit="xray_gutter - 10",
        ),
        mark("rule", data="xray_ticks", x="datum.tick_x", y=y, y2=f"{y} + 3", stroke=colour("control")),
        text(
            "datum.content",
            data="xray_ticks",
            x="datum.label_x",
            y=f"{y} + 10",
            align={"value": "center"},
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
