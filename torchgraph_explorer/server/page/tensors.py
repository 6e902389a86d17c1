"""The kept tensors of one model on a page, as far as they fit into a space that was asked for."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError, RecordError, TorchgraphError
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.tensors.catalog import KeptCatalog
from torchgraph_explorer.record.tensors.dtypes import SIZES
from torchgraph_explorer.record.tensors.encoding import KeptLayout
from torchgraph_explorer.record.tensors.reading import KeptTensor
from torchgraph_explorer.schema import Role, Series
from torchgraph_explorer.server.page.choice import spread
from torchgraph_explorer.server.page.text import shortest_block
from torchgraph_explorer.server.selection import is_rounded
from torchgraph_explorer.server.tensors import listed, tensor_facts, tensor_graph_answer

LETTERS_PER_BYTE = 16 / 13
"""How many letters the page's text takes for a byte; see `text.as_text`."""

ENTRY_BYTES = 20
"""What else a tensor at a step takes, compressed."""

HOPE = 0.7
"""A step that is expected to take more than what is left, divided by this, is not read at all."""

LEAST_STEPS = 4
"""A tensor that would leave room for fewer steps is left out, as long as others fit."""

Json = dict[str, Any]
Arrays = dict[str, npt.NDArray[np.generic]]
Name: TypeAlias = "tuple[str, int | None, Role, str]"
"""Names a tensor and its gradients: `Series.key` without the kind."""
_SINGLE = frozenset(name for name in SIZES if name.startswith(("float8", "float16", "float32", "bfloat16")))
"""Element types that a page has as float32."""

_WHOLE = (np.uint8, np.int16, np.uint32)
"""Types for integers, the shortest first. Those that fit into none are sent as float64."""


Read: TypeAlias = "tuple[KeptLayout, KeptTensor]"


class Place(NamedTuple):
    """Where numbers are: the array of the page for this type, and the first of its elements."""

    dtype: str
    offset: int


