"""`api/tensors`, `api/tensor` and `api/tensor-line`: tensors that were kept whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError, OptionError, RecordError, TorchgraphError
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.tensors.catalog import KeptCatalog
from torchgraph_explorer.record.tensors.encoding import KeptLayout
from torchgraph_explorer.record.tensors.reading import KeptTensor
from torchgraph_explorer.schema import Series
from torchgraph_explorer.server import tensor_categories
from torchgraph_explorer.server.answers import MOST_PARTS, plain
from torchgraph_explorer.server.pack import pack
from torchgraph_explorer.server.selection import MOST_ELEMENTS, is_rounded, selected, spans_of, summary
from torchgraph_explorer.server.tensor_categories import category_rows

MOST_BYTES = 1 << 27
"""A tensor that takes more is not read for the viewer."""

MOST_LISTED = 250_000
"""Tensors of all layouts in one answer of `api/tensors` at most."""

SECONDS = 1.0
"""How long an answer of `api/tensor-line` reads."""

What = Literal["values", "mean", "std", "largest"]
WHAT: tuple[What, ...] = ("values", "mean", "std", "largest")
"""The elements, or what is known of each neuron over the whole batch."""

Part = Literal["abs", "real", "imag", "angle"]
PARTS: dict[Part, Callable[[Any], Any]] = {"abs": np.abs, "real": np.real, "imag": np.imag, "angle": np.angle}
"""What may be shown of complex numbers."""

COLUMNS = ("mean", "std", "low", "high", "bad")
"""What `api/tensor-line` gives of a tensor's elements without an index; `bad` counts NaN and infinities."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class WantedTensor:
    """Which numbers a client asks for.

    Attributes:
        series: Of the tensor; its id is of no importance.
        step: The step.
        what: Elements, or a statistic of each neuron.
        part: Of complex numbers.
        loss: Of a gradient: the name of its backward pass; empty if that was given none.
        rank: None for the lowest one.
    """

    series: Series
    step: int
    what: What = "values"
    part: Part = "abs"
    rank: int | None = None
    loss: str = ""


def tensors_answer(model: ModelRecord, *, version: str, epoch: int) -> dict[str, Any]:
    """`api/tensors`, unless the client has it as `version`."""
    found = model.kept_catalog
    current = f"{epoch}.{len(found.steps)}.{found.bytes}"
    return {"version": current, "is_same": True} if current == version else listed(found, version=current)


def listed(found: KeptCatalog, *, version: str) -> dict[str, Any]:
    """The answer of `api/tensors`."""
    first = _first_listed(found)
    shown = sorted(set(found.layout[first:]))
    keys: dict[tuple[Any, ...], int] = {}
    facts: list[dict[str, Any]] = []
    for number in shown:
        for one in found.layouts[number]:
            if (key := (*one.key, one.loss)) not in keys:
                keys[key] = len(facts)
                facts.append({})
            facts[keys[key]] = tensor_facts(one)
    renumbered = {number: at for at, number in enumerate(shown)}
    return {
        "version": version,
        "is_same": False,
        "bytes": found.bytes,
        "ranks": list(found.ranks),
        "steps": list(found.steps[first:]),
        "left_out": first,
        "labels": list(found.labels[first:]),
        "reasons": {
            str(step): list(why) for step, why in zip(found.steps[first:], found.reasons[first:], strict=True) if why
        },
        "layout": [renumbered[number] for number in found.layout[first:]],
        "layouts": [[keys[(*one.key, one.loss)] for one in found.layouts[number]] for number in shown],
        "tensors": facts,
    }


def _first_listed(found: KeptCatalog) -> int:
    """The first step that is listed, such that the layouts have at most `MOST_LISTED` tensors."""
    seen: set[int] = set()
    listed = 0
    for at in reversed(range(len(found.steps))):
        number = found.layout[at]
        if number not in seen:
            seen.add(number)
            listed += len(found.layouts[number])
            if listed > MOST_LISTED and len(seen) > 1:
                return at + 1
    return 0


