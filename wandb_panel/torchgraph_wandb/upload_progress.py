"""How far a record and what is uploaded of it are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torchgraph_wandb.panels import Shown
from torchgraph_wandb.snapshots import Snapshot
from torchgraph_wandb.upload_schedule import is_due


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the record is.

    Attributes:
        frames: Recorded so far.
        steps: One more than the latest step.
        began: The moment of the first frame, of the monotonic clock.
    """

    frames: int = 0
    steps: int = 0
    began: float = 0.0

    def after(self, step: int, *, now: float) -> Progress:
        """With one frame more."""
        return Progress(self.frames + 1, step + 1, self.began if self.frames else now)


@dataclass(frozen=True, slots=True)
class Uploads:
    """What was uploaded so far.

    Attributes:
        files: Tables and pages.
        pages: Of them.
        last: When the latest snapshot was begun, in seconds from the first frame; None without any.
        frames: That were recorded then.
        making: Seconds that it took to be made.
    """

    files: int = 0
    pages: int = 0
    last: float | None = None
    frames: int = 0
    making: float = 0.0

    def is_due(self, elapsed: float) -> bool:
        """Whether to begin the next snapshot."""
        return is_due(elapsed, self.last, self.files, making=self.making)

    def after(self, snapshot: Snapshot) -> Uploads:
        """With those of `snapshot`."""
        pages = int(snapshot.page is not None)
        return replace(self, files=self.files + 1 + pages, pages=self.pages + pages, making=snapshot.seconds)


@dataclass(frozen=True, slots=True)
class First:
    """What is shown first, to be told to the server at the moment `at` of the monotonic clock; nothing yet if empty."""

    shown: Shown = field(default_factory=dict)
    at: float = 0.0

    def is_due(self, now: float) -> bool:
        """Whether to tell it now."""
        return bool(self.shown) and now >= self.at


@dataclass(frozen=True, slots=True)
class Ready:
    """A snapshot that is still to be logged, and since when."""

    snapshot: Snapshot
    since: float
