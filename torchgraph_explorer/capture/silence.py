"""Why nothing is recorded of a model although a training goes on."""

from __future__ import annotations

import time

from torch import nn

from torchgraph_explorer.capture.modules_by_name import parameters_within

MOST_UPDATES = 100
"""Steps of optimizers, without a step of the model, after which that is said."""

SECONDS = 30.0
"""Seconds of training, without a step of the model, after which that is said."""


class Silence:
    """What was seen of a training before the first step of the model.

    Attributes:
        is_over: A step has begun. Nothing is counted any more.
    """

    def __init__(self, *, expected: bool = False, with_evaluations: bool = False) -> None:
        """Nothing was seen. If that is `expected`, as of evaluations, it is not said.

        Of a training `with_evaluations`, these are recorded beside its steps.
        """
        self.is_over, self._is_said = expected, False
        self._with_evaluations = with_evaluations
        self._calls = self._calls_in_backward = self._updates = self._other_updates = 0
        self._is_empty = False
        self._since: float | None = None

    def look(self, model: nn.Module) -> None:
        """Note whether `model`, which is watched, has parameters."""
        self._is_empty = not parameters_within(model)

    def call(self) -> None:
        """A module was called, but not in training mode with gradients enabled."""
        self._calls += 1
        self._begin()

    def call_in_backward(self) -> None:
        """A module was called within a backward pass, where calls of a training that is recorded are made again."""
        self._calls_in_backward += 1

    def update(self, *, is_own: bool) -> None:
        """An optimizer has moved parameters, of the model if `is_own`."""
        self._updates += is_own
        self._other_updates += not is_own
        self._begin()

    def _begin(self) -> None:
        self._since = self._since or time.monotonic()

    def is_due(self) -> bool:
        """Whether no step has come for so long that the user should be told; True once."""
        if self.is_over or self._is_said or self._since is None:
            return False
        is_long = time.monotonic() - self._since > SECONDS
        self._is_said = is_long or self._updates + self._other_updates >= MOST_UPDATES
        return self._is_said

    @property
    def is_before_training(self) -> bool:
        """Whether nothing was seen at all: neither a call of the model, nor an update of anything."""
        return not (self.is_over or self._calls or self._calls_in_backward or self._updates or self._other_updates)

    def duration(self) -> str:
        """For how long no step has come, in updates or in seconds, in words."""
        updates = self._updates + self._other_updates
        return f"the first {updates} updates" if updates >= MOST_UPDATES else f"the first {SECONDS:.0f} seconds"

    def reason(self) -> str:
        """The likely reason, and what to do."""
        if self._calls_in_backward:
            return (
                "It was called with gradients enabled only within backward passes, as odeint_adjoint of torchdiffeq "
                "does. Such calls are not recorded; those of odeint are."
            )
        if self._calls:
            return self._only_evaluated()
        if self._is_empty:
            return (
                "It had no parameters when watch() was called. Modules in a plain list or dictionary are not part of "
                "the module that has it: use nn.ModuleList or nn.ModuleDict."
            )
        if self._updates:
            return (
                "Its parameters were updated, but no call of its modules was seen. Call modules as layer(x), not as "
                "layer.forward(x). If a function around the model is compiled, compile the model instead: "
                "model.compile(). Calls of classes with a __call__ of their own (as in GPyTorch), and of copies of the "
                "model (as in higher), cannot be seen."
            )
        if self._other_updates:
            return (
                "None of its modules was called, and the optimizers hold none of its parameters, so something else is "
                "trained, perhaps a copy of it. Pass the model that the training loop calls to watch()."
            )
        return (
            "None of its modules was called in this process in training mode with gradients enabled. Pass the model "
            "that the training loop calls to watch(), in the process that trains it. Calls of classes with a __call__ "
            "of their own (as in GPyTorch) cannot be seen."
        )

    def _only_evaluated(self) -> str:
        evaluations = (
            "its evaluations are recorded as a model of their own."
            if self._with_evaluations
            else "to record evaluations, pass phases=('train', 'eval') to watch()."
        )
        if self._other_updates and not self._updates:
            return (
                "It was only called in eval mode or with gradients disabled, and the optimizers hold none of its "
                "parameters, so something else is trained, perhaps a copy of it. To record that, pass the model that "
                f"the training loop calls to watch(); {evaluations}"
            )
        return (
            "It was only called in eval mode or with gradients disabled. To record its training, call model.train() "
            f"first; {evaluations}"
        )
