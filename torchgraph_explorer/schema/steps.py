"""Who recorded, and what was recorded at a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.schema.statistics import STATISTICS
from torchgraph_explorer.schema.training_facts import TrainingFacts
from torchgraph_explorer.schema.words import Kind, Role, SeriesKey, StepEnd
from torchgraph_explorer.unvisited import Unvisited


@dataclass(frozen=True, slots=True)
class Series(Unvisited):
    """One tensor's one kind of numbers, over steps.

    Attributes:
        id: Number of the series within its session.
        module: Qualified name of the module.
        call: Which call of it in the step; None for a parameter, which all calls share.
        role: What the tensor is to the call; `edge` for the gradient that comes back along an edge of its inside.
        path: Which of them, as in `TensorInfo.path`; of an edge, its ends, as `conv1 -> :output`.
        kind: `value`: its elements. `grad_norm`: the l2 norms of its gradient, one per sample (row of the first
            dimension). `grad`: the elements of a parameter's `.grad`.
        part: Which part of the tensor the writing rank has: ranks with the same part have the same elements. None is a
            part that no other rank has. Set in series as written, not as read.
    """

    id: int
    module: str
    call: int | None
    role: Role
    path: str
    kind: Kind
    part: int | None = None

    @property
    def key(self) -> SeriesKey:
        """Identifies the series across sessions."""
        return (self.module, self.call, self.role, self.path, self.kind)


EVALUATIONS = "-eval"
"""The end of a session's id if it records evaluations."""


@dataclass(frozen=True, slots=True)
class Session:
    """One `watch()` of one model: who wrote, and how.

    Attributes:
        id: Random; the same in every segment of one session.
        model: The model's name in the run.
        class_name: The model's class.
        created: Seconds since the epoch.
        host: Machine name.
        pid: Process id.
        versions: Package to version: this package, torch, python.
        log: What was asked for: `io`, `io_grad`, `params`, `params_grad`; with `scalars`, without histograms.
        log_freq: As a text: `50`, `log`, or a predicate's name.
        sample_n: Elements sampled of a tensor; None for all.
        bins: Rows of a drawn histogram, by default.
        reject_outlier_proportion: Share of extreme elements that the drawn range leaves out, by default.
        clock: Name of the second time axis, e.g. `epoch`; None without.
        rank: Rank of the writing process among those that train the model together; None for a single process, or if
            each rank records a model of its own.
        world_size: How many processes train the model together.
        notes: Sentences on how its steps join those of earlier sessions, if that is not obvious.
        processes: Where `pid` is a number: the same text for all processes of one pid namespace, until the machine
            starts again; empty if that is not known.
    """

    id: str
    model: str
    class_name: str
    created: float
    host: str
    pid: int
    versions: dict[str, str]
    log: tuple[str, ...]
    log_freq: str
    sample_n: int | None
    bins: int
    reject_outlier_proportion: float
    clock: str | None
    rank: int | None = None
    world_size: int = 1
    notes: tuple[str, ...] = ()
    processes: str = ""

    @property
    def is_of_evaluations(self) -> bool:
        """It records passes between the training steps."""
        return self.id.endswith(EVALUATIONS)


@dataclass(frozen=True, slots=True)
class StepFacts:
    """How a step ended, and which passes belonged to it.

    Attributes:
        end: What ended it. `update`: optimizers updated the parameters. `skipped`: an update that a GradScaler or the
            training loop left out. `pass`: nothing did; the step is one forward pass and its backward pass. `mark`: the
            user's `watcher.step_done()`. `unfinished`: nothing did; it was recorded because the training had ended, or
            paused for long, before the update.
        passes: Forward passes that belonged to it.
        recorded_passes: Those of `passes` that were recorded.
        optimizers: The optimizers that made the update, by class name, with ` #2` and so on if the model has several of
            one class; empty if they are not known.
    """

    end: StepEnd
    passes: int
    recorded_passes: int
    optimizers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything recorded at one step.

    Several series may share a row: a tensor that is one call's output and the next one's input is measured once.

    Attributes:
        step: Count of training steps of the model before this one.
        time: Seconds since the epoch.
        clock: The second time axis' value (see `Session.clock`); None without.
        graph: Id of the module graph in force; None while it is not known.
        series: Series ids, `[n]` uint32.
        rows: Row of each series in the two fields below, `[n]` uint32.
        statistics: `[rows, len(STATISTICS)]` float32.
        histograms: One per row.
        gradient_scale: The loss scale that was taken out of the gradients; None without one.
        facts: How the step ended, and which passes belonged to it; None if that is not known.
        label: The kind of step that the training loop said it is; None without.
        training: What only the live training knew of it; None if that was not recorded.
        fingerprints: Of each row, `[rows]` uint64: a sum of hashes of the bits of the tensor's elements, times 4, plus
            an `Extent`. Tensors with the same fingerprint have the same elements, though maybe in another order; that
            of norms is of the gradient itself. None if the writer recorded none.
    """

    step: int
    time: float
    clock: float | None
    graph: int | None
    series: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]
    statistics: npt.NDArray[np.float32]
    histograms: Histograms
    gradient_scale: float | None = None
    facts: StepFacts | None = None
    label: str | None = None
    training: TrainingFacts | None = None
    fingerprints: npt.NDArray[np.uint64] | None = None

    @property
    def without_histogram(self) -> npt.NDArray[np.bool_]:
        """Rows that have finite elements of which no histogram was recorded, `[rows]`."""
        is_empty = np.diff(self.histograms.offsets.astype(np.int64)) == 0
        found: npt.NDArray[np.bool_] = is_empty & (self.statistics[:, STATISTICS.index("sampled")] > 0)
        return found
