"""Where the count of steps goes on: after the updates that the model's optimizers made before it was watched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from torchgraph_explorer.capture.call_context import is_captured
from torchgraph_explorer.capture.no_dispatch import NoDispatch, is_readable
from torchgraph_explorer.capture.phases import Phase
from torchgraph_explorer.capture.unwrap import unwrapped

COUNT = "step"
"""What optimizers call the number of their updates, in the state of a parameter or in a group of parameters.

SGD, Muon and LBFGS keep none; `n_iter` of LBFGS counts the calls of the closure.
"""

MOST_UPDATES = 2**53
"""A larger number is no count."""


class ResumedSteps:
    """Raises the number of the first step to the number of updates that were made before it.

    The optimizers that step without a pass of the model between them make one update, so the largest of their counts
    is taken. Which ones do is seen only when they step. Until then, all are taken for such ones, but for those of an
    earlier training: an optimizer that was replaced is there until Python frees it, and may never step again.
    """

    def __init__(self, phase: Phase) -> None:
        """Count the steps of `phase`."""
        self._phase = phase
        self._made: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        self._have_stepped: WeakSet[Optimizer] = WeakSet()
        self._replaced: WeakSet[Optimizer] = WeakSet()
        self._total = self._of_latest = 0
        self._origin = 0

    @property
    def is_known(self) -> bool:
        """Whether updates before the first step were found."""
        return self._total > 0 or any(each not in self._replaced for each in self._made)

    def note(self, optimizers: Sequence[Optimizer], model: nn.Module, *, begun: int) -> None:
        """Note the updates that all `optimizers` of `model` have made so far, once there are some.

        `begun` steps await their update.
        """
        if self.is_known:
            return
        for optimizer in optimizers:
            if made := updates_by(optimizer):
                self._made[optimizer] = made
        new = [each for each in optimizers if each not in self._made]
        self._replaced.update(old for old in self._made if any(_replaces(each, old) for each in new))
        self._total = 0 if self.is_known else _counted_by_lightning(model)
        self._raise(since=begun)

    def after_update(self, optimizers: Sequence[Optimizer], *, is_another: bool) -> None:
        """`optimizers` have moved the model: as one more update, or as a part of the latest one."""
        if not self._made:
            return
        made = max((self._made.get(each, 0) for each in optimizers), default=0)
        if is_another:
            self._of_latest = 0
        if not any(each in self._have_stepped for each in optimizers):
            self._total += max(0, made - self._of_latest)
        self._of_latest = max(self._of_latest, made)
        self._have_stepped.update(optimizers)
        self._replaced.difference_update(optimizers)
        self._raise(since=self._phase.step - self._origin)

    def _raise(self, *, since: int) -> None:
        """Raise the count, which has come so far since the first step, to what is known of the updates before that."""
        counts = (made for optimizer, made in self._made.items() if optimizer not in self._replaced)
        self._phase.go_on_at(max(self._total, *counts, 0) + since)
        self._origin = self._phase.step - since


def updates_by(optimizer: Optimizer) -> int:
    """How many updates the state of `optimizer` counts; 0 if it keeps no count, or has made none.

    Where the counts are on a device, this waits for it once.
    """
    states = getattr(optimizer, "state", None)
    parts = states.values() if isinstance(states, Mapping) else ()
    counts = [part[COUNT] for part in parts if isinstance(part, Mapping) and COUNT in part]
    counts += _counts_of_groups(optimizer)
    numbers = [each for each in counts if isinstance(each, int | float)]
    with NoDispatch():
        tensors = [each for each in counts if type(each) is Tensor and is_readable(each) and each.numel() == 1]
    if tensors and not is_captured():
        numbers += _largest(tensors)
    return int(max((each for each in numbers if 0 < each < MOST_UPDATES), default=0))


def _counts_of_groups(optimizer: Optimizer) -> Iterator[object]:
    """What the groups of parameters count, beyond what they begin with: pytorch_optimizer's Prodigy begins at 1."""
    begun_at = getattr(optimizer, "defaults", {}).get(COUNT)
    for count in (group[COUNT] for group in optimizer.param_groups if COUNT in group):
        yield count - begun_at if isinstance(count, int) and isinstance(begun_at, int) else count


def _replaces(new: Optimizer, old: Optimizer) -> bool:
    """Whether `new`, which has made no update, moves all that `old` moved, and is no wrapper around it."""
    if new.param_groups is old.param_groups or any(value is old for value in vars(new).values()):
        return False
    moved, before = ({id(one) for group in each.param_groups for one in group["params"]} for each in (new, old))
    return before <= moved


def _largest(tensors: Sequence[Tensor]) -> list[float]:
    """The largest one of each device and dtype."""

    def kind(tensor: Tensor) -> tuple[str, str]:
        return str(tensor.device), str(tensor.dtype)

    with NoDispatch():
        alike = [list(group) for _, group in groupby(sorted(tensors, key=kind), kind)]
        return [float(torch.stack([each.reshape(()) for each in group]).max().item()) for group in alike]


def _counted_by_lightning(model: nn.Module) -> int:
    """The updates that the Trainer of a LightningModule counts, with those of the checkpoint that it resumes."""
    module = unwrapped(model)
    if not any(each.__name__ == "LightningModule" for each in type(module).__mro__):
        return 0
    trainer = getattr(module, "_trainer", None)
    counted = getattr(trainer, "global_step", 0)
    return counted if isinstance(counted, int) and 0 < counted < MOST_UPDATES else 0
