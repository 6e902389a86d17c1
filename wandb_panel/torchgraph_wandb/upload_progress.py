"""How much is recorded, and how much of it is uploaded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torchgraph_wandb.panels import SummaryValues
from torchgraph_wandb.snapshots import Snapshot
from torchgraph_wandb.upload_schedule import is_due


@dataclass(frozen=True, slots=True)
class RecordProgress:
    """How much is recorded.

    Attributes:
        frames: Frames so far.
        steps: The latest step, plus 1.
        began: When the first frame came, by the monotonic clock.
    """

    frames: int = 0
    steps: int = 0
    began: float = 0.0

    def after(self, step: int, *, now: float) -> RecordProgress:
        """The progress with one more frame, of `step`."""
        return RecordProgress(self.frames + 1, step + 1, self.began if self.frames else now)


@dataclass(frozen=True, slots=True)
class UploadProgress:
    """What was uploaded so far.

    Attributes:
        files: Tables and pages.
        pages: Pages alone.
        last: When the latest snapshot began, in seconds from the first frame; None before the first.
        frames: Frames that were recorded then.
        making: Seconds that it took to make it.
    """

    files: int = 0
    pages: int = 0
    last: float | None = None
    frames: int = 0
    making: float = 0.0

    def is_due(self, elapsed: float) -> bool:
        """Whether to begin the next snapshot."""
        return is_due(elapsed, self.last, self.files, making=self.making)

    def after(self, snapshot: Snapshot) -> UploadProgress:
        """The progress with the files of `snapshot`."""
        pages = int(snapshot.page is not None)
        return replace(self, files=self.files + 1 + pages, pages=self.pages + pages, making=snapshot.seconds)


@dataclass(frozen=True, slots=True)
class FirstSummary:
    """The first values of the summary, to be sent at the moment `at` of the monotonic clock; empty: not known yet."""

    shown: SummaryValues = field(default_factory=dict)
    at: float = 0.0

    def is_due(self, now: float) -> bool:
        """Whether to send them now."""
        return bool(self.shown) and now >= self.at


@dataclass(frozen=True, slots=True)
class PendingSnapshot:
    """A snapshot that is not logged yet, and since when it is ready."""

    snapshot: Snapshot
    since: float
