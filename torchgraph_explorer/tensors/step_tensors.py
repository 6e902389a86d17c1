"""The kept tensors of one step, and which steps are kept at all."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.console import reason
from torchgraph_explorer.schema import KeptArray
from torchgraph_explorer.tensors.copies import Copied, NotKeptError, copied, samples_of
from torchgraph_explorer.tensors.keep import Keep
from torchgraph_explorer.tensors.patterns import Pattern, Place, nearest
from torchgraph_explorer.tensors.transfer import Bytes, Stream, current_stream, on_host

SeriesKey: TypeAlias = "tuple[str, int | None, str, str, str]"

MOST_WAITING = 256 << 20
"""Bytes of kept tensors that are in memory at most: those of the current step, and those that wait to be written."""


SEEN_SEVERAL_TIMES = ("value", "grad_norm")
"""Kinds of series whose tensor may come again unchanged, as the next module's input. torch counts the writes to it."""


class KeptSteps:
    """Decides which logged steps are kept, and which tensors of them.

    The first half of the space on disk is for each step of `log_freq`, a quarter for one in two of those, an eighth for
    one in four, and so on.

    Attributes:
        most: Bytes that may be on disk.
        used: Bytes that are, as of the latest step that was written.
        waiting: Bytes in memory that are not written yet.
    """

    def __init__(self, keep: Keep, *, share: float, note: Callable[[str], None]) -> None:
        """Nothing is kept yet.

        Args:
            keep: What to keep.
            share: The part of `keep.megabytes` that is for this process.
            note: Called with a sentence on what is not kept.
        """
        self.used = self.waiting = 0
        self._keep, self._note = keep, note
        self.most = int(keep.megabytes * 1e6 * share)
        self._logged, self._spacing, self._largest = 0, 1, 0
        self._selected: dict[tuple[str, str, str], bool] = {}
        self._noted: set[object] = set()
        self._is_checked = False

    def begin(self) -> StepTensors | None:
        """A logged step begins: what copies its tensors, or None if it is not kept."""
        number, self._logged = self._logged, self._logged + 1
        if number % self._distance or not self._has_room() or number % self._distance:
            return None
        if self.waiting and self.waiting + self._largest > MOST_WAITING:
            self.note_once("behind", f"Tensors of some steps are not kept: {MOST_WAITING >> 20} MB wait to be written.")
            return None
        return StepTensors(self)

    @property
    def room(self) -> float:
        """Bytes that may still be written, if all that waits is."""
        return self.most - self.used - self.waiting

    def selects(self, place: tuple[str, str, str]) -> bool:
        """Whether the tensor at this module, role and path is kept."""
        known = self._selected.get(place)
        if known is None:
            one = Place(*place)
            known = self._selected[place] = any(each.matches(one) for each in self._keep.patterns)
        return known

    def copy(self, tensor: Tensor, *, is_parameter: bool) -> Copied:
        """A copy of what is kept of `tensor`.

        Raises:
            NotKeptError: It cannot be kept.
        """
        dim = None if is_parameter else self._keep.batch_dim
        return copied(tensor, samples=self._keep.samples, batch_dim=dim)

    def note_once(self, subject: object, sentence: str) -> None:
        """Say something about `subject`, the first time."""
        if subject not in self._noted:
            self._noted.add(subject)
            self._note(sentence)

    def note_full(self) -> None:
        """Say that there is no room on disk for what should be kept."""
        self.note_once("full", f"{self._limit()} What does not fit is not kept.")

    def ended(self, size: int) -> None:
        """A step of `size` bytes is about to be handed over. Says which patterns the first one did not need."""
        self.waiting += size
        self._largest = max(self._largest, size)
        if self._is_checked:
            return
        self._is_checked = True
        places = [Place(*place) for place in self._selected]
        for pattern in self._keep.patterns:
            if not any(pattern.matches(place) for place in places):
                self._note(f"keep: {pattern.text!r} selects no tensor of the first kept step. {_near(pattern, places)}")

    @property
    def _distance(self) -> int:
        """One in so many logged steps is kept."""
        return self._spacing * (self._keep.log_freq or 1)

    def _has_room(self) -> bool:
        """Whether there is room on disk for one more step; makes steps rarer where that is due."""
        if self.room <= self._largest:
            self.note_full()
            return False
        while self.most - self.room + self._largest > self.most * (1 - 0.5 / self._spacing):
            self._spacing *= 2
        if self._spacing > 1:
            self.note_once(
                "thinned", f"{self._limit()} From now on steps are kept half as often, and later still less often."
            )
        return True

    def _limit(self) -> str:
        return f"Kept tensors take {self.used / 1e6:.3g} of {self.most / 1e6:.3g} MB (Keep(megabytes=))."


@dataclass(frozen=True, slots=True)
class _Taken:
    """A copy, and the stream that made it."""

    copied: Copied
    stream: Stream | None


