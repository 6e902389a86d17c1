"""Vega expressions that decode numbers from text (see `torchgraph_wandb.text_encoding`) and format them."""

from __future__ import annotations

from torchgraph_wandb.text_encoding import CODE_WIDTH, FLOAT_WIDTH, SHARE_STEPS, SIZE_OCTAVES, TOP


def float_bits(text: str, at: int | str) -> str:
    """The bits of the `at`-th float in `text`."""
    start = f"{FLOAT_WIDTH}*({at})"
    value = [f"indexof(alphabet, substring({text}, {start}+{n}, {start}+{n + 1}))" for n in range(FLOAT_WIDTH)]
    return f"({value[0]}*4096 + {value[1]}*64 + {value[2]})"


def float_value(bits: str) -> str:
    """The float with the bits `bits`, a field or a signal: the expression repeats it."""
    exponent, mantissa, sign = f"(({bits} >> 9) & 255)", f"({bits} & 511)", f"({bits} >> 17 ? -1 : 1)"
    finite = f"{sign} * (1 + {mantissa}/512) * pow(2, {exponent}-127)"
    return f"({exponent} == 0 ? 0 : {exponent} == 255 ? ({mantissa} ? NaN : {sign}/0) : {finite})"


def flag_at(text: str, at: int | str) -> str:
    """The value of the `at`-th character of `text`, 0 to 63; -1 beyond its end."""
    return f"indexof(alphabet, substring({text}, {at}, {at} + 1) || '.')"


def code_at(text: str, at: int | str) -> str:
    """The `at`-th code in `text`."""
    start = f"{CODE_WIDTH}*({at})"
    high, low = (f"indexof(alphabet, substring({text}, {start}+{n}, {start}+{n + 1}))" for n in range(CODE_WIDTH))
    return f"({high}*64 + {low})"


def share_of(code: str) -> str:
    """The share that a code stands for; see `text_encoding.share_codes`."""
    return f"({code} <= 0 || {code} > {TOP} ? 0 : pow(2, ({code} - {TOP})/{SHARE_STEPS}))"


def size_of(code: str) -> str:
    """The size that a code stands for, NaN if it stands for none; see `text_encoding.size_codes`."""
    octave = f"({code} - 1)/{TOP - 1}*{SIZE_OCTAVES} - {SIZE_OCTAVES // 2}"
    return f"({code} == 0 ? 0 : {code} < 0 || {code} > {TOP} ? NaN : pow(2, {octave}))"


def formatted(value: str) -> str:
    """A number as text, with three digits."""
    size = f"abs({value})"
    is_tiny_or_huge = f"{value} != 0 && ({size} < 0.001 || {size} >= 1e6)"
    finite = f"format({value}, {is_tiny_or_huge} ? '.2~e' : {size} < 1000 ? '.3~g' : ',.0f')"
    return f"(isNaN({value}) ? '–' : !isFinite({value}) ? ({value} > 0 ? '∞' : '−∞') : {_without_plus(finite)})"


def formatted_briefly(value: str) -> str:
    """Like `formatted`, in at most eight characters; negative numbers below 1e-9 have as many."""
    size = f"abs({value})"
    is_tiny_or_huge = f"{value} != 0 && ({size} < 0.001 || {size} >= 1e5)"
    finite = f"format({value}, {is_tiny_or_huge} ? '.1~e' : {size} < 1 ? '.2~g' : {size} < 1000 ? '.3~g' : '.0f')"
    return f"(isNaN({value}) ? '' : !isFinite({value}) ? ({value} > 0 ? '∞' : '−∞') : {_without_plus(finite)})"


def _without_plus(text: str) -> str:
    """A number without the plus sign of its exponent, for which there is no room."""
    return f"replace({text}, 'e+', 'e')"