def tensor_facts(one: KeptLayout) -> dict[str, Any]:
    """What is known of a kept tensor without reading it."""
    module, call, role, path, kind = one.key
    return {
        "module": module,
        "call": call,
        "role": role,
        "path": path,
        "kind": kind,
        "dtype": one.dtype,
        "shape": list(one.shape),
        "kept_shape": list(one.kept_shape),
        "batch_dim": one.batch_dim,
        "samples": list(one.samples),
        "categories": list(one.categories),
        "loss": one.loss,
        "named": one.named,
        "node": one.node,
    }


def tensor_graph_answer(model: ModelRecord, *, step: int, rank: int | None) -> dict[str, Any]:
    """`api/tensor-graph`."""
    graph = model.tensor_graph(step, rank=rank)
    parts = len(graph.tensors) + len(graph.edges)
    if parts > MOST_PARTS:
        raise OptionError(
            f"The dependency graph of step {step} has {parts:,} tensors and edges; at most {MOST_PARTS:,} can be shown."
        )
    return {
        "step": step,
        "tensors": plain(graph.tensors),
        "nodes": plain(graph.nodes),
        "edges": [[edge.source, edge.target, int(edge.gradient)] for edge in graph.edges],
    }


@np.errstate(all="ignore")  # values may be as large as they like
def tensor_answer(
    model: ModelRecord, wanted: WantedTensor, *, at: str, shrink: Sequence[int], most: int = MOST_ELEMENTS
) -> bytes:
    """`api/tensor`: the elements that `at` selects, in at most `most` entries."""
    tensor = _read(model, wanted)
    numbers = _numbers(tensor, wanted)
    for dim in shrink:
        if dim >= numbers.ndim:
            raise OptionError(f"shrink={dim} is not a dimension; the tensor has {numbers.ndim}.")
    found = selected(numbers, spans_of(at, numbers.shape), shrink=shrink, most=min(most, MOST_ELEMENTS))
    meta = {
        "step": tensor.step,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "kept_shape": list(numbers.shape),
        "batch_dim": tensor.batch_dim if wanted.what == "values" else None,
        "samples": tensor.samples.tolist(),
        "categories": list(tensor.categories),
        "rank": tensor.rank,
        "gradient_scale": tensor.gradient_scale,
        "start": [start for start, _ in found.spans],
        "stop": [stop for _, stop in found.spans],
        "factors": list(found.factors),
        "is_rounded": is_rounded(numbers),
        "summary": summary(numbers),
    }
    return pack(meta, found.arrays)


@np.errstate(all="ignore")  # values may be as large as they like
def line_answer(
    model: ModelRecord, wanted: WantedTensor, *, index: str | None, over: str, from_step: int, by: str = ""
) -> bytes:
    """`api/tensor-line`: an element, or facts of all elements, at each kept step from `from_step` on, or of each call.

    With `by="category"`, a row for each category of the kept samples. Reads for `SECONDS`; `next` says where to
    continue.
    """
    found = model.kept_catalog
    if by not in ("", "category") or (by and index is not None):
        raise OptionError(f"by={by[:40]!r} with index={index!r:.40}: category is allowed, without an index.")
    rows = _ByCategory() if by else _Facts(index)
    if over == "calls":
        return _packed(model, _calls(found, wanted), rows)
    if over != "steps":
        raise OptionError(f"over={over[:40]!r} is neither steps nor calls.")
    key = (wanted.series.key, wanted.loss)
    has = [any((one.key, one.loss) == key for one in layout) for layout in found.layouts]
    steps = [step for step, number in zip(found.steps, found.layout, strict=True) if has[number] and step >= from_step]
    asked = (replace(wanted, step=step) for step in steps)
    return _packed(model, asked, rows)


