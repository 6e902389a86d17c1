"""What is recorded of a module that a step calls very often, as a cell in a loop over a long sequence."""

from __future__ import annotations

EVERY_CALL_UP_TO = 1024
"""Up to this number, all calls of a module in a step are recorded."""

CALLS_A_DOUBLING = 64
"""How many of the calls from 1,024 to 2,047, from 2,048 to 4,095 and so on are recorded, at equal distances."""

TOO_MANY_CALLS = (
    f"A step called a module more than {EVERY_CALL_UP_TO:,} times. Of the later calls, only {CALLS_A_DOUBLING} are "
    f"recorded each time the number of calls doubles."
)


def is_recorded(number: int) -> bool:
    """Whether call `number` of a module in a step, counted from 0, is recorded.

    It depends on the number alone, so that steps over sequences of different length record the same calls.
    """
    if number < EVERY_CALL_UP_TO:
        return True
    distance = (1 << (number.bit_length() - 1)) // CALLS_A_DOUBLING
    return number % distance == 0


FIRST_CALLS = 16
"""All inputs of this many calls of a module in a step are recorded."""

MOST_INPUTS, INPUTS_AT_AN_END = 64, 8
"""A later call of which more tensors are inputs, as the cache of a decoder that grows with each token, has so many of
them recorded from the beginning and from the end."""

TOO_MANY_INPUTS = (
    f"A module got more tensors at each call of a step, as with a growing cache. From call {FIRST_CALLS + 1} on, if a "
    f"call has more than {MOST_INPUTS} inputs, only the first and the last {INPUTS_AT_AN_END} are recorded."
)


def has_too_many_inputs(number: int, inputs: int) -> bool:
    """Whether so many inputs of call `number` of a module are too many to record them all."""
    return inputs > MOST_INPUTS and number >= FIRST_CALLS
