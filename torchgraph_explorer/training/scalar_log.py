"""What the training loop logs, scalars and notes, on its way to the writer's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.mode_stack import are_modes_on
from torchgraph_explorer.capture.no_dispatch import ORDINARY, NoDispatch, is_readable, plain
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.reduce.to_host import relaxed
from torchgraph_explorer.schema import Logged, StepNote

MOST_WAITING = 1 << 18
"""Values that may wait for the writer's thread. Beyond that, values are dropped, and counted."""

NO_ROOM = "writing was slower than the training, or a GPU failed"
"""Why values are dropped."""

MOST_AT_ONCE = 1 << 15
"""About how many values are taken at once."""

MOST_NOTES = 10_000
"""Notes that may wait for the writer's thread."""

MOST_NOTES_AT_ONCE = 500

Value: TypeAlias = "float | Tensor"

_Row: TypeAlias = tuple[int, float, tuple[str, str | None], float]
"""Step, time, name and label, and value."""

_function_modes = torch._C._len_torch_function_stack


class _Entry(NamedTuple):
    """One call of `log`.

    Attributes:
        step: The step; None for the first one, until it has ended.
        time: Seconds since the epoch.
        label: Of all its values; None without.
        values: By name. A tensor is a copy with one element, in host memory once `arrivals` have come.
        arrivals: Events after which the copies of what was on a GPU are complete.
    """

    step: int | None
    time: float
    label: str | None
    values: list[tuple[str, Value]]
    arrivals: tuple[torch.cuda.Event, ...]

    @property
    def has_arrived(self) -> bool:
        try:
            return all(event.query() for event in self.arrivals)
        except RuntimeError:  # the GPU has failed; so will reading
            return True

    def read(self) -> Iterator[tuple[str, float]]:
        """The values as numbers. Waits for copies that are on their way."""
        for event in self.arrivals:
            event.synchronize()
        for name, value in self.values:
            yield name, float(value.item()) if isinstance(value, Tensor) else value


