"""Reads one watched model of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from types import EllipsisType
from typing import TypeVar, get_args

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError, OptionError
from torchgraph_explorer.finding import RuleFindings
from torchgraph_explorer.record.cells.reading import CellReader, Columns, Wanted
from torchgraph_explorer.record.elsewhere.scalars import LoggedElsewhere
from torchgraph_explorer.record.model_index import ModelIndex, SessionIndex
from torchgraph_explorer.record.nonfinite import Flags, are_nonfinite, nonfinite_frames, traits
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.record.numbers import whole, whole_numbers
from torchgraph_explorer.record.ranks.notes import finished_together, missing_ranks, notes_so_far
from torchgraph_explorer.record.scalars.index import LoggedSoFar, Scalar
from torchgraph_explorer.record.session_notes import mixed_sessions
from torchgraph_explorer.record.steps.bulk import BulkRows, read_bulk
from torchgraph_explorer.record.steps.facts import StepKind, in_order
from torchgraph_explorer.record.steps.history import History
from torchgraph_explorer.record.steps.reading import read_frame, read_history
from torchgraph_explorer.record.tensors.catalog import KeptCatalog, catalog
from torchgraph_explorer.record.tensors.index import KeptIndex
from torchgraph_explorer.record.tensors.reading import (
    Kept,
    KeptAt,
    KeptByStep,
    KeptTensor,
    kept_at,
    kept_keys,
    read_graph,
    read_tensor,
)
from torchgraph_explorer.schema import (
    Finished,
    Frame,
    Kind,
    ModuleGraph,
    Role,
    Series,
    Session,
    StepFacts,
    StepNote,
    TensorGraph,
    TrainingFacts,
)

QUIET_SECONDS = 5.0
"""What was written just now comes from somewhere, whatever this machine knows of processes."""

ModelT = TypeVar("ModelT", bound="ModelRecord")


class ModelRecord:
    """One watched model: its sessions, graphs, series and frames.

    Frames are numbered from 0 in the order of their steps. Everything is as of the run's latest `refresh`. Numbers of
    frames, and ids of graphs and series, stay valid as long as `epoch` is the same.

    Attributes:
        optimizer: Only the frames whose step this optimizer made are there; None for all frames.
    """

    def __init__(
        self,
        index: Callable[[], ModelIndex],
        notices: Notices,
        *,
        kept: Callable[[], KeptIndex],
        elsewhere: LoggedElsewhere | None = None,
        optimizer: str | None = None,
    ) -> None:
        self.optimizer, self._elsewhere = optimizer, elsewhere
        self._find_index, self._find_kept = index, kept
        self._notices = notices

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {len(self)} frames, {len(self.series)} series>"

    def __len__(self) -> int:
        return len(self._index.frames.frames)

    @property
    def name(self) -> str:
        """The model's name in its run."""
        return self._index.name

    @property
    def epoch(self) -> int:
        """Grows when frames that were there before have changed, as when a resumed session writes a step again."""
        return self._index.epoch

    @property
    def sessions(self) -> tuple[Session, ...]:
        """Who wrote, first to last."""
        return tuple(one.session for one in self._index.sessions.values())

    @property
    def session(self) -> Session:
        """The latest of `sessions`. If ranks train the model together, that of the lowest rank."""
        return self._latest[0].session

    @property
    def finished(self) -> Finished | None:
        """How the latest session, or all ranks of it, ended; None while it is open, or when it was killed."""
        return finished_together(self._latest)

    @property
    def has_stopped(self) -> bool:
        """Whether the training has ended without closing the latest session: its process is gone, or all ranks' are.

        This is only known on the machine that trains, in the same container, and on Linux; elsewhere it is False.
        """
        open_ones = [one for one in self._latest if one.finished is None]
        quiet = time.time() - self._index.last_write
        return bool(open_ones) and quiet >= QUIET_SECONDS and all(one.has_stopped() for one in open_ones)

    @property
    def ranks(self) -> npt.NDArray[np.int32]:
        """How many ranks each frame is from; 1 if one process trains the model."""
        return np.ascontiguousarray(self._index.frames.frames["ranks"])

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the frames: how sessions join, which frames are not from every rank, what is not recorded.

        What is not recorded is in `finished.notes` once the latest session was closed.
        """
        index = self._index
        frames = index.frames.frames
        written = dict.fromkeys(note for one in index.sessions.values() for note in one.session.notes)
        mixed = mixed_sessions(frames["step"], index.writing_order[frames["layout"]])
        short = missing_ranks(frames["step"], frames["ranks"], index.world_sizes[frames["layout"]])
        return *written, *mixed, *short, *notes_so_far(self._latest)

    @property
    def steps(self) -> npt.NDArray[np.int64]:
        """Step of each frame, ascending."""
        return np.ascontiguousarray(self._index.frames.frames["step"])

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """When each frame was written, in seconds since the epoch."""
        return np.ascontiguousarray(self._index.frames.frames["time"])

    @property
    def clock(self) -> npt.NDArray[np.float64]:
        """The value of each frame on the second time axis (`time_log`); NaN if there is none."""
        return np.ascontiguousarray(self._index.frames.frames["clock"])

    @property
    def graph_ids(self) -> npt.NDArray[np.int32]:
        """Id of the graph that each frame belongs to; -1 while it is not known."""
        index = self._index
        return index.graphs.ids(index.frames.frames["graph"])

    @property
    def facts(self) -> tuple[StepFacts | None, ...]:
        """How the step of each frame ended, and which passes belonged to it; None if that is not known."""
        frames = self._index.frames
        return tuple(map(frames.kinds.facts, frames.frames))

    @property
    def labels(self) -> tuple[str | None, ...]:
        """The label that `watcher.label` gave to the step of each frame; None if it gave none."""
        frames = self._index.frames
        return tuple(map(frames.label, frames.frames["label"].tolist()))

    @property
    def training_facts(self) -> tuple[TrainingFacts | None, ...]:
        """What only the live training knew about the step of each frame; None if it was not recorded.

        If several ranks train the model, these are the facts of the lowest one.
        """
        frames = self._index.frames
        return tuple(map(frames.training.facts, frames.frames["training"].tolist()))

    @property
    def optimizers(self) -> tuple[str, ...]:
        """The optimizers that made the steps of all frames, by class and number: `Adam`, `Adam #2`, `SGD`."""
        return in_order(name for kind in self.kinds.values() for name in kind.optimizers)

    def of_optimizer(self: ModelT, optimizer: str) -> ModelT:
        """The same model with only the frames whose step `optimizer` made; they are numbered anew."""
        return type(self)(
            self._find_index, self._notices, kept=self._find_kept, elsewhere=self._elsewhere, optimizer=optimizer
        )

    @property
    def kinds(self) -> dict[int, StepKind]:
        """The ends and optimizers that the steps of all frames had, by number."""
        frames = self._find_index().frames
        numbers = frames.frames["kind"]
        return {int(number): frames.kinds.kinds[number] for number in np.flatnonzero(np.bincount(numbers + 1)[1:])}

    @property
    def kind_numbers(self) -> npt.NDArray[np.int32]:
        """Which of `kinds` the step of each frame is; -1 where that is not known."""
        return np.ascontiguousarray(self._index.frames.frames["kind"])

    @property
    def passes(self) -> npt.NDArray[np.int64]:
        """How many forward passes belonged to the step of each frame, and how many were recorded, `[frames, 2]`."""
        frames = self._index.frames.frames
        return np.stack((frames["passes"], frames["recorded_passes"]), axis=-1)

    @property
    def gradient_scales(self) -> npt.NDArray[np.float64]:
        """The loss scale that was taken out of the gradients of each frame; NaN without one."""
        return np.ascontiguousarray(self._index.frames.frames["gradient_scale"])

    @property
    def series(self) -> tuple[Series, ...]:
        """Every series; the id of a series is its index here."""
        return self._index.series

    @property
    def graphs(self) -> tuple[ModuleGraph, ...]:
        """Every module graph as it was last written; the id of a graph is its index here."""
        return tuple(one.graph for one in self._index.graphs.graphs)

    def graph_revision(self, graph: int) -> int:
        """How often the graph with this id was replaced by a newer one.

        Raises:
            NotFoundError: There is no such graph.
            OptionError: `graph` is no whole number.
        """
        graph, graphs = whole(graph, "graph"), self._index.graphs.graphs
        if not 0 <= graph < len(graphs):
            raise NotFoundError(f"Model {self.name!r} has no graph {graph}. {_numbered('graphs', len(graphs))}")
        return graphs[graph].revision

    def find(
        self,
        module: str | None = None,
        *,
        call: int | EllipsisType | None = ...,
        role: Role | None = None,
        path: str | None = None,
        kind: Kind | None = None,
    ) -> tuple[Series, ...]:
        """The series that match every argument, in the order of their ids.

        `call=None` selects parameters, which belong to no single call; without `call`, any call matches.

        Raises:
            OptionError: There is no such role, or no such kind.
        """
        for option, one, known in (("role", role, get_args(Role)), ("kind", kind, get_args(Kind))):
            if one is not None and one not in known:
                raise OptionError(f"No series has {option}={one!r:.80}. Choose one of {', '.join(map(repr, known))}.")
        wanted = (module, role, path, kind)
        return tuple(
            one
            for one in self.series
            if (call is ... or one.call == call)
            and all(
                want is None or want == have
                for want, have in zip(wanted, (one.module, one.role, one.path, one.kind), strict=True)
            )
        )

    def frame(self, index: int) -> Frame:
        """Everything recorded at one frame; -1 is the latest. Damaged rows belong to no series.

        Raises:
            NotFoundError: There is no such frame.
            OptionError: `index` is no whole number.
            RecordError: The whole frame is damaged, or the run is gone.
        """
        index, model = whole(index, "index"), self._index
        count = len(model.frames.frames)
        if not -count <= index < count:
            raise NotFoundError(f"Model {self.name!r} has no frame {index}. {_numbered('frames', count)}")
        frame = read_frame(model, index, self._notices)
        self._notices.announce()
        return frame

    def frame_at(self, step: int) -> Frame:
        """Everything recorded at one step.

        Raises:
            NotFoundError: Nothing was recorded at it.
            OptionError: `step` is no whole number.
            RecordError: As in `frame`.
        """
        step, steps = whole(step, "step"), self.steps
        at = int(np.searchsorted(steps, step))
        if at == len(steps) or steps[at] != step:
            raise NotFoundError(f"Model {self.name!r} has no frame of step {step}. {_near(steps, at)}")
        return self.frame(at)

    def history(self, series: int | Series, first_frame: int = 0, stop_frame: int | None = None) -> History:
        """One series over the frames from `first_frame` up to, and without, `stop_frame`.

        Frames that lack the series, or have it damaged, are left out. Reads only the rows of that series, about 200
        bytes a frame.

        Raises:
            NotFoundError: There is no such series.
            OptionError: `first_frame` or `stop_frame` is no whole number.
            RecordError: The run is gone.
        """
        number, index = series.id if isinstance(series, Series) else series, self._index
        self._require_series(number)
        frames = self._range(first_frame, stop_frame)
        found = read_history(index, number, frames=frames, notices=self._notices)
        self._notices.announce()
        return found

    @property
    def logged(self) -> LoggedSoFar:
        """The scalars and notes together, as of one moment."""
        return self._index.logged

    def scalars(self, label: str | None = None) -> Mapping[str, Scalar]:
        """Every scalar that was logged with `watcher.log`, by name, in the order of first logging.

        Args:
            label: The label with which they were logged; None for scalars without a label.
        """
        return self.logged.labelled(label)

    @property
    def scalar_labels(self) -> tuple[str, ...]:
        """The labels with which scalars were logged."""
        return tuple(dict.fromkeys(one.label for one in self.logged.every if one.label is not None))

    def scalar(self, name: str, label: str | None = None) -> Scalar:
        """The scalar called `name`: its steps, times and values as numpy arrays.

        Args:
            name: The name with which it was logged.
            label: The label with which it was logged; None for values without a label.

        Raises:
            NotFoundError: No scalar has this name and this label.
        """
        every = self.logged.every
        for one in every:
            if (one.name, one.label) == (name, label):
                return one
        calls = (repr(one.name) if one.label is None else f"{one.name!r} (label={one.label!r})" for one in every)
        choices = f"Choose one of {', '.join(calls)}." if every else "No scalar was logged."
        wanted = repr(name) if label is None else f"{name!r} with label={label!r}"
        raise NotFoundError(f"Model {self.name!r} has no scalar {wanted}. {choices}")

    def scalars_elsewhere(self) -> Mapping[str, Scalar]:
        """The scalars that the same training logged to TensorBoard or W&B, if their files are in the folder of the run.

        They are placed at the steps of the record. Empty for a run at a URL.
        """
        return {} if self._elsewhere is None else self._elsewhere.scalars(self.times, self.steps)

    @property
    def step_notes(self) -> tuple[StepNote, ...]:
        """The sentences of `watcher.note`, in the order of steps."""
        return self.logged.notes

    @property
    def found_by_rules(self) -> tuple[RuleFindings, ...]:
        """What rules of the user's own found while the model trained; of each rule, in the latest session that ran it.

        The rules themselves are not in the record.
        """
        sessions = self._index.sessions.values()
        found = {one.rule: one for session in sessions if session.found is not None for one in session.found.rules}
        return tuple(found.values())

    @property
    def found_times(self) -> tuple[float, ...]:
        """When each session last wrote what rules of the user's own found, in seconds since the epoch."""
        return tuple(one.found.time for one in self._index.sessions.values() if one.found is not None)

    def statistics(self, frames: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """The statistics of every series at some `frames`, as an array `[STATISTICS, frames, series]`.

        NaN if a frame lacks a series, or if it is damaged there. Reads and checks the frames as a whole, some 200 bytes
        a tensor, and takes 48 bytes of memory a series and frame.

        Raises:
            NotFoundError: There is no such frame.
            OptionError: `frames` are no whole numbers.
            RecordError: The run is gone.
        """
        return self.rows(frames).statistics

    def rows(self, frames: npt.ArrayLike) -> BulkRows:
        """The statistics and fingerprints of every series at some `frames`, read as by `statistics`.

        Raises:
            NotFoundError: There is no such frame.
            OptionError: `frames` are no whole numbers.
            RecordError: The run is gone.
        """
        index, numbers = self._index, whole_numbers(frames, "frames")
        count = len(index.frames.frames)
        for beyond in numbers[(numbers < 0) | (numbers >= count)].tolist():
            raise NotFoundError(f"Model {self.name!r} has no frame {beyond}. {_numbered('frames', count)}")
        found = read_bulk(index, numbers, self._notices)
        self._notices.announce()
        return found

    def cells(self, wanted: Wanted, reader: CellReader | None = None) -> Columns:
        """One number for each module and step, or stretch of steps: what the x-ray is drawn from.

        A `reader` keeps what it has computed for the next time.

        Raises:
            RecordError: The run is gone.
        """
        found = (reader or CellReader()).read(self, self._index, wanted)
        self._notices.announce()
        return found

    @property
    def kept(self) -> Kept:
        """Which steps and series of tensors were kept whole, as of now.

        Raises:
            RecordError: The run is gone, or a newer release wrote in it.
        """
        by_step = self._kept_by_step()
        series = {one.key: one for one in self.series}
        keys = kept_keys(
            (one for ranks in by_step.values() for one in ranks.values()), self._find_kept(), self._notices
        )
        self._notices.announce()
        found = tuple(series.get(key) or Series(-1, *key) for key in keys)
        labels = tuple(next(iter(ranks.values())).label for ranks in by_step.values())
        return Kept(np.array(list(by_step), np.int64), labels, found, self._find_kept().bytes)

    def kept_at(self, step: int, *, rank: int | None = None) -> KeptAt:
        """What was kept at one step, and why, without reading the tensors; `rank` is as in `tensor`.

        Raises:
            NotFoundError: Nothing was kept at this step.
            OptionError: `step` or `rank` is no whole number.
            RecordError: The run is gone.
        """
        step, rank = _place(step, rank)
        found = kept_at(self._kept_by_step(), step, rank=rank, index=self._find_kept(), notices=self._notices)
        self._notices.announce()
        series = {one.key: one for one in self.series}
        return replace(
            found, tensors=tuple(replace(one, series=series.get(one.series.key, one.series)) for one in found.tensors)
        )

    def tensor_graph(self, step: int, *, rank: int | None = None) -> TensorGraph:
        """Which named tensors were computed from which at one step; `rank` is as in `tensor`.

        Raises:
            NotFoundError: No tensor was kept at this step.
            OptionError: `step` or `rank` is no whole number.
            RecordError: The run is gone.
        """
        step, rank = _place(step, rank)
        found = read_graph(self._kept_by_step(), step, rank=rank, index=self._find_kept(), notices=self._notices)
        self._notices.announce()
        return found

    @property
    def kept_catalog(self) -> KeptCatalog:
        """Which tensors were kept at which steps, as of now.

        Raises:
            RecordError: As in `kept`.
        """
        index = self._find_kept()
        found = catalog(self._kept_by_step(), index, self._notices)
        self._notices.announce()
        return found

    def tensor(
        self, series: int | Series, step: int, *, rank: int | None = None, most_bytes: int | None = None, loss: str = ""
    ) -> KeptTensor:
        """Read what was kept of a tensor at one step; `kept` says what there is.

        If the series is one of values, the result has its `gradient`, and `gradients` for backward passes that were
        given a name. If it is one of gradients, `loss` is the name of the backward pass. If several ranks train the
        model, each keeps samples of its own; without `rank`, those of the lowest one are read. With `most_bytes`, a
        tensor that takes more is refused before it is read, and no gradient is read.

        Raises:
            NotFoundError: There is no such series, or it was not kept at this step.
            OptionError: It takes more than `most_bytes`; or `step` or `rank` is no whole number.
            RecordError: It is damaged, or the run is gone.
        """
        step, rank = _place(step, rank)
        if not isinstance(series, Series):
            self._require_series(series)
            series = self.series[series]
        found = read_tensor(
            self._kept_by_step(),
            series,
            step=step,
            rank=rank,
            index=self._find_kept(),
            notices=self._notices,
            most_bytes=most_bytes,
            loss=loss,
        )
        self._notices.announce()
        return found

    def _kept_by_step(self) -> KeptByStep:
        by_step = self._find_kept().of_model(self.name)
        if self.optimizer is None:
            return by_step
        steps = set(self.steps.tolist())
        return {step: ranks for step, ranks in by_step.items() if step in steps}

    def _range(self, first: int, stop: int | None) -> tuple[int, int]:
        """The frames from `first` up to `stop`, as far as there are any; a negative `stop` counts from the end."""
        count = len(self._index.frames.frames)
        last = count if stop is None else whole(stop, "stop_frame")
        return min(max(whole(first, "first_frame"), 0), count), max(min(last, count), -count)

    def _require_series(self, number: int) -> None:
        if not isinstance(number, Integral):
            raise NotFoundError(
                f"{number!r:.80} is not a series. Pass one that model.find() returns, or its id. A scalar is "
                f"model.scalar('loss')."
            )
        count = len(self.series)
        if not 0 <= number < count:
            raise NotFoundError(f"Model {self.name!r} has no series {number}. {_numbered('series', count)}")

    def nonfinite(self, first_frame: int = 0, stop_frame: int | None = None) -> Flags:
        """Which frames from `first_frame` up to `stop_frame` have NaN or infinity that should not be there.

        −∞ that masks something does not count, and damage does not either. Reads about 60 bytes a tensor and frame.

        Raises:
            OptionError: One of them is no whole number.
            RecordError: The run is gone.
        """
        index = self._index
        first, stop = self._range(first_frame, stop_frame)
        return nonfinite_frames(index, first, stop, of=traits(index.series))

    def nonfinite_series(self, frame: Frame) -> tuple[Series, ...]:
        """The series that have NaN or infinity, as in `nonfinite`, at one frame."""
        series = self.series
        found = are_nonfinite(frame.series, frame.statistics[frame.rows], traits(series))
        return tuple(series[one] for one in frame.series[found].tolist())

    @property
    def _index(self) -> ModelIndex:
        index = self._find_index()
        return index if self.optimizer is None else index.of_optimizer(self.optimizer)

    @property
    def _latest(self) -> tuple[SessionIndex, ...]:
        """The latest session, or those of the ranks that were begun together last."""
        index = self._index
        if not index.launches.has_ranks:
            return (next(reversed(index.sessions.values())),)
        return tuple(index.sessions[one] for one in index.launches.latest)


def _place(step: int, rank: int | None) -> tuple[int, int | None]:
    return whole(step, "step"), None if rank is None else whole(rank, "rank")


def _numbered(what: str, count: int) -> str:
    """The range of valid numbers."""
    return f"It has {what} 0 to {count - 1}." if count else f"It has no {what} yet."


def _near(steps: npt.NDArray[np.int64], at: int) -> str:
    """The steps around index `at`."""
    if not len(steps):
        return "It has no frames yet."
    around = " and ".join(str(step) for step in steps[max(at - 1, 0) : at + 1])
    return f"It has {len(steps)} from {steps[0]} to {steps[-1]}; nearest: {around}."
