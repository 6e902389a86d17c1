"""Which calls of a module are recorded if a step calls it very often, as a cell in a loop over a long sequence."""

from __future__ import annotations

EVERY_CALL_UP_TO = 1024
"""So many calls of a module in a step are all recorded."""

CALLS_A_DOUBLING = 64
"""Of the calls from 1,024 to 2,047, from 2,048 to 4,095 and so on, so many are recorded, at equal distances."""

TOO_MANY_CALLS = (
    f"A step called a module more than {EVERY_CALL_UP_TO:,} times. Of its later calls, {CALLS_A_DOUBLING} are recorded "
    f"each time their number doubles."
)


def is_recorded(number: int) -> bool:
    """Whether call `number` of a module in a step, counted from 0, is recorded.

    It depends on the number alone, so that steps over sequences of different length record the same calls.
    """
    if number < EVERY_CALL_UP_TO:
        return True
    distance = (1 << (number.bit_length() - 1)) // CALLS_A_DOUBLING
    return number % distance == 0
