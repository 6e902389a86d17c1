"""The tooltip of a strip: the step and the row under the pointer."""

from __future__ import annotations

from torchgraph_wandb.chart.decoding import code_at, flag_at, float_bits, float_value, formatted, share_of
from torchgraph_wandb.chart.strip_layout import HEAT, STRIP_W, heat_y
from torchgraph_wandb.chart.vega import Spec, derived, on, state
from torchgraph_wandb.heat_strips import INNER, ROWS, STEP_STATISTICS
from torchgraph_wandb.text_encoding import FLOAT_WIDTH, NOT_FINITE, NOT_RECORDED

HEADER = 40
"""Height of a column's header, above the scrolled area."""


def hovering(slots: int) -> list[Spec]:
    """The strip, step and row under the pointer, and the values shown of them."""
    strips = [f"strip_{slot}" for slot in range(slots)]
    begins = [on(f"@{strip}:mousemove", _pointed(slot)) for slot, strip in enumerate(strips)]
    nothing = (
        "{over: false, step: -1, name: '', side: 0, role: '', row: 0, low: 0, high: 0, cell: 0, flag: 0, "
        "statistics: ''}"
    )
    return [
        state("strip_tip", nothing, *begins, *(on(f"@{strip}:mouseout", nothing) for strip in strips)),
        derived("hover_step", "strip_tip.over ? strip_tip.step : -1"),
        *(
            derived(f"tip_code_{name}", float_bits("strip_tip.statistics", column))
            for column, name in enumerate(STEP_STATISTICS)
        ),
        *(derived(f"tip_{name}", float_value(f"tip_code_{name}")) for name in STEP_STATISTICS),
        derived("tip_share", share_of("strip_tip.cell")),
        derived("tip_low", f"strip_tip.low + (strip_tip.high - strip_tip.low)*({INNER} - strip_tip.row)/{INNER}"),
        derived("tip_high", f"strip_tip.low + (strip_tip.high - strip_tip.low)*({INNER + 1} - strip_tip.row)/{INNER}"),
    ]


def _pointed(slot: int) -> str:
    within = f"x() - graph_w - {slot}*column_w - datum.x"
    at = f"clamp(floor(({within}) / {STRIP_W} * step_count), 0, step_count - 1)"
    row, width = _row(slot), FLOAT_WIDTH * len(STEP_STATISTICS)
    return (
        f"{{over: true, step: {at}, name: datum.name, side: datum.side, role: datum.role, row: {row}, "
        f"low: datum.low, high: datum.high, cell: {code_at('datum.cells', f'({at})*{ROWS} + {row}')}, "
        f"flag: {flag_at('datum.flags', at)}, "
        f"statistics: substring(datum.statistics, {width}*({at}), {width}*({at} + 1))}}"
    )


def _row(slot: int) -> str:
    """The row under the pointer, counted from the top; beyond the run's own axis, the first or the last row."""
    down = f"(y() - top - {HEADER} - {heat_y(slot)})/{HEAT}"
    value = f"(datum.axis_high - {down}*(datum.axis_high - datum.axis_low))"
    inner = f"1 + floor({INNER}*(datum.high - {value})/(datum.high - datum.low))"
    plain = f"1 + floor({INNER}*{down})"
    own = f"{down} < 0 ? 0 : {down} >= 1 ? {ROWS - 1} : datum.has_axis ? {inner} : {plain}"
    return f"clamp({own}, 0, {ROWS - 1})"


_WHERE = (
    f"strip_tip.row == 0 ? 'above ' + {formatted('strip_tip.high')} : "
    f"strip_tip.row == {ROWS - 1} ? 'below ' + {formatted('strip_tip.low')} : "
    f"{formatted('tip_low')} + ' to ' + {formatted('tip_high')}"
)
_COUNT = (
    "format(round(tip_share*tip_sampled), ',') + ' of ' + format(tip_sampled, ',.0f') + "
    "' (' + format(tip_share, tip_share > 0 && tip_share < 0.001 ? '.1~e' : '.1~%') + ')'"
)
_RECORDED = (
    f"strip_tip.cell == {NOT_FINITE} ? 'no finite value' : ({_WHERE}) + ':  ' + {_COUNT}, "
    f"'mean ' + {formatted('tip_mean')} + '  std ' + {formatted('tip_std')}, "
    f"'min ' + {formatted('tip_min')} + '  max ' + {formatted('tip_max')}, "
    f"'norm ' + {formatted('tip_l2_norm')}, "
    "'zeros ' + (isNaN(tip_zero_share) ? '–' : format(tip_zero_share, '.1%')), "
    "tip_nonfinite > 0 ? 'NaN or infinity: ' + format(tip_nonfinite, ',.0f') + "
    "(strip_tip.flag ? '' : ', as in a mask') : 'all finite'"
)
_HEAD = (
    "strip_tip.name + (!strip_tip.side ? ', values' : strip_tip.role == 'param' ? ', gradient' : ', gradient norm'), "
    "'step ' + steps[strip_tip.step]"
)
STRIP_LINES = f"(strip_tip.cell == {NOT_RECORDED} ? [{_HEAD}, 'not recorded at this step'] : [{_HEAD}, {_RECORDED}])"
"""The lines of the tooltip."""
