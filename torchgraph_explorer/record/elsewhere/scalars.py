"""The scalars that the same training logged to TensorBoard or W&B, at the steps of the record.

Their steps may count batches, epochs or samples. So values are placed by the time at which they were logged, between
the frames of the record; exactly, where their steps are those of the record, or a multiple.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.elsewhere.files import EventFile, Value, WandbFile
from torchgraph_explorer.record.scalars.index import Scalar

MOST_FILES = 16
"""Files of a run that are read."""

MOST_SCALARS = 1 << 10
"""Different scalars that are read of a run."""

OF_WANDB = "wandb-"
"""The beginning of the names of runs that belong to a W&B run."""

LEAST_PAIRS, MOST_APART, AGREEING = 3, 1.5, 0.9
"""Steps of another count are converted if, for so many frames, and for this share of them, what was logged next has
the step of the frame, up to so much."""

Floats = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]

_Frames: TypeAlias = "tuple[bytes, bytes]"
"""Times and steps of a model's frames, to be compared."""


class _Values:
    """The values of one scalar, in the order in which they were read, and where they were placed last.

    They are kept as numbers: a million tuples would take a second to be made into an array each time.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._steps, self._times, self._values = array("d"), array("d"), array("d")
        self._placed: dict[_Frames, tuple[int, Scalar]] = {}

    def add(self, value: Value) -> None:
        self._steps.append(value.step)
        self._times.append(value.time)
        self._values.append(value.value)

    def placed(self, times: Floats, steps: Steps, frames: _Frames) -> Scalar:
        """The scalar at the steps of these frames. It is computed again only if a value or a frame came since."""
        count, found = self._placed.get(frames, (-1, None))
        if found is None or count != len(self._values):
            own, logged, values = (np.array(each) for each in (self._steps, self._times, self._values))
            found = Scalar(self._name, *_placed(np.stack((own, logged, values)), times, steps))
            self._placed = {frames: (len(values), found)}
        return found


class LoggedElsewhere:
    """What other libraries wrote of one run, which is read on each time it is asked for. For many threads."""

    def __init__(self, run_dir: Path) -> None:
        """Look for files in the folder of the run, and for those of the W&B run that it belongs to near it."""
        self._run_dir = run_dir
        self._lock = threading.Lock()
        self._files: dict[Path, EventFile | WandbFile] = {}
        self._values: dict[str, _Values] = {}

    def scalars(self, times: Floats, steps: Steps) -> Mapping[str, Scalar]:
        """Every scalar by name, at the steps of a model whose frames have these `times` and `steps`."""
        if not len(steps):
            return {}
        with self._lock:
            self._read_on()
            at = np.maximum.accumulate(times)
            frames = at.tobytes(), steps.tobytes()
            placed = {name: values.placed(at, steps, frames) for name, values in self._values.items()}
        return {name: one for name, one in placed.items() if len(one)}

    def _read_on(self) -> None:
        for path, kind in self._found():
            if path not in self._files and len(self._files) < MOST_FILES:
                self._files[path] = kind(path)
        for file in self._files.values():
            with suppress(OSError):  # gone, or no longer to be read: what was read before counts
                for value in file.new():
                    known = self._values.get(value.name)
                    if known is None and len(self._values) < MOST_SCALARS:
                        known = self._values[value.name] = _Values(value.name)
                    if known is not None:
                        known.add(value)

    def _found(self) -> Iterator[tuple[Path, type[EventFile | WandbFile]]]:
        with suppress(OSError):
            yield from ((one, EventFile) for one in sorted(self._run_dir.glob("*.tfevents.*")) if one.is_file())
            name = self._run_dir.name
            if not name.startswith(OF_WANDB) or any(sign in name for sign in "*?[]"):
                return
            number = name.removeprefix(OF_WANDB)
            for folder in [*self._run_dir.parents][:2]:  # W&B's folder is usually beside that of the runs
                found = sorted(folder.glob(f"wandb/*run-*-{number}/run-{number}.wandb"))
                yield from ((one, WandbFile) for one in found if one.is_file())


def _placed(values: Floats, times: Floats, steps: Steps) -> tuple[Steps, Floats, Floats]:
    """Steps of the record, times and values; of several at one step the last, without those before the first step.

    Args:
        values: The steps that its library counted, the times, and the values: `[3, n]`.
        times: Those of the record's frames.
        steps: Theirs.
    """
    own, logged, found = values[:, values[1] >= times[0]]
    if not len(own):
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    at = _converted(own, logged, times=times, steps=steps)
    if at is None:
        at = np.floor(_steps_at(logged, times, steps.astype(np.float64)))
    at = at.astype(np.int64)
    order = np.argsort(at, kind="stable")
    rows = order[np.append(np.diff(at[order]) != 0, True)]
    return at[rows], logged[rows], found[rows]


def _converted(own: Floats, logged: Floats, *, times: Floats, steps: Steps) -> Floats | None:
    """The steps `own`, which may count samples, as steps of the record; None if they count something else."""
    following = np.searchsorted(logged, times)  # the end of the step that a frame is the beginning of
    is_known = following < len(own)
    frames, counted = steps[is_known].astype(np.float64), own[following[is_known]]
    if len(frames) < LEAST_PAIRS or counted[-1] <= counted[0] or (np.diff(own) <= 0).any():
        return None
    pace = (frames[-1] - frames[0]) / (counted[-1] - counted[0])
    agree = np.abs(frames[0] + (counted - counted[0]) * pace - frames) <= MOST_APART
    found: Floats = np.round(frames[0] + (own - counted[0]) * pace)
    return found if agree.mean() >= AGREEING and found[0] >= 0 else None


def _steps_at(logged: Floats, times: Floats, steps: Floats) -> Floats:
    """The step that the training was in at each time, between the frames and beyond the last one."""
    pace = (times[-1] - times[0]) / (steps[-1] - steps[0]) if len(steps) > 1 else 0.0
    beyond = (logged - times[-1]) / pace if pace > 0 else np.zeros_like(logged)
    return np.interp(logged, times, steps) + np.clip(beyond, 0.0, float(np.max(np.diff(steps), initial=0)))