class FullError(NotKeptError):
    """There is no room on disk."""


class StepTensors:
    """The kept tensors of one step (a `capture.step_parts.Keeper`). No method of that raises."""

    def __init__(self, steps: KeptSteps) -> None:
        """There are none."""
        self._steps = steps
        self._taken: dict[SeriesKey, _Taken] = {}
        self._latest: dict[int, tuple[weakref.ref[Tensor], int, _Taken]] = {}
        self._size = 0
        self._read: Callable[[], list[Bytes]] = list

    def selects(self, module: str, role: str, path: str) -> bool:
        """Whether the tensor is to be kept."""
        return self._steps.selects((module, role, path))

    def take(self, key: SeriesKey, tensor: Tensor) -> None:
        """Copy `tensor`, of this series, if it is to be kept. What came before for the series is forgotten."""
        place = key[0], key[2], key[3]
        try:
            if self._steps.selects(place):
                self._take(key, tensor)
        except FullError:
            self._steps.note_full()
        except NotKeptError as cause:
            self._steps.note_once(place, f"{_words(key)} is not kept: {cause}.")
        except Exception as fault:  # ours, or memory ran out: the rest is kept
            self._steps.note_once(place, f"{_words(key)} is not kept ({reason(fault)}).")

    def finish(self) -> None:
        """The step is over: begin to copy what is on a GPU to the host. Not called if the step is lost."""
        self._latest.clear()
        self._size = self._count()
        self._steps.ended(self._size)
        self._read = on_host([(piece, one.stream) for one in self._unique() for piece in one.copied.pieces])

    def arrays(self) -> tuple[KeptArray, ...]:
        """Its tensors, for the writer's thread. Waits for a GPU."""
        pieces = iter(self._read())
        found = {id(one): _array(one.copied, pieces) for one in self._unique()}
        return tuple(replace(found[id(one)], key=key) for key, one in self._taken.items())

    @property
    def most(self) -> int:
        """Bytes that may be on disk."""
        return self._steps.most

    def done(self, used: int | None) -> None:
        """It was written, or dropped; so much is on disk now, None if that is not known."""
        self._steps.waiting -= self._size
        self._size, self._read = 0, list
        self._taken.clear()
        if used is not None:
            self._steps.used = used

    def _take(self, key: SeriesKey, tensor: Tensor) -> None:
        version = _version(tensor) if key[4] in SEEN_SEVERAL_TIMES else None
        known = self._latest.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == version:
            self._taken[key] = known[2]
            return
        copied = self._steps.copy(tensor, is_parameter=key[2] == "param")
        self._require_room(copied.size)
        taken = self._taken[key] = _Taken(copied, current_stream(copied.values))
        self._size += copied.size
        if version is not None:
            self._latest[id(tensor)] = weakref.ref(tensor), version, taken

    def _require_room(self, size: int) -> None:
        """Refuse a copy that is too much.

        Raises:
            NotKeptError: It is.
        """
        room = min(self._steps.room, MOST_WAITING)
        if self._size + size <= room:
            return
        self._size = self._count()  # without what was replaced
        if self._size + size > self._steps.room:
            raise FullError
        if self._size + size > MOST_WAITING:
            raise NotKeptError(f"the kept tensors of its step would take more than {MOST_WAITING >> 20} MB of memory")

    def _unique(self) -> list[_Taken]:
        return list({id(one): one for one in self._taken.values()}.values())

    def _count(self) -> int:
        return sum(one.copied.size for one in self._unique())


def _version(tensor: Tensor) -> int | None:
    """How often its memory was written to; None where torch does not count that."""
    try:
        return tensor._version
    except RuntimeError:  # made in inference mode
        return None


def _array(copied: Copied, pieces: Iterator[Bytes]) -> KeptArray:
    values = next(pieces)
    statistics: npt.NDArray[Any] | None = None
    if copied.statistics is not None:
        statistics = next(pieces).view(np.float64 if copied.statistics.dtype == torch.float64 else np.float32)
    return KeptArray(
        key=("", None, "output", "", "value"),
        dtype=str(copied.dtype).removeprefix("torch."),
        shape=copied.shape,
        batch_dim=copied.batch_dim,
        samples=samples_of(copied.shape[copied.batch_dim], copied.kept) if copied.batch_dim is not None else (),
        values=values,
        statistics=statistics,
    )


def _words(key: SeriesKey) -> str:
    module, _, role, path, kind = key
    what = f"{role} {path!r} of module {module!r}" if module else f"{role} {path!r} of the model"
    return f"The {what}" if kind == "value" else f"The gradient of {what}"


def _near(pattern: Pattern, places: Iterable[Place]) -> str:
    near = nearest(pattern, places)
    return f"Near are: {', '.join(map(repr, near))}." if near else "It has none."
