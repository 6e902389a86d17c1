"""Where the frames of one model are, by step, without their bodies."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.folder import SegmentFile
from torchgraph_explorer.record.frame_layout import FrameLayout, decode_layout
from torchgraph_explorer.record.framing import DamageError
from torchgraph_explorer.record.scan import Found

FRAME = np.dtype(
    [
        ("step", np.int64),
        ("time", np.float64),
        ("clock", np.float64),  # NaN without
        ("gradient_scale", np.float64),  # NaN without
        ("graph", np.int32),  # as GraphIndex.reference has it; -1 without
        ("layout", np.int32),
        ("segment", np.int32),
        ("number", np.int64),  # of the segment within the run: tells which of two writes of a step is the later one
        ("body", np.int64),
        ("body_size", np.int64),
    ]
)
"""What is kept of a frame in memory."""

Frames: TypeAlias = "npt.NDArray[np.void]"

_LAST_STEP = 1 << 62


class FrameIndex:
    """The frames of one model.

    `frames` is replaced, never changed, and the other tables only grow, so that whoever holds a `frames` may go on
    using it while new ones are added.

    Attributes:
        frames: `FRAME` each; steps ascending, each once.
    """

    def __init__(self) -> None:
        self.frames: Frames = np.zeros(0, dtype=FRAME)
        self._new: list[tuple[float, ...]] = []
        self._segments: list[Path] = []
        self._segment_ids: dict[Path, int] = {}
        self._layouts: list[tuple[str, bytes]] = []
        self._layout_ids: dict[tuple[str, bytes], int] = {}
        self._decoded: dict[int, FrameLayout | None] = {}

    def add(self, frame: pb.Frame, found: Found, file: SegmentFile, *, origin: tuple[str, int]) -> None:
        """Note a frame of `file`. `origin` is its session's id and the reference of its graph.

        Raises:
            DamageError: It cannot be a frame.
        """
        if frame.step > _LAST_STEP:
            raise DamageError
        session, graph = origin
        clock = frame.clock if frame.HasField("clock") else np.nan
        scale = frame.gradient_scale if frame.HasField("gradient_scale") else np.nan
        layout = self._layout_id((session, frame.layout))
        segment = self._segment_id(file.path)
        place = (segment, file.number, found.body, found.body_size)
        self._new.append((frame.step, frame.time, clock, scale, graph, layout, *place))

    def settle(self) -> bool:
        """Take the added frames in; True when earlier ones changed their number or content.

        Of several frames of one step the one written last remains.
        """
        if not self._new:
            return False
        new, old = np.array(self._new, dtype=FRAME), self.frames
        self._new = []
        self.frames = _last_of_each_step(np.concatenate((old, new)))
        places = ["step", "segment", "body"]
        return len(self.frames) < len(old) or bool((self.frames[places][: len(old)] != old[places]).any())

    def layout(self, number: int) -> FrameLayout | None:
        """One of the layouts that `frames` refers to; None when it makes no sense."""
        if number not in self._decoded:
            try:
                self._decoded[number] = decode_layout(self._layouts[number][1])
            except DamageError:
                self._decoded[number] = None
        return self._decoded[number]

    def session(self, layout: int) -> str:
        """The session whose series a layout speaks of."""
        return self._layouts[layout][0]

    def segment(self, number: int) -> Path:
        """One of the files that `frames` refers to."""
        return self._segments[number]

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


def _last_of_each_step(frames: Frames) -> Frames:
    steps = frames["step"]
    if (steps[1:] > steps[:-1]).all():
        return frames
    order = np.lexsort((frames["body"], frames["number"], steps))
    is_last = np.append(np.diff(steps[order]) > 0, True)
    last: Frames = frames[order[is_last]]
    return last