@dataclass(slots=True)
class _Pool:
    """The numbers of all tensors, by type. What is there already is not added again."""

    parts: dict[str, list[npt.NDArray[Any]]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    known: dict[tuple[str, bytes], Place] = field(default_factory=dict)

    def cost(self, tensors: Iterable[KeptTensor]) -> int:
        """Bytes that these add to the page's, compressed."""
        new, count = _Pool(), 0
        for tensor in tensors:
            count += 1
            for values in _arrays_of(tensor).values():
                if _key(_shortest(values)) not in self.known:
                    new.add(values)
        return count * ENTRY_BYTES + packed_size(new.arrays())

    def add(self, values: npt.NDArray[Any]) -> Place:
        numbers = _shortest(values)
        key = _key(numbers)
        name, _ = key
        if key not in self.known:
            self.known[key] = Place(name, self.sizes.get(name, 0))
            self.sizes[name] = self.sizes.get(name, 0) + numbers.size
            self.parts.setdefault(name, []).append(numbers)
        return self.known[key]

    def arrays(self) -> Arrays:
        return {f"tensors.{name}": np.concatenate(parts) for name, parts in self.parts.items()}


def page_tensors(model: ModelRecord, *, most_bytes: float) -> tuple[Json | None, Arrays]:
    """Facts about the kept tensors that fit into `most_bytes` of a page, and their numbers; None without any.

    Small tensors come first, and of the steps the last, the first, those that something asked for, and others between.
    What was left out is said in `note`.
    """
    found = model.kept_catalog
    if not found.steps:
        return None, {}
    pool, facts = _Pool(), dict[str, int]()
    shown: list[tuple[int, tuple[KeptLayout, ...], list[Json]]] = []
    for at, read in _steps_that_fit(model, found, pool=pool, room=most_bytes / LETTERS_PER_BYTE):
        shown.append(
            (at, tuple(one for one, _ in read), [_entry(one, tensor, pool=pool, facts=facts) for one, tensor in read])
        )
    shown.sort(key=lambda each: each[0])
    part = _part(found, shown, size=sum(sum(one.nbytes for one in parts) for parts in pool.parts.values()))
    answer = listed(part, version="page")
    numbers = {(*one.key, one.loss): at for at, one in enumerate(_tensors(part))}
    graphs: list[Json] = []
    return {
        "kept": {**answer, "note": _note(found, part, most_bytes)},
        "facts": list(map(json.loads, facts)),
        "at": {
            str(found.steps[at]): [
                {**entry, "tensor": numbers[(*one.key, one.loss)]} for one, entry in zip(layout, entries, strict=True)
            ]
            for at, layout, entries in shown
        },
        "graph_of": {str(step): _graph_at(model, step, graphs) for step in part.steps},
        "graphs": graphs,
    }, pool.arrays()


def _steps_that_fit(
    model: ModelRecord, found: KeptCatalog, *, pool: _Pool, room: float
) -> Iterator[tuple[int, list[Read]]]:
    """The steps that fit into `room` bytes, in the order of their rank, each to be added to `pool` before the next."""
    share = _measured_share(model, found, room)
    names = _chosen(found, room / share)
    for at in _by_rank(found):
        expected = share * sum(_size(one) for one in found.layouts[found.layout[at]] if _name(one) in names)
        if not 0 < HOPE * expected <= room:
            continue
        read = list(_read(model, found, at, names=names))
        cost = pool.cost(tensor for _, tensor in read)
        if read and cost <= room:
            room -= cost
            yield at, read


def _measured_share(model: ModelRecord, found: KeptCatalog, room: float) -> float:
    """What the last step takes, divided by what `_size` says: many tensors are there twice, and all are compressed."""
    last = len(found.steps) - 1
    layout = [one for one in found.layouts[found.layout[last]] if _size(one) <= room]
    read = list(_read(model, found, last, names={_name(one) for one in layout}))
    if not read:
        return 1.0
    return min(1.0, _Pool().cost(tensor for _, tensor in read) / sum(_size(one) for one, _ in read))


def _chosen(found: KeptCatalog, most: float) -> set[Name]:
    """Which tensors fit into `most` bytes at as many steps as a page should have."""
    sizes: dict[Name, int] = {}
    for layout in found.layouts:
        own: dict[Name, int] = {}
        for one in layout:
            own[_name(one)] = own.get(_name(one), 0) + _size(one)
        for name, size in own.items():
            sizes[name] = max(size, sizes.get(name, 0))
    names = sorted(sizes, key=lambda name: (sizes[name], name[0].count("."), name[0], str(name)))
    room = most / min(LEAST_STEPS, len(found.steps))
    if names and sizes[names[0]] > room:
        room = most
    chosen: set[Name] = set()
    for name in names:
        if sizes[name] <= room:
            room -= sizes[name]
            chosen.add(name)
    return chosen


def _by_rank(found: KeptCatalog) -> Iterable[int]:
    """The kept steps, those first that matter most: the last, the first, what was asked for, and ever more between."""
    count = len(found.steps)
    asked = [at for at, reasons in enumerate(found.reasons) if reasons]
    between: list[int] = []
    some = 2
    while some < 2 * count:
        between += spread(count, min(some, count))
        some *= 2
    return dict.fromkeys((count - 1, 0, *asked, *between, *range(count)))


def _read(model: ModelRecord, found: KeptCatalog, at: int, *, names: Container[Name]) -> Iterator[Read]:
    """The kept tensors of a step that can be read."""
    for one in found.layouts[found.layout[at]]:
        if _name(one) in names:
            with suppress(NotFoundError, RecordError):
                yield one, model.tensor(Series(-1, *one.key), found.steps[at], most_bytes=1 << 62, loss=one.loss)


def _entry(one: KeptLayout, tensor: KeptTensor, *, pool: _Pool, facts: dict[str, int]) -> Json:
    said = json.dumps({**tensor_facts(one), "rank": tensor.rank, "gradient_scale": tensor.gradient_scale})
    places = {name: pool.add(values) for name, values in _arrays_of(tensor).items()}
    rounded = {"is_rounded": True} if is_rounded(tensor.values) else {}
    return {"facts": facts.setdefault(said, len(facts)), **places, **rounded}


def _arrays_of(tensor: KeptTensor) -> Arrays:
    values = tensor.values
    is_complex = np.iscomplexobj(values)
    found: Arrays = {"values": values.real, "imaginary": values.imag} if is_complex else {"values": values}
    if tensor.mean is not None and tensor.std is not None and tensor.largest is not None:
        found["statistics"] = np.stack([tensor.mean, tensor.std, tensor.largest])
    return found


def _key(numbers: npt.NDArray[Any]) -> tuple[str, bytes]:
    return numbers.dtype.name, hashlib.sha256(numbers.tobytes()).digest()


def packed_size(arrays: Arrays) -> int:
    """Bytes that they take in a page, before these become letters."""
    return sum(len(shortest_block(one.tobytes())) for one in arrays.values())


def _part(
    found: KeptCatalog, shown: Sequence[tuple[int, tuple[KeptLayout, ...], list[Json]]], *, size: int
) -> KeptCatalog:
    """`found` with only these steps and layouts."""
    layouts = dict.fromkeys(layout for _, layout, _ in shown)
    number = {layout: at for at, layout in enumerate(layouts)}
    steps = [at for at, _, _ in shown]
    return replace(
        found,
        steps=tuple(found.steps[at] for at in steps),
        labels=tuple(found.labels[at] for at in steps),
        reasons=tuple(found.reasons[at] for at in steps),
        layout=tuple(number[layout] for _, layout, _ in shown),
        layouts=tuple(layouts),
        ranks=found.ranks[:1],
        bytes=size,
    )


def _tensors(found: KeptCatalog) -> Iterable[KeptLayout]:
    """The layout of each kept tensor, in the order in which `listed` has them."""
    return {(*one.key, one.loss): one for layout in found.layouts for one in layout}.values()


def _note(found: KeptCatalog, part: KeptCatalog, most_bytes: float) -> str:
    """What was left out, as a sentence; empty if nothing was."""
    whole, own = (
        len({_name(one) for each in found.layouts for one in each}),
        len({_name(one) for one in _tensors(part)}),
    )
    if (len(part.steps), own, part.ranks) == (len(found.steps), whole, found.ranks):
        return ""
    ranks = f" of rank {part.ranks[0]}" if part.ranks != found.ranks else ""
    return (
        f"This page has the kept tensors{ranks} of {len(part.steps):,} of {len(found.steps):,} kept steps, and "
        f"{own:,} of {whole:,} tensors: what fits into {most_bytes / 1e6:.3g} MB. The run has all of them."
    )


def _graph_at(model: ModelRecord, step: int, graphs: list[Json]) -> int | None:
    """The number of the step's dependency graph in `graphs`, to which it is added if it is new."""
    try:
        found = {**tensor_graph_answer(model, step=step, rank=None), "step": 0}
    except TorchgraphError:
        return None
    if found not in graphs:
        graphs.append(found)
    return graphs.index(found)


def _name(one: KeptLayout) -> Name:
    return one.module, one.call, one.role, one.path


def _size(one: KeptLayout) -> int:
    """Bytes on a page, at most, not compressed."""
    wide = 1 if one.dtype in ("bool", "uint8") else 4 if one.dtype in _SINGLE else 8
    _, statistics = one.sizes
    return ENTRY_BYTES + statistics + math.prod(one.kept_shape) * (16 if one.dtype == "complex128" else wide)


def _shortest(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The numbers in the shortest type of a page that holds them, flat."""
    flat = values.reshape(-1)
    if flat.dtype == np.bool_:
        return flat.astype(np.uint8)
    if flat.dtype.kind not in "iu":
        return flat.astype(np.float64 if flat.dtype.itemsize > 4 else np.float32)
    low, high = (int(flat.min()), int(flat.max())) if flat.size else (0, 0)
    for kind in _WHOLE:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return flat.astype(kind)
    return flat.astype(np.float64)
