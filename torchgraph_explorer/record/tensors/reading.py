"""Reading kept tensors: what `ModelRecord.tensor` and `ModelRecord.kept` give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError, OptionError, RecordError
from torchgraph_explorer.record.folder import ReadAt, reading
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.record.tensors.blocks import ROW_BYTES, block_at, decode_block
from torchgraph_explorer.record.tensors.dtypes import as_array
from torchgraph_explorer.record.tensors.encoding import KeptLayout
from torchgraph_explorer.record.tensors.index import KeptIndex, KeptLayouts, KeptRecord, SeriesKey
from torchgraph_explorer.schema import Kind, NamedTensor, Series, TensorGraph, TensorKind

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
        gradients: Of a tensor's values, the gradients of the backward passes that were given a name, by name.
        categories: Of each of `samples`; empty if the training loop gave none.
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
    gradients: Mapping[str, KeptTensor] = field(default_factory=dict)
    categories: tuple[str, ...] = ()

    def __repr__(self) -> str:
        one = self.series
        what = ":".join((one.module, "" if one.call is None else str(one.call), one.path, one.kind))
        kept = f"{len(self.samples)} samples" if self.batch_dim is not None else "whole"
        return f"<KeptTensor {what} at step {self.step}: {self.dtype} {list(self.shape)}, {kept}>"


@dataclass(frozen=True, slots=True)
class KeptInfo:
    """What is known of one kept tensor without reading it.

    Attributes:
        series: The series of its values, as in `Kept.series`.
        dtype: As in `KeptTensor`.
        shape: As in `KeptTensor`.
        batch_dim: As in `KeptTensor`.
        samples: Numbers of the kept samples in the batch; empty without `batch_dim`.
        categories: Of each of `samples`; empty if the training loop gave none.
        has_gradient: `KeptTensor.gradient` is there.
        losses: The keys of `KeptTensor.gradients`.
        kind: What it is to the training.
        node: The node that it belongs to, as `TensorNode.key`.
    """

    series: Series
    dtype: str
    shape: tuple[int, ...]
    batch_dim: int | None
    samples: tuple[int, ...]
    categories: tuple[str, ...]
    has_gradient: bool
    losses: tuple[str, ...]
    kind: TensorKind
    node: str


@dataclass(frozen=True, slots=True)
class KeptAt:
    """What was kept at one step.

    Attributes:
        step: The step.
        time: Seconds since the epoch.
        label: The kind of step that the training loop said it is; None without.
        reasons: Why it was kept, if something asked for it.
        rank: The rank that kept it; 0 if one process trains the model.
        ranks: All that kept tensors at this step.
        gradient_scale: As in `KeptTensor`.
        tensors: One for each tensor.
    """

    step: int
    time: float
    label: str | None
    reasons: tuple[str, ...]
    rank: int
    ranks: tuple[int, ...]
    gradient_scale: float | None
    tensors: tuple[KeptInfo, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What was kept of a model.

    Attributes:
        steps: The steps, ascending.
        labels: The label of each of `steps`; None without.
        series: The series that were kept at any of them. One that has no histograms has the id -1.
        bytes: What the kept tensors of all models of the run take on disk.
    """

    steps: npt.NDArray[np.int64]
    labels: tuple[str | None, ...]
    series: tuple[Series, ...]
    bytes: int

    def __repr__(self) -> str:
        return f"<Kept: {len(self.steps)} steps, {len(self.series)} series, {self.bytes:,} bytes>"


def kept_keys(records: Iterable[KeptRecord], index: KeptIndex, notices: Notices) -> dict[SeriesKey, None]:
    """The keys of all series that are in one of `records`."""
    layouts = {record.layout: record for record in records}
    return {one.key: None for record in layouts.values() for one in _layout(record, index, notices) if one is not None}


def read_tensor(
    by_step: KeptByStep,
    series: Series,
    *,
    step: int,
    rank: int | None,
    index: KeptIndex,
    notices: Notices,
    most_bytes: int | None = None,
    loss: str = "",
) -> KeptTensor:
    """What was kept of `series` at a step, by a rank; the lowest one if that is None.

    With `most_bytes`, its gradient is not read. `loss` is the name of a gradient's backward pass.

    Raises:
        NotFoundError: Nothing was.
        OptionError: It takes more than `most_bytes`, uncompressed and without its statistics.
        RecordError: It is damaged, or the run is gone.
    """
    record, rank = _record(by_step, step, rank)
    layouts = _layouts(record, index, notices)
    if (series.key, loss) not in layouts.by_name:
        there = _kept_there(series.key, (key for key, _ in layouts.by_name))
        raise NotFoundError(f"{_words(series.key)} was not kept at step {record.step}. {there}")
    with reading(record.file.path) as read:
        tensor = _Step(record, rank, layouts, 2 * len(layouts.tensors) * ROW_BYTES, read)
        if most_bytes is not None:
            _require_size(tensor.layout(series, loss)[1], most_bytes)
        gradient, gradients = None, {}
        try:
            if most_bytes is None:
                gradient = tensor.gradient(series)
                gradients = {loss: tensor.gradient(series, loss) for loss in tensor.losses(series)}
        except DamageError:
            notices.add(f"a gradient of {_words(series.key)} at step {record.step} is damaged and was skipped")
        try:
            values = tensor.read(series, loss)
            named = {loss: one for loss, one in gradients.items() if one is not None}
            return replace(values, gradient=gradient, gradients=MappingProxyType(named))
        except DamageError as damage:
            raise RecordError(
                f"{_words(series.key)} at step {record.step} is damaged in {record.file.path}. Read another step."
            ) from damage


