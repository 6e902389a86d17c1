"""Finds out which updates a gradient scaler has skipped, since gradients were not finite."""

from __future__ import annotations

import weakref
from typing import Any

from torch import Tensor
from torch.amp.grad_scaler import GradScaler


class SkippedUpdates:
    """The gradient scalers of a training, and what each has noted about optimizers since its latest `update`.

    A scaler that finds infinity or NaN does not call the optimizer, so torch's hooks show nothing. It notes for each
    optimizer that its `step` was called, and begins new notes in `update`. That can be read without waiting for a GPU.
    An optimizer that looks for infinity itself (`fused=True` on a GPU) is called, and seen, in any case.
    """

    def __init__(self) -> None:
        """Begin without a gradient scaler."""
        self._notes: dict[weakref.ref[GradScaler], Any] = {}
        self._serving: set[weakref.ref[GradScaler]] = set()
        self._is_known = False

    def __bool__(self) -> bool:
        """Whether there is a scaler."""
        return bool(self._notes)

    @property
    def in_use(self) -> list[GradScaler]:
        """Those that have stepped the optimizers; before any has stepped, all that have scaled something.

        Others are of other models, or of a training that is over.
        """
        known = self._serving if self._is_known else self._notes
        scalers = (reference() for reference in known)
        return [one for one in scalers if one is not None and isinstance(getattr(one, "_scale", None), Tensor)]

    def scaler_of(self, optimizer: object) -> GradScaler | None:
        """The one that has `optimizer`, which is about to step, do so; None if it steps by itself."""
        self._is_known = True
        for reference in self._notes:
            scaler = reference()
            if scaler is not None and id(optimizer) in (_notes_of(scaler) or ()):
                self._serving.add(reference)
                return scaler
        return None

    def add(self, scaler: GradScaler) -> None:
        """Look at `scaler` from now on, too."""
        self._notes.setdefault(weakref.ref(scaler), _notes_of(scaler))

    def new(self, optimizers: set[int]) -> set[int]:
        """Those of `optimizers`, given by their `id`, that were to step since this was last asked, before an `update`.

        If they were not called meanwhile, their updates were skipped.
        """
        found: set[int] = set()
        for reference, before in [*self._notes.items()]:
            scaler = reference()
            if scaler is None:
                del self._notes[reference]
                continue
            self._notes[reference] = now = _notes_of(scaler)
            if now is not before:
                found |= {each for each in optimizers if _has_stepped(before, each)}
        return found


def _notes_of(scaler: GradScaler) -> Any:
    """What it has noted for each optimizer, by the optimizer's `id`. Another object after each `update`."""
    return getattr(scaler, "_per_optimizer_states", None)


def _has_stepped(notes: Any, optimizer: int) -> bool:
    """Whether `step` was called for the optimizer with this `id`."""
    note = notes.get(optimizer) if notes else None
    return note is not None and getattr(note.get("stage"), "name", "") == "STEPPED"


def is_skipped(optimizer: Any) -> bool:
    """Whether `optimizer`, which has stepped, was told by a scaler to move nothing. Does not wait for a GPU: False."""
    found = getattr(optimizer, "found_inf", None)
    return isinstance(found, Tensor) and found.device.type == "cpu" and bool(found)