def _calls(found: KeptCatalog, wanted: WantedTensor) -> list[WantedTensor]:
    """The kept tensor that `wanted` names, of every call of its module at the step."""
    if wanted.step not in found.steps:
        raise NotFoundError(f"No tensor was kept at step {wanted.step}.")
    one = wanted.series
    layout = found.layouts[found.layout[found.steps.index(wanted.step)]]
    calls = sorted(
        other.call
        for other in layout
        if other.call is not None
        and other.loss == wanted.loss
        and (other.module, other.role, other.path, other.kind) == (one.module, one.role, one.path, one.kind)
    )
    return [replace(wanted, series=replace(one, call=call)) for call in calls]


class _Facts:
    """An element at `index`, or facts of all elements."""

    def __init__(self, index: str | None) -> None:
        self._index = index
        self.columns = COLUMNS if index is None else ("value",)
        self.meta: dict[str, object] = {}

    def of(self, tensor: KeptTensor, wanted: WantedTensor) -> Iterable[tuple[float, ...]]:
        return (_row(_numbers(tensor, wanted), self._index),)


class _ByCategory:
    """Facts of the samples of each category."""

    def __init__(self) -> None:
        self.columns = tensor_categories.COLUMNS
        self._known: dict[str, int] = {}

    @property
    def meta(self) -> dict[str, object]:
        return {"categories": list(self._known)}

    def of(self, tensor: KeptTensor, wanted: WantedTensor) -> Iterable[tuple[float, ...]]:
        return category_rows(tensor, _numbers(tensor, wanted), self._known)


def _packed(model: ModelRecord, asked: Iterable[WantedTensor], of_tensor: _Facts | _ByCategory) -> bytes:
    """The rows of each tensor that can be read, with its step and call."""
    rows: list[tuple[float, ...]] = []
    names = ("step", "call", *of_tensor.columns)
    ends, following, skipped = time.monotonic() + SECONDS, None, 0
    for one in asked:
        if rows and time.monotonic() > ends:
            following = one.step
            break
        try:
            rows += [(one.step, one.series.call or 0, *facts) for facts in of_tensor.of(_read(model, one), one)]
        except (NotFoundError, RecordError, _OutsideError):
            skipped += 1
    table = np.array(rows, np.float64).reshape(len(rows), len(names))
    arrays = {name: np.ascontiguousarray(table[:, column]) for column, name in enumerate(names)}
    return pack({"next": following, "skipped": skipped, **of_tensor.meta}, arrays)


class _OutsideError(TorchgraphError):
    """The index is not in this step's tensor, which may be smaller."""


def _row(numbers: Array, index: str | None) -> tuple[float, ...]:
    if index is None:
        facts = summary(numbers)
        count = int(facts["count"] or 0)
        good = {name: float("nan") if facts[name] is None else float(facts[name] or 0) for name in COLUMNS[:4]}
        bad = sum(int(facts[name] or 0) for name in ("nan", "positive_infinity", "negative_infinity"))
        return (*good.values(), float(bad if count else 0))
    try:
        spans = spans_of(index, numbers.shape)
    except OptionError as fault:
        raise _OutsideError(str(fault)) from fault
    part = numbers[tuple(slice(start, stop) for start, stop in spans)]
    if part.size != 1:
        raise OptionError(f"index={index[:80]!r} selects {part.size} elements; one is needed.")
    return (float(part.reshape(())),)


def _read(model: ModelRecord, wanted: WantedTensor) -> KeptTensor:
    return model.tensor(wanted.series, wanted.step, rank=wanted.rank, most_bytes=MOST_BYTES, loss=wanted.loss)


def _numbers(tensor: KeptTensor, wanted: WantedTensor) -> Array:
    """The real numbers that are asked for, `[kept samples, ...]`, or in the shape of the neurons."""
    found = {"values": tensor.values, "mean": tensor.mean, "std": tensor.std, "largest": tensor.largest}[wanted.what]
    if found is None:
        raise NotFoundError(f"The tensor has no batch dimension, and therefore no {wanted.what} over the batch.")
    return _real(found, wanted.part) if np.iscomplexobj(found) else found


def _real(found: Array, part: Part) -> Array:
    """Computed in double precision: in single precision, the last digit would depend on the processor."""
    return np.asarray(PARTS[part](found.astype(np.complex128)), dtype=found.real.dtype)