def _require_size(one: KeptLayout, most_bytes: int) -> None:
    size = one.sizes[0]
    if size > most_bytes:
        raise OptionError(
            f"{_words(one.key)} takes {size:,} bytes; at most {most_bytes:,} can be shown. Keep fewer samples of it, "
            f"or read it with open_run(...).model().tensor(...)."
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """One record that is being read; `table` is the size of its table."""

    record: KeptRecord
    rank: int
    layouts: KeptLayouts
    table: int
    read_at: ReadAt

    def layout(self, series: Series, loss: str) -> tuple[int, KeptLayout]:
        number = self.layouts.by_name[series.key, loss]
        found = self.layouts.tensors[number]
        assert found is not None
        return number, found

    def gradient(self, series: Series, loss: str = "") -> KeptTensor | None:
        for one in _gradients(series):
            if (one.key, loss) in self.layouts.by_name:
                return self.read(one, loss)
        return None

    def losses(self, series: Series) -> tuple[str, ...]:
        named = (loss for one in _gradients(series) for loss in self.layouts.losses.get(one.key, ()))
        return tuple(dict.fromkeys(loss for loss in named if loss))

    def read(self, series: Series, loss: str = "") -> KeptTensor:
        number, one = self.layout(series, loss)
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
            gradient=None,
            gradient_scale=self.record.gradient_scale,
            rank=self.rank,
            categories=one.categories,
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
        data = self.read_at(record.body + table + block.start, block.size)
        return decode_block(data, block, expected, head_check=record.head_check, row=row)


def kept_at(by_step: KeptByStep, step: int, *, rank: int | None, index: KeptIndex, notices: Notices) -> KeptAt:
    """What was kept at a step, by a rank; the lowest one if that is None. Series have the id -1.

    Raises:
        NotFoundError: Nothing was.
    """
    record, rank = _record(by_step, step, rank)
    found = [one for one in _layout(record, index, notices) if one is not None]
    losses: dict[SeriesKey, dict[str, None]] = {}
    for one in found:
        losses.setdefault(one.key, {})[one.loss] = None
    return KeptAt(
        step=step,
        time=record.time,
        label=record.label,
        reasons=record.reasons,
        rank=rank,
        ranks=tuple(by_step[step]),
        gradient_scale=record.gradient_scale,
        tensors=tuple(_info(one, losses) for one in found if one.kind == "value"),
    )


def read_graph(by_step: KeptByStep, step: int, *, rank: int | None, index: KeptIndex, notices: Notices) -> TensorGraph:
    """The dependency graph at a step, with the tensors that were kept there; without edges if it is not known.

    Raises:
        NotFoundError: No tensor was kept at this step.
        RecordError: The run is gone.
    """
    record, _ = _record(by_step, step, rank)
    try:
        graph = index.graph(record)
    except DamageError:
        notices.add(f"segment tensors/{record.file.name}: the dependency graph of step {step} is lost")
        graph = None
    graph = TensorGraph((), ()) if graph is None else graph
    known = {one.key for one in graph.tensors}
    found = (one for one in _layout(record, index, notices) if one is not None and one.kind == "value")
    return replace(graph, tensors=(*graph.tensors, *(_named(one) for one in found if one.key not in known)))


def _named(one: KeptLayout) -> NamedTensor:
    return NamedTensor(one.module, one.call, one.role, one.path, one.named, one.node)


def _info(one: KeptLayout, losses: Mapping[SeriesKey, Iterable[str]]) -> KeptInfo:
    series = Series(-1, one.module, one.call, one.role, one.path, one.kind)
    names = dict.fromkeys(loss for gradient in _gradients(series) for loss in losses.get(gradient.key, ()))
    return KeptInfo(
        series=series,
        dtype=one.dtype,
        shape=one.shape,
        batch_dim=one.batch_dim,
        samples=one.samples,
        categories=one.categories,
        has_gradient="" in names,
        losses=tuple(name for name in names if name),
        kind=one.named,
        node=_named(one).node_key,
    )


def _gradients(series: Series) -> Iterator[Series]:
    """The series that may be the gradient of one."""
    return (replace(series, id=-1, kind=kind) for kind in GRADIENTS.get(series.kind, ()))


def _layout(record: KeptRecord, index: KeptIndex, notices: Notices) -> tuple[KeptLayout | None, ...]:
    """The tensors that a record holds, as `_layouts`."""
    return _layouts(record, index, notices).tensors


def _layouts(record: KeptRecord, index: KeptIndex, notices: Notices) -> KeptLayouts:
    """What a record holds; nothing, with a notice, if that is damaged."""
    try:
        found = index.layout(record)
    except DamageError:
        notices.add(f"segment tensors/{record.file.name}: the tensors of step {record.step} are damaged")
        return KeptLayouts.of(())
    if found.unknown:
        notices.add_unknown("kept tensor", (record.file.name, record.step), found.unknown)
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
        return "Nothing else was kept there."
    named = "; ".join(f"{module}:{role} {path} {kind}" for module, _, role, path, kind in known[:_NAMED])
    return f"These were kept: {named}{'; …' if len(known) > _NAMED else ''}."
