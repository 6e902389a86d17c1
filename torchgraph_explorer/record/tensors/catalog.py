"""Which tensors were kept at which steps, without reading any of them."""

from __future__ import annotations

from dataclasses import dataclass

from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.record.tensors.encoding import KeptLayout
from torchgraph_explorer.record.tensors.index import KeptIndex, KeptRecord
from torchgraph_explorer.record.tensors.reading import KeptByStep


@dataclass(frozen=True, slots=True, eq=False)
class KeptCatalog:
    """What was kept of a model.

    Attributes:
        steps: The steps, ascending.
        layout: Which of `layouts` the lowest rank kept at each of `steps`.
        labels: The label of each of `steps`; None without.
        reasons: Why each of `steps` was kept, if something asked for it.
        layouts: The tensors of a step. Most steps have the same ones.
        ranks: The ranks that kept any; `(0,)` if one process trains the model.
        bytes: What the kept tensors of all models of the run take on disk.
    """

    steps: tuple[int, ...]
    layout: tuple[int, ...]
    labels: tuple[str | None, ...]
    reasons: tuple[tuple[str, ...], ...]
    layouts: tuple[tuple[KeptLayout, ...], ...]
    ranks: tuple[int, ...]
    bytes: int


def catalog(by_step: KeptByStep, index: KeptIndex, notices: Notices) -> KeptCatalog:
    """What is in the records of `by_step`. Damaged layouts are noted, and their steps are left out."""
    numbers: dict[bytes, int | None] = {}
    layouts: list[tuple[KeptLayout, ...]] = []
    records: list[KeptRecord] = []
    layout: list[int] = []
    for ranks in by_step.values():
        record = next(iter(ranks.values()))
        if record.layout not in numbers:
            found = _layout(record, index, notices)
            numbers[record.layout] = None if found is None else len(layouts)
            layouts.extend(() if found is None else (found,))
        if (number := numbers[record.layout]) is not None:
            records.append(record)
            layout.append(number)
    every = sorted({rank for ranks in by_step.values() for rank in ranks})
    return KeptCatalog(
        steps=tuple(record.step for record in records),
        layout=tuple(layout),
        labels=tuple(record.label for record in records),
        reasons=tuple(record.reasons for record in records),
        layouts=tuple(layouts),
        ranks=tuple(every),
        bytes=index.bytes,
    )


def _layout(record: KeptRecord, index: KeptIndex, notices: Notices) -> tuple[KeptLayout, ...] | None:
    try:
        return tuple(one for one in index.layout(record).tensors if one is not None)
    except DamageError:
        notices.add(f"segment tensors/{record.file.name}: the tensors of step {record.step} are damaged")
        return None
