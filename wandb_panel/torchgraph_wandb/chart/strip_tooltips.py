"""The tooltip of a strip: the step and the row under the pointer."""

from __future__ import annotations

from collections.abc import Sequence

from torchgraph_wandb.chart.decoding import code_at, flag_at, float_bits, float_value, formatted, share_of
from torchgraph_wandb.chart.strip_images import is_in_sight, row_of, shared_row
from torchgraph_wandb.chart.strip_layout import HEAT, StripArea
from torchgraph_wandb.chart.vega import Spec, derived, on, state
from torchgraph_wandb.heat_strips import HAS_INFINITY, HAS_NAN, HAS_NO_HISTOGRAM, INNER, ROWS, STEP_STATISTICS
from torchgraph_wandb.text_encoding import FLOAT_WIDTH, NOT_FINITE, NOT_RECORDED

HEADER = 40
"""Height of a column's header, above the scrolled area."""


def hovering(areas: Sequence[StripArea]) -> list[Spec]:
    """The strip, step and row under the pointer, and the values shown of them."""
    begins = [on(f"@strip_{area.name}:mousemove", _pointed(area)) for area in areas]
    ends = [on(f"@strip_{area.name}:mouseout", _NOTHING) for area in areas]
    strip = "strip_over.strip"
    at = f"clamp(floor(strip_over.across / {strip}.w * {strip}.count), 0, {strip}.count - 1)"
    return [
        state("strip_over", _NOTHING, *begins, *ends),
        derived("strip_at", f"strip_over.over ? {at} : -1"),
        derived("strip_row", _row()),
        derived("strip_tip", f"strip_over.over ? {_told()} : {_NO_TIP}"),
        derived("hover_step", "strip_at"),
        *(
            derived(f"tip_code_{name}", float_bits("strip_tip.statistics", column))
            for column, name in enumerate(STEP_STATISTICS)
        ),
        *(derived(f"tip_{name}", float_value(f"tip_code_{name}")) for name in STEP_STATISTICS),
        derived("tip_share", share_of("strip_tip.cell")),
        derived("tip_low", f"strip_tip.low + (strip_tip.high - strip_tip.low)*({INNER} - strip_tip.row)/{INNER}"),
        derived("tip_high", f"strip_tip.low + (strip_tip.high - strip_tip.low)*({INNER + 1} - strip_tip.row)/{INNER}"),
    ]


_NOTHING = "{over: false, strip: {count: 0}, across: 0, down: 0}"
_NO_TIP = (
    "{over: false, step: -1, said: '', run: '', run_name: '', name: '', side: 0, role: '', row: 0, low: 0, high: 0, "
    "cell: 0, flag: 0, statistics: ''}"
)


def _pointed(area: StripArea) -> str:
    """The strip under the pointer, and where on it that is: `down` as a share of its axis."""
    down = f"(y() - top - {HEADER} - {area.heat_y})/{HEAT}"
    return f"{{over: true, strip: datum, across: x() - ({area.left}) - datum.x, down: {down}}}"


def _told() -> str:
    strip, width = "strip_over.strip", FLOAT_WIDTH * len(STEP_STATISTICS)
    copied = ", ".join(f"{name}: {strip}.{name}" for name in ("run", "run_name", "name", "side", "role", "low", "high"))
    return (
        f"{{over: true, step: strip_at, said: {strip}.steps[strip_at], {copied}, row: strip_row, "
        f"cell: {code_at(f'{strip}.cells', f'strip_at*{ROWS} + strip_row')}, "
        f"flag: {flag_at(f'{strip}.flags', 'strip_at')}, "
        f"statistics: substring({strip}.statistics, {width}*strip_at, {width}*(strip_at + 1))}}"
    )


def _row() -> str:
    """The row under the pointer, counted from the top; beyond the run's own axis, the first or the last row."""
    down, strip = "strip_over.down", "strip_over.strip"
    pixel = f"floor({down}*{HEAT})"
    beyond = row_of(f"({strip}.axis_high - {down}*({strip}.axis_high - {strip}.axis_low))", strip=strip)
    shared = f"{is_in_sight(pixel, strip=strip)} ? {shared_row(pixel, strip=strip)} : {beyond}"
    own = f"{strip}.is_own_axis ? 1 + floor({INNER}*{down}) : {shared}"
    return f"clamp({down} < 0 ? 0 : {down} >= 1 ? {ROWS - 1} : {own}, 0, {ROWS - 1})"


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
    f"strip_tip.cell == {NOT_FINITE} ? 'no finite value' : "
    f"strip_tip.flag & {HAS_NO_HISTOGRAM} ? 'no histogram: mean ± std, ± 2 std' : ({_WHERE}) + ':  ' + {_COUNT}, "
    f"'mean ' + {formatted('tip_mean')} + '  std ' + {formatted('tip_std')}, "
    f"'min ' + {formatted('tip_min')} + '  max ' + {formatted('tip_max')}, "
    f"'norm ' + {formatted('tip_l2_norm')}, "
    "'zeros ' + (isNaN(tip_zero_share) ? '–' : format(tip_zero_share, '.1%')), "
    "tip_nonfinite > 0 ? 'NaN or infinity: ' + format(tip_nonfinite, ',.0f') + "
    f"(strip_tip.flag & {HAS_NAN | HAS_INFINITY} ? '' : ', as in a mask') : 'all finite'"
)
_HEAD = (
    "strip_tip.name + (!strip_tip.side ? ', values' : strip_tip.role == 'param' ? ', gradient' : ', gradient norm'), "
    "(strip_tip.run_name == '' ? '' : strip_tip.run_name + ', ') + 'step ' + strip_tip.said"
)
STRIP_LINES = f"(strip_tip.cell == {NOT_RECORDED} ? [{_HEAD}, 'not recorded at this step'] : [{_HEAD}, {_RECORDED}])"
"""The lines of the tooltip."""
