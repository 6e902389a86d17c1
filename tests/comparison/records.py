"""Runs made by hand, to be compared: a small chain of modules with known elements at each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tests.findings.records import chain, module, weight
from tests.record.examples import SESSION, logged, quietly, write
from tests.record.pooling import histograms_of, statistics_of
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import Extent, Frame, ModuleGraph, Series, Session

Elements: TypeAlias = npt.NDArray[np.float32]
Key: TypeAlias = tuple[str, int | None, str, str, str]
Change: TypeAlias = Callable[[int, Key, Elements], Elements | None]
"""Gives the elements of a series at a step; None if it is not recorded then."""


def unchanged(_step: int, _key: Key, elements: Elements) -> Elements:
    return elements


def net(*names: str) -> ModuleGraph:
    """A chain of linear layers."""
    return chain(*(module(name, "Linear", weight(4, 4)) for name in names))


def keys_of(graph: ModuleGraph) -> list[Key]:
    """Every series of the graph: inputs and outputs with their gradients, parameters with theirs and their updates."""
    found: list[Key] = []
    for call in graph.calls:
        for kind in ("value", "grad_norm"):
            found += [(call.module, call.call, "input", "input[0]", kind)]
            found += [(call.module, call.call, "output", "output", kind)]
    for one in graph.modules:
        found += (
            [(one.name, None, "param", "weight", kind) for kind in ("value", "grad", "update")] if one.params else []
        )
    return found


def elements_of(step: int, number: int) -> Elements:
    """Elements that move slowly and fluctuate, the same for the same arguments."""
    rng = np.random.default_rng((step, number))
    found: Elements = (1 + number + step / 500 + 0.02 * rng.standard_normal(64)).astype(np.float32)
    return found


def fingerprint(elements: Elements) -> int:
    bits = elements.view(np.uint32).astype(np.uint64)
    return int((bits * bits + bits).sum() << np.uint64(2)) & ~3 | Extent.ALL


def recorded(
    folder: Path,
    steps: Sequence[int],
    change: Change = unchanged,
    *,
    graph: ModuleGraph | None = None,
    has_fingerprints: bool = True,
    scalars: Mapping[str, Sequence[float]] | None = None,
    session: Session = SESSION,
) -> Model:
    """A run with a frame at each of `steps`, where `change` has been applied to the usual elements."""
    graph = graph or net("first", "second", "third")
    keys = keys_of(graph)
    series = tuple(Series(number, *key) for number, key in enumerate(keys))  # type: ignore[arg-type]
    frames = [_frame(step, keys, change, has_fingerprints=has_fingerprints) for step in steps]
    values = {name: list(values) for name, values in (scalars or {}).items()}
    more = [logged(list(steps), notes=(), **values)] if values else []
    write(folder, graph, series, *frames, *more, session=replace(session, clock=None))
    return quietly(folder).model()


def _frame(step: int, keys: Sequence[Key], change: Change, *, has_fingerprints: bool) -> Frame:
    found = {number: change(step, key, elements_of(step, number)) for number, key in enumerate(keys)}
    present = {number: one.astype(np.float32) for number, one in found.items() if one is not None}
    arrays = list(present.values())
    rows = np.arange(len(arrays), dtype=np.uint32)
    statistics = np.array([statistics_of(one) for one in arrays], dtype=np.float32)
    fingerprints = np.array([fingerprint(one) for one in arrays], np.uint64) if has_fingerprints else None
    ids = np.array(list(present), dtype=np.uint32)
    return Frame(step, 1.0, None, 0, ids, rows, statistics, histograms_of(arrays), fingerprints=fingerprints)
