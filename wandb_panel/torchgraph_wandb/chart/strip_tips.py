"""What is told of the step of a strip that the pointer is over."""

from __future__ import annotations

from torchgraph_wandb.chart.columns import MIDDLE, SIDE, STRIP_W
from torchgraph_wandb.chart.numbers import code, number, shown
from torchgraph_wandb.chart.parts import Spec, derived, on, state
from torchgraph_wandb.strips import TOLD


def hovering(slots: int) -> list[Spec]:
    """Which step of which strip the pointer is over, and what is to be told of it."""
    within = f"x() - graph_w - {{0}}*column_w - {SIDE} - datum.side*({STRIP_W} + {MIDDLE})"
    at = f"clamp(floor(({within}) / {STRIP_W} * step_count), 0, step_count - 1)"
    told = [code("datum.told", f"{len(TOLD)}*({at}) + {field}") for field in range(len(TOLD))]
    strips = [f"strip_{slot}" for slot in range(slots)]
    begins = [
        on(
            f"@{strip}:mousemove",
            f"{{over: true, step: {at.format(slot)}, path: datum.path, side: datum.side, role: datum.role, "
            f"codes: [{', '.join(part.replace('{0}', str(slot)) for part in told)}]}}",
        )
        for slot, strip in enumerate(strips)
    ]
    nothing = "{over: false, step: -1, path: '', side: 0, role: '', codes: [0, 0, 0, 0, 0, 0, 0]}"
    values = {name: number(f"strip_tip.codes[{at}]") for at, name in enumerate(TOLD)}
    return [
        state("strip_tip", nothing, *begins, *(on(f"@{strip}:mouseout", nothing) for strip in strips)),
        derived("hover_step", "strip_tip.over ? strip_tip.step : -1"),
        *(derived(f"tip_{name}", value) for name, value in values.items()),
    ]


STRIP_LINES = (
    "[strip_tip.path + (!strip_tip.side ? ', values' : strip_tip.role == 'param' ? ', gradient' : ', gradient norm'), "
    "'step ' + steps[strip_tip.step], "
    f"'mean ' + {shown('tip_mean')} + '  std ' + {shown('tip_std')}, "
    f"'min ' + {shown('tip_min')} + '  max ' + {shown('tip_max')}, "
    f"'norm ' + {shown('tip_l2_norm')}, "
    "'zeros ' + (isNaN(tip_zero_share) ? '–' : format(tip_zero_share, '.1%')), "
    "tip_nonfinite > 0 ? 'NaN or infinity: ' + format(tip_nonfinite, ',.0f') : 'all finite']"
)
"""What is told of a step of a strip."""
