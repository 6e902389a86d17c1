"""What is told of the step and the row of a strip that the pointer is over."""

from __future__ import annotations

from torchgraph_wandb.chart.decoding import code, flag, number, share, short_code, shown
from torchgraph_wandb.chart.strip_layout import HEAT, STRIP_W, heat_y
from torchgraph_wandb.chart.vega import Spec, derived, on, state
from torchgraph_wandb.heat_strips import INNER, ROWS, TOLD
from torchgraph_wandb.text_encoding import FLOAT_LETTERS, NOT_FINITE, NOT_RECORDED

HEAD = 40
"""Height of the head of a column, above what is scrolled."""


def hovering(slots: int) -> list[Spec]:
    """Which step and row of which strip the pointer is over, and what is to be told of them."""
    strips = [f"strip_{slot}" for slot in range(slots)]
    begins = [on(f"@{strip}:mousemove", _pointed(slot)) for slot, strip in enumerate(strips)]
    nothing = (
        "{over: false, step: -1, path: '', side: 0, role: '', row: 0, low: 0, high: 0, cell: 0, flag: 0, told: ''}"
    )
    return [
        state("strip_tip", nothing, *begins, *(on(f"@{strip}:mouseout", nothing) for strip in strips)),
        derived("hover_step", "strip_tip.over ? strip_tip.step : -1"),
        *(derived(f"tip_code_{name}", code("strip_tip.told", at)) for at, name in enumerate(TOLD)),
        *(derived(f"tip_{name}", number(f"tip_code_{name}")) for name in TOLD),
        derived("tip_share", share("strip_tip.cell")),
        derived("tip_low", f"strip_tip.low + (strip_tip.high - strip_tip.low)*({INNER} - strip_tip.row)/{INNER}"),
        derived("tip_high", f"strip_tip.low + (strip_tip.high - strip_tip.low)*({INNER + 1} - strip_tip.row)/{INNER}"),
    ]


def _pointed(slot: int) -> str:
    within = f"x() - graph_w - {slot}*column_w - datum.x"
    at = f"clamp(floor(({within}) / {STRIP_W} * step_count), 0, step_count - 1)"
    row, told = _row(slot), FLOAT_LETTERS * len(TOLD)
    return (
        f"{{over: true, step: {at}, path: datum.path, side: datum.side, role: datum.role, row: {row}, "
        f"low: datum.low, high: datum.high, cell: {short_code('datum.cells', f'({at})*{ROWS} + {row}')}, "
        f"flag: {flag('datum.flags', at)}, told: substring(datum.told, {told}*({at}), {told}*({at} + 1))}}"
    )


def _row(slot: int) -> str:
    """The row that the pointer is in, counted from the top; what is beyond the run's own axis is in the outermost."""
    down = f"(y() - top - {HEAD} - {heat_y(slot)})/{HEAT}"
    value = f"(datum.axis_high - {down}*(datum.axis_high - datum.axis_low))"
    inner = f"1 + floor({INNER}*(datum.high - {value})/(datum.high - datum.low))"
    plain = f"1 + floor({INNER}*{down})"
    own = f"{down} < 0 ? 0 : {down} >= 1 ? {ROWS - 1} : datum.has_axis ? {inner} : {plain}"
    return f"clamp({own}, 0, {ROWS - 1})"


_WHERE = (
    f"strip_tip.row == 0 ? 'above ' + {shown('strip_tip.high')} : "
    f"strip_tip.row == {ROWS - 1} ? 'below ' + {shown('strip_tip.low')} : "
    f"{shown('tip_low')} + ' to ' + {shown('tip_high')}"
)
_COUNT = (
    "format(round(tip_share*tip_sampled), ',') + ' of ' + format(tip_sampled, ',.0f') + "
    "' (' + format(tip_share, tip_share > 0 && tip_share < 0.001 ? '.1~e' : '.1~%') + ')'"
)
_RECORDED = (
    f"strip_tip.cell == {NOT_FINITE} ? 'no finite value' : ({_WHERE}) + ':  ' + {_COUNT}, "
    f"'mean ' + {shown('tip_mean')} + '  std ' + {shown('tip_std')}, "
    f"'min ' + {shown('tip_min')} + '  max ' + {shown('tip_max')}, "
    f"'norm ' + {shown('tip_l2_norm')}, "
    "'zeros ' + (isNaN(tip_zero_share) ? '–' : format(tip_zero_share, '.1%')), "
    "tip_nonfinite > 0 ? 'NaN or infinity: ' + format(tip_nonfinite, ',.0f') + "
    "(strip_tip.flag ? '' : ', as in a mask') : 'all finite'"
)
_HEAD = (
    "strip_tip.path + (!strip_tip.side ? ', values' : strip_tip.role == 'param' ? ', gradient' : ', gradient norm'), "
    "'step ' + steps[strip_tip.step]"
)
STRIP_LINES = f"(strip_tip.cell == {NOT_RECORDED} ? [{_HEAD}, 'not recorded at this step'] : [{_HEAD}, {_RECORDED}])"
"""What is told of a step of a strip."""
