"""Where the frames of one model are, by step, without their bodies."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.folder import SegmentFile
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.limits import (
    LABEL,
    LABELS,
    LAST_STEP,
    LAYOUT_BYTES,
    LAYOUTS_FREE,
    LAYOUTS_PER_BYTE,
    MOST_INFLATED,
    moment,
)
from torchgraph_explorer.record.ranks.groups import Launches
from torchgraph_explorer.record.ranks.steps import Frames, RankFrames, expanded
from torchgraph_explorer.record.scan import ScannedRecord
from torchgraph_explorer.record.steps.facts import StepKinds
from torchgraph_explorer.record.steps.layout import FrameLayout, decode_layout
from torchgraph_explorer.record.steps.training import TrainingTable

FRAME = np.dtype(
    [
        ("step", np.int64),
        ("time", np.float64),
        ("clock", np.float64),  # NaN without
        ("gradient_scale", np.float64),  # NaN without
        ("graph", np.int32),  # as GraphIndex.reference has it; -1 without
        ("kind", np.int32),  # as StepKinds has it; -1 without facts
        ("passes", np.int64),  # as StepFacts has them
        ("recorded_passes", np.int64),
        ("label", np.int32),  # as FrameIndex.label has it; -1 without
        ("training", np.int32),  # as TrainingTable has it; -1 without
        ("layout", np.int32),
        ("segment", np.int32),
        ("number", np.int64),  # of the segment within the run: tells which of two writes of a step is the later one
        ("body", np.int64),
        ("body_size", np.int64),
        ("head_check", np.int64),  # as ScannedRecord has it; -1 without
        ("ranks", np.int32),  # that it is from
        ("first", np.int64),  # of as many in `shares`; -1 where there is only this one
    ]
)
"""The entry of a frame in memory. If several ranks wrote it, it has the values of the lowest rank (of the lowest
that has facts, for the facts)."""

_LAYOUT = list(FRAME.names or ()).index("layout")

PATIENCE = 30.0
"""Seconds that a step is held back for ranks that have not written it yet. At a URL, ranks write every ten."""


@dataclass(frozen=True, slots=True)
class RankStatus:
    """Which sessions are ranks, and which ranks may still write.

    Attributes:
        launches: Which sessions belong to one launch.
        writing: The sessions of the last launch that have not ended, as far as is known.
    """

    launches: Launches
    writing: tuple[str, ...]


class FrameIndex:
    """The frames of one model.

    `frames` is replaced, never changed, and the other tables only grow. So readers may keep using an old `frames` while
    new frames are added.

    Attributes:
        frames: `FRAME` each; steps ascending, each once.
        kinds: What the frames' `kind` refers to.
        training: What the frames' `training` refers to.
        twice: For each file that has a frame twice, the step of one; a session writes none twice.
    """

    def __init__(self) -> None:
        self.frames: Frames = np.zeros(0, dtype=FRAME)
        self.kinds, self.training = StepKinds(), TrainingTable()
        self.twice: dict[Path, int] = {}
        self._new: list[tuple[float, ...]] = []
        self._held_back: list[tuple[float, tuple[float, ...]]] = []
        self._reached: dict[str, int] = {}
        self._by_rank: RankFrames | None = None
        self._segments: list[Path] = []
        self._segment_ids: dict[Path, int] = {}
        self._layouts: list[tuple[str, bytes]] = []
        self._layout_ids: dict[tuple[str, bytes], int] = {}
        self._decoded: dict[int, FrameLayout | None] = {}
        self._labels: dict[str, int] = {}
        self._label_names: list[str] = []
        self._of_kinds: dict[tuple[int, ...], tuple[Frames, Frames]] = {}
        self._room = LAYOUTS_FREE

    def add(self, frame: pb.Frame, found: ScannedRecord, file: SegmentFile, *, origin: tuple[str, int]) -> None:
        """Note a frame of `file`. `origin` is its session's id and the reference of its graph.

        Raises:
            DamageError: Its step or time is out of range.
        """
        if frame.step > LAST_STEP:
            raise DamageError(f"step is {frame.step}")
        written = moment(frame.time, "time")
        session, graph = origin
        clock = frame.clock if frame.HasField("clock") else np.nan
        scale = frame.gradient_scale if frame.HasField("gradient_scale") else np.nan
        layout = self._layout_id((session, frame.layout))
        segment = self._segment_id(file.path)
        check = -1 if found.head_check is None else found.head_check
        place = (segment, file.number, found.body, found.body_size, check)
        facts = self.kinds.entry(frame)
        label = self._label_id(frame.label) if frame.HasField("label") else -1
        told = *facts, label, self.training.entry(frame)
        self._new.append((frame.step, written, clock, scale, graph, *told, layout, *place, 1, -1))
        self._room += LAYOUTS_PER_BYTE * found.body_size
        self._reached[session] = max(self._reached.get(session, -1), frame.step)

    def settle(self, status: RankStatus | None = None) -> tuple[bool, bool]:
        """Add the noted frames; whether there were any, and whether earlier frames changed their number or content.

        Of several frames of one step the last written remains; with ranks, and so a `status`, the last of each rank. A
        step that some rank has not written yet is held back for a while.
        """
        added = self._new if status is None else self._complete(status)
        if not added:
            return False, False
        new, old = np.array(added, dtype=FRAME), self.frames
        self.twice |= {self.segment(int(one["segment"])): int(one["step"]) for one in _copies(new)}
        if status is None:
            self._new = []
            self.frames = _last_of_each_step(np.concatenate((old, new)))
        else:
            self._by_rank = self._by_rank or RankFrames(old)
            members = [status.launches.members[session] for session in self.writers]
            self.frames = self._by_rank.merge(old, new, members)
        places = ["step", "segment", "body", "first"]
        return True, len(self.frames) < len(old) or bool((self.frames[places][: len(old)] != old[places]).any())

    def of_kinds(self, kinds: list[int]) -> FrameIndex:
        """The index as it is now, with only the frames whose step is of one of `kinds`."""
        one = copy(self)
        one.frames = self._frames_of(tuple(kinds))
        return one

    def _frames_of(self, kinds: tuple[int, ...]) -> Frames:
        """The frames of these kinds. Selected once, since all that is read of an optimizer's steps needs them."""
        frames = self.frames
        known = self._of_kinds.get(kinds)
        if known is None or known[0] is not frames:
            known = self._of_kinds[kinds] = frames, frames[np.isin(frames["kind"], kinds)]
        return known[1]

    def by_rank(self, frames: Frames) -> tuple[npt.NDArray[np.int64], Frames]:
        """The index of the frame in `frames` of each frame that a rank wrote, and those, ordered by frame and rank."""
        return expanded(frames, self._by_rank.shares if self._by_rank else self.frames[:0])

    def _complete(self, status: RankStatus) -> list[tuple[float, ...]]:
        """The noted frames whose step every rank has written or had enough time to write; the others are held back."""
        now, moment = time.time(), time.monotonic()
        reached = min((self._reached.get(session, -1) for session in status.writing), default=LAST_STEP)
        latest = set(status.launches.latest)
        complete, waiting = [], []
        for since, facts in (*self._held_back, *((moment, facts) for facts in self._new)):
            step, written, layout = int(facts[0]), facts[1], int(facts[_LAYOUT])
            is_old = now - written > PATIENCE or moment - since > PATIENCE  # the writer's clock may be another one
            if step <= reached or is_old or self.session(layout) not in latest:
                complete.append(facts)
            else:
                waiting.append((since, facts))
        self._new, self._held_back = [], waiting
        return complete

    def layout(self, number: int) -> FrameLayout | None:
        """One of the layouts that `frames` refers to; None if it is damaged, or the layouts exceed their bound."""
        if number not in self._decoded:
            self._decoded[number] = self._decode(self._layouts[number][1])
        return self._decoded[number]

    def _decode(self, data: bytes) -> FrameLayout | None:
        try:
            layout = decode_layout(data, max(self._room, 0))
        except DamageError:
            self._room -= min(LAYOUT_BYTES, MOST_INFLATED * len(data))  # what that may have cost
            return None
        self._room -= layout.size
        return layout

    @property
    def writers(self) -> list[str]:
        """The session of every layout."""
        return [session for session, _ in self._layouts]

    def session(self, layout: int) -> str:
        """The session whose series ids a layout uses."""
        return self._layouts[layout][0]

    def segment(self, number: int) -> Path:
        """One of the files that `frames` refers to."""
        return self._segments[number]

    def label(self, number: int) -> str | None:
        """One of the labels that `frames` refers to; None for -1."""
        return self._label_names[number] if number >= 0 else None

    def _label_id(self, label: str) -> int:
        known = self._labels.get(label)
        if known is None:
            if len(self._label_names) >= LABELS or len(label) > LABEL:
                return -1
            known = self._labels[label] = len(self._label_names)
            self._label_names.append(label)
        return known

    def _layout_id(self, layout: tuple[str, bytes]) -> int:
        known = self._layout_ids.get(layout)
        if known is None:
            known = self._layout_ids[layout] = len(self._layouts)
            self._layouts.append(layout)
        return known

    def _segment_id(self, path: Path) -> int:
        known = self._segment_ids.get(path)
        if known is None:
            known = self._segment_ids[path] = len(self._segments)
            self._segments.append(path)
        return known


def _copies(frames: Frames) -> Frames:
    """Those that repeat another one of `frames` in the same file."""
    if not len(frames) or _ascend(frames["step"]):
        return frames[:0]
    ordered = frames[np.argsort(frames["head_check"], kind="stable")]
    this, before = ordered[1:], ordered[:-1]
    names = ("head_check", "layout", "step", "segment")
    is_same = np.logical_and.reduce([this[name] == before[name] for name in names]) & (this["head_check"] >= 0)
    copies: Frames = this[is_same]
    return copies


def _ascend(steps: npt.NDArray[np.int64]) -> bool:
    return bool((steps[1:] > steps[:-1]).all())


def _last_of_each_step(frames: Frames) -> Frames:
    steps = frames["step"]
    if _ascend(steps):
        return frames
    order = np.lexsort((frames["body"], frames["number"], steps))
    is_last = np.append(np.diff(steps[order]) > 0, True)
    last: Frames = frames[order[is_last]]
    return last
