"""Reading packed numbers (see `torchgraph_wandb.text_encoding`) in a chart."""

from __future__ import annotations

from torchgraph_wandb.text_encoding import CODE_LETTERS, FLOAT_LETTERS, SHARE_STEPS, SIZE_OCTAVES, TOP


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


def flag(letters: str, at: int | str) -> str:
    """Expression for the `at`-th letter of the text `letters`, 0 to 63; -1 beyond its end."""
    return f"indexof(letters, substring({letters}, {at}, {at} + 1) || '.')"


def short_code(letters: str, at: int | str) -> str:
    """Expression for the `at`-th code in the text `letters`."""
    start = f"{CODE_LETTERS}*({at})"
    high, low = (f"indexof(letters, substring({letters}, {start}+{n}, {start}+{n + 1}))" for n in range(CODE_LETTERS))
    return f"({high}*64 + {low})"


def share(code: str) -> str:
    """Expression for the share that a code stands for; see `letters.share_codes`."""
    return f"({code} <= 0 || {code} > {TOP} ? 0 : pow(2, ({code} - {TOP})/{SHARE_STEPS}))"


def size(code: str) -> str:
    """Expression for the size that a code stands for, NaN if it is none; see `letters.size_codes`."""
    octave = f"({code} - 1)/{TOP - 1}*{SIZE_OCTAVES} - {SIZE_OCTAVES // 2}"
    return f"({code} == 0 ? 0 : {code} < 0 || {code} > {TOP} ? NaN : pow(2, {octave}))"


def shown(value: str) -> str:
    """Expression for a number as text, with three digits."""
    size = f"abs({value})"
    is_tiny_or_huge = f"{value} != 0 && ({size} < 0.001 || {size} >= 1e6)"
    finite = f"format({value}, {is_tiny_or_huge} ? '.2~e' : {size} < 1000 ? '.3~g' : ',.0f')"
    return f"(isNaN({value}) ? '–' : !isFinite({value}) ? ({value} > 0 ? '∞' : '−∞') : {finite})"


def shown_briefly(value: str) -> str:
    """As `shown`, but for a place of seven letters."""
    size = f"abs({value})"
    is_tiny_or_huge = f"{value} != 0 && ({size} < 0.001 || {size} >= 1e5)"
    finite = f"format({value}, {is_tiny_or_huge} ? '.1~e' : {size} < 1 ? '.2~g' : {size} < 1000 ? '.3~g' : '.0f')"
    return f"(isNaN({value}) ? '' : !isFinite({value}) ? ({value} > 0 ? '∞' : '−∞') : {finite})"
