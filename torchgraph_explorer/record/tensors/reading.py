"""Reading kept tensors: what `ModelRecord.tensor` and `ModelRecord.kept` give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError, RecordError
from torchgraph_explorer.record.folder import ReadAt, reading
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.record.tensors.dtypes import as_array
from torchgraph_explorer.record.tensors.encoding import ROW_BYTES, KeptLayout, block_at, decode_block
from torchgraph_explorer.record.tensors.index import KeptIndex, KeptRecord
from torchgraph_explorer.schema import Kind, Role, Series

SeriesKey: TypeAlias = "tuple[str, int | None, Role, str, Kind]"
"""`Series.key`."""
KeptByStep: TypeAlias = "Mapping[int, Mapping[int, KeptRecord]]"

GRADIENTS: Mapping[str, tuple[Kind, ...]] = {"value": ("optimizer_grad", "grad", "grad_norm")}
"""The kinds of series that are the gradient of one of another kind, the best one first."""

_NAMED = 6
"""Series that an error names at most."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptTensor:
    """What was kept of one tensor, or of its gradient, at one step.

    Attributes:
        series: The series that it belongs to: `value`, or `grad_norm`, `grad` or `optimizer_grad` for a gradient.
        step: The step.
        values: Its elements, in its dtype: `[kept samples, ...]` along `batch_dim`, the whole tensor without one.
            Those of bfloat16 and of 8-bit floats are float32, which holds them exactly.
        dtype: The tensor's, as torch prints it, without `torch.`.
        shape: The shape of the whole tensor.
        batch_dim: The dimension that the samples are in; None if the whole tensor was kept.
        samples: Numbers of the kept samples in the batch, `[kept samples]`; empty without `batch_dim`.
        mean: Of each neuron over the whole batch, in the tensor's shape without `batch_dim`; None without one.
        std: The population standard deviation, likewise.
        largest: The largest magnitude, likewise.
        gradient: Of a tensor's values, the gradient, if it was kept, too; None in a gradient.
        gradient_scale: The factor of a `GradScaler` that is still in gradients of the step, except in
            `optimizer_grad`; None without one.
        rank: The rank that kept it; 0 if one process trains the model.
    """

    series: Series
    step: int
    values: npt.NDArray[Any]
    dtype: str
    shape: tuple[int, ...]
    batch_dim: int | None
    samples: npt.NDArray[np.int64]
    mean: npt.NDArray[Any] | None
    std: npt.NDArray[Any] | None
    largest: npt.NDArray[Any] | None
    gradient: KeptTensor | None
    gradient_scale: float | None
    rank: int

    def __repr__(self) -> str:
        one = self.series
        what = ":".join((one.module, "" if one.call is None else str(one.call), one.path, one.kind))
        kept = f"{len(self.samples)} samples" if self.batch_dim is not None else "whole"
        return f"<KeptTensor {what} at step {self.step}: {self.dtype} {list(self.shape)}, {kept}>"


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What was kept of a model.

    Attributes:
        steps: The steps, ascending.
        series: The series that were kept at any of them. One that has no histograms has the id -1.
        bytes: What the kept tensors of all models of the run take on disk.
    """

    steps: npt.NDArray[np.int64]
    series: tuple[Series, ...]
    bytes: int

    def __repr__(self) -> str:
        return f"<Kept: {len(self.steps)} steps, {len(self.series)} series, {self.bytes:,} bytes>"


def kept_keys(records: Iterable[KeptRecord], index: KeptIndex, notices: Notices) -> dict[SeriesKey, None]:
    """The keys of all series that are in one of `records`."""
    layouts = {record.layout: record for record in records}
    return {one.key: None for record in layouts.values() for one in _layout(record, index, notices) if one is not None}


def read_tensor(
    by_step: KeptByStep, series: Series, *, step: int, rank: int | None, index: KeptIndex, notices: Notices
) -> KeptTensor:
    """What was kept of `series` at a step, by a rank; the lowest one if that is None.

    Raises:
        NotFoundError: Nothing was.
        RecordError: It is damaged, or the run is gone.
    """
    record, rank = _record(by_step, step, rank)
    found = _layout(record, index, notices)
    layout = {one.key: (number, one) for number, one in enumerate(found) if one is not None}
    if series.key not in layout:
        raise NotFoundError(
            f"{_words(series.key)} was not kept at step {record.step}. {_kept_there(series.key, layout)}"
        )
    with reading(record.file.path) as read:
        tensor = _Step(record, rank, layout, 2 * len(found) * ROW_BYTES, read)
        try:
            gradient = tensor.gradient(series)
        except DamageError:
            gradient = None
            notices.add(f"the gradient of {_words(series.key)} at step {record.step} is damaged and was skipped")
        try:
            return tensor.read(series, gradient)
        except DamageError as damage:
            raise RecordError(
                f"{_words(series.key)} at step {record.step} is damaged in {record.file.path}. Read another step."
            ) from damage


@dataclass(frozen=True, slots=True)
class _Step:
    """One record that is being read; `table` is the size of its table."""

    record: KeptRecord
    rank: int
    layout: Mapping[SeriesKey, tuple[int, KeptLayout]]
    table: int
    read_at: ReadAt

    def gradient(self, series: Series) -> KeptTensor | None:
        for kind in GRADIENTS.get(series.kind, ()):
            one = Series(-1, series.module, series.call, series.role, series.path, kind)
            if one.key in self.layout:
                return self.read(one, None)
        return None

    def read(self, series: Series, gradient: KeptTensor | None) -> KeptTensor:
        number, one = self.layout[series.key]
        values_size, statistics_size = one.sizes
        try:
            values = as_array(self._block(2 * number, values_size), one.dtype).reshape(one.kept_shape)
            mean = std = largest = None
            if one.batch_dim is not None:
                data = np.frombuffer(self._block(2 * number + 1, statistics_size), "<f8" if one.is_double else "<f4")
                mean, std, largest = data.copy().reshape(3, *one.neurons)
        except ValueError as fault:  # dimensions that numpy does not hold
            raise DamageError from fault
        return KeptTensor(
            series=series,
            step=self.record.step,
            values=values,
            dtype=one.dtype,
            shape=one.shape,
            batch_dim=one.batch_dim,
            samples=np.array(one.samples, np.int64),
            mean=mean,
            std=std,
            largest=largest,
            gradient=gradient,
            gradient_scale=self.record.gradient_scale,
            rank=self.rank,
        )

    def _block(self, row: int, expected: int) -> bytes:
        """The content of the block that a row of the table tells of."""
        record, table = self.record, self.table
        found = self.read_at(record.body + row * ROW_BYTES, ROW_BYTES)
        if len(found) < ROW_BYTES or table > record.body_size:
            raise DamageError
        block = block_at(found, 0)
        if table + block.start + block.size > record.body_size or block.size > expected:
            raise DamageError
        return decode_block(self.read_at(record.body + table + block.start, block.size), block, expected)


def _layout(record: KeptRecord, index: KeptIndex, notices: Notices) -> tuple[KeptLayout | None, ...]:
    """What a record holds; nothing, with a notice, if that is damaged."""
    try:
        found = index.layout(record)
    except DamageError:
        notices.add(f"segment tensors/{record.file.name}: the tensors of step {record.step} are damaged")
        return ()
    if missing := found.count(None):
        notices.add_unknown("kept tensor", (record.file.name, record.step), missing)
    return found


def _record(by_step: KeptByStep, step: int, rank: int | None) -> tuple[KeptRecord, int]:
    if not by_step:
        raise NotFoundError("No tensor was kept. Pass keep=Keep(...) to watch, with the names of what to keep.")
    if step not in by_step:
        raise NotFoundError(f"No tensor was kept at step {step}. {_near(list(by_step), step)}")
    ranks = by_step[step]
    chosen = next(iter(ranks)) if rank is None else rank
    if chosen not in ranks:
        raise NotFoundError(
            f"Rank {chosen} kept no tensor at step {step}. Ranks that did: {', '.join(map(str, ranks))}."
        )
    return ranks[chosen], chosen


def _near(steps: Sequence[int], step: int) -> str:
    at = int(np.searchsorted(steps, step))
    around = " and ".join(map(str, steps[max(at - 1, 0) : at + 1]))
    return f"{len(steps)} steps were kept, from {steps[0]} to {steps[-1]}; nearest: {around}."


def _words(key: SeriesKey) -> str:
    module, call, role, path, kind = key
    of = f"module {module!r}" if module else "the model"
    return f"Series {kind} of {role} {path!r} of {of}{'' if call is None else f', call {call}'}"


def _kept_there(key: SeriesKey, layout: Iterable[SeriesKey]) -> str:
    """Series that were kept: those of the same module first."""
    known = sorted(layout, key=lambda one: (one[0] != key[0], one[2] != key[2], one[4] != key[4]))
    if not known:
        return "Nothing else was."
    named = "; ".join(f"{module}:{role} {path} {kind}" for module, _, role, path, kind in known[:_NAMED])
    return f"Kept were: {named}{'; …' if len(known) > _NAMED else ''}."