class ScalarLog:
    """Keeps what is logged until the writer's thread takes it. Any thread may add, and adding waits for nothing.

    Attributes:
        dropped: Values that found no room, or that could not be read from a GPU.
        first_step: The first step, once it has ended: what was logged until then belongs to it.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self.dropped = 0
        self.first_step: int | None = None
        self._entries: deque[_Entry] = deque()
        self._notes: deque[tuple[int | None, float, str]] = deque()
        self._added = self._taken = 0

    def add(
        self, step: int | None, time: float, scalars: Mapping[str, object], *, label: str | None = None
    ) -> list[str]:
        """Keep the values of one call of `log`, as they are now.

        Returns:
            The names of those that have no value that can be read: of the meta device, or within `vmap`.

        Raises:
            OptionError: A name is not a str, or a value is not a number. Then none of them is kept.
        """
        values: list[tuple[str, Value]] = []
        unreadable: list[str] = []
        copies: set[torch.device] = set()
        for name, value in checked(scalars).items():
            number = value if type(value) is float else _number(name, value, copies)
            if number is None:
                unreadable.append(name)
            else:
                values.append((name, number))
        if self._added - self._taken + len(values) > MOST_WAITING:
            self.dropped += len(values)
        else:
            self._added += len(values)
            arrivals = tuple(map(_arrival, copies)) if copies else ()
            self._entries.append(_Entry(step, time, label, values, arrivals))
        return unreadable

    def note(self, step: int | None, time: float, sentence: str) -> None:
        """Keep a note, unless there are too many already."""
        if len(self._notes) < MOST_NOTES:
            self._notes.append((step, time, sentence))

    def take(self, *, ends_at: int | None = None) -> Logged | None:
        """What waits, in the order of logging, about `MOST_AT_ONCE` values; None if there is nothing.

        Before the end, what is on its way from a GPU stays, with what was logged after it, and so does what was logged
        before the first step. At the end, of a training that has counted `ends_at` steps, all is taken.
        """
        is_end = ends_at is not None
        first = ends_at if self.first_step is None else self.first_step
        if first is None:
            return None
        with relaxed():
            rows = self._take_rows(first, is_end=is_end)
        waiting = [self._notes.popleft() for _ in range(min(len(self._notes), MOST_NOTES_AT_ONCE))]
        notes = tuple(StepNote(first if step is None else step, time, text) for step, time, text in waiting)
        return _logged(rows, notes) if rows or notes else None

    def _take_rows(self, first: int, *, is_end: bool) -> list[_Row]:
        """The scalars that `take` returns. Those that were logged before the first step are given `first`."""
        rows: list[_Row] = []
        while self._entries and len(rows) < MOST_AT_ONCE and (is_end or self._entries[0].has_arrived):
            entry = self._entries.popleft()
            self._taken += len(entry.values)
            step = first if entry.step is None else entry.step
            try:
                rows += [(step, entry.time, (name, entry.label), value) for name, value in entry.read()]
            except RuntimeError:
                self.dropped += len(entry.values)
        return rows


def checked(scalars: object) -> Mapping[str, object]:
    """`scalars`, if they have names.

    Raises:
        OptionError: They have not.
    """
    if type(scalars) is not dict and not isinstance(scalars, Mapping):  # the first is a quick check
        raise OptionError(
            f"watcher.log() was given {type(scalars).__name__}. "
            f"Pass a dict from names to numbers: log({{'loss': loss}})."
        )
    for name in scalars:
        if not isinstance(name, str) or not name:
            raise OptionError(
                f"watcher.log(): {name!r} is not a name for a scalar. Use a non-empty str, such as 'train/loss'."
            )
    return scalars


def _number(name: str, value: object, copies: set[torch.device]) -> Value | None:
    """The value of a scalar, or a copy of it if it is not in host memory; None if it has none that can be read.

    The devices whose copies are on their way are added to `copies`.
    """
    if isinstance(value, Tensor):
        return _of_tensor(name, value, copies)
    is_number = not isinstance(value, str | bytes | bytearray | complex | np.complexfloating)
    try:
        if isinstance(value, np.ndarray):
            value = value.item()
        if is_number:
            return float(value)  # type: ignore[arg-type]  # whatever is no number raises
    except (TypeError, ValueError, OverflowError):
        pass  # the error below says what is allowed
    raise _no_scalar(name, f"{value!r:.80}")


def _of_tensor(name: str, tensor: Tensor, copies: set[torch.device]) -> Value | None:
    is_plain = type(tensor) in ORDINARY and not (_function_modes() or are_modes_on())
    if is_plain and tensor.is_cpu:
        _require_one(name, tensor)
        return float(tensor.item())
    return _of_any_tensor(name, tensor, copies)


@interrupts.guarded
def _of_any_tensor(name: str, tensor: Tensor, copies: set[torch.device]) -> Value | None:
    """The value, unseen by the user's modes and subclasses; or a copy, if it is not in host memory."""
    with NoDispatch():
        _require_one(name, tensor)
        tensor = plain(tensor)
        if not is_readable(tensor) or tensor.numel() != 1:  # vmap has hidden the samples
            return None
        if tensor.device.type == "cpu":
            return float(tensor.item())
        if tensor.device.type != "cuda":
            return tensor.detach().clone()  # which the writer's thread reads
        if torch.cuda.is_current_stream_capturing():
            return None
        copies.add(tensor.device)
        return tensor.detach().to("cpu", non_blocking=True)  # into pinned memory


def _require_one(name: str, tensor: Tensor) -> None:
    if tensor.numel() != 1 or tensor.is_complex():
        raise _no_scalar(name, f"a tensor of shape {tuple(tensor.shape)} and {tensor.dtype}")


def _no_scalar(name: str, what: str) -> OptionError:
    return OptionError(
        f"watcher.log(): {name!r} is {what}, which is not a scalar. Pass a real number, or a tensor or array with one "
        f"element, such as loss.mean()."
    )


def _arrival(device: torch.device) -> torch.cuda.Event:
    """An event after all copies that were begun on `device` so far."""
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event


def _logged(rows: list[_Row], notes: tuple[StepNote, ...]) -> Logged:
    numbers: dict[tuple[str, str | None], int] = {}
    index = [numbers.setdefault(scalar, len(numbers)) for _, _, scalar, _ in rows]
    labels = tuple(label for _, label in numbers)
    return Logged(
        names=tuple(name for name, _ in numbers),
        name=np.array(index, dtype=np.uint32),
        steps=np.array([step for step, *_ in rows], dtype=np.int64),
        times=np.array([time for _, time, *_ in rows], dtype=np.float64),
        values=np.array([value for *_, value in rows], dtype=np.float64),
        notes=notes,
        labels=labels if any(labels) else (),
    )
