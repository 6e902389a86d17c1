"""Reading packed numbers (see `torchgraph_wandb.letters`) in a chart."""

from __future__ import annotations

from torchgraph_wandb.letters import FLOAT_LETTERS


def code(letters: str, at: int | str) -> str:
    """Expression for the bits of the `at`-th number in the text `letters`."""
    start = f"{FLOAT_LETTERS}*({at})"
    value = [f"indexof(letters, substring({letters}, {start}+{n}, {start}+{n + 1}))" for n in range(FLOAT_LETTERS)]
    return f"({value[0]}*4096 + {value[1]}*64 + {value[2]})"


def number(bits: str) -> str:
    """Expression for the number whose bits are `bits`, a field or signal: it is repeated."""
    exponent, mantissa, sign = f"(({bits} >> 9) & 255)", f"({bits} & 511)", f"({bits} >> 17 ? -1 : 1)"
    finite = f"{sign} * (1 + {mantissa}/512) * pow(2, {exponent}-127)"
    return f"({exponent} == 0 ? 0 : {exponent} == 255 ? ({mantissa} ? NaN : {sign}/0) : {finite})"


def shown(value: str) -> str:
    """Expression for a number as text, with three digits."""
    size = f"abs({value})"
    is_tiny_or_huge = f"{value} != 0 && ({size} < 0.001 || {size} >= 1e6)"
    finite = f"format({value}, {is_tiny_or_huge} ? '.2~e' : {size} < 1000 ? '.3~g' : ',.0f')"
    return f"(isNaN({value}) ? '–' : !isFinite({value}) ? ({value} > 0 ? '∞' : '−∞') : {finite})"
