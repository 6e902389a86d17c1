"""The states of a logged step, and the events that bring it from one to the next."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """How far a logged step has come."""

    ARMED = "armed"
    FORWARD = "in forward"
    FORWARD_OVER = "between passes"
    BACKWARD = "in backward"
    BACKWARD_OVER = "awaiting the update"
    UPDATED = "updated"
    DONE = "done"
    LOST = "lost"


class Event(Enum):
    """What happens to a logged step."""

    FORWARD_BEGINS = "a forward pass begins"
    FORWARD_ENDS = "it returns, raises, or is interrupted"
    BACKWARD_BEGINS = "gradient arrives"
    BACKWARD_ENDS = "the backward pass ends"
    UPDATE = "the parameters are updated"
    HAND_OVER = "the next step begins, `close`, or a pause"
    LOSE = "an interrupt or a fault in our code"


TRANSITIONS: Mapping[tuple[State, Event], State] = {
    (State.ARMED, Event.FORWARD_BEGINS): State.FORWARD,
    (State.ARMED, Event.UPDATE): State.UPDATED,
    (State.FORWARD, Event.FORWARD_ENDS): State.FORWARD_OVER,
    (State.FORWARD, Event.UPDATE): State.UPDATED,
    (State.FORWARD_OVER, Event.FORWARD_BEGINS): State.FORWARD,
    (State.FORWARD_OVER, Event.BACKWARD_BEGINS): State.BACKWARD,
    (State.FORWARD_OVER, Event.BACKWARD_ENDS): State.BACKWARD_OVER,
    (State.FORWARD_OVER, Event.UPDATE): State.UPDATED,
    (State.BACKWARD, Event.FORWARD_BEGINS): State.FORWARD,
    (State.BACKWARD, Event.BACKWARD_ENDS): State.BACKWARD_OVER,
    (State.BACKWARD, Event.UPDATE): State.UPDATED,
    (State.BACKWARD_OVER, Event.FORWARD_BEGINS): State.FORWARD,
    (State.BACKWARD_OVER, Event.UPDATE): State.UPDATED,
    **{(state, Event.HAND_OVER): State.DONE for state in State if state not in {State.DONE, State.LOST}},
    **{(state, Event.LOSE): State.LOST for state in State if state not in {State.DONE, State.LOST}},
}
"""The next state. An event that is not in the table for a state leaves it as it is.

- `(FORWARD, BACKWARD_BEGINS)` is not: a backward pass within the forward pass is a part of that.
- `(FORWARD_OVER, BACKWARD_ENDS)` is: the backward pass began in another thread while the forward pass was executed.
- `(BACKWARD, FORWARD_BEGINS)` is: an exception has ended the backward pass, of which torch tells no one.
- `(BACKWARD_OVER, BACKWARD_BEGINS)` is not: a second one through the same forward passes adds to what they have.
- After `UPDATED` only what other optimizers move is measured, until the step is handed over.
"""


class StepState:
    """The state of one step.

    Attributes:
        now: The state.
        since: When the latest event came, on the monotonic clock.
    """

    __slots__ = ("now", "since")

    def __init__(self) -> None:
        """Its hooks are about to be put on."""
        self.now = State.ARMED
        self.since = time.monotonic()

    def on(self, event: Event) -> None:
        """Go to the state that `event` leads to."""
        self.now = TRANSITIONS.get((self.now, event), self.now)
        self.since = time.monotonic()

    def touch(self) -> None:
        """Note that something has happened to the step that does not change its state."""
        self.since = time.monotonic()

    @property
    def is_open(self) -> bool:
        """Whether further passes still belong to the step."""
        return self.now not in {State.UPDATED, State.DONE, State.LOST}
